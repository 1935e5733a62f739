"""The file that a guest's memory is mapped from: zeroes are holes, and count as such."""

from __future__ import annotations

from pathlib import Path

from jojlab.guest.memory import drop_zeroes, sha256_sparse

LENGTH = 3 << 20


def make_memory(path: Path, *written: tuple[int, bytes]) -> Path:
    with path.open("wb") as file:
        file.truncate(LENGTH)
        for place, content in written:
            file.seek(place)
            file.write(content)
    return path


def test_holes_and_zeroes_have_one_hash(tmp_path: Path) -> None:
    content = (1 << 20, b"content" * 1000)
    with_holes = make_memory(tmp_path / "holes", content)
    full = make_memory(tmp_path / "full", (0, bytes(LENGTH)), content)
    assert with_holes.read_bytes() == full.read_bytes()
    assert with_holes.stat().st_blocks < full.stat().st_blocks
    assert sha256_sparse(with_holes) == sha256_sparse(full)
    drop_zeroes(full)
    assert full.stat().st_blocks == with_holes.stat().st_blocks
    assert sha256_sparse(full) == sha256_sparse(with_holes)


def test_holes_within_a_block_are_zeroes(tmp_path: Path) -> None:
    pieces = (0, b"a" * 4096), (12288, b"b" * 4096)
    with_hole = make_memory(tmp_path / "hole", *pieces)
    full = make_memory(tmp_path / "full", (0, bytes(64 << 10)), *pieces)
    assert with_hole.stat().st_blocks < full.stat().st_blocks
    assert sha256_sparse(with_hole) == sha256_sparse(full)


def test_another_place_length_or_byte_is_another_hash(tmp_path: Path) -> None:
    files = [
        make_memory(tmp_path / "one", (4096, b"a")),
        make_memory(tmp_path / "moved", (8192, b"a")),
        make_memory(tmp_path / "changed", (4096, b"b")),
        make_memory(tmp_path / "more", (4096, b"a"), (LENGTH - 1, b"a")),
        make_memory(tmp_path / "longer", (4096, b"a"), (LENGTH, b"\0")),
        make_memory(tmp_path / "empty"),
    ]
    assert len({sha256_sparse(file) for file in files}) == len(files)
