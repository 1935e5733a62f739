"""The rooms of jojlab stand on floors: a room imports only rooms below it, and no files import one
another in a circle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.tidy.circles import circles
from tests.tidy.python import package_imports
from tests.tidy.test_tidy import ROOT

# Each above those it uses.
FLOORS = (
    "foundation",
    "recording",
    "trace",
    "analysis",
    "device",
    "guest",
    "program",
    "lab",
    "experiment",
    "campaign",
    "verify",
    "gate",
    "advise",
    "live",
    "report",
    "fleet",
    "command_line",
    "commands",
    "cli",
    "manual",
    "__main__",
)
# Rooms within a room, likewise.
INNER_FLOORS = {
    "analysis": ("rows", "figures", "commit", "traffic", "study", "run"),
    "report": ("words", "terminal", "mobibench", "gate", "charts", "sections", "page"),
    "fleet": ("store", "server", "simulation", "study", "report", "demo"),
}


def upward(imports: Mapping[str, set[str]], package: str, floors: Sequence[str]) -> list[str]:
    """Imports of a room that stands no lower, and modules of no room, as lines for a reader."""
    faults = []
    place = {room: number for number, room in enumerate(floors)}

    def room_of(module: str) -> str:
        return module.removeprefix(f"{package}.").split(".")[0]

    within = {name for name in imports if name.startswith(f"{package}.")}
    for module in sorted(within):
        room = room_of(module)
        if room not in place:
            faults.append(f"{module} is in no room of {package}: add it to the floors")
            continue
        faults += [
            f"{module} imports {other}: {room_of(other)} is above {room}"
            for other in sorted(imports[module] & within)
            if place.get(room_of(other), -1) > place[room]
        ]
    return faults


def test_a_room_imports_only_rooms_below() -> None:
    imports = package_imports(ROOT / "jojlab")
    faults = upward(imports, "jojlab", FLOORS)
    for room, floors in INNER_FLOORS.items():
        faults += upward(imports, f"jojlab.{room}", floors)
    assert not faults, "\n".join(faults)


def test_every_floor_is_there() -> None:
    def rooms(folder: Path) -> set[str]:
        return {
            path.stem
            for path in folder.iterdir()
            if (path.suffix == ".py" and not path.name.startswith(("__init__", "test_")))
            or (path / "__init__.py").is_file()
        }

    assert rooms(ROOT / "jojlab") == set(FLOORS)
    for room, floors in INNER_FLOORS.items():
        assert rooms(ROOT / "jojlab" / room) == set(floors)


def test_architecture_lists_the_rooms_in_this_order() -> None:
    _, table = (ROOT / "ARCHITECTURE.md").read_text().split("| room of `jojlab`, each above", 1)
    rows = re.findall(r"(?m)^\| `(\w+)` \|", table.split("\n\n")[0])
    assert rows == [room for room in FLOORS if (ROOT / "jojlab" / room).is_dir()]


def test_no_files_import_one_another_in_a_circle() -> None:
    found = circles(package_imports(ROOT / "jojlab", tests=True))
    assert not found, "\n".join(" <-> ".join(sorted(circle)) for circle in found)


@pytest.mark.parametrize(
    "line",
    [
        "from house.high import word",
        "from house.high.word import TEXT",
        "import house.high.word",
        "from ..high import word",
        "def late():\n    from house.high import word",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.high import word",
        "import importlib\nimportlib.import_module('house.high.word')",
    ],
)
def test_an_import_of_a_room_above_is_found(tmp_path: Path, line: str) -> None:
    for name, text in {
        "__init__.py": "",
        "low/__init__.py": "",
        "low/stone.py": line,
        "high/__init__.py": "",
        "high/word.py": "import house.low.stone",
    }.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    imports = package_imports(tmp_path / "house")
    assert any("high is above low" in fault for fault in upward(imports, "house", ("low", "high")))
    assert circles(imports) == [{"house.high.word", "house.low.stone"}]
    assert upward(imports, "house", ("high",))[0].startswith("house.low is in no room")


def test_a_long_way_round_is_a_circle_and_a_shared_floor_none() -> None:
    ring = {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}, "e": {"a"}}
    assert circles(ring) == [{"b", "c", "d"}]
    assert circles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []
