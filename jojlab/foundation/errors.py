"""The errors that a user meets: what failed, what to do about it, and the exit code for it."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from jojlab.foundation.printable import nearest

# Exit codes, as scripts may rely on them (docs/at-a-glance.md, "Exit codes").
FINE = 0
EXPECTATION_FAILED = 1
WRONG_USE = 2
MACHINE_CANNOT = 3
INCOMPLETE = 4


def with_remedy(message: str, remedy: str) -> str:
    """Return a message as the user sees it, with the remedy below it if there is one."""
    return f"{message}\n  remedy: {remedy}" if remedy else message


class JojError(Exception):
    """An error with a remedy. `message` says what failed, `remedy` what to do; both are shown."""

    exit_code = WRONG_USE

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return with_remedy(self.message, self.remedy)


class UseError(JojError):
    """The user's input is wrong: an unknown key, a bad value, a missing run."""

    exit_code = WRONG_USE


def refuse_unknown(word: str, choices: Iterable[str], message: str, remedy: str = "") -> None:
    """Raise UseError for a word that is none of the choices, with the nearest of them; where there
    is no other remedy, with all.
    """
    choices = tuple(choices)
    if word not in choices:
        message += nearest(word, choices)
        raise UseError(message, remedy or f"one of: {', '.join(choices)}")


class MachineError(JojError):
    """This machine cannot do it: a tool is missing, the disk is full, a guest died."""

    exit_code = MACHINE_CANNOT


class GuestError(MachineError):
    """A guest hung, panicked, ran out of memory or ended early. Harms no other case.

    A `final` one would be the same again: the guest said so itself, or used up its time.
    """

    def __init__(
        self, message: str, console: str = "", remedy: str = "", *, final: bool = False
    ) -> None:
        super().__init__(message, remedy)
        self.console = console
        self.final = final

    def __str__(self) -> str:
        """Return the message, the remedy, and what the guest printed last."""
        lines = [super().__str__()]
        if self.console:
            lines.append("  the guest's console ended with:")
            lines += [f"    {line}" for line in self.console.splitlines()]
        return "\n".join(lines)


class ContentsTooLarge(GuestError):
    """An error: the contents that a case wrote did not fit in the memory of its guest."""


def unreadable(path: Path | str, error: OSError, remedy: str = "make it readable") -> UseError:
    """Return the error of a file that the user named and that cannot be read."""
    return UseError(f"{path}: cannot be read: {error.strerror}", remedy)


@contextlib.contextmanager
def writable(path: Path, remedy: str) -> Iterator[None]:
    """Turn an OSError within into the MachineError of a file that cannot be written."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise MachineError(f"{path}: cannot be written: {why}", remedy) from error


@contextlib.contextmanager
def whole_file(path: Path, remedy: str) -> Iterator[BinaryIO]:
    """Give a stream whose contents are at a path once it is written whole, and not before; raises
    MachineError, with the remedy, where it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with writable(path, remedy):
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
                yield stream
            temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


class DataError(JojError):
    """The data are damaged or incomplete: a truncated table, lost events."""

    exit_code = INCOMPLETE


# A tool that failed with less left than this wanted more: the flash module takes 1 MiB to build.
FULL_BELOW_BYTES = 1 << 20


@contextlib.contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Turn a full disk, a quota or a read-only place into an error with a remedy."""
    try:
        yield
    except MachineError as error:
        # Compilers and linkers tell of a full disk in words of their own, or by a signal.
        if error.remedy or shutil.disk_usage(place).free >= FULL_BELOW_BYTES:
            raise
        raise _full(place, error.message) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise _full(place, str(error.strerror)) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise MachineError(
                f"cannot write in {place}: {error.strerror}",
                "choose another place; JOJ_CACHE=DIR moves the cache",
            ) from error
        if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP):
            raise MachineError(
                f"{place} cannot be a folder: {error.strerror}",
                "JOJ_CACHE=DIR names the cache's folder",
            ) from error
        raise


def _full(place: Path, why: str) -> MachineError:
    remedy = "free some space; JOJ_CACHE=DIR moves the cache"
    return MachineError(f"the disk of {place} is full ({why})", remedy)
