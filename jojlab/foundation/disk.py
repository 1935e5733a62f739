"""Errors of a disk, a full one above all, as messages with a remedy."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from jojlab.foundation.errors import MachineError

# A tool that failed with less left than this wanted more: the flash module takes 1 MiB to build.
FULL_BELOW_BYTES = 1 << 20


@contextlib.contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Turns a full disk, a quota or a read-only place into an error with a remedy."""
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
