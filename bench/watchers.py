"""Tracers of block I/O, started and ended around a load, with what they cost and what they lost."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bench.bpf import Runs, empty_programs, runs_of
from jojlab.foundation.places import agent_path

READY_SECONDS = 30.0

# Both look there, and few machines mount it; a mount namespace of its own harms nobody.
_MOUNTS = "mount -t debugfs none /sys/kernel/debug; mount -t tracefs none /sys/kernel/tracing"
_DEBUGFS = ("unshare", "--mount", "sh", "-c", f'{_MOUNTS}; exec "$@"', "sh")
_SCRIPT = Path(__file__).with_name("biosnoop.bt")


class CannotWatchError(Exception):
    """The tracer does not run on this kernel."""


@dataclass(frozen=True)
class Reading:
    """Counters of a watcher at one time, in seconds: its programs, and its CPU in ns."""

    time: float = 0
    programs: dict[str, Runs] = field(default_factory=dict)
    process_ns: float = 0

    def runs_since(self, before: Reading) -> dict[str, Runs]:
        """Return what the programs ran from then to now."""
        programs = self.programs.items()
        return {name: runs - before.programs.get(name, Runs()) for name, runs in programs}


@dataclass
class WatchCost:
    """The cost of watching a load: runs of the BPF programs by name, CPU of the process in ns (0
    for this one), and events lost.

    Programs on system calls run for every process there is. What they took in the second before
    the load, they are taken to have gone on with during it, and that is left out.
    """

    programs: dict[str, Runs] = field(default_factory=dict)
    process_ns: float = 0
    lost: int = 0
    pid: int = 0
    _idle: dict[str, Runs] = field(default_factory=dict)
    _before: Reading = field(default_factory=Reading)

    def begin(self) -> None:
        """Take a second to see what goes on anyway; the load begins when this returns."""
        first = self._read()
        time.sleep(1)
        self._before = self._read()
        scale = 1 / (self._before.time - first.time)
        self._idle = {
            name: runs.times(scale) for name, runs in self._before.runs_since(first).items()
        }

    def measure(self) -> None:
        """The load has ended, and the watcher has not."""
        now = self._read()
        seconds = now.time - self._before.time
        self.programs = {
            name: runs - self._idle.get(name, Runs()).times(seconds)
            for name, runs in now.runs_since(self._before).items()
        }
        self.process_ns = now.process_ns - self._before.process_ns

    def _read(self) -> Reading:
        programs = runs_of(self.pid) if self.pid else {}
        process_ns = _process_ns(self.pid) if self.pid not in (0, os.getpid()) else 0.0
        return Reading(time.monotonic(), programs, process_ns)


@dataclass(frozen=True)
class Watcher:
    """A tracer: whether it is installed, and how it watches a device, writing into a folder."""

    is_there: Callable[[], bool]
    watch: Callable[[str, Path], AbstractContextManager[WatchCost]]


@contextlib.contextmanager
def nobody(_device: str, _folder: Path) -> Iterator[WatchCost]:
    """The load alone."""
    yield WatchCost()


@contextlib.contextmanager
def _empty(_device: str, _folder: Path) -> Iterator[WatchCost]:
    """Programs that do nothing, where ours are: the least that the kernel can count."""
    with empty_programs():
        watched = WatchCost(pid=os.getpid())
        watched.begin()
        yield watched


@contextlib.contextmanager
def _joj(device: str, folder: Path) -> Iterator[WatchCost]:
    """Ours, writing its tables; ends with a process that we end."""
    with subprocess.Popen(["sleep", "3600"]) as sleeper:
        command = [str(agent_path()), "trace", "--device", device, "--pid", str(sleeper.pid)]
        command += ["--output", str(folder / "tables"), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as agent:
            try:
                assert agent.stderr
                # Its programs are loaded long before it switches them on, and says so.
                if not any(b": tracing " in line for line in agent.stderr):
                    raise CannotWatchError("it did not begin to trace")
                watched = WatchCost(pid=agent.pid)
                watched.begin()
                yield watched
            finally:
                sleeper.kill()
            out, _ = agent.communicate()
            watched.lost = int(json.loads(out)["lost_events"])


def _biosnoop(
    command: Callable[[str], list[str]],
) -> Callable[[str, Path], AbstractContextManager[WatchCost]]:
    """A script that prints a line for each I/O, which go into a file in memory."""

    @contextlib.contextmanager
    def watch(device: str, folder: Path) -> Iterator[WatchCost]:
        with (
            (folder / "out").open("wb") as out,
            (folder / "err").open("wb") as err,
            subprocess.Popen(command(device), stdout=out, stderr=err) as snoop,
        ):
            try:
                _wait(lambda: len(runs_of(snoop.pid)) >= 2, snoop, folder / "err")
                watched = WatchCost(pid=snoop.pid)
                watched.begin()
                yield watched
            finally:
                snoop.send_signal(signal.SIGINT)
        said = (folder / "err").read_text() + (folder / "out").read_text(errors="replace")
        counts = re.findall(r"[Ll]ost (\d+) (?:events|samples)", said)
        watched.lost = sum(int(count) for count in counts)

    return watch


@contextlib.contextmanager
def _blktrace(device: str, folder: Path) -> Iterator[WatchCost]:
    """Events by relayfs, into files in memory; the kernel's part is not timed by anyone."""
    command = [*_DEBUGFS, "blktrace", "-d", device, "-D", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tracer:
        try:
            time.sleep(1)
            if tracer.poll() is not None:
                said = tracer.communicate()[0].decode(errors="replace").strip()
                raise CannotWatchError(said.splitlines()[0] if said else "it ended at once")
            watched = WatchCost(pid=tracer.pid)
            watched.begin()
            yield watched
        finally:
            with contextlib.suppress(ProcessLookupError):
                tracer.send_signal(signal.SIGINT)
        said = tracer.communicate()[0].decode(errors="replace")
        watched.lost = sum(int(count) for count in re.findall(r"(\d+) events? dropped", said))
        watched.lost += sum(int(count) for count in re.findall(r"dropped (\d+) events", said))


def _is_installed(program: str) -> Callable[[], bool]:
    return lambda: shutil.which(program) is not None


def _name(device: str) -> str:
    return Path(device).name


WATCHERS = {
    "empty": Watcher(lambda: True, _empty),
    "joj": Watcher(lambda: True, _joj),
    "biosnoop": Watcher(
        _is_installed("biosnoop-bpfcc"),
        _biosnoop(lambda device: ["biosnoop-bpfcc", "-d", _name(device)]),
    ),
    "bpftrace": Watcher(
        _is_installed("bpftrace"), _biosnoop(lambda _: [*_DEBUGFS, "bpftrace", str(_SCRIPT)])
    ),
    "blktrace": Watcher(_is_installed("blktrace"), _blktrace),
}


def _process_ns(pid: int) -> float:
    """User and system time of a process with its threads (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e9 / os.sysconf("SC_CLK_TCK")


def _wait(
    is_ready: Callable[[], bool], process: subprocess.Popen[bytes], output: Path | None = None
) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            lines = output.read_text(errors="replace").split("\n") if output else []
            words = [line for line in lines if line.strip()]
            raise CannotWatchError(words[-1] if words else "it did not get ready")
        time.sleep(0.05)
