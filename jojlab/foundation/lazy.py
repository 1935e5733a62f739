"""Large libraries that are loaded when something of them is first used.

Figures that are kept from before (jojlab/trace/dataset.py) need no DuckDB, Arrow or NumPy, whose
loading takes longer than all else that joj show does then; nor does a terminal need the libraries
of charts and templates, or `joj --help` that of types.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["alt", "duckdb", "fs", "jinja2", "load", "msgspec", "np", "pa", "pc", "pq", "vl_convert"]

_ANY_NAME = "__name__"  # any name of a library has it loaded

if TYPE_CHECKING:
    import altair as alt
    import duckdb
    import jinja2
    import msgspec
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import vl_convert
    from pyarrow import fs
else:

    class _Library:
        """Stands for a library, and hands its names on; Python's own locks make it loaded once."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            found = getattr(importlib.import_module(self._name), name)
            setattr(self, name, found)
            return found

    alt = _Library("altair")
    duckdb = _Library("duckdb")
    fs = _Library("pyarrow.fs")
    jinja2 = _Library("jinja2")
    msgspec = _Library("msgspec")
    np = _Library("numpy")
    pa = _Library("pyarrow")
    pc = _Library("pyarrow.compute")
    pq = _Library("pyarrow.parquet")
    vl_convert = _Library("vl_convert")


def load(*libraries: object) -> None:
    """Load libraries now, as where nothing waits for them yet."""
    for library in libraries:
        getattr(library, _ANY_NAME)
