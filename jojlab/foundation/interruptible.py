"""A signal while DuckDB computes: DuckDB ends the query, and forgets what the signal had raised.

Where a handler raises, PyErr_CheckSignals() fails, and DuckDB raises RuntimeError in place of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jojlab.foundation.errors import EndAsked

_SAID = "Query interrupted"


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise again what a signal raised within it: EndAsked, or KeyboardInterrupt of Ctrl-C."""
    before = EndAsked.last
    try:
        yield
    except RuntimeError as error:
        if str(error) != _SAID:
            raise
        asked = EndAsked.last
        raise EndAsked(asked) if asked and asked != before else KeyboardInterrupt from None
