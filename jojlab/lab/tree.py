"""Packs a tree of files for a guest: takes paths in the guest and the files of this machine that
go there; gives a tar archive. Equal trees are equal bytes: members are sorted, and have neither
times nor owners. The agent unpacks it (agent/src/lab/channel/trees.rs) and checks it as we do.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from jojlab.foundation.errors import UseError, unreadable
from jojlab.foundation.printable import printable

# The agent takes no larger archive, and twice as many members.
MOST_TREE_BYTES = 256 << 20
MOST_MEMBERS = 100_000

_PERMISSIONS = 0o777


def members_of(folder: Path) -> dict[str, Path]:
    """Return all that is beneath a folder by its path there; links are not followed.

    Raises UseError where it is no folder, or cannot be read.
    """
    if not folder.is_dir():
        raise UseError(f"{folder}: no such folder", "name a folder")

    def refuse(error: OSError) -> None:
        raise unreadable(error.filename, error) from error

    found: dict[str, Path] = {}
    for place, folders, files in os.walk(folder, onerror=refuse):
        for name in (*folders, *files):
            path = Path(place, name)
            found[path.relative_to(folder).as_posix()] = path
        if len(found) > MOST_MEMBERS:
            raise UseError(f"{folder}: more than {MOST_MEMBERS} files", "give a part")
    return found


def size_bytes(members: Mapping[str, Path | str]) -> int:
    """Return the bytes of the files of a tree."""
    paths = (path for path in members.values() if isinstance(path, Path))
    return sum(path.stat().st_size for path in paths if path.is_file() and not path.is_symlink())


def pack(members: Mapping[str, Path | str], *, is_shared: bool = False) -> bytes:
    """Return the archive of files, folders and links, by their paths in the guest's tree.

    A text is the target of a link. Everybody may read the files of a shared tree, and run those
    that their owner may run: in the guest their owner is another user.

    Raises UseError for what is none of these, a link that leads out of the tree, a file that cannot
    be read, and more than a guest takes.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(_with_folders(members)):
            _add(archive, name, members.get(name), is_shared=is_shared)
            if packed.tell() > MOST_TREE_BYTES:
                most = f"{MOST_TREE_BYTES >> 20} MiB"
                raise UseError(f"the tree is larger than {most}, which a guest takes", "give less")
    return packed.getvalue()


def _with_folders(members: Mapping[str, Path | str]) -> set[str]:
    """Return the names of all members, and of the folders that they are in."""
    folders = {
        parent.as_posix()
        for name in members
        for parent in PurePosixPath(name).parents
        if parent.parts
    }
    return folders | set(members)


def _add(archive: tarfile.TarFile, name: str, path: Path | str | None, *, is_shared: bool) -> None:
    member = tarfile.TarInfo(name)
    if isinstance(path, str):
        member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, path
        archive.addfile(member)
        return
    if path is None:
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(member)
        return
    try:
        found = path.lstat()
        member.mode = found.st_mode & _PERMISSIONS
        if is_shared:
            member.mode = 0o755 if found.st_mode & stat.S_IXUSR else 0o644
        if stat.S_ISDIR(found.st_mode):
            member.type = tarfile.DIRTYPE
            archive.addfile(member)
        elif stat.S_ISLNK(found.st_mode):
            member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
            if not is_confined(name, member.linkname):
                raise UseError(
                    f"{path}: a link to {printable(member.linkname)}, which may lead out of the "
                    "tree",
                    "make it relative, with .. only at its beginning, or put the file in its place",
                )
            archive.addfile(member)
        elif stat.S_ISREG(found.st_mode):
            if found.st_size > MOST_TREE_BYTES:
                most = f"{MOST_TREE_BYTES >> 20} MiB"
                raise UseError(f"{path}: larger than {most}, which a guest takes", "give less")
            content = path.read_bytes()
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        else:
            raise UseError(f"{path}: neither file, folder nor link", "leave it out")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeError as error:
        raise UseError(f"{printable(str(path))}: a name that is no UTF-8", "rename it") from error


def is_confined(name: str, target: str) -> bool:
    """Return whether a link cannot lead out of its tree, whatever other confined links it passes.

    Its own folder is a real one, so that the steps up at the beginning of `target` are known; a
    step up after a name may begin wherever another link leads.
    """
    parts = PurePosixPath(target).parts
    up = len(list(_leading(parts)))
    if not parts or parts[0].startswith("/") or ".." in parts[up:]:
        return False
    return up < len(PurePosixPath(name).parts)


def _leading(parts: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        if part != "..":
            return
        yield part
