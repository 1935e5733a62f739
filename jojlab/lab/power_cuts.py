"""Power cuts of a case as jobs of the lab: the parts that judge its states, their answers as one,
and the check of disks that a guest hands out.

Each part performs the case's own run, to the byte: its record is the case's, and what is asked
about cuts is read when the run is over (agent/src/lab/power_cut). The states are divided among
several guests; how many, only their number decides.

A guest hands out the disks that a filesystem's checker shall see (disk_pages and disk_states.json,
agent/src/lab/power_cut/disks.rs). Here files are put into each state in turn, and the program of
the guest's own image checks them, with the libraries from there: in the guest it would be emulated.
Of an image of another architecture it is this machine's, of the same version. Its verdicts complete
the answer.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import socket
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import IO, Any, Self

import msgspec

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError, MachineError, disk_errors
from jojlab.foundation.tools import need_tool, package_version
from jojlab.guest.image.build import FSCK_PACKAGES, Image
from jojlab.guest.image.initramfs import files_of
from jojlab.guest.machine import Machine
from jojlab.lab.job import Job, Kind, canonical
from jojlab.trace.power_cuts import BOUNDARIES, NATIVE

# States of one guest: it takes a few seconds to perform the run, which are most of the time where
# the states are judged natively.
_STATES_PER_GUEST = 500
_NATIVE_STATES_PER_GUEST = 1500
# What all parts of one job say alike.
_COMMON = (
    "case",
    "seed",
    "operation_hash",
    "tables",
    "transactions",
    "model",
    "asked_states",
    "begin_ns",
)
_OF_A_PART = ("part", "parts", "second_draws")


def power_cuts(case: Job, states: int, native: str = "") -> tuple[Job, ...]:
    """Return the jobs, a part each, that judge so many states of `case`, of a modelled device; by
    the build `native` of User Mode Linux, where one is named.
    """
    assert isinstance(case.machine, Machine)
    parts = max(1, -(-states // (_NATIVE_STATES_PER_GUEST if native else _STATES_PER_GUEST)))
    asked: dict[str, object] = {"states": states, "parts": parts}
    if native:
        asked["native"] = native
    return tuple(
        replace(
            case,
            kind=Kind.POWER_CUTS,
            afterwards=canonical({"power_cuts": {**asked, "part": part}}),
        )
        for part in range(parts)
    )


def native_build(job: Job) -> str:
    """Return the build of User Mode Linux that a job of power cuts names; empty where none."""
    return str(msgspec.json.decode(job.afterwards)["power_cuts"].get("native", ""))


def run_of_complaints(verdicts: Mapping[str, bytes], run: bytes) -> bytes:
    """Return the run that was handed out for User Mode Linux, as run.json says it, with those of
    its states alone in which, or in a recovery from which, only the checker found harm; empty where
    there are none. The checker looks there at all smaller cuts, which it cannot from outside.
    """
    first, wanted = "", set()
    for state in msgspec.json.decode(verdicts[Kind.POWER_CUTS.answer])["states"]:
        if state["kind"] != "second":
            first = state["hash"]
        if _is_complaint(state):
            wanted.add((first, state["promises"]))
    whole = msgspec.json.decode(run)
    whole["states"] = [
        (number, state)
        for number, state in whole["states"]
        if (f"{state['hash']:016x}", state["promises"]) in wanted
    ]
    return msgspec.json.encode({**whole, "checks_all": True}) if whole["states"] else b""


def add_smallest_cuts(verdicts: dict[str, bytes], checked: Mapping[str, bytes]) -> None:
    """Give states in which only the checker found harm the smallest cuts of a judging `checked` by
    it, where that found them again.
    """
    answer = msgspec.json.decode(verdicts[Kind.POWER_CUTS.answer])
    smallest = {
        (state["hash"], state["promises"]): state["smallest"]
        for state in msgspec.json.decode(checked[Kind.POWER_CUTS.answer])["states"]
        if _is_complaint(state)
    }
    for state in filter(_is_complaint, answer["states"]):
        state["smallest"] = smallest.get((state["hash"], state["promises"]))
    verdicts[Kind.POWER_CUTS.answer] = msgspec.json.encode(answer)


def _is_complaint(state: Mapping[str, Any]) -> bool:
    return bool(state["message"].startswith("fsck: "))


def add_native_verdicts(files: dict[str, bytes], verdicts: Mapping[str, bytes]) -> None:
    """Complete the answer of a guest by the `verdicts` of User Mode Linux, which are marked."""
    answer = msgspec.json.decode(files[Kind.POWER_CUTS.answer])
    found = msgspec.json.decode(verdicts[Kind.POWER_CUTS.answer])
    answer["states"] += [{**state, "judge": NATIVE} for state in found["states"]]
    for draws in ("draws", "second_draws"):
        answer[draws] += found["second_draws"]
    answer.update(_counts(answer["states"]), outcomes=_outcomes(answer["states"]))
    files[Kind.POWER_CUTS.answer] = msgspec.json.encode(answer)


def disk_image_jobs(case: Job, states: int, state: str, native: str = "") -> Iterator[Job]:
    """Yield the jobs that hand out the disks in a state of these states of `case`, by its hash: one
    of them has it, as each guest goes through some. `native` is the build that judged it, if one
    did.
    """
    for job in power_cuts(case, states, native):
        asked = msgspec.json.decode(job.afterwards)
        asked["power_cuts"]["image"] = state
        yield replace(job, kind=Kind.DISK_IMAGE, afterwards=canonical(asked))


def write_disk_images(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write the disks that such a job handed out as files of a folder; return them.

    Raises GuestError when they are damaged, MachineError when this machine's disk is full.
    """
    pages = files.get(_PAGES, b"")
    states = _read(files[_STATES], pages)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for _ in _put(states, pages, folder):
            pass
    return [folder / _disk(number) for number in range(len(states.disk_bytes))]


def merge_answers(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answers of all parts of one job as one; a state that two found counts once.

    Raises MachineError when the parts are not of one and the same run.
    """
    first = parts[0]
    for part in parts[1:]:
        for key in _COMMON:
            if part[key] != first[key]:
                raise MachineError(
                    f"the parts of one job of power cuts differ in {key}: their runs are not one",
                    "joj cache --empty; if it happens again, please report it",
                )
    distinct: dict[tuple[str, int], Mapping[str, Any]] = {}
    for part in parts:
        for state in part["states"]:
            distinct.setdefault((state["hash"], state["promises"]), state)
    states = sorted(distinct.values(), key=lambda state: (state["cut_ns"], state["hash"]))
    by_kind: dict[str, Counter[str]] = {}
    for state in states:
        by_kind.setdefault(state["kind"], Counter())[state["outcome"]] += 1
    # Draws among the states of the run are the same in all parts; those among recoveries add up.
    draws = first["draws"] + sum(part["second_draws"] for part in parts[1:])
    return {
        **{key: value for key, value in first.items() if key not in _OF_A_PART},
        **_counts(states),
        "draws": draws,
        "outcomes": _outcomes(states),
        "by_kind": {kind: dict(counts) for kind, counts in by_kind.items()},
        "states": states,
    }


_PAGES, _STATES = "disk_pages", "disk_states.json"
_SLOT_BYTES = 4096
_MOST_DISK_BYTES = 1 << 40
# Of processor time, as a verdict may not hang on what else a machine does. A checker that takes
# more goes round in circles; most take hundredths. SIGXCPU ends it, and SIGKILL if it goes on.
_CHECKER_LIMIT_S = (120, 130)
# As agent/src/filesystem/tools.rs keeps.
_MOST_CHARACTERS = 400
# The end of a check, as kernel/user_mode/checker.c answers.
_STATUS = struct.Struct("=i")
_HANDED_OUT, _CLEAN = "handed out", "clean"


class _DiskStates(msgspec.Struct, forbid_unknown_fields=True):
    """The slots that changed, by state and disk, each with the number of its page, 0 for zeroes.

    A disk begins as zeroes. `program` is its checker; empty where nothing is to be checked.
    """

    program: str
    arguments: list[str]
    journal_option: str
    file_option: str
    disk_bytes: list[int]
    states: list[list[list[tuple[int, int]]]]


def check_handed_disks(
    cache: Cache, image: Image, files: dict[str, bytes], library: Path | None = None
) -> None:
    """Take the disks out of what a guest of power cuts handed out, and complete its answer; by a
    checker that starts once, where there is the `library` of user_mode for it.

    Raises GuestError when they are damaged, MachineError when this machine's disk is full.
    """
    pages, raw = files.pop(_PAGES, None), files.pop(_STATES, None)
    if raw is None:
        return
    states = _read(raw, pages or b"")
    if not states.states:
        return
    if states.program not in FSCK_PACKAGES:
        raise GuestError(f"the guest's {_STATES} names a program that is none")
    answer = msgspec.json.decode(files[Kind.POWER_CUTS.answer])
    waiting = [state for state in answer["states"] if state["fsck"] == _HANDED_OUT]
    if len(waiting) != len(states.states):
        raise GuestError(f"{len(states.states)} states of disks for {len(waiting)} that wait")
    with (
        cache.work_dir() as work,
        disk_errors(work),
        _Checker.from_image(image, states, work, library) as checker,
    ):
        for state, _ in zip(waiting, _put(states, pages or b"", work), strict=True):
            _judge(state, checker.complaint(), states.program)
    answer["outcomes"] = _outcomes(answer["states"])
    files[Kind.POWER_CUTS.answer] = msgspec.json.encode(answer)


def _read(raw: bytes, pages: bytes) -> _DiskStates:
    try:
        states = msgspec.json.decode(raw, type=_DiskStates)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise GuestError(f"the guest's {_STATES}: {error}") from error
    disks = len(states.disk_bytes)
    is_sound = (
        disks in (1, 2)
        and all(0 < size <= _MOST_DISK_BYTES for size in states.disk_bytes)
        and all(len(state) == disks for state in states.states)
        and all(
            0 <= slot < size // _SLOT_BYTES and 0 <= page <= len(pages) // _SLOT_BYTES
            for state in states.states
            for size, changes in zip(states.disk_bytes, state, strict=True)
            for slot, page in changes
        )
    )
    if not is_sound:
        raise GuestError(f"the guest's {_STATES} names a disk or place that is none")
    return states


def _disk(number: int) -> str:
    """Return the name of a disk's file: that of its node in the guest."""
    return f"flash{number}"


def _put(states: _DiskStates, pages: bytes, work: Path) -> Iterator[None]:
    """Put the disks' files into each state in turn."""
    zeroes = bytes(_SLOT_BYTES)
    disks = []
    try:
        for number, size in enumerate(states.disk_bytes):
            disks.append(os.open(work / _disk(number), os.O_RDWR | os.O_CREAT | os.O_EXCL))
            os.ftruncate(disks[-1], size)
        for state in states.states:
            for disk, changes in zip(disks, state, strict=True):
                for slot, page in changes:
                    begin = (page - 1) * _SLOT_BYTES
                    content = pages[begin : begin + _SLOT_BYTES] if page else zeroes
                    os.pwrite(disk, content, slot * _SLOT_BYTES)
            yield
    finally:
        for disk in disks:
            os.close(disk)


class _Checker:
    """The checker of an image or of its version, in a folder with the files that it looks at.

    A context: it may have started, and then does once for all checks.
    """

    def __init__(self, command: Sequence[str], folder: Path, *, starts_once: bool = False) -> None:
        self._command, self._folder, self._starts_once = command, folder, starts_once
        self._resources = contextlib.ExitStack()
        self._output_files: list[IO[bytes]] = []
        self._server: socket.socket | None = None

    @classmethod
    def from_image(
        cls, image: Image, states: _DiskStates, work: Path, library: Path | None
    ) -> _Checker:
        """Take it out of the image, with all libraries that are there, if it runs on this machine.

        Raises MachineError when it does not, and this machine has another version.
        """
        option = [states.file_option] if states.file_option else []
        journal = [states.journal_option, _disk(1)] if len(states.disk_bytes) > 1 else []
        asked = [*states.arguments, *option, *journal, _disk(0)]
        if "architecture" in image.manifest:
            return cls([str(_local_checker(image, states.program)), *asked], work)
        root = work / "image"
        loader = None
        for name, content in files_of(image.initramfs.read_bytes()):
            if name != f"sbin/{states.program}" and ".so" not in PurePath(name).name:
                continue
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755)
            loader = path if path.name.startswith("ld-linux") else loader
        program = root / "sbin" / states.program
        if loader is None or not program.is_file():
            raise GuestError(f"the image has no {states.program} that this machine can run")
        folders = {str(path.parent) for path in root.rglob("*.so*")}
        run = [str(loader), "--library-path", ":".join(sorted(folders))]
        if library:
            run += ["--preload", str(library)]
        return cls([*run, str(program), *asked], work, starts_once=library is not None)

    def __enter__(self) -> Self:
        """Begin: what the checks print goes to files, as pipes cost more."""
        for _ in ("out", "err"):
            file = TemporaryFile("a+b", dir=self._folder)
            self._output_files.append(self._resources.enter_context(file))
        if self._starts_once:
            ours, theirs = socket.socketpair()
            with theirs:
                self._resources.enter_context(self._start(theirs.fileno()))
            self._server = self._resources.enter_context(ours)
        return self

    def __exit__(self, *_: object) -> None:
        """End it, where it started once."""
        self._resources.close()

    def complaint(self) -> str | None:
        """Run it: return how it ended and the end of what it printed, None where all is well.

        It starts without a program between that limits it, if it has to start: of a check of 7.1
        to 8.5 ms all of that were some three (bench/README.md, "States after power cuts").
        """
        for file in self._output_files:
            file.truncate(0)
        if self._server:
            self._server.send(b"\0")
            status = self._server.recv(_STATUS.size)
            if not status:
                raise GuestError(f"{self._command[0]} ended before its check did")
            code = os.waitstatus_to_exitcode(*_STATUS.unpack(status))
        else:
            with self._start(subprocess.DEVNULL) as child:
                pass
            code = child.returncode
        if code == 0:
            return None
        texts = []
        for file in self._output_files:
            file.seek(0)
            texts.append(file.read())
        printed = b"".join(texts).decode(errors="replace").strip()
        return f"({_ending(code)}): {printed[-_MOST_CHARACTERS:]}"

    def _start(self, stdin: int) -> subprocess.Popen[bytes]:
        out, err = self._output_files
        child = subprocess.Popen(
            self._command, cwd=self._folder, env={}, stdin=stdin, stdout=out, stderr=err
        )
        resource.prlimit(child.pid, resource.RLIMIT_CPU, _CHECKER_LIMIT_S)
        return child


def _local_checker(image: Image, program: str) -> Path:
    """Return this machine's checker, of the version that the image has of another architecture.

    A package that was built again has +bN behind its version (Debian Policy, 5.6.12).
    """
    package = FSCK_PACKAGES[program]
    versions = image.manifest["mkfs_package_versions"]
    assert isinstance(versions, Mapping)
    wanted, here = (
        re.sub(r"\+b\d+$", "", version) for version in (versions[package], package_version(package))
    )
    if wanted != here:
        raise MachineError(
            f"the guest has {package} {wanted}, this machine {here}, which checks the disks",
            f"sudo apt-get update && sudo apt-get install {package}",
        )
    return need_tool(program, package)


def _ending(code: int) -> str:
    """Return it as the agent tells of a program's end."""
    if code >= 0:
        return f"exit status: {code}"
    return f"signal: {-code} ({signal.Signals(-code).name})"


def _judge(state: dict[str, Any], complaint: str | None, program: str) -> None:
    """Put what the checker said into a state (agent/src/lab/power_cut/judge.rs)."""
    state["fsck"] = _CLEAN if complaint is None else f"{program} {complaint}"
    if complaint is None:
        return
    by_log = state["message"].startswith("kernel: ")
    if state["outcome"] in ("kept", "lost", "torn") or by_log:
        state["outcome"], state["message"] = "corrupt", f"fsck: {state['fsck']}"


def _counts(states: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    boundary = sum(state["kind"] in BOUNDARIES for state in states)
    return {"boundary_states": boundary, "sampled_states": len(states) - boundary}


def _outcomes(states: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return dict(Counter(state["outcome"] for state in states))
