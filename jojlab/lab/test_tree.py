"""Equal trees are equal bytes; what leads out of a tree, or is no file, is refused."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.guest.machine import GuestInput
from jojlab.lab.job import Input
from jojlab.lab.tree import is_confined, members_of, pack, size_bytes


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "a/empty").mkdir(parents=True)
    (folder / "a/run").write_text("#!/bin/sh\n")
    (folder / "a/run").chmod(0o750)
    (folder / "z").symlink_to("a/run")
    return folder


def test_a_tree_is_packed_by_names_modes_and_contents_alone(tree: Path, tmp_path: Path) -> None:
    packed = pack(members_of(tree))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        found = {each.name: each for each in archive}
        content = archive.extractfile("a/run")
        assert content
        assert content.read() == b"#!/bin/sh\n"
    assert list(found) == ["a", "a/empty", "a/run", "z"]
    assert found["a/run"].mode == 0o750
    assert found["z"].linkname == "a/run"
    assert size_bytes(members_of(tree)) == len("#!/bin/sh\n")
    os.utime(tree / "a/run", (1, 1))
    assert pack(members_of(tree)) == packed
    (tree / "a/run").chmod(0o755)
    assert pack(members_of(tree)) != packed


def test_folders_of_named_members_are_made(tree: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack({"usr/bin/run": tree / "a/run"}))) as archive:
        assert archive.getnames() == ["usr", "usr/bin", "usr/bin/run"]


def test_a_shared_tree_gives_everybody_the_owners_rights(tree: Path) -> None:
    (tree / "a/data").write_text("1")
    (tree / "a/data").chmod(0o600)
    packed = pack(members_of(tree), is_shared=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getmember("a/run").mode == 0o755
        assert archive.getmember("a/data").mode == 0o644


def test_pipes_and_links_that_leave_the_tree_are_refused(tree: Path) -> None:
    (tree / "out").symlink_to("/etc")
    with pytest.raises(UseError, match="out: a link to /etc"):
        pack(members_of(tree))
    (tree / "out").unlink()
    os.mkfifo(tree / "pipe")
    with pytest.raises(UseError, match="pipe: neither file"):
        pack(members_of(tree))
    with pytest.raises(UseError, match="no such folder"):
        members_of(tree / "a/run")


@pytest.mark.parametrize(
    ("name", "target", "confined"),
    [
        ("a/link", "../b", True),
        ("a/b/link", "../../c/d", True),
        ("link", "a/b", True),
        ("link", "../b", False),
        ("a/link", "../../b", False),
        ("link", "/b", False),
        ("link", "a/../b", False),
        ("link", "", False),
    ],
)
def test_a_link_stays_in_its_tree(name: str, target: str, confined: bool) -> None:
    assert is_confined(name, target) == confined


def test_a_tree_and_a_file_of_its_bytes_are_not_the_same(tree: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    made = Input.from_tree(cache, "files", members_of(tree))
    (tmp_path / "packed").write_bytes(made.content())
    same = Input.from_file(cache, "files", tmp_path / "packed")
    assert made.sha256 == same.sha256
    assert made.identity != same.identity


def test_trees_come_as_items_of_their_own(tmp_path: Path) -> None:
    arguments = GuestInput(b"{}", {"script": b"x"}, {"files": b"y"}).write(tmp_path)
    assert arguments[-1] == "name=opt/jojlab/tree/files,file=item-3"
