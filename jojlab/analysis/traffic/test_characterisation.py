from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.analysis.traffic.characterisation import (
    ATTRIBUTES,
    Characterisation,
    DeviceLoad,
    characterisation_json,
    characterisations,
)
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of, truncate_capture

KIB = 1024


def kinds_of(folder: Path, builder: CaptureBuilder) -> Characterisation:
    return characterisations(Dataset.from_runs(run_of(folder, builder)))["a"]


def counts_by_value(
    kinds: Characterisation, operation: str, attribute: str
) -> dict[str, tuple[int, int]]:
    return {s.value: (s.requests, s.bytes) for s in kinds.shares_of(operation, attribute)}


def small_capture(case: dict[str, Any] | None = None) -> CaptureBuilder:
    """Three writes in a row of sectors, one elsewhere that nobody waits for, a read and a flush."""
    builder = CaptureBuilder(case or {"journal_mode": "wal"}, 1)
    db, wal = builder.file("/a.db", "db"), builder.file("/a.db-wal", "wal")
    builder.phase = "warm-up"
    builder.request([("data", "", wal, 4 * KIB)], sector=92)
    builder.phase = "commit"
    builder.request([("data", "", wal, 4 * KIB)], sector=100, asker=("fsync", wal))
    builder.request(
        [("fs-journal", "descriptor", None, 4 * KIB), ("data", "", db, 8 * KIB)], sector=108
    )
    builder.request([("data", "", db, 512)], sector=50, sync=False)
    builder.request([("data", "", db, 5 * KIB)], sector=51, operation="read")
    builder.request([], operation="flush")
    return builder


def test_every_attribute_by_hand(tmp_path: Path) -> None:
    kinds = kinds_of(tmp_path, small_capture())
    assert kinds.operations == {
        "write": (3, 16 * KIB + 512),
        "read": (1, 5 * KIB),
        "flush": (1, 0),
    }
    assert counts_by_value(kinds, "write", "file_kind") == {
        "db": (1, 8 * KIB + 512),
        "wal": (1, 4 * KIB),
        "none": (1, 4 * KIB),
    }
    assert counts_by_value(kinds, "write", "block_type") == {
        "data": (2, 12 * KIB + 512),
        "fs-journal": (1, 4 * KIB),
    }
    assert counts_by_value(kinds, "write", "sync") == {
        "sync call": (1, 4 * KIB),
        "REQ_SYNC": (1, 12 * KIB),
        "nobody": (1, 512),
    }
    # The first continues the warm-up's, the second the first.
    assert counts_by_value(kinds, "write", "pattern") == {
        "sequential": (2, 16 * KIB),
        "random": (1, 512),
    }
    assert counts_by_value(kinds, "read", "pattern") == {"sequential": (1, 5 * KIB)}
    assert counts_by_value(kinds, "write", "size") == {
        "512": (1, 512),
        "4096": (1, 4 * KIB),
        "16384": (1, 12 * KIB),
    }
    assert [s.value for s in kinds.shares_of("write", "size")] == ["512", "4096", "16384"]


def test_interrupts_are_counted_by_device(tmp_path: Path) -> None:
    builder = small_capture()
    for source, phase, value in (
        ("kernel", "all", 70),
        ("kernel", "commit", 9),
        ("flash0", "all", 5),
    ):
        builder.tables["counters"].append(
            {"phase": phase, "source": source, "name": "interrupts", "value": value}
        )
    assert kinds_of(tmp_path, builder).devices == (
        DeviceLoad("flash0", 6, 25 * KIB + 512, 5),
        DeviceLoad("machine", None, None, 70),
    )


def test_another_device_breaks_no_sequence(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for place in range(3):
        builder.request([("data", "", None, KIB)], sector=2 * place)
        builder.request([("data", "", None, KIB)], sector=7000, device="sda")
    assert counts_by_value(kinds_of(tmp_path, builder), "write", "pattern") == {
        "sequential": (2, 2 * KIB),
        "random": (4, 4 * KIB),
    }


def test_json_shares_add_up(tmp_path: Path) -> None:
    document = characterisation_json(kinds_of(tmp_path, truncate_capture({"journal_mode": ""}, 1)))
    for attribute in ATTRIBUTES:
        rows = document["write"][attribute]
        assert abs(sum(row["requests_share"] for row in rows) - 1) < 1e-9
        assert abs(sum(row["bytes_share"] for row in rows) - 1) < 1e-9
    assert document["read"]["size"] == []
    assert document["operations"]["flush"]["bytes"] == 0


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "flush", "discard"]),
        st.integers(0, 30),
        st.lists(
            st.tuples(st.sampled_from(["data", "fs-journal", "unknown"]), st.integers(1, 40)),
            min_size=1,
            max_size=3,
        ),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(REQUESTS)
def test_every_request_and_byte_is_in_every_attribute_once(
    tmp_path_factory: Any, made: Any
) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for operation, sector, runs in made:
        owners = [(kind, "", None, 512 * length) for kind, length in runs]
        builder.request([] if operation == "flush" else owners, operation=operation, sector=sector)
    kinds = kinds_of(tmp_path_factory.mktemp("any"), builder)
    for operation in ("read", "write"):
        for attribute in ATTRIBUTES:
            sums = counts_by_value(kinds, operation, attribute).values()
            total = sum(n for n, _ in sums), sum(length for _, length in sums)
            assert total == kinds.operations.get(operation, (0, 0))
