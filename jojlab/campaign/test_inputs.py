"""Tests that what a guest says of an input file is said of this machine's."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.campaign.jobs import named_here
from jojlab.experiment.cases import Case


@pytest.mark.parametrize(
    ("said", "here"),
    [
        ("/inputs/scripts: holds no transaction.sql", "app/sql: holds no transaction.sql"),
        ("/inputs/scripts/transaction.sql:3: no", "app/sql/transaction.sql:3: no"),
        ("'/inputs/scripts' and /inputs/other", "'app/sql' and /inputs/other"),
        ("/inputs/program: no", "/opt/app: no"),
        # That folder is in the guest alone: it has what the program needs.
        ("/inputs/program/usr/bin/app: no", "/inputs/program/usr/bin/app: no"),
        ("/mnt/inputs/scripts_of", "/mnt/inputs/scripts_of"),
        ("the guest panicked", "the guest panicked"),
    ],
)
def test_an_input_has_the_name_it_was_given_by(said: str, here: str) -> None:
    inputs = {"scripts": Path("app/sql"), "program": Path("/opt/app")}
    assert named_here(said, Case("case", {}, inputs=inputs)) == here
