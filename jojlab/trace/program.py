"""What computes answers of captures: its hash is part of the key of everything that is kept."""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from importlib import metadata

from jojlab.foundation.hashing import sha256_file
from jojlab.foundation.places import PACKAGE, SCHEMA

_SOURCES = (
    (PACKAGE / "analysis", "*.py"),
    (PACKAGE / "analysis", "*.sql"),
    (PACKAGE / "trace", "*.py"),
    (SCHEMA, "*.toml"),
)
_LIBRARIES = ("duckdb", "pyarrow")


@lru_cache(maxsize=1)
def program() -> str:
    """Return the hash of what computes: its source, the libraries, and Python."""
    digest = hashlib.sha256(sys.version.encode())
    for name in _LIBRARIES:
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    for folder, pattern in _SOURCES:
        for path in sorted(folder.rglob(pattern)):
            if not path.name.startswith("test_"):
                digest.update(f"{path.relative_to(folder.parent)} {sha256_file(path)}\n".encode())
    return digest.hexdigest()
