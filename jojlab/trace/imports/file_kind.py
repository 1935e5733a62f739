"""What kind of file a name tells of: the rules of agent/src/block/file_kind.rs, for old traces.

A test compares the two, so that a file has one kind wherever its I/O was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_SUFFIXES = {
    "db": "db db3 sqlite sqlite3",
    "executable": "apk art dex elf exe jar ko oat odex so vdex",
    "resource": "arsc css html js json otf pak properties toml ttf xml",
    "multimedia": "3gp aac avi flac gif heic jpeg jpg m4a mkv mp3 mp4 ogg opus png wav webm webp",
}
KIND_OF_SUFFIX = {word: kind for kind, words in _SUFFIXES.items() for word in words.split()}

# Names that SQLite makes itself (src/pager.c, src/os_unix.c, vdbeCommit() in src/vdbeaux.c).
_SQLITE = (
    (re.compile(r".*-journal"), "db-journal"),
    (re.compile(r".*-wal"), "wal"),
    (re.compile(r".*-shm"), "shm"),
    (re.compile(r"etilqs_.*"), "sqlite-temp"),
    (re.compile(r".*-mj[0-9A-Z]{6}9[0-9A-Z]{2}"), "super-journal"),
)


def file_kind(path: str, paths: Collection[str]) -> str:
    """Return the kind of `path`; one with a journal or WAL beside it in `paths` is a database."""
    name = path.rpartition("/")[2]
    for pattern, kind in _SQLITE:
        if name and pattern.fullmatch(name):
            return kind
    if name and (f"{path}-journal" in paths or f"{path}-wal" in paths):
        return "db"
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    return KIND_OF_SUFFIX.get(suffix, "other")
