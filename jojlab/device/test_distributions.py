import json

import pytest

from jojlab.device.measure import (
    GAPS_US,
    KINDS,
    PERCENTILES,
    SIZES_BYTES,
    Distribution,
    mechanisms,
    read_answer,
)
from jojlab.foundation.errors import MachineError


def answer(operations: int = 1000) -> dict[str, object]:
    def times(scale: int) -> dict[str, object]:
        percentile = {f"{value:.6f}": int(value * scale) for value in PERCENTILES}
        return {"N": operations, "mean": 5.5, "max": 1000, "percentile": percentile}

    return {"jobs": [{"write": {"clat_ns": times(10)}, "sync": {"lat_ns": times(20)}}]}


def test_the_answer_to_a_flush_is_that_of_the_sync_and_not_its_write() -> None:
    text = "note: of fio's\n" + json.dumps(answer())
    flush, plain = (read_answer(text, 4096, kind, 0) for kind in ("flush", "plain"))
    assert (flush.median_ns, plain.median_ns) == (1000, 500)
    assert plain.percentiles_ns == (500, 900, 950, 990, 999)
    assert (plain.operations, plain.mean_ns, plain.longest_ns) == (1000, 5.5, 1000)


def test_few_operations_have_no_tail() -> None:
    found = read_answer(json.dumps(answer(operations=20)), 4096, "plain", 0)
    assert found.percentiles_ns == (500, 900, 950, None, None)
    alone = read_answer(json.dumps(answer(operations=1)), 4096, "plain", 0)
    assert alone.percentiles_ns == (None,) * 5
    assert alone.median_ns == 1000


@pytest.mark.parametrize("text", ["", "no JSON", "{}", '{"jobs": []}', '{"jobs": [{"write": {}}]}'])
def test_a_malformed_answer_of_fio_is_refused(text: str) -> None:
    with pytest.raises(MachineError, match="fio's answer"):
        read_answer(text, 4096, "plain", 0)


def make_distributions(sleepy_gap_us: int) -> list[Distribution]:
    return [
        Distribution(
            size, kind, gap, 9, 1.0, (100 + 900 * (gap >= sleepy_gap_us), 110, 400, 500, 600), 700
        )
        for kind in KINDS
        for size in SIZES_BYTES
        for gap in GAPS_US
    ]


def test_a_tail_and_a_sleep_become_keys_of_a_profile() -> None:
    tail = {"flush_tail_permille": 100, "flush_tail_ns": 300}
    assert mechanisms(make_distributions(10**9)) == tail
    slept = {"sleep_after_ns": 5_000_000, "wake_up_ns": 900}
    assert mechanisms(make_distributions(100_000)) == {**tail, **slept}
