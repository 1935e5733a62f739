"""Folders below runs/ that commands make when none is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.command_line.options import out_folder


def test_a_folder_that_stays_empty_goes_again(tmp_path: Path) -> None:
    wanted = tmp_path / "runs" / "recording"
    for _ in range(2):
        with out_folder(None, wanted) as folder:
            assert folder == wanted
        assert not wanted.exists()
    with pytest.raises(KeyError), out_folder(None, wanted):
        (wanted / "calls").mkdir()
        raise KeyError
    assert (wanted / "calls").is_dir()
    with out_folder(None, wanted) as folder:
        assert folder.name == "recording-2"


def test_a_folder_that_was_named_stays(tmp_path: Path) -> None:
    (named := tmp_path / "named").mkdir()
    with out_folder(named, tmp_path / "other") as folder:
        assert folder == named
    assert list(tmp_path.iterdir()) == [named]


def test_a_folder_around_it_goes_with_it_if_it_is_new(tmp_path: Path) -> None:
    wanted = tmp_path / "runs" / "first-look"
    with pytest.raises(KeyError), out_folder(None, wanted):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    wanted.parent.mkdir()
    with out_folder(None, wanted):
        pass
    assert list(tmp_path.iterdir()) == [wanted.parent]
