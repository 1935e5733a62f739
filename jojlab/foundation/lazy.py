"""Large libraries that are loaded when something of them is first used.

Figures that are kept from before (jojlab/trace/dataset.py) need neither Arrow nor NumPy, whose
loading takes longer than all else that joj show does then; nor does a terminal need the library of
charts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["alt", "np", "pa", "pc", "pq"]

if TYPE_CHECKING:
    import altair as alt
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
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
    np = _Library("numpy")
    pa = _Library("pyarrow")
    pc = _Library("pyarrow.compute")
    pq = _Library("pyarrow.parquet")
