"""A run with the memory model beside it: it is the run without it to the byte, and what is counted
of each part of it is the same each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.guest.memory_model import CORES
from jojlab.lab.memory_run import modelled_job, read_modelled
from tests.guest.conftest import real_case
from tests.guest.jobs import case_job, run_job


@pytest.mark.full
def test_every_part_is_counted_and_the_run_stays_the_same(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    job = case_job(image, real_case(transactions=3, warmup_transactions=1))
    plain = run_job(cache, job, tmp_path / "plain")
    asked = modelled_job(job, plain, CORES["arm11"])
    counted = read_modelled(plain, run_job(cache, asked, tmp_path / "first"))
    assert list(counted) == ["make", "mount", "prepare", "warm-up", "commit", "settle"]
    commit = counted["commit"]
    assert 0 < commit.all.l1_misses < commit.all.loads + commit.all.stores
    assert sum(each.loads for each in commit.functions.values()) == commit.all.loads
    assert any(name.startswith("ext4_") for name in commit.functions)
    assert commit.all.walk_levels >= commit.all.micro_tlb_misses // 100
