"""QEMU's command line: one CPU under TCG whose clock counts instructions, no disk, no network, no
default device. Nothing here depends on KVM, root, the host's CPU or its filesystems.

wall_clock.py has the other machine, which runs in real time.
"""

from __future__ import annotations

import hashlib
import json

from jojlab.foundation.tools import need_tool
from jojlab.guest.image.build import QEMU, QEMU_PACKAGE, Image
from jojlab.guest.machine import HANDOUT_BYTES, Machine
from jojlab.guest.memory_file import Memory

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

# QEMU's main loop moves the clock on when the CPU has halted, and may look in the instant when it
# has halted but its last instructions are not counted yet: the clock is then late by them, hundreds
# of ns, and all that follows differs. On a busy machine that was one case in tens. In record mode
# the CPU's thread holds a lock from its budget to its account (icount_prepare_for_run() and
# icount_process_data() in accel/tcg/tcg-accel-ops-icount.c), which each turn of the main loop takes
# too; the recording itself is not wanted. A snapshot cannot be saved so: QEMU 7.2 aborts, as its
# migration thread reads the host's clock without the lock.
ONE_THREAD_AT_A_TIME = ("-icount", "rr=record,rrfile=/dev/null")

# What saved_clock.py does to a snapshot; another word, another key.
_COUNT = "instructions counted from the snapshot"


def arguments(machine: Machine, memory: str, kernel: str, initramfs: str) -> list[str]:
    """All that decides what the guest computes; the same for its snapshot and for every case."""
    append = f"{KERNEL_COMMAND_LINE} {handout_words(machine.handout_address)}"
    return [
        # No timer may run but the local APIC's, see agent/src/lab/channel/timers.rs.
        *("-machine", "microvm,pit=off,memory-backend=ram"),
        *("-accel", "tcg,thread=single"),
        # The oldest x86-64 model, like a phone's core without instructions for checksums. ARAT says
        # that its timer runs on in idle: without, and without a PIT, there is no one-shot timer.
        *("-cpu", "qemu64,+arat"),
        *("-smp", "1"),
        *("-icount", f"shift={machine.icount_shift},sleep=off"),
        *("-rtc", "base=2020-01-01,clock=vm"),
        *("-m", f"{machine.whole_memory_mib}M", "-object", memory),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        # The guest stops itself through pvpanic; QEMU then waits for us.
        *("-device", "pvpanic", "-action", "panic=pause"),
        *("-kernel", kernel, "-initrd", initramfs, "-append", append),
    ]


def handout_words(address: int) -> str:
    """The kernel's parameters for the memory for results: reserve it, and where it is."""
    place, length = hex(address), hex(HANDOUT_BYTES)
    return f"memmap={length}${place} joj.handout={place}:{length}"


def command(
    image: Image, machine: Machine, memory: Memory, console: str, qmp_descriptor: int
) -> list[str]:
    """The whole command: paused at first, with a console file and a QMP connection."""
    backend = memory.backend(machine.whole_memory_mib)
    given = arguments(machine, backend, str(image.kernel), str(image.initramfs))
    return watched(given, console, qmp_descriptor)


def watched(given: list[str], console: str, qmp_descriptor: int) -> list[str]:
    """The program and its arguments, with what every machine has so that we can steer it."""
    return [
        str(need_tool(QEMU, QEMU_PACKAGE)),
        *given,
        "-S",
        *("-serial", f"file:{console}"),
        *("-chardev", f"socket,id=qmp,fd={qmp_descriptor}", "-mon", "chardev=qmp,mode=control"),
    ]


def incoming() -> list[str]:
    """What a run adds: one thread at a time, and that its state will be given (process.Guest)."""
    return [*ONE_THREAD_AT_A_TIME, "-incoming", "defer"]


def machine_key(image: Image, machine: Machine) -> str:
    """The hash of all that a snapshot depends on: equal keys give equal snapshots."""
    return _hash([image.fingerprint, _COUNT, *arguments(machine, "MEMORY", "KERNEL", "INITRAMFS")])


def run_key(image: Image, machine: Machine) -> str:
    """The hash of all that a run depends on but what the guest is given."""
    return _hash([machine_key(image, machine), *ONE_THREAD_AT_A_TIME])


def _hash(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
