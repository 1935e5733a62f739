"""Runs a program as if somebody set this machine's clock, which stays as it is.

    python -m tests.full.set_clock SECONDS PROGRAM ARGUMENT...

SIGUSR1 sets the program's clock on the wall (CLOCK_REALTIME) ahead by so many seconds, SIGUSR2
back. The program is traced (ptrace(2)), and what clock_gettime(2) gave it is changed. A static
program asks the vDSO, which no library can replace: its function is overwritten there by the system
call. Threads and processes that the program makes see the real clock.
"""

from __future__ import annotations

import ctypes
import io
import os
import platform
import re
import signal
import struct
import sys
from pathlib import Path

# Numbers of linux/ptrace.h, linux/time.h, and asm/unistd_64.h of x86_64.
_TRACEME, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_TRACESYSGOOD, _EXITKILL = 1, 1 << 20
_ENTRY, _EXIT = 1, 2
_CLOCK_GETTIME = 228
_WALL_CLOCKS = (0, 5)  # CLOCK_REALTIME and CLOCK_REALTIME_COARSE
_INFO_BYTES = 88
# mov eax, 228; syscall; ret
_CALL = bytes.fromhex("b8e40000000f05c3")

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Run the program; return its exit code."""
    if platform.machine() != "x86_64":
        sys.exit("the bytes that are put into the vDSO are x86_64's")
    seconds, *command = sys.argv[1:]
    offset_s = 0

    def change(number: int, _: object) -> None:
        nonlocal offset_s
        offset_s += int(seconds) if number == signal.SIGUSR1 else -int(seconds)

    pid = os.fork()
    if pid == 0:
        _ptrace(_TRACEME, 0, 0, 0)
        os.execv(command[0], command)
    signal.signal(signal.SIGUSR1, change)
    signal.signal(signal.SIGUSR2, change)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    os.waitpid(pid, 0)  # at its exec
    _ptrace(_SETOPTIONS, pid, 0, _TRACESYSGOOD | _EXITKILL)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(_vdso(pid) + _place_of_function())
        memory.write(_CALL)
        answer, passed_on = 0, 0
        while True:
            _ptrace(_SYSCALL, pid, 0, passed_on)
            _, status = os.waitpid(pid, 0)
            if not os.WIFSTOPPED(status):
                return os.waitstatus_to_exitcode(status)
            stop = os.WSTOPSIG(status)
            passed_on = 0 if stop & 0x80 or stop == signal.SIGTRAP else stop
            if not stop & 0x80:
                continue
            info = ctypes.create_string_buffer(_INFO_BYTES)
            _ptrace(_GET_SYSCALL_INFO, pid, _INFO_BYTES, ctypes.addressof(info))
            if info.raw[0] == _ENTRY:
                number, clock, place = struct.unpack_from("<3Q", info.raw, 24)
                answer = place if number == _CLOCK_GETTIME and clock in _WALL_CLOCKS else 0
            elif info.raw[0] == _EXIT and answer and offset_s:
                memory.seek(answer)
                [now_s] = struct.unpack("<q", memory.read(8))
                memory.seek(answer)
                memory.write(struct.pack("<q", now_s + offset_s))


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    arguments = (ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address))
    if _libc.ptrace(*arguments, ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace(2), request {request:#x}")


def _vdso(pid: int | str) -> int:
    found = re.search(r"(?m)^(\w+)-.*\[vdso\]$", Path(f"/proc/{pid}/maps").read_text())
    assert found
    return int(found[1], 16)


def _place_of_function() -> int:
    """Return the place of clock_gettime in the vDSO, which is the same in all processes."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with open("/proc/self/mem", "rb", buffering=0) as memory:
        memory.seek(_vdso("self"))
        image = memory.read(2 * os.sysconf("SC_PAGE_SIZE"))
    symbols = ELFFile(io.BytesIO(image)).get_section_by_name(".dynsym")
    assert isinstance(symbols, SymbolTableSection)
    found = symbols.get_symbol_by_name("__vdso_clock_gettime")
    assert found
    return int(found[0]["st_value"])


if __name__ == "__main__":
    sys.exit(main())
