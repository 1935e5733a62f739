"""Transactions that are drawn until a power cut harms them: a device that lies about flushes does,
and no manual knows of it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.inside import joj


@pytest.mark.full
def test_the_first_script_that_is_harmed_is_shrunk_and_kept(tmp_path: Path) -> None:
    done = joj(
        *("verify", "durability", "--generate", "4", "--states", "16", "--json"),
        *("--set", "filesystem=ext4", "--set", "journal_mode=truncate"),
        *("--set", "device.flush_lies=1"),
        folder=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    harm = json.loads(done.stdout)["harm"]
    assert 1 <= len(harm["script"]) <= harm["transactions"]
    assert harm["durability"]["outcomes"]["kept"] < harm["durability"]["states"]
    kept = (tmp_path / "runs" / "generated" / "transaction.sql").read_text()
    assert all(transaction in kept for transaction in harm["script"])
