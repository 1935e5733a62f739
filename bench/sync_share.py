"""The share of its time that a program waits in sync calls: runs it once more under perf(1).

Where two programs make the same syncs, no ratio can be above 1 / the peer's share.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import peers
from jojlab.foundation.places import agent_path
from jojlab.model.field import Value

_EVENTS = ",".join(
    f"syscalls:sys_{side}_{call}" for call in ("fsync", "fdatasync") for side in ("enter", "exit")
)
_CHILD = """#!/bin/sh
for word; do
    shift
    [ "$before" = --parent ] && word=$PPID
    before=$word
    set -- "$@" "$word"
done
exec {agent} "$@"
"""
# A call of fsync(2): begin and end in seconds of CLOCK_MONOTONIC.
Call = tuple[float, float]


def is_there() -> bool:
    """Return whether perf is installed and may record system calls; say on stderr if not."""
    if not shutil.which("perf"):
        print("perf is not installed: the share of sync calls is skipped", file=sys.stderr)
        return False
    command = ["perf", "record", "-q", "-e", _EVENTS, "-o", "/dev/null", "true"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        print("perf may not record system calls: the share of syncs is skipped", file=sys.stderr)
        return False
    return True


def joj_share(directory: Path, settings: Mapping[str, Value]) -> float:
    """Return the share of a live case's measured transactions."""
    with TemporaryDirectory(prefix="joj-") as folder:
        data = Path(folder) / "perf.data"
        wrapped = agent_under(_record(data), Path(folder))
        begin_ns, end_ns = peers.measured_ns(directory, settings, wrapped)
        return _share(_calls(data), begin_ns / 1e9, end_ns / 1e9)


def agent_under(command: Sequence[str], folder: Path) -> Path:
    """Return a program that runs the agent as a child of `command`, and ends with it.

    The agent ends where its parent is another than --parent says: here that is `command`.
    """
    child, wrapped = folder / "child", folder / "agent"
    child.write_text(_CHILD.format(agent=shlex.quote(str(agent_path()))))
    wrapped.write_text(f'#!/bin/sh\nexec {shlex.join([*command, str(child)])} "$@"\n')
    for program in (child, wrapped):
        program.chmod(0o755)
    return wrapped


def mobibench(program: Path, directory: Path, flags: Sequence[str]) -> float:
    """Return the share of what Mobibench measures, which ends with its last commit's last sync."""
    with TemporaryDirectory(prefix="joj-") as folder:
        data = Path(folder) / "perf.data"
        elapsed_s = peers.mobibench_s([*_record(data), str(program)], directory, flags)
        calls = _calls(data)
        end_s = calls[-1][1] if calls else elapsed_s
        return _share(calls, end_s - elapsed_s, end_s)


def _record(data: Path) -> list[str]:
    return ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", _EVENTS, "-o", str(data), "--"]


def _calls(data: Path) -> list[Call]:
    command = ["perf", "script", "-i", str(data), "--ns", "-F", "tid,time,event"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return list(pair_calls(lines))


def pair_calls(lines: Iterable[str]) -> Iterable[Call]:
    """Yield the calls in perf script's lines: `7229 24352.461286681: syscalls:sys_exit_fsync:`."""
    begun: dict[str, float] = {}
    for line in lines:
        thread, time, event = line.split()[:3]
        time_s = float(time.rstrip(":"))
        if ":sys_enter_" in event:
            begun[thread] = time_s
        elif thread in begun:
            yield begun.pop(thread), time_s


def _share(calls: Iterable[Call], begin_s: float, end_s: float) -> float:
    inside = (end - begin for begin, end in calls if begin >= begin_s and end <= end_s)
    return sum(inside) / (end_s - begin_s)
