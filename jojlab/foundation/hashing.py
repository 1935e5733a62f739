"""SHA-256, in hexadecimal, of bytes and of files."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content`."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, or raise OSError when it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
