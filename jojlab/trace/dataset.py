"""A dataset: the tables of the captures of one run or several, and what SQL answers about them.

Every table of schema/ is there with the rows of all captures and a column `capture`, a number; the
table `captures` has what that number stands for: run, case_id and seed. A case_id names one case of
the dataset: where that has several runs, it is RUN/CASE_ID. The table `capture_tables` names the
tables that each capture has.

Nothing is read when a dataset is made but which captures there are. They are checked when the first
question is asked. DuckDB runs the SQL: it reads the columns that a question asks for, as a stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from jojlab.foundation.cache import Cache, Sources, sha256
from jojlab.foundation.errors import DataError
from jojlab.trace.capture import NamedCapture
from jojlab.trace.checksums import LARGE_BYTES, files_of, program
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.sql import Engine

Row = dict[str, Any]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Dataset:
    """The captures of one run or several, in the order of the runs' cases, then of their seeds."""

    captured: tuple[NamedCapture, ...]

    @classmethod
    def from_runs(cls, *runs: RunFolder) -> Dataset:
        """Return all captures of `runs`; raises DataError when there is none."""
        captured = tuple(
            NamedCapture(
                run.path.name,
                f"{run.path.name}/{entry.case_id}" if len(runs) > 1 else entry.case_id,
                seed,
                folder,
                run.checked.get(folder.relative_to(run.path).as_posix()),
            )
            for run in runs
            for entry, seed, folder in run.capture_folders()
        )
        if not captured:
            raise DataError(
                f"{', '.join(str(run.path) for run in runs)}: no case of this run has finished",
                "see the reasons: joj show RUN",
            )
        return cls(captured)

    def value(
        self, cache: Cache | None, name: str, type_: type[Answer], compute: Callable[[], Answer]
    ) -> Answer:
        """Return an answer about the captures, as the cache has it, or computed.

        Captures never change, and most of the time of joj show is compiling and running the same
        queries over them. An answer is kept under its name and the hashes of every file of the
        captures and of the program that computes it.
        """
        key = self._key(cache, name) if cache else ""
        if not cache or not key:
            return compute()
        return cache.value("analyses", key, type_, lambda _: compute())

    def _key(self, cache: Cache, name: str) -> str:
        """Return the hash of everything an answer depends on; empty when a file is unreadable."""
        digest = hashlib.sha256(f"{name}\n{program()}\n".encode())
        try:
            for each in self.captured:
                digest.update(f"{len(each.case_id)} {each.case_id} {each.seed}\n".encode())
                for path, content in _file_hashes(cache, each).items():
                    digest.update(f"{path} {content}\n".encode())
        except OSError:
            return ""
        return digest.hexdigest()

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows that one SELECT gives; `parameters` stand in it as $NAME."""
        return self.engine.rows(sql, parameters)

    def columns(self, sql: str, parameters: Row | None = None) -> dict[str, list[Any]]:
        """Return the same by column, as long answers take less room so."""
        return self.engine.columns(sql, parameters)

    @cached_property
    def engine(self) -> Engine:
        """The engine that runs SQL over the captures, which it checks."""
        return Engine(self.captured)


def _file_hashes(cache: Cache, capture: NamedCapture) -> dict[str, str]:
    """Return the hash of every file by its path in the capture, or raise OSError when one is gone.

    Those of a large capture are kept, so that a known answer does not read gigabytes; what computes
    an answer reads the files, and their hashes with them.
    """
    files = files_of(capture.folder)

    def read(sources: Sources) -> dict[str, str]:
        # A file that comes or goes changes the folder that it is in.
        sources.add({path.parent for path in files} | {capture.folder, *files})
        return {
            path.relative_to(capture.folder).as_posix(): content
            for path, content in capture.hashes.items()
        }

    if sum(path.stat().st_size for path in files) < LARGE_BYTES:
        return read(Sources())
    key = sha256(str(capture.folder.resolve()).encode())
    return cache.value("seen", key, dict[str, str], read)
