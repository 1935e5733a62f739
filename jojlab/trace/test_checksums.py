"""The hashes of a folder are those of its files, read one by one or side by side."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jojlab.trace import checksums
from jojlab.trace.checksums import hashes_of


@pytest.mark.parametrize("large_bytes", [0, 1 << 40])
def test_every_file_has_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_bytes: int
) -> None:
    monkeypatch.setattr(checksums, "LARGE_BYTES", large_bytes)
    contents = {"b.parquet": b"b" * 100_000, "a.parquet": b"", "requests/000000.parquet": b"c"}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    found = hashes_of(tmp_path)
    assert found == {
        tmp_path / name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
    }
    assert list(found) == sorted(found)
    with pytest.raises(OSError, match="none"):
        hashes_of(tmp_path / "none")
