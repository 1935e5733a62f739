"""What a guest says of an input file is said of this machine's."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.campaign.inputs import named_here
from jojlab.experiment.cases import Case


@pytest.mark.parametrize(
    ("said", "here"),
    [
        (
            "/inputs/scripts: holds no transaction.sql; add one",
            "app/sql: holds no transaction.sql; add one",
        ),
        ("/inputs/scripts/transaction.sql:3: no", "app/sql/transaction.sql:3: no"),
        ("'/inputs/scripts' and /inputs/other", "'app/sql' and /inputs/other"),
        ("/mnt/inputs/scripts_of", "/mnt/inputs/scripts_of"),
        ("the guest panicked", "the guest panicked"),
    ],
)
def test_a_folder_has_the_name_it_was_given_by(said: str, here: str) -> None:
    case = Case("case", {"workload": "sql"}, inputs={"scripts": Path("app/sql")})
    assert named_here(said, case) == here


@pytest.mark.parametrize(
    ("said", "here"),
    [
        ("/inputs/program/usr/bin/app: no", "/inputs/program/usr/bin/app: no"),
        ("/inputs/program: no", "/opt/app: no"),
    ],
)
def test_the_folder_of_a_program_is_in_the_guest_alone(said: str, here: str) -> None:
    case = Case("case", {"workload": "program"}, inputs={"program": Path("/opt/app")})
    assert named_here(said, case) == here
