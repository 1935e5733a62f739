from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.model import hazards
from jojlab.model.filesystems import ext4, f2fs, nilfs2
from jojlab.model.hazards import Cause

ROOT = Path(__file__).parents[2]
CAUSES = [
    pytest.param(cause, id=cause.value)
    for module in (hazards, ext4, f2fs, nilfs2)
    for cause in vars(module).values()
    if isinstance(cause, Cause)
]


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_a_page_that_is_there(cause: Cause) -> None:
    assert (ROOT / cause.page).is_file()
