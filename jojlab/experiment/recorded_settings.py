"""The settings of SQLite that lie in a folder of recorded scripts (joj export --format sql): fields
of a case that nobody gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jojlab.foundation.document import read_toml
from jojlab.foundation.errors import UseError
from jojlab.model.field import Value
from jojlab.model.fields import BY_NAME
from jojlab.model.workloads import with_group
from jojlab.model.workloads.sqlite import SCRIPTS

NAME = "settings.toml"
# No other field of a case is the app's.
_ALLOWED = (
    "journal_mode", "synchronous", "page_size_bytes", "auto_vacuum", "locking_mode",
    "secure_delete", "temp_store", "wal_autocheckpoint_pages",
)  # fmt: skip


def with_recorded(
    given: Mapping[str, Value], elsewhere: Sequence[str] = ()
) -> tuple[dict[str, Value], str]:
    """Return the fields that were given, and those of the folder of scripts that were not; and a
    sentence that says which are the folder's, empty where it has none. `elsewhere` are KEY=VALUE
    that the user gave too.

    Raises UseError for a file that is not as it should be.
    """
    path = Path(str(given.get("scripts", ""))) / NAME
    if (
        given.get("workload") not in with_group(SCRIPTS)
        or not given.get("scripts")
        or not path.is_file()
    ):
        return dict(given), ""
    _, document = read_toml(path, "docs/own-sql.md has the form")
    found: dict[str, Value] = {}
    for name, value in document.items():
        if name not in _ALLOWED:
            raise UseError(
                f"{path}: {name} is none of the settings of SQLite that an app has",
                f"drop it; there are {', '.join(_ALLOWED)}",
            )
        found[name] = BY_NAME[name].check(value, str(path))
    by_option = {name: str(value) for name, value in given.items()}
    by_option |= {name: value for name, _, value in (each.partition("=") for each in elsewhere)}
    recorded = [f"{name}={value}" for name, value in found.items() if name not in by_option]
    options = [f"{name}={by_option[name]}" for name in found if name in by_option]
    note = f"settings of {path}: {', '.join(recorded) or 'none'}"
    if options:
        note += f"; by option, in the place of the recorded ones: {', '.join(options)}"
    return {**found, **given}, note
