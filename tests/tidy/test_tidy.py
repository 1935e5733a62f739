"""The dependency rules and the style that hold everywhere, checked over the tracked files."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from jojlab.cli import COMMANDS
from jojlab.command_line.group import Group, Subcommand
from tests.tidy.rust import without_tests

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".py", ".rs", ".c", ".h", ".sh", ".sql", ".html")
MOST_LINES = 600
MOST_COLUMNS = 100


def tracked_files(*suffixes: str, under: str = "") -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", under or "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def matching_lines(paths: list[Path], pattern: str) -> list[str]:
    """Lines that match, as PATH:NUMBER: TEXT."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]


def circle(uses: Mapping[Path, Iterable[Path]]) -> set[Path]:
    """Return files each of which uses, in some steps, every other; empty where there are none."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return set(error.args[1])
    return set()


def test_files_are_found_at_all() -> None:
    for zone, suffix in (("agent", ".rs"), ("kernel", ".c"), ("jojlab", ".py")):
        assert tracked_files(suffix, under=zone), f"no {suffix} files under {zone}"


def test_built_programs_are_ignored_by_git() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]
    programs = [path for path in paths if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    assert not programs, f"programs in the tree, for .gitignore: {programs}"


def test_files_are_short_and_narrow() -> None:
    faults = []
    for path in tracked_files(*SOURCES):
        lines = path.read_text().splitlines()
        name = path.relative_to(ROOT)
        if len(lines) > MOST_LINES:
            faults.append(f"{name}: {len(lines)} lines, at most {MOST_LINES}")
        faults += [
            f"{name}:{number}: {len(line.expandtabs(8))} columns"
            for number, line in enumerate(lines, 1)
            if len(line.expandtabs(8)) > MOST_COLUMNS
        ]
    assert not faults, "\n".join(faults)


def test_every_source_file_says_what_it_is_for() -> None:
    openings = {
        ".py": r'\A(#!.*\n)?"""\S',
        ".rs": r"\A//! \S",
        ".c": r"\A// SPDX-License-Identifier: .*\n/\*",
        ".h": r"\A/\* SPDX-License-Identifier: .* \*/\n/\*",
        ".sh": r"\A#!/bin/.*sh\n# \S",
        ".sql": r"\A-- \S",
        ".html": r"\A\{# \S",
    }
    # What test_x.py is for is said by its name and by x.py.
    faults = [
        str(path.relative_to(ROOT))
        for path in tracked_files(*SOURCES)
        if not path.name.startswith("test_")
        and not re.search(openings[path.suffix], path.read_text())
    ]
    assert not faults, "\n".join(faults)


def test_the_flash_model_includes_no_kernel_header() -> None:
    folders = ("kernel/flash/model", "kernel/nand/model")
    model = [path for folder in folders for path in tracked_files(".c", ".h", under=folder)]
    assert len(model) > 20
    assert not matching_lines(model, r"#\s*include\s*<(linux|asm|uapi)/")


def test_qemu_is_started_by_the_guest_package_alone() -> None:
    outside = [
        path
        for path in tracked_files(".py", under="jojlab")
        if not {"guest", "model"} & set(path.parts) and not path.name.startswith("test_")
    ]
    assert not matching_lines(outside, r"qemu-system")


def report_files() -> list[Path]:
    """Return the product files of the report of a run and of that of a fleet."""
    return [
        path
        for under in ("jojlab/report", "jojlab/fleet/report")
        for path in tracked_files(".py", under=under)
        if not path.name.startswith("test_")
    ]


def test_html_stands_in_templates_alone() -> None:
    report = report_files()
    assert report
    assert not matching_lines(report, r"</[a-z]|['\"]<[a-z]")
    # Markup is not escaped.
    assert {path.name for path in report if matching_lines([path], r"Markup\(")} == {
        "page.py",
        "template.py",
    }


def test_analyses_read_only_tables() -> None:
    analyses = [
        path
        for path in tracked_files(".py", under="jojlab/analysis")
        if not path.name.startswith("test_")
    ]
    assert analyses
    assert not matching_lines(analyses, r"subprocess|(?<![.\w])open\(")


# The rooms of the tracer's side in the agent, likewise.
TRACER_ROOMS = (
    "program",
    "records",
    "files",
    "classify",
    "surroundings",
    "causes",
    "requests",
    "assembly",
    "control",
)


def test_rooms_of_the_tracer_build_on_those_before_them() -> None:
    # A room is a folder, or one file beside them.
    rooms: dict[str, list[Path]] = defaultdict(list)
    for path in tracked_files(".rs", under="agent/src/tracer"):
        is_file = path.parent.name == "tracer"
        if not path.name.endswith("_test.rs") and not (is_file and path.stem == "mod"):
            rooms[path.stem if is_file else path.parent.name].append(path)
    assert set(rooms) == set(TRACER_ROOMS)
    for place, room in enumerate(TRACER_ROOMS):
        own = rooms[room]
        if after := "|".join(TRACER_ROOMS[place + 1 :]):
            assert not matching_lines(own, rf"\btracer::({after})\b")


def test_one_room_opens_databases() -> None:
    sources = [
        path
        for path in tracked_files(".rs", under="agent/src")
        if not path.name.endswith("_test.rs")
    ]
    rooms = {
        str(path.relative_to(ROOT).parent)
        for path in sources
        if "Connection::open" in without_tests(path.read_text())
    }
    assert rooms == {"agent/src/sqlite"}


def test_agent_and_kernel_know_no_experiment() -> None:
    names = [path.parent.name for path in (ROOT / "experiments").glob("*/experiment.toml")]
    assert names
    sources = tracked_files(".rs", ".c", ".h", under="agent") + tracked_files(
        ".c", ".h", under="kernel"
    )
    # A name of one word (threads) is a word of the trade too; it is an experiment's in a path.
    marked = [rf"experiments/{name}\b" if name.isalpha() else rf"\b{name}\b" for name in names]
    assert not matching_lines(sources, "|".join(marked))


def test_every_file_of_commands_has_a_command() -> None:
    files = {
        path.stem
        for path in (ROOT / "jojlab/commands").rglob("*.py")
        if path.stem != "__init__" and not path.stem.startswith("test_")
    }
    groups = [row.subcommands if isinstance(row, Group) else {"": row} for row in COMMANDS.values()]
    rows = [row for group in groups for row in group.values()]
    places = {row.place for row in rows if isinstance(row, Subcommand)}
    assert files == {place.split(":")[0].removeprefix("jojlab.commands.") for place in places}


def test_a_subcommand_of_the_agent_is_one_file() -> None:
    commands = {path.stem for path in (ROOT / "agent/src/commands").glob("*.rs")} - {"mod"}
    main = (ROOT / "agent/src/main.rs").read_text()
    assert commands
    assert commands == set(re.findall(r"\bcommands::(\w+)::run\(", main))


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME", "XX" + "X"])
def test_nothing_is_left_for_later(word: str) -> None:
    assert not matching_lines(tracked_files(*SOURCES), rf"\b{word}\b")
