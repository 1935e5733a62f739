"""The help of joj and of every subcommand shows how it is used."""

from __future__ import annotations

import pytest

from jojlab.cli import COMMANDS
from tests.command.conftest import Lab

NAMES = list(COMMANDS)


def test_joj_shows_its_commands_and_examples(lab: Lab) -> None:
    answer = lab.joj_here("--help")
    assert answer.returncode == 0
    examples = answer.stdout.split("Examples:")[1]
    assert "joj run first-look" in examples
    for name in NAMES:
        assert f"\n  {name} " in answer.stdout
    assert "Exit codes" in answer.stdout


@pytest.mark.parametrize("group", [[], ["bench"], ["device"], ["import"], ["verify"], ["fleet"]])
def test_no_summary_is_cut(lab: Lab, group: list[str]) -> None:
    commands = lab.joj_here(*group, "--help").stdout.split("Options:")[1]
    assert "..." not in commands


@pytest.mark.parametrize("name", NAMES)
def test_every_command_shows_examples(lab: Lab, name: str) -> None:
    answer = lab.joj_here(name, "--help")
    assert answer.returncode == 0
    assert f"joj {name}" in answer.stdout.split("Examples:")[1]
