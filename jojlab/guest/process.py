"""One QEMU process and its QMP connection: starts it, runs it until the guest stops itself, and
makes sure that it never outlives joj; User Mode Linux, which has no such connection, likewise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shlex
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from qemu.qmp import QMPClient, QMPError

from jojlab.foundation.errors import ContentsTooLarge, GuestError
from jojlab.foundation.tools import need_tool

CONSOLE = "console.log"
_CONSOLE_LINES = 15
_CONSOLE_TAIL_BYTES = 8192
_STDERR = "qemu.log"
_POLL_S = 0.005
_ENDED = "the guest panicked, reset or ended before its results were out"
# kernel/flash/room.c
_CONTENTS = re.compile(r"Kernel panic - not syncing: flash: (the contents .*)")
# Lines of the console, with what they mean and the remedy.
_DEATHS = {
    # The agent, the guest's first process, was killed by SIGBUS (7).
    "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000007": (
        "the agent was killed by SIGBUS: a page of a mapped file could not be had",
        "leave more room on the filesystem; on Btrfs a full one does this to WAL",
    ),
    "Kernel panic - not syncing: Out of memory": (
        "the guest ran out of memory: its programs want more than it has",
        "start fewer processes, or have each take less memory",
    ),
}
# What QEMU does for us (load, save, copy) takes a second; on a machine in trouble, much more.
_COMMAND_TIMEOUT_S = 120
# The child asks to be killed when we die, then makes sure that we had not died before it asked.
_TIED = '[ "$PPID" = "$0" ] && exec "$@"'

# A guest that dies takes its connection with it; we report that ourselves.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())

# The process group of each guest, and the thread that waits for it.
_alive: dict[int, int] = {}
_alive_lock = threading.Lock()


def kill_all(thread_id: int | None = None) -> None:
    """Kill every guest of this process, or of a thread; who waits for one gets GuestError."""
    with _alive_lock:
        for group, thread in _alive.items():
            if thread_id in (None, thread):
                _kill_group(group)


async def wait_for_any(
    futures: Collection[asyncio.Future[Any]], process_id: int, timeout_s: float
) -> None:
    """Wait until a future is done, or a process has run or slept, not waited, for so long."""
    end_s = time.monotonic() + timeout_s - _waiting_s(process_id)
    while (left_s := end_s + _waiting_s(process_id) - time.monotonic()) > 0:
        done, _ = await asyncio.wait(futures, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return


def _waiting_s(process_id: int) -> float:
    """Return for how long the thread of a process that had to wait most has waited for a processor
    (Documentation/scheduler/sched-stats.rst); 0 where the kernel does not say.
    """
    waiting_ns = [0]
    for file in Path(f"/proc/{process_id}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # of a thread that has ended
            waiting_ns.append(int(file.read_text().split()[1]))
    return max(waiting_ns) / 1e9


class Guest:
    """A running QEMU; see `start`."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        self._folder = folder
        self._process = process
        self._qmp = QMPClient("jojlab")

    @property
    def process_id(self) -> int:
        """Return the process id of QEMU."""
        return self._process.pid

    async def execute(self, command: str, **arguments: object) -> object:
        """Execute one QMP command; GuestError when QEMU refuses it, is silent or is gone."""
        try:
            async with self._patience(command):
                return await self._qmp.execute(command, arguments or None)
        except (QMPError, EOFError, OSError) as error:
            await self._let_it_end()
            raise self.error(
                f"QEMU failed at {command} ({error or type(error).__name__})"
            ) from error

    async def run_until_stop(self, timeout_s: float) -> None:
        """Continue the guest until it stops itself, or raise GuestError when it ends, or runs too
        long. What it waits for a processor does not count: a busy machine makes no case fail.
        """
        with self._qmp.listener(("STOP", "SHUTDOWN")) as events:
            await self.execute("cont")
            event = asyncio.ensure_future(events.get())
            gone = asyncio.ensure_future(self._process.wait())
            try:
                await wait_for_any((event, gone), self.process_id, timeout_s)
                if event.done() and event.result()["event"] == "STOP":
                    return
                if not event.done() and not gone.done():
                    raise self.error(
                        f"the guest did not finish within {timeout_s:g} s; --timeout gives it more",
                        final=True,
                    )
                tail = _tail(self._folder / CONSOLE)
                raise panic_error(self.error(_ENDED), tail)
            finally:
                event.cancel()
                gone.cancel()

    async def restore(self, state: Path) -> None:
        """Load what `save` wrote, beside its memory; a QEMU that cannot load it ends."""
        await self._leave_memory_out()
        await self.execute("migrate-incoming", uri=f"exec:cat {shlex.quote(str(state))}")
        async with self._patience("loading the snapshot"):
            while (await self._status("query-status")) == "inmigrate":
                await asyncio.sleep(_POLL_S)

    async def save(self, state: Path) -> None:
        """Write the stopped guest's state to a file, without the memory that is kept in another.

        Raises GuestError when the disk is full.
        """
        await self._leave_memory_out()
        # The default limit is the speed of a network.
        await self.execute("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        # QEMU ends when its pipe has taken the last byte, cat only when the disk has: what a pipe
        # holds is saved for QEMU, even if cat then fails. An empty file fits on a full disk.
        failed = Path(f"{state}.failed")
        partial, whole = shlex.quote(f"{state}.partial"), shlex.quote(str(state))
        write = f"cat > {partial} && mv {partial} {whole} || : > {shlex.quote(str(failed))}"
        await self.execute("migrate", uri=f"exec:{write}")
        async with self._patience("saving the guest"):
            while not state.exists():
                status = await self._status("query-migrate")
                if failed.exists() or status in ("failed", "cancelled"):
                    raise self.error("QEMU could not save the guest: is the disk full?")
                await asyncio.sleep(_POLL_S)

    async def _leave_memory_out(self) -> None:
        # The sender leaves out what is mapped shared; the receiver has to be told of the format
        # (migration/ram.c: ramblock_is_ignored, ram_load_precopy).
        ignoring = {"capability": "x-ignore-shared", "state": True}
        await self.execute("migrate-set-capabilities", capabilities=[ignoring])

    async def memory(self, address: int, length_bytes: int) -> bytes:
        """Return a copy of the stopped guest's physical memory."""
        file = self._folder / "memory"
        await self.execute("pmemsave", val=address, size=length_bytes, filename=file.name)
        content = file.read_bytes()
        file.unlink()
        return content

    def error(self, message: str, *, final: bool = False) -> GuestError:
        """Return a GuestError with the end of the console, and of what QEMU complained about."""
        tail = [*_cut_after_panic(_tail(self._folder / CONSOLE)), *_tail(self._folder / _STDERR)]
        return GuestError(message, "\n".join(tail[-_CONSOLE_LINES:]), final=final)

    @contextlib.asynccontextmanager
    async def _patience(self, action: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_COMMAND_TIMEOUT_S):
                yield
        except TimeoutError as error:
            raise self.error(f"{action} took more than {_COMMAND_TIMEOUT_S} s") from error

    async def _let_it_end(self) -> None:
        """Wait for the end of a QEMU that fails, as it says why there; not for long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 1)

    async def _status(self, query: str) -> str:
        answer = await self.execute(query)
        return str(answer.get("status", "")) if isinstance(answer, dict) else ""

    async def connect(self, connection: socket.socket) -> None:
        """Speak QMP on a connected socket."""
        try:
            async with self._patience("QEMU's start"):
                await self._qmp.connect(connection)
        except (QMPError, EOFError, OSError) as error:
            await self._let_it_end()
            raise self.error("QEMU did not start") from error

    async def disconnect(self) -> None:
        """End the connection; that QEMU is gone by then is no news."""
        with contextlib.suppress(QMPError, EOFError, OSError):
            await self._qmp.disconnect()


@contextlib.asynccontextmanager
async def start(
    command: Sequence[str], qmp: socket.socket, qmp_child: socket.socket, folder: Path
) -> AsyncIterator[Guest]:
    """Run QEMU in `folder`, in its own process group, for as long as the block lasts.

    `qmp_child` is the end of the connection that `command` names; both ends are closed after it.
    """
    guest = None
    with qmp, qmp_child, (folder / _STDERR).open("wb") as log:
        try:
            async with _running(command, folder, log, (qmp_child.fileno(),)) as process:
                qmp_child.close()
                guest = Guest(folder, process)
                await guest.connect(qmp)
                yield guest
        finally:
            if guest:
                await guest.disconnect()


async def run_to_end(command: Sequence[str], folder: Path, timeout_s: float) -> int:
    """Run a program in `folder`, in its own process group, and return how it ended; what it prints
    goes to CONSOLE. What it waits for a processor does not count as its time.

    Raises GuestError where it takes longer.
    """
    with (folder / CONSOLE).open("wb") as log:
        async with _running(command, folder, log) as process:
            gone = asyncio.ensure_future(process.wait())
            await wait_for_any([gone], process.pid, timeout_s)
            if gone.done():
                return gone.result()
            gone.cancel()
    message = f"{Path(command[0]).name} was not done after {timeout_s:g} s"
    raise GuestError(message, console_tail(folder), final=True)


def console_tail(folder: Path) -> str:
    """Return the last lines of the CONSOLE in a folder."""
    return "\n".join(_tail(folder / CONSOLE)[-_CONSOLE_LINES:])


@contextlib.asynccontextmanager
async def _running(
    command: Sequence[str], folder: Path, log: BinaryIO, descriptors: Sequence[int] = ()
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program in its own process group for as long as the block lasts, or this process."""
    setpriv = need_tool("setpriv", "util-linux")
    tied = [str(setpriv), "--pdeathsig", "KILL", "sh", "-c", _TIED, str(os.getpid())]
    process = await asyncio.create_subprocess_exec(
        *tied, *command,
        cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
        pass_fds=descriptors, process_group=0,
    )  # fmt: skip
    with _alive_lock:
        _alive[process.pid] = threading.get_ident()
    try:
        yield process
    finally:
        with _alive_lock:
            _kill_group(process.pid)
            del _alive[process.pid]
        await asyncio.shield(process.wait())


def panic_error(error: GuestError, console: Sequence[str]) -> GuestError:
    """Return the error of a guest that ended, or that of what did not fit in its memory."""
    for line in console:
        if found := _CONTENTS.search(line):
            return ContentsTooLarge(
                found[1], remedy="make the database or the files smaller", final=True
            )
        for sign, (meaning, remedy) in _DEATHS.items():
            if sign in line:
                return GuestError(meaning, console=error.console, remedy=remedy, final=True)
    return error


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _cut_after_panic(lines: list[str]) -> list[str]:
    """Return the lines without the call trace of a panic, which would hide what led to it."""
    panics = [number for number, line in enumerate(lines) if "Kernel panic" in line]
    return lines[: panics[0] + 1] if panics else lines


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _CONSOLE_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    # A guest's output goes to a terminal: no control characters.
    lines = ["".join(c for c in line if c.isprintable()) for line in text.splitlines()]
    return [line for line in lines if line.strip()]
