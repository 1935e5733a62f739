"""Opens the folder of a recording (docs/recording.md) and reads its tables as rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jojlab.foundation.errors import UseError

VERSION = 1

Row = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """The tables of a recording, and what its manifest says."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Recording:
        """Open a recording; raises UseError for a folder that is none, or of another version."""
        try:
            rows = pq.read_table(folder / "manifest.parquet").to_pylist()
            manifest = {row["key"]: json.loads(row["value"]) for row in rows}
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise UseError(
                f"{folder}: no recording: {error}", "name a folder that joj record wrote"
            ) from error
        if (version := manifest.get("recording_version")) != VERSION:
            raise UseError(
                f"{folder}: recording_version is {version}, and {VERSION} is read",
                "record it again with this joj",
            )
        return cls(folder, manifest)

    @property
    def incomplete_reasons(self) -> list[str]:
        """Why it is incomplete; empty if it is not."""
        reasons: list[str] = self.manifest.get("incomplete_reasons", [])
        return reasons

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table, segment by segment; raises UseError for an unreadable one."""
        whole = self.folder / f"{table}.parquet"
        files = [whole] if whole.exists() else sorted((self.folder / table).glob("*.parquet"))
        for file in files:
            try:
                yield from pq.read_table(file).to_pylist()
            except (OSError, pa.ArrowException) as error:
                raise UseError(f"{file}: not readable: {error}", "record it again") from error


_ESCAPED = re.compile(rb"\\(\\|x[0-9a-f]{2})")


def path_bytes(text: str) -> bytes:
    r"""Return the bytes that a text column stands for: `\\` is a backslash, `\xNN` a byte."""

    def plain(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return code if code == b"\\" else bytes([int(code[1:], 16)])

    return _ESCAPED.sub(plain, text.encode())
