"""A run: the folder that holds what became of every case of an experiment.

    RUN/run.json         the cases, their status and captures, the experiment, the fingerprint
    RUN/SHA256SUMS       the checksum of run.json
    RUN/captures/...     the tables with their checksums, one folder for each case and seed
    RUN/power-cuts/...   what power cuts left of a capture, likewise, where power was cut
    RUN/experiment.toml  the experiment as it was asked
    RUN/sql/...          the SQL of the program of a live tracing, a recording, where asked for

run.json is written anew, atomically: a run cut short stays readable, with the cases that were not
reached as `pending`.

That of a live tracing has one case, whose tables the agent writes in place as they come. The folder
names its capture from the first moment, so that it can be read whatever becomes of the
tracer; the capture's own manifest says whether it is incomplete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from jojlab.foundation.cache import Cache
from jojlab.foundation.document import conform
from jojlab.foundation.errors import DataError, UseError, writable
from jojlab.model.workloads.program import PROGRAM
from jojlab.trace.capture import Capture, capture_hash
from jojlab.trace.checksums import hashes_of, read_checked, write_checked, write_checksums
from jojlab.trace.power_cuts import CUTS, PowerCuts, read_cuts
from jojlab.trace.schema import SCHEMA_VERSION, TABLES
from jojlab.trace.shapes import Fields, StoredExperiment

SQL_FOLDER = "sql"
STATUSES = ("ok", "failed", "skipped", "pending")
_ROOM = "make room, or name another --out"
_SAVE_EVERY_S = 1.0
_MOST_SAVING = 20  # at most a twentieth of the time is spent on writing run.json


@dataclass
class CaptureEntry:
    """A finished capture of a case, or what power cuts left of it, in a folder of the run."""

    seed: int
    folder: str
    cached: bool


@dataclass
class CaseEntry:
    """One case: `case` is its flat record; `reason` says why it failed or was skipped.

    `uncut` says why its power was not cut although that was asked for. `inputs` are hashes of the
    contents of the files and folders that its fields name.
    """

    case_id: str
    case: Fields
    status: str = "pending"
    reason: str = ""
    captures: list[CaptureEntry] = field(default_factory=list)
    power_cuts: list[CaptureEntry] = field(default_factory=list)
    uncut: str = ""
    inputs: dict[str, str] = field(default_factory=dict)

    @property
    def without_power_cuts(self) -> tuple[int, ...]:
        """The seeds whose captures are there, but not what power cuts left of them."""
        cut = {each.seed for each in self.power_cuts}
        return tuple(each.seed for each in self.captures if each.seed not in cut)


class _Document(msgspec.Struct):
    """The contents of run.json."""

    schema_version: int
    experiment: StoredExperiment
    seeds: list[int]
    cases: list[CaseEntry]
    fingerprint: dict[str, Any]


@dataclass
class RunFolder:
    """A run on disk. The entries are what run.json says; captures are opened one by one."""

    path: Path
    experiment: dict[str, Any]
    seeds: list[int]
    cases: list[CaseEntry]
    fingerprint: dict[str, Any]
    # Those that this process has checked already, by their folder in run.json.
    checked: dict[str, Capture] = field(default_factory=dict, repr=False, compare=False)
    _entries_by_id: dict[str, CaseEntry] = field(default_factory=dict, repr=False, compare=False)
    _save_every_s: float = field(default=_SAVE_EVERY_S, repr=False, compare=False)
    _last_save_s: float | None = field(default=None, repr=False, compare=False)

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        experiment: Mapping[str, Any],
        seeds: Iterable[int],
        cases: Iterable[tuple[str, Mapping[str, Any]]],
        fingerprint: Mapping[str, Any],
        experiment_toml: str = "",
        power_cuts: bool = False,
    ) -> RunFolder:
        """Make a new run of `cases`, (case_id, case) in the experiment's order, all pending.

        The very same run that was cut short is taken up again, with the captures that it has; with
        `power_cuts` so is one that lacks only what they left.
        Raises UseError when something else is in `path`, MachineError when it cannot be written.
        """
        entries = [CaseEntry(case_id, dict(case)) for case_id, case in cases]
        run = cls(path, dict(experiment), list(seeds), entries, dict(fingerprint))
        run._check_case_ids()
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            return run._existing_run(power_cuts)
        with writable(path, _ROOM):
            (path / "captures").mkdir(parents=True, exist_ok=True)
            (path / "experiment.toml").write_text(experiment_toml, encoding="utf-8")
        run.save()
        return run

    def _existing_run(self, power_cuts: bool) -> RunFolder:
        """Return the run that is there already if it is this one, cut short; else a UseError."""
        if not (self.path / "run.json").exists():
            what = "something else is already there"
            raise UseError(f"{self.path}: {what}", "name a new folder with --out")
        there = RunFolder.open(self.path)
        if not any(
            entry.status == "pending" or (power_cuts and entry.without_power_cuts)
            for entry in there.cases
        ):
            raise UseError(f"{self.path}: a run is already there", "name a new folder with --out")
        if there._identity() != self._identity():
            is_ours = there._identity()[:-1] == self._identity()[:-1]
            what = "this run, of another image or machine," if is_ours else "another run"
            raise UseError(f"{self.path}: {what} is already there", "name a new folder with --out")
        for entry in there.cases:
            for capture in entry.captures:
                there._resolve_inside(capture.folder)
            if entry.status == "failed":
                entry.status, entry.reason = "pending", ""
        return there

    def _identity(self) -> list[Any]:
        """Return what makes this run another one than others, as JSON has it."""
        cases = [(entry.case_id, entry.case) for entry in self.cases]
        identity = [self.experiment, self.seeds, cases, self.fingerprint]
        return msgspec.json.decode(json.dumps(identity), type=list[Any])

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Read run.json and check its shape; raises UseError when `path` is no run."""
        file = path / "run.json"
        if not path.exists():
            raise UseError(f"{path}: no such folder", "name a folder that joj run made")
        if not file.is_file():
            of_recording = (path / f"{name}.parquet" for name in ("descriptors", "connections"))
            what, remedy = "not a run", "name a folder that joj run made"
            if any(map(Path.exists, of_recording)):
                what = "a recording, not a run"
                remedy += "; of a recording there are joj replay and joj export"
            raise UseError(f"{path}: {what}: it has no run.json", remedy)
        try:
            content = read_checked(file)
            document = msgspec.json.decode(content)
            whole = conform(document, _Document)
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{file}: damaged: {error}", "run the experiment again") from error
        if whole.schema_version != SCHEMA_VERSION:
            raise DataError(
                f"{file}: schema_version {whole.schema_version}, this joj reads {SCHEMA_VERSION}",
                "use the joj that wrote the run, or run the experiment again",
            )
        # As it was read, with what this joj does not know of it.
        experiment = document["experiment"]
        run = cls(path, experiment, whole.seeds, whole.cases, whole.fingerprint)
        run._check_case_ids()
        return run

    def case(self, case_id: str) -> CaseEntry:
        """Return one case; raises UseError naming the cases there are."""
        if not self._entries_by_id:
            self._entries_by_id.update((entry.case_id, entry) for entry in self.cases)
        if entry := self._entries_by_id.get(case_id):
            return entry
        known = "\n    ".join(entry.case_id for entry in self.cases)
        raise UseError(f"{self.path}: no case {case_id!r}", f"name one of\n    {known}")

    def add_capture(
        self,
        case_id: str,
        seed: int,
        tables: Path,
        *,
        cached: bool = False,
        cache: Cache | None = None,
    ) -> None:
        """Copy the tables in folder `tables` in, check them, and record them in run.json.

        The case becomes ok with its last seed. Tables that were found good before, by what the
        cache knows, are not read again. Raises DataError when a table is damaged.
        """
        entry = self.case(case_id)
        if seed not in self.seeds or any(c.seed == seed for c in entry.captures):
            raise UseError(f"{case_id}: seed {seed} is not awaited", f"the seeds are {self.seeds}")
        folder = Path("captures") / folder_name(case_id) / f"seed-{seed}"
        partial = self.path / folder.with_name(f".seed-{seed}.partial")
        try:
            with writable(self.path, _ROOM):
                shutil.rmtree(partial, ignore_errors=True)
                # A run that was killed may have come so far and not have told so in run.json.
                shutil.rmtree(self._resolve_inside(folder.as_posix()), ignore_errors=True)
                partial.mkdir(parents=True)
                for table in TABLES:
                    source = tables / f"{table}.parquet"
                    if source.is_file():  # Capture.open refuses it without a declared one
                        shutil.copyfile(source, partial / source.name)
                hashes = hashes_of(partial)
                capture = Capture.open(partial, hashes, cache)
                write_checksums(partial, hashes)
                os.replace(partial, self.path / folder)
                self.checked[folder.as_posix()] = replace(capture, folder=self.path / folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        entry.captures.append(CaptureEntry(seed, folder.as_posix(), cached))
        entry.captures.sort(key=lambda capture: capture.seed)
        if len(entry.captures) == len(self.seeds):
            entry.status = "ok"
        self._note_change()

    def add_power_cuts(
        self, case_id: str, seed: int, answer: bytes, *, cached: bool = False
    ) -> None:
        """Write what power cuts left of a capture that is there, and record it in run.json.

        Raises DataError when it is damaged, or of another run than the capture.
        """
        entry = self.case(case_id)
        place = Path(folder_name(case_id)) / f"seed-{seed}"
        folder = self._resolve_inside((Path("power-cuts") / place).as_posix())
        read_cuts(
            answer, folder / CUTS, self._resolve_inside((Path("captures") / place).as_posix())
        )
        with writable(folder, _ROOM):
            folder.mkdir(parents=True, exist_ok=True)
            write_checked(folder / CUTS, answer)
        known = [each for each in entry.power_cuts if each.seed != seed]
        own = CaptureEntry(seed, (Path("power-cuts") / place).as_posix(), cached)
        entry.uncut = ""
        entry.power_cuts = sorted([*known, own], key=lambda each: each.seed)
        self._note_change()

    def power_cuts(self, entry: CaseEntry) -> Iterator[PowerCuts]:
        """Return what power cuts left of a case by seed; DataError when one is damaged."""
        captures = {each.seed: self._resolve_inside(each.folder) for each in entry.captures}
        for each in entry.power_cuts:
            file = self._resolve_inside(each.folder) / CUTS
            yield read_cuts(read_checked(file), file, captures.get(each.seed))

    def note_inputs(self, case_id: str, inputs: Mapping[str, str]) -> None:
        """Record the hashes of a case's files; UseError where its captures have other contents."""
        entry = self.case(case_id)
        changed = [name for name, own in entry.inputs.items() if inputs.get(name) != own]
        if changed and entry.captures:
            raise UseError(
                f"{self.path}: {case_id} was measured with other contents of {', '.join(changed)}",
                "name a new folder with --out",
            )
        entry.inputs = dict(inputs)

    def mark_uncut(self, case_id: str, reason: str) -> None:
        """Record why the power of a case was not cut."""
        self.case(case_id).uncut = reason
        self._note_change()

    def mark(self, case_id: str, status: str, reason: str) -> None:
        """Record that a case failed or was skipped, and why."""
        if status not in STATUSES:
            raise ValueError(f"status {status!r} is none of {STATUSES}")
        entry = self.case(case_id)
        entry.status, entry.reason = status, reason
        self._note_change()

    @contextlib.contextmanager
    def many_changes(self) -> Iterator[None]:
        """Within it, run.json is written once a second at most, a large one less often.

        It is written at the end, however that comes. A run whose cases are all in the cache has
        hundreds of changes in few seconds.
        """
        self._last_save_s = time.monotonic()
        try:
            yield
        finally:
            self._last_save_s = None
            self.save()

    def _note_change(self) -> None:
        begin_s = time.monotonic()
        if self._last_save_s is None:
            self.save()
        elif begin_s - self._last_save_s >= self._save_every_s:
            self.save()
            self._last_save_s = time.monotonic()
            # Of ten thousand cases it takes a second or more.
            took_s = self._last_save_s - begin_s
            self._save_every_s = max(_SAVE_EVERY_S, _MOST_SAVING * took_s)

    def save(self) -> None:
        """Write run.json through a temporary file, so that it is always whole."""
        document = {
            "schema_version": SCHEMA_VERSION,
            "experiment": self.experiment,
            "seeds": self.seeds,
            "cases": msgspec.to_builtins(self.cases),
            "fingerprint": self.fingerprint,
        }
        file = self.path / "run.json"
        content = f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode()
        with writable(file, _ROOM):
            write_checked(file, content)

    def captures(self) -> Iterator[tuple[CaseEntry, int, Capture]]:
        """Open every recorded capture, in the order of the cases, then of the seeds."""
        for entry, seed, folder in self.capture_folders():
            checked = self.checked.get(folder.relative_to(self.path).as_posix())
            yield entry, seed, checked or Capture.open(folder)

    def capture_folders(self) -> Iterator[tuple[CaseEntry, int, Path]]:
        """Yield where every recorded capture is, in the order of the cases, then of the seeds."""
        for entry in self.cases:
            for capture in entry.captures:
                yield entry, capture.seed, self._resolve_inside(capture.folder)

    def content_hash(self) -> str:
        """Return the sha256 over the tables of all captures, by case_id and seed.

        The order of the cases in the experiment, paths and times of the host have no part in it.
        """
        digest = hashlib.sha256()
        read_anew = replace(self, checked={}).captures()
        for entry, seed, capture in sorted(read_anew, key=lambda item: (item[0].case_id, item[1])):
            digest.update(f"{entry.case_id}\0{seed}\0{capture_hash(capture)}\n".encode())
        return digest.hexdigest()

    def _resolve_inside(self, folder: str) -> Path:
        """Resolve a folder that run.json names; raises DataError when it lies outside the run."""
        path = self.path / folder
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise DataError(
                f"{self.path}/run.json: capture folder {folder!r} is outside the run",
                "run the experiment again",
            )
        return path

    def _check_case_ids(self) -> None:
        file = self.path / "run.json"
        folders: dict[str, str] = {}
        for entry in self.cases:
            folder = folder_name(entry.case_id)
            if not folder:
                raise UseError(
                    f"{file}: case name {entry.case_id!r} has no letter or digit", "name the case"
                )
            if folder in folders:
                raise UseError(
                    f"{file}: cases {folders[folder]!r} and {entry.case_id!r} have one folder name",
                    "give the cases distinct names",
                )
            folders[folder] = entry.case_id
            if entry.status not in STATUSES:
                raise DataError(
                    f"{file}: case {entry.case_id}: status {entry.status!r} is none "
                    f"of {', '.join(STATUSES)}",
                    "run the experiment again",
                )


def folder_name(case_id: str) -> str:
    """Return `case_id` as a folder name: letters, digits and ._=,+- stay, others become -.

    It is empty where nothing is left. A file name holds 255 bytes, of which it takes 200 at most.
    """
    slug = re.sub(r"[^A-Za-z0-9._=,+-]", "-", case_id).lstrip(".")
    if len(slug) > 200:
        slug = f"{slug[:180]}-{hashlib.sha256(case_id.encode()).hexdigest()[:16]}"
    return slug


CASE = "trace"
_SEED = 0  # nothing is random


def begin(
    folder: Path, subject: str, where: str, command: Sequence[str], *, has_transactions: bool = True
) -> tuple[RunFolder, Path]:
    """Make a run of one case in `folder`; return it and the folder for its tables.

    `subject` is what is traced, `where` the device or directory. Where transactions are looked for,
    it is a case of a program that is not ours. Raises UseError when something
    else is in `folder`, MachineError when it cannot be written.
    """
    workload = PROGRAM if has_transactions else CASE
    run = RunFolder.create(
        folder,
        experiment={"name": CASE, "question": f"What was the disk sent by and beside {subject}?"},
        seeds=[_SEED],
        cases=[(CASE, {"workload": workload, "command": " ".join(command), "traced": where})],
        fingerprint={},
    )
    capture = Path("captures") / CASE / f"seed-{_SEED}"
    entry = run.case(CASE)
    entry.captures.append(CaptureEntry(_SEED, capture.as_posix(), cached=False))
    entry.status = "ok"
    run.save()
    return run, folder / capture


def close(run: RunFolder) -> None:
    """Write the checksums of a run whose tracer has ended; take one away that has no table.

    Raises MachineError when they cannot be written.
    """
    capture = run.path / run.case(CASE).captures[0].folder
    if not capture.exists():
        shutil.rmtree(run.path)
        return
    with writable(capture, "make room"):
        write_checksums(capture, hashes_of(capture))
