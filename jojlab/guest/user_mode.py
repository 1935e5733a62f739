"""User Mode Linux of the guest's own kernel, which judges what power cuts leave of a run that a
guest performed: at the processor's own speed, where the guest is emulated.

It is built of the source package of exactly the kernel's version, in which its random numbers are
made the same each time, and its checksums fast. The agent of the guest's image is
its first process and does there what it does in the guest (agent/src/lab/power_cut); what it needs
lies in one folder of this machine, the only one that it can reach (hostfs=), and it has no network
and no disk. Its clock stands while anything computes (time-travel=inf-cpu) and begins at the same
moment each time, so that no verdict hangs on what else this machine does.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError, MachineError
from jojlab.foundation.places import FLASH, USER_MODE
from jojlab.foundation.tools import need_tool, package_version, run_tool
from jojlab.guest.image.build import Image
from jojlab.guest.image.modules import flash_sources, strip
from jojlab.guest.kernel.choose import chosen_kernel
from jojlab.guest.kernel.kernel import source_archive
from jojlab.guest.process import console_tail, run_to_end

# Added to the kernel's default configuration of User Mode Linux: filesystems with the options that
# Debian's kernel has, and what the agent needs.
_CONFIGURATION = (
    "64BIT", "MODULES", "HOSTFS", "BLK_DEV_INITRD", "HIGH_RES_TIMERS", "DEVTMPFS", "TMPFS",
    "PRINTK", "SYSCTL", "PROC_SYSCTL", "NULL_CHAN", "AIO", "FILE_LOCKING",
    "UML_TIME_TRAVEL_SUPPORT", "EXT4_FS", "EXT4_FS_POSIX_ACL", "EXT4_FS_SECURITY", "XFS_FS",
    "XFS_QUOTA", "XFS_POSIX_ACL", "BTRFS_FS", "BTRFS_FS_POSIX_ACL", "F2FS_FS", "F2FS_FS_XATTR",
    "F2FS_FS_POSIX_ACL", "F2FS_FS_SECURITY", "F2FS_FS_COMPRESSION", "NILFS2_FS", "XFS_RT",
    "FS_ENCRYPTION", "FS_VERITY", "UNICODE",
)  # fmt: skip
# Left out of it: what takes long to build, real random numbers, and a benchmark at boot, which
# would measure a clock that stands.
_ABSENT = (
    "CC_OPTIMIZE_FOR_SIZE", "NET", "SOUND", "REISERFS_FS", "UML_RANDOM", "RAID6_PQ_BENCHMARK",
)  # fmt: skip
# The kernel's log is as long as for a filesystem that tells of each page.
_VALUES = ("CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y", "CONFIG_LOG_BUF_SHIFT=20")
# Its random numbers begin alike each time, so that a recovery writes the same each time: what it
# would ask this machine for (arch/um) are bytes of no meaning.
_RANDOM = (
    "arch/um/os-Linux/util.c",
    ("return getrandom(buf, len, flags);", "memset(buf, 0x6a, len); return len;"),
)
# Objects of ours are linked to it (kernel/user_mode): this one, and the other with what calls it.
_OBJECTS, _CHECKSUMS, _REGISTERS = "arch/x86/um", "crc32c", "vector_registers"
_STOPS = (
    "arch/um/os-Linux/skas/process.c",
    (
        "void userspace(struct uml_pt_regs *regs",
        "int put_vector_registers(int, struct uml_pt_regs *);\n"
        "int get_vector_registers(int, struct uml_pt_regs *, int);\n"
        "void userspace(struct uml_pt_regs *regs",
    ),
    ("put_fp_registers(pid, regs->fp)", "put_vector_registers(pid, regs)"),
    ("get_fp_registers(pid, regs->fp)", "get_vector_registers(pid, regs, status)"),
)
# A processor with AMX has vector registers of 11 KiB, of which User Mode Linux keeps the 2.6 that
# come first, as nothing there has a use for AMX's. Its kernel takes them back in one piece alone.
_WIDE_REGISTERS = (
    "arch/x86/um/os-Linux/registers.c",
    (
        "int restore_fp_registers(int pid",
        "static char all_registers[1 << 14];\n\nint restore_fp_registers(int pid",
    ),
    (
        "if (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov) < 0)",
        "__builtin_memcpy(all_registers, iov.iov_base, iov.iov_len);\n"
        "\t\tiov.iov_base = all_registers;\n"
        "\t\tiov.iov_len = sizeof(all_registers);\n"
        "\t\tif (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov) < 0)",
    ),
)
# A process gets its processor again without three calls that set where its thread's data begins:
# that is among the registers which are put back in any case.
_SWITCHES = (
    "arch/x86/um/syscalls_64.c",
    (
        "(to->thread.arch.fs == 0)",
        "(to->thread.arch.fs == 0) ||\n"
        "\t    (to->thread.regs.regs.gp[HOST_FS_BASE] == to->thread.arch.fs)",
    ),
)
# The compiler knows what memcpy() does, and copies a word by one instruction in place of a call.
_BUILTINS = ("arch/x86/Makefile.um", ("-fno-builtin -m64", "-m64"))
# Long copies and fills take the processor's own instruction, as its kernel's patch of its code that
# chooses it at boot is none of User Mode Linux.
_LONG_BYTES = 512
_COPIES, _FILLS = (
    (
        f"arch/x86/lib/{name}_64.S",
        (
            f'ALTERNATIVE_2 "jmp {name}_orig", "", X86_FEATURE_REP_GOOD, \\\n'
            f'\t\t      "jmp {name}_erms", X86_FEATURE_ERMS',
            f"cmpq ${_LONG_BYTES}, %rdx\n\tjb {name}_orig",
        ),
    )
    for name in ("memcpy", "memset")
)
# A path is copied as far as it goes, and no page is filled with zeroes behind it.
_PATHS = (
    "arch/um/kernel/skas/uaccess.c",
    (
        "strncpy(to, (void *) from, len);\n\tn = strnlen(to, len);",
        "n = strnlen((void *) from, len);\n\tmemcpy(to, (void *) from, n < len ? n + 1 : n);",
    ),
)
# What only makes it faster.
_FASTER = (_SWITCHES, _BUILTINS, _COPIES, _FILLS, _PATHS)
# The name of the build is part of what they begin with (Documentation/kbuild/
# reproducible-builds.rst).
_BUILD_NAME = (
    "KBUILD_BUILD_TIMESTAMP=2020-01-01",
    "KBUILD_BUILD_USER=joj",
    "KBUILD_BUILD_HOST=joj",
)
_TOOLS = (("make", "make"), ("gcc", "gcc"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"))
_LINUX, _MODULE, _IMAGE = "linux", "flash.ko", "initramfs"
_CHECKER = "checker"
_MEMORY = "mem=1G"
# 2020-01-02, a day after the guests' clocks begin, so that nothing there is of the future.
_BEGIN_NS = 1_577_923_200 * 10**9
_KIND = "user-mode"
# What the guest hands out for it (agent/src/lab/power_cut/handed_run.rs).
RUN_FILES = ("run.json", "run_pages")


def build_key(cache: Cache, kernel_name: str) -> str:
    """Return the key of User Mode Linux of a kernel, which names all that it is built of.

    Raises MachineError where the kernel or a tool is missing.
    """
    kernel = chosen_kernel(cache, kernel_name)
    digest = hashlib.sha256()
    versions = (kernel.release, kernel.version, package_version("gcc"))
    changes = (*_RANDOM, *_STOPS, *_WIDE_REGISTERS, *itertools.chain.from_iterable(_FASTER))
    chosen = (*_CONFIGURATION, *_ABSENT, *_VALUES, *changes, _OBJECTS)
    for part in (*versions, *chosen, _MEMORY, str(_BEGIN_NS)):
        digest.update(f"{part}\0".encode())
    for name in (_CHECKSUMS, _REGISTERS):
        digest.update(_own_source(name).read_bytes())
    for path in flash_sources(FLASH):
        digest.update(f"{path.relative_to(FLASH)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def is_built(cache: Cache, key: str) -> bool:
    """Return whether User Mode Linux of this key is in the cache."""
    return (cache.folder(_KIND) / key / _LINUX).is_file()


def build(cache: Cache, kernel_name: str, key: str) -> None:
    """Build it, once: some minutes of processor time, 2 GB of disk meanwhile.

    Raises MachineError where a tool or the source is missing, or the compiler complains.
    """
    for tool, package in _TOOLS:
        need_tool(tool, package)
    kernel = chosen_kernel(cache, kernel_name)

    def fill(out: Path) -> None:
        with cache.work_dir() as work:
            # First, while they are what the key was made of: the kernel takes minutes.
            module = work / "flash"
            for path in flash_sources(FLASH):
                copy = module / path.relative_to(FLASH)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
            archive = source_archive(kernel, work)
            run_tool(["tar", "-xJf", str(archive), "-C", str(work)], "unpack the source")
            [source] = work.glob("linux-source-*/")
            _change(source)
            _configure(source)
            make = ["make", f"-j{os.cpu_count() or 1}", "-C", str(source), "ARCH=um", *_BUILD_NAME]
            run_tool([*make, "KCFLAGS=-g0", "linux", "modules"], "build User Mode Linux")
            run_tool([*make, f"M={module}", "modules"], "build the module flash")
            strip(module / _MODULE, out / _MODULE)
            strip(source / _LINUX, out / _LINUX)

    cache.entry(_KIND, key, fill)


def checker_library(cache: Cache) -> Path:
    """Return what a filesystem's checker loads to start once for many checks: _CHECKER, built.

    Raises MachineError where the compiler is missing, or complains.
    """
    source = _own_source(_CHECKER)
    key = hashlib.sha256(package_version("gcc").encode() + source.read_bytes()).hexdigest()[:16]

    def fill(out: Path) -> None:
        compiler = [str(need_tool("gcc", "gcc")), "-O2", "-shared", "-fPIC"]
        run_tool([*compiler, "-o", str(out / _CHECKER), str(source)], f"build {source.name}")

    return cache.entry(_CHECKER, key, fill) / _CHECKER


def _own_source(name: str) -> Path:
    return USER_MODE / f"{name}.c"


def _change(source: Path) -> None:
    """Change the source as said above; MachineError where this kernel's is another. What only makes
    it faster is left out there.
    """
    if not _has_changed(source, *_RANDOM):
        raise MachineError(f"{_RANDOM[0]} of this kernel is another", "leave --native out")
    _has_changed(source, *_WIDE_REGISTERS)
    names = [_CHECKSUMS]
    if _has_changed(source, *_STOPS):
        names.append(_REGISTERS)
    for name, *changes in _FASTER:
        _has_changed(source, name, *changes)
    for name in names:
        shutil.copyfile(_own_source(name), source / _OBJECTS / f"{name}.c")
    with (source / _OBJECTS / "Makefile").open("a") as makefile:
        makefile.writelines(f"obj-y += {name}.o\n" for name in names)


def _has_changed(source: Path, name: str, *changes: tuple[str, str]) -> bool:
    """Change a file of the source; False, and it stays, where it has not got each text once."""
    file = source / name
    content = file.read_text()
    if any(content.count(old) != 1 for old, _ in changes):
        return False
    for old, new in changes:
        content = content.replace(old, new)
    file.write_text(content)
    return True


def _configure(source: Path) -> None:
    """Write the configuration; MachineError where this kernel has not got an option."""
    make = ["make", "-C", str(source), "ARCH=um"]
    run_tool([*make, "defconfig"], "configure User Mode Linux")
    lines = [f"CONFIG_{option}=y" for option in _CONFIGURATION]
    lines += [*(f"# CONFIG_{option} is not set" for option in _ABSENT), *_VALUES]
    file = source / ".config"
    file.write_text("\n".join((file.read_text(), *lines, "")))
    run_tool([*make, "olddefconfig"], "configure User Mode Linux")
    there = set(file.read_text().splitlines())
    # What hangs on an option that is left out is not named at all.
    missing = [line for line in lines if line not in there and not line.startswith("#")]
    unwanted = [option for option in _ABSENT if f"CONFIG_{option}=y" in there]
    if missing := [*missing, *unwanted]:
        raise MachineError(
            f"User Mode Linux of this kernel takes no {', '.join(missing)}", "leave --native out"
        )


def judge(
    cache: Cache,
    key: str,
    image: Image,
    record: bytes,
    files: Mapping[str, bytes],
    timeout_s: float,
) -> dict[str, bytes]:
    """Return the files that the judge hands out, by name, of a run whose RUN_FILES these are.

    Raises MachineError where it is not built, GuestError when it hangs or dies.
    """
    built = cache.entry(_KIND, key, _refuse_unbuilt)
    with cache.work_dir() as work:
        (work / "results").mkdir()
        (work / "job").write_bytes(record)
        for name in RUN_FILES:
            (work / name).write_bytes(files[name])
        shutil.copyfile(built / _MODULE, work / _MODULE)
        (work / _IMAGE).symlink_to(image.initramfs)
        # It draws random numbers from this line too, so paths are those that it sees; and from when
        # it is interrupted, as by a pipe that takes more: what it prints goes to a file.
        command = [
            *(str(built / _LINUX), _MEMORY, f"initrd={_IMAGE}", "hostfs=."),
            *("time-travel=inf-cpu", f"time-travel-start={_BEGIN_NS}"),
            *("con=null", "con0=null,fd:1", "quiet", "panic=-1", "joj.judge"),
        ]
        with _own_processor(cache) as processor:
            command = [*_same_each_time(processor), *command]
            code = asyncio.run(run_to_end(command, work, timeout_s))
        found = {path.name: path.read_bytes() for path in (work / "results").iterdir()}
        if not found:
            raise GuestError(
                f"User Mode Linux ended ({code}) before its verdicts were out",
                console=console_tail(work),
            )
    return found


def _same_each_time(processor: int | None) -> list[str]:
    """Return what starts a program whose addresses are the same each time, as the memory of User
    Mode Linux begins behind its heap; on one processor, where one is named.
    """
    fixed = [str(need_tool("setarch", "util-linux")), "-R"]
    if processor is None:
        return fixed
    return [*fixed, str(need_tool("taskset", "util-linux")), "-c", str(processor)]


@contextlib.contextmanager
def _own_processor(cache: Cache) -> Iterator[int | None]:
    """Yield a processor that no other judge has; None where each has one.

    Its kernel and its process take turns, never both at once: on one processor the switch is
    cheaper (bench/README.md, "States after power cuts").
    """
    for number in sorted(os.sched_getaffinity(0)):
        with (cache.folder("locks") / f"processor-{number}").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield number
            return
    yield None


def _refuse_unbuilt(folder: Path) -> None:
    raise MachineError("User Mode Linux is not built any more", "run the same command again")
