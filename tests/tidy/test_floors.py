"""The rooms of the agent stand on floors, and no source file of it uses another in a circle."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.rust import Crate, Uses, without_tests
from tests.tidy.test_tidy import ROOT, circle

AGENT = ROOT / "agent/src"

# From the ground up; rooms of one floor do not know each other.
FLOORS = (
    ("byte_text.rs", "filesystem", "messages.rs", "process.rs", "system_calls"),
    ("errors.rs", "record"),
    ("device",),
    ("raw_nand",),
    ("tables",),
    ("bpf",),
    ("tracer",),
    ("commits",),
    ("live_trace",),
    ("sqlite", "sql_script"),
    ("recorder",),
    ("import",),
    ("workload",),
    ("verify",),
    ("lab", "live", "collector"),
    ("commands",),
    ("main.rs",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def room(folder: Path, file: Path) -> str:
    return file.relative_to(folder).parts[0]


def climbing_uses(folder: Path, uses: Uses) -> Iterator[str]:
    """Uses that do not point down, as FILE uses FILE."""
    for file, used in sorted(uses.items()):
        for other in sorted(used):
            own, below = room(folder, file), room(folder, other)
            if own != below and FLOOR[own] <= FLOOR[below]:
                yield f"{file.relative_to(folder)} uses {other.relative_to(folder)}"


@pytest.fixture(scope="module")
def uses() -> Uses:
    return Crate(AGENT / "main.rs").uses()


def test_every_room_of_the_agent_has_a_floor(uses: Uses) -> None:
    assert {room(AGENT, file) for file in uses} == set(FLOOR)


def test_the_map_lists_the_rooms_from_the_ground_up() -> None:
    map_ = (ROOT / "ARCHITECTURE.md").read_text().split("| room of `agent/src`")[1]
    listed = re.findall(r"^\| `(\w+)` \|", map_.split("\n\n")[0], re.MULTILINE)
    assert set(listed) == {room for room in FLOOR if "." not in room}
    assert listed == sorted(listed, key=lambda room: FLOOR[room])


def test_rooms_of_the_agent_use_only_those_below(uses: Uses) -> None:
    assert not list(climbing_uses(AGENT, uses))


def test_files_of_the_agent_use_each_other_in_no_circle(uses: Uses) -> None:
    assert not circle(uses)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(AGENT, tmp_path / "src"))


def uses_with(copy: Path, file: str, code: str) -> Uses:
    path = copy / file
    path.write_text(path.read_text() + code)
    return Crate(copy / "main.rs").uses()


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("record/mod.rs", "use crate::{tables::rows::Request};\n"),
        ("record/job.rs", "fn a() { crate::errors::tell(); }\n"),
        ("messages.rs", "use crate::record;\nfn a() { record::Job::parse() }\n"),
        (
            "device/mod.rs",
            "use crate::tables::{self as other};\nfn a() { other::write::b(); }\n",
        ),
        ("live/mod.rs", "use crate::lab::case;\nfn a() { case::run(); }\n"),
        ("verify/sectors.rs", "use crate::{device::sysfs, commands::{init::run}};\n"),
    ],
)
def test_a_use_that_climbs_is_found(copy: Path, file: str, code: str) -> None:
    found = list(climbing_uses(copy, uses_with(copy, file, code)))
    assert [line.split()[0] for line in found] == [file]


@pytest.mark.parametrize(
    ("file", "code", "ring"),
    [
        ("record/case.rs", "use super::case::Case;\n", set()),
        ("record/job.rs", "use super::{Switch};\n", set()),
        (
            "tables/rows.rs",
            "use super::write::write;\n",
            {"tables/rows.rs", "tables/write.rs"},
        ),
        (
            "live/directory.rs",
            "use super::run::run;\n",
            {"live/directory.rs", "live/run.rs"},
        ),
    ],
)
def test_a_circle_of_files_is_found(copy: Path, file: str, code: str, ring: set[str]) -> None:
    files = circle(uses_with(copy, file, code))
    assert {str(path.relative_to(copy)) for path in files} == ring


def test_tests_and_text_are_no_code() -> None:
    code = without_tests(
        """
        // use crate::a;
        const TEXT: &str = r#"use crate::b; "quoted" {"#;
        fn kept<'a>(brace: char) -> bool { brace == '{' }
        #[cfg(test)]
        mod tests { use crate::c; fn nested() { if true {} } }
        #[cfg(test)]
        #[path = "d_test.rs"]
        mod tests;
        use crate::e;
        """
    )
    assert re.findall(r"crate::\w", code) == ["crate::e"]
    assert "fn kept<'a>" in code
    assert "mod tests" not in code
