"""Tests that what the documents say of the tree is so: the files they name are there, every room is
told.
"""

from __future__ import annotations

import re
import tomllib

from jojlab.model import hazards
from jojlab.model.filesystems import ext4, f2fs, nilfs2
from jojlab.model.hazards import Cause
from tests.tidy.test_tidy import ROOT, tracked_files

# A path may begin at the top, or at the zone that its text is about.
ZONES = ("", "agent/src", "jojlab")
TOP = r"(?:agent|kernel|jojlab|docs|schema|devices|setup|tests|bench|experiments|workload|trace)"


def test_files_that_documents_name_are_there() -> None:
    faults = []
    for document in tracked_files(".md"):
        for name in re.findall(rf"`({TOP}/[\w./-]+)`", document.read_text()):
            stands_for_many = re.search("[A-Z]{4}", name)  # devices/NAME.toml
            if not stands_for_many and not any((ROOT / zone / name).exists() for zone in ZONES):
                faults.append(f"{document.relative_to(ROOT)}: {name}")
    assert not faults, "\n".join(faults)


def test_files_that_comments_name_are_there() -> None:
    """Not of tests that write files into a copy, nor of experiments: their text is in the keys of
    results.
    """
    path_in_text = re.compile(
        r"(?<![\w./{-])(?:agent/src|jojlab|tests)/[\w./-]+\.(?:py|rs|sql|txt)\b"
    )
    faults = [
        f"{source.relative_to(ROOT)}: {name}"
        for source in tracked_files(".py", ".rs", ".c", ".h", ".sh", ".sql", ".txt", ".toml")
        if "experiments" not in source.parts and "test_add" not in source.name
        for name in path_in_text.findall(source.read_text())
        if not (ROOT / name).exists()
    ]
    assert not faults, "\n".join(faults)


def test_the_page_of_every_cause_of_harm_is_there() -> None:
    known = [vars(module).values() for module in (hazards, ext4, f2fs, nilfs2)]
    causes = [each for values in known for each in values if isinstance(each, Cause)]
    assert causes
    assert not [cause for cause in causes if not (ROOT / cause.page).is_file()]


def test_links_lead_somewhere() -> None:
    faults = []
    for document in tracked_files(".md"):
        for link in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
            if "://" not in link and not (document.parent / link).exists():
                faults.append(f"{document.relative_to(ROOT)}: {link}")
    assert not faults, "\n".join(faults)


def test_the_map_names_the_rooms_of_the_kernel() -> None:
    [row] = re.findall(r"(?m)^\| `kernel/` .*$", (ROOT / "ARCHITECTURE.md").read_text())
    named = re.findall(r"`(\w+)/`", row.split("|")[4])
    folder = ROOT / "kernel"
    rooms = {path.relative_to(folder).parts[0] for path in tracked_files(".c", ".h", under="kernel")
             if path.parent != folder}  # fmt: skip
    assert sorted(named) == sorted(rooms)


def test_the_map_lists_the_rooms_of_jojlab_from_the_ground_up() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = [room for room in reversed(layers) if (ROOT / "jojlab" / room / "__init__.py").exists()]
    _, table = (ROOT / "ARCHITECTURE.md").read_text().split("| room of `jojlab`, each above", 1)
    assert re.findall(r"(?m)^\| `(\w+)` \|", table.split("\n\n")[0]) == rooms


def test_every_stage_has_rooms() -> None:
    map_, text = ((ROOT / name).read_text() for name in ("ARCHITECTURE.md", "docs/stages.md"))
    story = [line for line in map_.splitlines() if line.startswith("    ") and "->" in line]
    stages = [word for line in story for word in re.findall(r"(?<=-> )\w+|\w+(?= ->)", line)]
    assert len(stages) >= 8
    for stage in stages:
        [row] = re.findall(rf"(?m)^\| {stage} \| (.*) \|$", text)
        rooms = re.findall(r"`([\w/]+)`", row)
        assert rooms, f"the stage {stage} names no room"
        assert all((ROOT / room).is_dir() for room in rooms), row


def test_every_experiment_is_in_its_document() -> None:
    text = (ROOT / "docs/experiments.md").read_text()
    named = set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE))
    there = {path.parent.name for path in tracked_files(".toml", under="experiments")}
    assert there
    assert there <= named, f"docs/experiments.md does not name {sorted(there - named)}"
