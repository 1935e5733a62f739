"""QEMU's command line: one CPU under TCG whose clock counts instructions, no disk, no network, no
default device. Nothing here depends on KVM, root, the host's CPU or its filesystems.

run.py has the other machine, which runs in real time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from jojlab.foundation.cache import sha256
from jojlab.foundation.tools import need_tool
from jojlab.guest.image.build import Image
from jojlab.guest.machine import HANDOUT_BYTES, Machine
from jojlab.guest.memory import Memory
from jojlab.model.architecture import ARM64, X86_64, Architecture

# Of both machines.
COMMON_COMMAND_LINE = (
    # Only what goes wrong is printed: each character costs the guest time on the serial port.
    "console=ttyS0 quiet "
    # A panic resets at once (by a triple fault, which every machine has), and -no-reboot ends QEMU.
    "panic=-1 reboot=t "
    # The virtual CPU needs no mitigations; addresses and random numbers repeat from run to run.
    "mitigations=off nokaslr random.trust_cpu=off "
    # 1.5 s of cipher self-tests.
    "cryptomgr.notests "
    # The agent halts the timer of the local APIC, which a driver claims, around its stops.
    "iomem=relaxed "
    # Without, the kernel mistrusts the TSC, and falls back to what is read by an exit to QEMU, or
    # to jiffies, 4 ms each.
    "tsc=reliable "
)
# icount drives the TSC at exactly one tick a virtual nanosecond.
KERNEL_COMMAND_LINE = f"{COMMON_COMMAND_LINE}tsc_early_khz=1000000"


@dataclass(frozen=True)
class _Board:
    """Return what QEMU is told of a machine and its kernel, but where the results go."""

    machine: str
    cpu: str
    stops: str
    command_line: str


_BOARDS = {
    X86_64: _Board(
        # No timer may run but the local APIC's, see agent/src/lab/channel/hardware/x86_64.
        "microvm,pit=off,memory-backend=ram",
        # The oldest x86-64 model, like a phone's core without instructions for checksums. ARAT says
        # that its timer runs on in idle: without, and without a PIT, there is no one-shot timer.
        "qemu64,+arat",
        "pvpanic",
        KERNEL_COMMAND_LINE,
    ),
    ARM64: _Board(
        # Without seeds of random numbers, which QEMU draws anew.
        "virt,dtb-randomness=off,memory-backend=ram",
        # The core of many phones since 2014; it has instructions for checksums (CRC32) and ciphers.
        # Its counter, of 62.5 MHz by default in QEMU, has a tick a virtual nanosecond.
        "cortex-a53,cntfrq=1000000000",
        # Its window is found by kernel/guest_stop, which halts the core's timer around a stop.
        "pvpanic-pci",
        # As above; a reset is asked of QEMU by PSCI.
        "console=ttyAMA0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=off "
        "cryptomgr.notests iomem=relaxed",
    ),
}

# QEMU's main loop moves the clock on when the CPU has halted, and may look in the instant when it
# has halted but its last instructions are not counted yet: the clock is then late by them, hundreds
# of ns, and all that follows differs. On a busy machine that was one case in tens. In record mode
# the CPU's thread holds a lock from its budget to its account (icount_prepare_for_run() and
# icount_process_data() in accel/tcg/tcg-accel-ops-icount.c), which each turn of the main loop takes
# too; the recording itself is not wanted. A snapshot cannot be saved so: QEMU 7.2 aborts, as its
# migration thread reads the host's clock without the lock.
ONE_THREAD_AT_A_TIME = ("-icount", "rr=record,rrfile=/dev/null")

# What snapshot.py does to a snapshot; another word, another key.
_COUNT = "instructions counted from the snapshot"


def arguments(machine: Machine, memory: str, kernel: str, initramfs: str) -> list[str]:
    """Return all that decides what the guest computes: one for its snapshot and every case."""
    board = _BOARDS[machine.architecture]
    words = handout_words(machine.handout_address)
    if machine.architecture == ARM64:
        words = arm64_handout_words(machine)
    append = f"{board.command_line} {words}"
    return [
        *("-machine", board.machine),
        *("-accel", "tcg,thread=single"),
        *("-cpu", board.cpu),
        *("-smp", "1"),
        *("-icount", f"shift={machine.icount_shift},sleep=off"),
        *("-rtc", "base=2020-01-01,clock=vm"),
        *("-m", f"{machine.whole_memory_mib}M", "-object", memory),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        # The guest stops itself through pvpanic; QEMU then waits for us.
        *("-device", board.stops, "-action", "panic=pause"),
        *("-kernel", kernel, "-initrd", initramfs, "-append", append),
    ]


def handout_words(address: int) -> str:
    """Return the kernel's parameters for the memory for results: reserve it, and where it is."""
    place, length = hex(address), hex(HANDOUT_BYTES)
    return f"memmap={length}${place} joj.handout={place}:{length}"


def arm64_handout_words(machine: Machine) -> str:
    """Return the same of arm64, whose kernel leaves out what is above its own memory."""
    place, length = hex(machine.handout_address), hex(HANDOUT_BYTES)
    return f"mem={machine.memory_mib}M joj.handout={place}:{length}"


def command(
    image: Image, machine: Machine, memory: Memory, console: str, qmp_descriptor: int
) -> list[str]:
    """Return the whole command: paused at first, with a console file and a QMP connection."""
    backend = memory.backend(machine.whole_memory_mib)
    words = arguments(machine, backend, str(image.kernel), str(image.initramfs))
    return add_control(words, console, qmp_descriptor, machine.architecture)


def add_control(
    command: list[str], console: str, qmp_descriptor: int, architecture: Architecture = X86_64
) -> list[str]:
    """Return the program and its arguments, with what every machine has so that we can steer it."""
    return [
        str(need_tool(architecture.qemu, architecture.qemu_package)),
        *command,
        "-S",
        *("-serial", f"file:{console}"),
        *("-chardev", f"socket,id=qmp,fd={qmp_descriptor}", "-mon", "chardev=qmp,mode=control"),
    ]


def machine_key(image: Image, machine: Machine) -> str:
    """Return the hash of all that a snapshot depends on: equal keys give equal snapshots."""
    return hash_words(
        [image.fingerprint, _COUNT, *arguments(machine, "MEMORY", "KERNEL", "INITRAMFS")]
    )


def hash_words(words: list[str]) -> str:
    """Return one hash of all the words."""
    return sha256(json.dumps(words).encode())
