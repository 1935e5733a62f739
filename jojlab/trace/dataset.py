"""A dataset: the tables of the captures of one run or several, and what SQL answers about them.

Every table of schema/ is there with the rows of all captures and a column `capture`, a number; the
table `captures` has what that number stands for: run, case_id and seed. A case_id names one case of
the dataset: where that has several runs, it is RUN/CASE_ID. The table `capture_tables` names the
tables that each capture has.

Nothing is read when a dataset is made but which captures there are. They are checked when the first
question is asked. DuckDB runs the SQL: it reads the columns that a question asks for, as a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jojlab.foundation.errors import DataError
from jojlab.trace.capture import Captured

if TYPE_CHECKING:
    from jojlab.trace.run_folder import RunFolder
    from jojlab.trace.sql import Engine

Row = dict[str, Any]


@dataclass(frozen=True)
class Dataset:
    """The captures of one run or several, in the order of the runs' cases, then of their seeds."""

    captured: tuple[Captured, ...]

    @classmethod
    def of(cls, *runs: RunFolder) -> Dataset:
        """Return all captures of `runs`; raises DataError when there is none."""
        captured = tuple(
            Captured(
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

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows that one SELECT gives; `parameters` stand in it as $NAME."""
        return self._engine.rows(sql, parameters)

    def columns(self, sql: str, parameters: Row | None = None) -> dict[str, list[Any]]:
        """Return the same by column, as long answers take less room so."""
        return self._engine.columns(sql, parameters)

    def keep(self, table: str, sql: str, parameters: Row | None = None, *, one_in: int = 1) -> None:
        """Make what one SELECT gives a table of the dataset, unless it is there already.

        It may be of a sample: one in so many requests.
        """
        self._engine.keep(table, sql, parameters, one_in=one_in)

    def keep_sliced(self, tables: Mapping[str, str], passing: Mapping[str, str]) -> None:
        """Make tables: each of what its SELECT gives of some requests, then of the next ones.

        The tables `passing` are made before them for each of these slices, and dropped after it.
        """
        self._engine.keep_sliced(tables, passing)

    @cached_property
    def _engine(self) -> Engine:
        from jojlab.trace.sql import Engine  # loads DuckDB, which kept figures do not need

        return Engine(self.captured)
