"""Engines of others under power cuts: what their authors document holds, and each planted fault, or
setting that promises less, is found.
"""

from __future__ import annotations

from jojlab.foundation.places import EXPERIMENTS
from jojlab.lab.lab import Lab
from tests.guest.test_own_check import answers

FOLDER = EXPERIMENTS / "own-engine"
# A cut can tear ext4's superblock in every case (docs/findings).
EVERY_CASE = {"kept", "unmountable"}


def test_lmdb_keeps_what_it_syncs_and_loses_what_it_does_not(lab: Lab) -> None:
    found = answers(lab, str(FOLDER / "lmdb.toml"))
    outcomes = {name: set(answer["outcomes"]) for name, answer in found.items()}
    assert outcomes["synced-ext4"] <= EVERY_CASE, outcomes
    # As with MDB_NOSYNC, and with MDB_NOMETASYNC.
    assert "corrupt" in outcomes["without-data-sync-ext4"], outcomes
    assert "lost" in outcomes["without-meta-sync-ext4"], outcomes
    assert "corrupt" not in outcomes["without-meta-sync-ext4"], outcomes
