"""The place that a command writes to: the folder that --out names, or a new one below runs/."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jojlab.foundation.errors import MachineError


@contextmanager
def out_folder(out: Path | None, wanted: Path, *, removed_on_error: bool = False) -> Iterator[Path]:
    """Yield `out`, or else a folder that free_folder makes; it goes again if it stays empty, and
    the one that it is in, if that is new too. With `removed_on_error` it goes with what an
    exception left in it.
    """
    if out is not None:
        yield out
        return
    was_there = wanted.parent.exists()
    folder = free_folder(wanted)
    try:
        yield folder
    except BaseException:
        if removed_on_error:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        with suppress(OSError):
            folder.rmdir()  # it stays where it holds anything
            if not was_there:
                wanted.parent.rmdir()


def free_folder(wanted: Path) -> Path:
    """Make `wanted`, or the first of wanted-2, wanted-3 ... that is not there; return it.

    Raises MachineError when no folder can be made there.
    """
    for number in itertools.count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            continue
        except OSError as error:
            raise MachineError(
                f"{folder}: cannot be made: {error.strerror}", "name a folder with --out"
            ) from error
    raise AssertionError("count() has no end")
