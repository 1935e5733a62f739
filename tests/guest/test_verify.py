"""The self-test of attribution in a guest: no byte of the wrong file, none unknown."""

from __future__ import annotations

import pytest

from jojlab.guest.verification import FILESYSTEMS, verify_in_guest
from jojlab.verify.verdict import Verdict


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_no_byte_is_of_the_wrong_file(filesystem: str) -> None:
    verdict = Verdict.of(filesystem, verify_in_guest(filesystem))
    assert not verdict.wrong and not verdict.incomplete, (verdict.complaints, verdict.reasons)
    assert verdict.counts["checked_bytes"] > 1 << 20
