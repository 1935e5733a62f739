import gzip
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.foundation.errors import DataError, JojError, UseError
from jojlab.trace.dataset import Dataset
from jojlab.trace.imports import blkparse, most
from jojlab.trace.imports.tables import file_kind
from jojlab.trace.imports.trace_file import ImportedTrace, import_trace

BLKPARSE = """\
  8,0    1        1     0.000000000   697  A  WS 223490 + 8 <- (8,1) 223427
  8,0    1        2     0.000001000   697  Q  WS 223490 + 8 [sqlite3]
  8,0    1        3     0.000002000   697  G  WS 223490 + 8 [sqlite3]
  8,0    1        4     0.000003000   697  P   N [sqlite3]
  8,0    1        5     0.000004000   697  Q  WS 223498 + 8 [sqlite3]
  8,0    1        6     0.000005000   697  M  WS 223498 + 8 [sqlite3]
  8,0    1        7     0.000006000   697  U   N [sqlite3] 1
  8,0    1        0     0.000006500     0  m   N cfq697 dispatched a request
  8,0    1        8     0.000007000   697  D  WS 223490 + 16 [kworker/0:1H]
  8,0    0        1     0.000900000     0  C  WS 223490 + 16 [0]
  8,0    1        9     0.001000000   700  Q FWS [jbd2/sda1-8]
  8,0    1       10     0.001001000    30  D  FN [kworker/0:1H]
  8,0    0        2     0.001900000     0  C  FN 0 [0]
  8,0    1       11     0.002000000   701  Q  RA 4096 + 256 [cat (one) [x]]
  8,0    1       12     0.002001000   701  X  RA 4096 / 4224 [cat (one) [x]]
  8,0    1       13     0.002002000   701  D  RA 4096 + 128 [cat (one) [x]]
  8,0    1       14     0.002003000   701  D  RA 4224 + 128 [cat (one) [x]]
  8,0    0        3     0.003000000     0  C  RA 4096 + 128 [0]
  8,0    0        4     0.003100000     0  C  RA 4224 + 128 (  1097000) [0]
  8,0    1       15     0.004000000   702  D   R 36 (12 01 00 00 24 00 ..) [smartd]
CPU0 (sda):
 Reads Queued:           1,      128KiB\t Writes Queued:           2,        8KiB
Throughput (R/W): 32000KiB/s / 2000KiB/s
Events (sda): 24 entries
Skips: 2 forward (1,037 -   1.2%)
"""


def write_text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def import_text(
    tmp_path: Path, text: str, name: str = ""
) -> tuple[list[dict[str, Any]], ImportedTrace]:
    run, counted = import_trace(write_text(tmp_path / "trace.txt", text), tmp_path / "run", name)
    return Dataset.from_runs(run).rows("SELECT * FROM requests ORDER BY request_id"), counted


def test_blkparse_text_becomes_requests(tmp_path: Path) -> None:
    rows, counted = import_text(tmp_path, BLKPARSE)
    shown = [
        (
            r["operation"],
            r["sector"],
            r["length_bytes"],
            r["queue_ns"],
            r["issue_ns"],
            r["complete_ns"],
            r["submitter_comm"],
            r["bio_count"],
        )
        for r in rows
    ]
    assert shown == [
        ("write", 223490, 8192, 1_000, 7_000, 900_000, "sqlite3", 2),
        ("flush", None, 0, 1_000_000, 1_001_000, 1_900_000, "jbd2/sda1-8", 1),
        ("read", 4096, 65536, 2_000_000, 2_002_000, 3_000_000, "cat (one) [x]", 1),
        ("read", 4224, 65536, 2_000_000, 2_003_000, 3_100_000, "cat (one) [x]", 1),
    ]
    assert {r["device"] for r in rows} == {"8:0"}
    assert (rows[0]["sync"], rows[2]["readahead"]) == (True, True)
    assert (counted.format, counted.lost_events) == ("blkparse", 1037)
    assert counted.unattributed_bytes == 8192 + 2 * 65536
    assert counted.reasons == ["1037 events were lost when the trace was recorded"]
    assert counted.limits == [
        f"{8192 + 2 * 65536} bytes have no owner: the trace does not tell it",
    ]


def test_the_manifest_names_the_imported_file(tmp_path: Path) -> None:
    run, counted = import_trace(write_text(tmp_path / "sda.txt", BLKPARSE), tmp_path / "run")
    [(entry, seed, capture)] = list(run.captures())
    assert (entry.case_id, entry.case["source"], seed) == ("trace", "sda.txt", 0)
    manifest = capture.manifest
    assert (manifest["clock"], manifest["incomplete"]) == ("wall", True)
    assert manifest["incomplete_reasons"] == counted.reasons + counted.limits
    assert manifest["configuration"]["source"]["lines"] == BLKPARSE.count("\n")
    assert json.dumps(run.fingerprint)
    assert len(run.fingerprint["source_sha256"]) == 64


def line(*fields: object) -> str:
    return "\t".join(map(str, fields)) + "\n"


READER = ("103336", "  Reader", "D", "/a/x-journal")
FLUSHER = (" 135", " flush-179:0")
JBD2 = (" 137", " jbd2/x", "J")
MOST = "".join(
    [
        line("    0.000000001", "Q", "WS", "     800", "   8", *READER),
        line("    0.000000002", "Q", "WS", "     808", "   8", *READER),
        line("    0.000000003", "M", "WS", "     808", "   8", *READER),
        line("    0.000000004", "D", "WAS", "     800", "  16", *READER),
        line("    0.000000500", "C", "WAS", "     800", "  16", *READER),
        line("    0.000000600", "Q", "WBS", "       0", "   0", *FLUSHER, "M"),
        line("    0.000000900", "C", "WS", "       0", "   0", *FLUSHER, "M"),
        line("    0.000001000", "Q", "WBS", "    4000", "   8", *JBD2),
        line("    0.000001001", "D", "WS", "    4000", "   8", *JBD2),
        line("    0.000001100", "C", "WS", "    4000", "   8", *JBD2),
        line("    0.000001200", "C", "WS", "    4000", "   0", *JBD2),
        line("    0.000002000", "Q", "W", "      16", "   8", *FLUSHER, "D", "/a/x"),
        line("    0.000002001", "D", "W", "      16", "   8", *FLUSHER, "D", "/a/x"),
        line("    0.000002500", "C", "W", "      16", "   8", *FLUSHER, "D", "/a/x"),
    ]
)


def test_most_names_files_and_types(tmp_path: Path) -> None:
    run, counted = import_trace(write_text(tmp_path / "result.po", MOST), tmp_path / "run")
    data = Dataset.from_runs(run)
    rows = data.rows("SELECT * FROM requests ORDER BY request_id")
    assert [
        (r["operation"], r["block_type"], r["file_kind"], r["submitter_pid"]) for r in rows
    ] == [
        ("write", "data", "db-journal", 3336),
        ("flush", "flush", "none", 135),
        ("write", "fs-journal", "none", 137),
        ("flush", "flush", "none", 137),
        ("write", "data", "db", 135),  # it has a journal beside it
    ]
    files = data.rows("SELECT * FROM files ORDER BY file_id")
    assert [(f["path"], f["file_kind"]) for f in files] == [
        ("/a/x-journal", "db-journal"),
        ("/a/x", "db"),
    ]
    assert (counted.reasons, counted.unattributed_bytes) == ([], 0)


def test_the_cut_last_line_is_counted_and_left_out(tmp_path: Path) -> None:
    _, counted = import_text(tmp_path, MOST.rstrip("\n")[:-3])
    assert "1 line is cut short: the last, which is left out" in counted.reasons
    assert counted.requests == 5
    assert counted.counts["unfinished"] == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (BLKPARSE.replace("223490 + 16", "223490 - 16", 1), 9),
        (BLKPARSE.replace("  Q  WS", "  Y  WS", 1), 2),
        (BLKPARSE.replace("[0]", "", 1), 10),
        (BLKPARSE.replace("223490 + 8 [", "223490 + 99999999999 [", 1), 2),
        (BLKPARSE.replace("     0.000001000", "9999999999999.000001000", 1), 2),
        (BLKPARSE.replace("  Q  WS 223490", "  Q  WS 99999999999999999", 1), 2),
        (BLKPARSE.replace("223490 + 8 [", "223490 + 8 [" + "x" * 100_000, 1), 2),
        (BLKPARSE.replace("CPU0 (sda):", "sda: 3 of 4", 1), 21),
        (MOST.replace("\tQ\t", "\tX\t", 1), 1),
        (MOST.replace("\tJ\n", "\tK\n", 1), 8),
        (MOST.replace("\tD\t/a", "\tD\t/a\tb", 1), 1),
    ],
)
def test_a_bad_line_is_named_and_the_others_are_read(
    tmp_path: Path, text: str, number: int
) -> None:
    name = "most" if "\t" in text.splitlines()[0] else "blkparse"
    rows, counted = import_text(tmp_path, text, name)
    assert rows
    [reason] = [r for r in counted.reasons if "could not be read" in r]
    assert f"line {number}: " in reason


def test_letters_that_are_not_known_are_counted(tmp_path: Path) -> None:
    rows, counted = import_text(tmp_path, BLKPARSE.replace("WS 223490", "WSY 223490"))
    assert (rows[0]["operation"], rows[0]["sync"]) == ("write", True)
    assert counted.counts["unknown_letters"] == 3
    assert not [r for r in counted.reasons if "operations" in r]
    again = tmp_path / "again"
    again.mkdir()
    rows, counted = import_text(again, BLKPARSE.replace("WS 223490", "QS 223490"))
    assert rows[0]["operation"] == "other"
    assert "3 events are of no known operation, and shown as other" in counted.reasons


def test_files_without_an_event_are_refused(tmp_path: Path) -> None:
    for text in ("", "\n\n", "hello\n", "\x00\x01\n", "CPU0 (sda):\n"):
        with pytest.raises(UseError):
            import_trace(write_text(tmp_path / "x", text), tmp_path / "run")
    with pytest.raises(DataError, match=r"x: no event of blkparse in it; line 1: no event of"):
        import_trace(write_text(tmp_path / "x", MOST), tmp_path / "run", "blkparse")
    for magic in (b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh9", b"PK\x03\x04", b"\x07taeX"):
        (tmp_path / "x").write_bytes(magic + b"1234567890")
        with pytest.raises(UseError, match="no text"):
            import_trace(tmp_path / "x", tmp_path / "run")
    (tmp_path / "x").write_bytes(gzip.compress(BLKPARSE.encode())[:-20])
    with pytest.raises(DataError, match="damaged"):
        import_trace(tmp_path / "x", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.replace("\n", "\r\n").encode("utf-16-be"),
        lambda text: gzip.compress(text.encode()),
        lambda text: gzip.compress(text[:99].encode()) + gzip.compress(text[99:].encode("utf-8")),
        lambda text: gzip.compress(text.encode("utf-16")),
    ],
)
@pytest.mark.parametrize("text", [BLKPARSE, MOST])
def test_the_encoding_of_a_file_changes_nothing(
    tmp_path: Path, text: str, encode: Callable[[str], bytes]
) -> None:
    rows, plain = import_text(tmp_path, text)
    (tmp_path / "encoded").write_bytes(encode(text))
    run, counted = import_trace(tmp_path / "encoded", tmp_path / "again")
    assert Dataset.from_runs(run).rows("SELECT * FROM requests ORDER BY request_id") == rows
    assert counted == plain


def test_a_byte_that_is_no_utf8_keeps_its_value(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(MOST.encode().replace(b"/a/x\n", b"/a/\xe9\n"))
    run, counted = import_trace(tmp_path / "latin", tmp_path / "run")
    paths = [
        row["path"] for row in Dataset.from_runs(run).rows("SELECT path FROM files ORDER BY path")
    ]
    assert paths == ["/a/\\xe9", "/a/x-journal"]
    assert not counted.reasons


# A bio-based device: bios are queued and completed, nothing is issued.
OF_BIOS = """\
259,1    5        1    10.000000000  7001  Q FWFSM 8392 + 8 [umount]
259,1    5        2    10.000005000  7001  C FWFSM 8392 + 8 [0]
259,1    3        1    10.000200000  7002  Q  WM 0 + 8 [xfsaild/pmem0]
259,1    3        2    10.000204000  7002  C  WM 0 + 8 [0]
259,1    5        3    10.000400000  7001  Q   R 64 + 16 [umount]
259,1    5        4    10.000402000  7001  C   R 64 + 16 [0]
259,1   12        1    10.003000000  7001  Q FWS [umount]
259,1   12        2    10.003005000  7001  C FWS 0 [0]
"""
# The block layer flushes for a sync, and before and after a write that the device cannot force.
BY_BLK_FLUSH = """\
  8,0    0        1     0.000000000   811  Q FWS [app]
  8,0    0        2     0.000001000   811  G FWS [app]
  8,0    0        3     0.000003000    12  D  FN [kworker/0:1H]
  8,0    0        4     0.001003000     0  C  FN 0 [0]
  8,0    0        5     0.001004000     0  C  WS 0 [0]
  8,0    0        6     0.002000000   594  Q FWFSM 9000 + 8 [jbd2/sda1-8]
  8,0    0        7     0.002003000    12  D  FN [kworker/0:1H]
  8,0    0        8     0.003003000     0  C  FN 0 [0]
  8,0    0        9     0.003004000    12  D WSM 9000 + 8 [kworker/0:1H]
  8,0    0       10     0.003904000     0  C WSM 9000 + 8 [0]
  8,0    0       11     0.003906000    12  D  FN [kworker/0:1H]
  8,0    0       12     0.004906000     0  C  FN 0 [0]
  8,0    0       13     0.004907000     0  C WSM 9000 [0]
"""
ONE_WRITE = """\
  8,0    0        1     0.000000000   300  Q  WS 2048 + 8 [jbd2/sda1-8]
  8,0    0        2     0.000003000   300  D  WS 2048 + 8 [jbd2/sda1-8]
  8,0    0        3     0.000903000     0  C  WS 2048 + 8 [0]
"""
HEADER = "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n\n"
PER_PROCESS = """\
jbd2/sda1-8 (300)
 Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB
 Read Dispatches:        0,        0KiB\t Write Dispatches:        1,        4KiB
 Reads Requeued:         0\t\t Writes Requeued:         0
 Read Merges:            0,        0KiB\t Write Merges:            0,        0KiB
 Read depth:             0        \t Write depth:             1
 PC Reads Queued:        0,        0KiB\t PC Writes Queued:        0,        0KiB
 IO unplugs:             0        \t Timer unplugs:           0
 Allocation wait:        0        \t Allocation wait:         0
 Dispatch wait:          0.003        \t Dispatch wait:           0.003
 Completion wait:        0.900        \t Completion wait:         0.900

"""
SUMMARY = """\
CPU0 (sda):
 Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB

Total (sda):
 Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB

Throughput (R/W): 0KiB/s / 4,429KiB/s
Events (sda): 3 entries
Skips: 0 forward (0 -   0.0%)
"""
BY_BLKTRACE = """\
=== sda ===
  CPU  0:                   12 events,        1 KiB data
  Total:                    12 events (dropped 5),        1 KiB data
You have dropped events, consider using a larger buffer size (-b)
"""
ZONES = """\
  8,0    0        1     0.000000000   300  Q  ZA 4096 + 8 [app]
  8,0    0        2     0.000003000   300  D  ZA 4096 + 8 [app]
  8,0    0        3     0.000903000     0  C  ZA 4096 + 8 [0]
  8,0    0        4     0.001000000   300  Q  ZR 524288 + 524288 [app]
  8,0    0        5     0.001003000   300  D  ZR 524288 + 524288 [app]
  8,0    0        6     0.001903000     0  C  ZR 524288 + 524288 [0]
  8,0    0        7     0.002000000   300  Q RAM 9000 + 32 [app]
  8,0    0        8     0.002003000   300  D  RM 9000 + 32 [app]
  8,0    0        9     0.002903000     0  C  RM 9000 + 32 [0]
  8,0    0       10     0.003000000   300  Q ZRA [app]
  8,0    0       11     0.003003000   300  D ZRA [app]
  8,0    0       12     0.003903000     0  C ZRA 0 [0]
"""
COMMANDS = """\
  8,0    0        4     0.001000000   300  D   R 36 (12 01 00 00 24 00 ..) [smartd]
  8,0    0        5     0.001903000     0  C   R (12 01 00 00 24 00 ..) [0]
  8,0    0        6     0.002000000   300  D   R 36 [smartd]
  8,0    0        7     0.002903000     0  C   R [0]
"""


@pytest.mark.parametrize(
    ("text", "operations", "reasons"),
    [
        (OF_BIOS, ["write", "write", "read", "flush"], []),
        (BY_BLK_FLUSH, ["flush", "flush", "write", "flush"], []),
        (HEADER + ONE_WRITE + SUMMARY, ["write"], []),
        (ONE_WRITE + PER_PROCESS + SUMMARY, ["write"], []),
        ("$ blkparse -i sda\n" + ONE_WRITE, ["write"], ["unread"]),
        ("^C" + ONE_WRITE + "^C" + SUMMARY, ["write"], []),
        (ONE_WRITE + "^C\n" + SUMMARY.replace("(0 -", "(17 -"), ["write"], ["lost 17"]),
        (ONE_WRITE + SUMMARY + HEADER + ONE_WRITE, ["write"] * 2, ["order"]),
        (BY_BLKTRACE + ONE_WRITE, ["write"], ["lost 5"]),
        (ZONES, ["write", "other", "read", "other"], []),
        (ONE_WRITE + COMMANDS, ["write"], []),
    ],
)
def test_lines_without_an_event_end_no_request(
    tmp_path: Path, text: str, operations: list[str], reasons: list[str]
) -> None:
    rows, counted = import_text(tmp_path, text)
    assert [row["operation"] for row in rows] == operations
    assert all(row["complete_ns"] is not None for row in rows)
    wanted = {
        "unread": "could not be read",
        "lost 17": "17 events were lost",
        "lost 5": "5 events were lost",
        "order": "out of time order",
    }
    assert len(counted.reasons) == len(reasons), counted.reasons
    assert all(wanted[w] in r for w, r in zip(reasons, counted.reasons, strict=True))


GOOD = [part + "\n" for text in (BLKPARSE, MOST) for part in text.splitlines()]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(GOOD), st.text(max_size=40), st.binary(max_size=20))),
    st.sampled_from(["", "blkparse", "most"]),
)
def test_any_bytes_are_a_run_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str | bytes], name: str
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    data = b"".join(p if isinstance(p, bytes) else p.encode("utf-8", "replace") for p in parts)
    (folder / "trace").write_bytes(data)
    try:
        run, counted = import_trace(folder / "trace", folder / "run", name)
    except JojError as error:
        assert str(folder / "trace") in str(error)
        assert not (folder / "run").exists()
    else:
        assert Dataset.from_runs(run).rows("SELECT count(*) FROM requests")
        assert counted.requests >= 0
    shutil.rmtree(folder)


@given(st.text())
def test_a_line_is_an_event_or_a_value_error(text: str) -> None:
    for module in (blkparse, most):
        try:
            module.parse(text)
        except ValueError as error:
            assert str(error)


# (action, category, sector, bytes, pdu): struct blk_io_trace and enum blktrace_act and _cat of
# include/uapi/linux/blktrace_api.h.
WRITE, FLUSH, SYNC, FUA = 1 << 1, 1 << 2, 1 << 3, 1 << 15
RECORDS = [
    (15, WRITE | SYNC, 5000, 4096, struct.pack(">IIQ", 8 << 20 | 1, 8 << 20, 4000)),
    (1, WRITE | SYNC | 1 << 4, 5000, 4096, b""),
    (4, WRITE | SYNC, 5000, 4096, b""),
    (12, WRITE | SYNC, 5000, 4096, b""),
    (7, WRITE | SYNC | 1 << 6, 5000, 4096, b""),
    (8, WRITE | SYNC | 1 << 7, 5000, 4096, b""),
    (1, WRITE | FLUSH | SYNC | 1 << 4, 0, 0, b""),
    (7, FLUSH | 1 << 6, 0, 0, b""),
    (8, FLUSH | 1 << 7, 0, 0, b""),
    (1, 1 | 1 << 4, 9000, 16384, b""),
    (13, 1, 9000, 16384, struct.pack(">Q", 9016)),
    (7, 1 | 1 << 6, 9000, 8192, b""),
    (6, 1 | 1 << 5, 9000, 8192, b""),
    (7, 1 | 1 << 6, 9000, 8192, b""),
    (8, 1 | 1 << 7, 9000, 8192, b""),
    (7, 1 | 1 << 6, 9016, 8192, b""),
    (8, 1 | 1 << 7, 9016, 8192, b""),
    (1, WRITE | FLUSH | FUA | 1 << 4, 64, 512, b""),
    (7, WRITE | FUA | 1 << 6, 64, 512, b""),
    (8, WRITE | FUA | 1 << 7, 64, 512, b""),
]


@pytest.mark.skipif(not shutil.which("blkparse"), reason="no blkparse here")
def test_the_text_of_the_real_blkparse(tmp_path: Path) -> None:
    with (tmp_path / "disk.blktrace.0").open("wb") as stream:
        for number, (action, category, sector, length, pdu) in enumerate(RECORDS, 1):
            stream.write(
                struct.pack(
                    "=IIQQIIIIIHH",
                    0x65617407,
                    number,
                    number * 1000,
                    sector,
                    length,
                    action | (category | 1 << 8) << 16,
                    77,
                    8 << 20,
                    0,
                    0,
                    len(pdu),
                )
                + pdu
            )
    answer = subprocess.run(
        ["blkparse", "-i", "disk"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    rows, counted = import_text(tmp_path, answer.stdout)
    assert [
        (r["operation"], r["sector"], r["length_bytes"], r["preflush"], r["fua"]) for r in rows
    ] == [
        ("write", 5000, 4096, False, False),
        ("flush", None, 0, True, False),
        ("read", 9000, 8192, False, False),
        ("read", 9016, 8192, False, False),
        ("write", 64, 512, True, True),
    ], answer.stdout
    assert [r["complete_ns"] - r["issue_ns"] for r in rows] == [1000] * 5
    assert (counted.counts["requeues"], counted.counts["splits"], counted.counts["remaps"]) == (
        1,
        1,
        1,
    )
    assert [r for r in counted.reasons if "no owner" not in r] == []


SAMPLE = Path(os.environ.get("JOJ_SHARED_DATA", "/nonexistent")) / "most-result.po"


@pytest.mark.skipif(not SAMPLE.is_file(), reason="JOJ_SHARED_DATA names no folder with MOST's")
def test_the_real_sample_of_most(tmp_path: Path) -> None:
    run, _ = import_trace(SAMPLE, tmp_path / "run")
    data = Dataset.from_runs(run)
    written = "FROM requests WHERE operation = 'write' AND complete_ns IS NOT NULL"
    counted = data.rows(f"SELECT block_type, count(*) AS n {written} GROUP BY block_type")
    shares = {row["block_type"]: row["n"] for row in counted}
    assert shares == {"fs-journal": 62, "data": 50, "fs-metadata": 33}  # 145 writes
    # PERSIST: journal 4 + 8 KiB | jbd2 | header 4 | database 4 + 4 | header 4, four times over.
    files = data.rows("SELECT path, file_id FROM files")
    paths = {row["path"].rpartition("/")[2]: row["file_id"] for row in files}
    journal, database = paths["rmq.db-journal"], paths["rmq.db"]
    rows = data.rows(f"SELECT * {written} ORDER BY request_id")
    pattern = "".join(
        "j" * (r["length_bytes"] // 4096) if r["file_id"] == journal else "d"
        for r in rows
        if r["file_id"] in (journal, database)
    )
    assert re.fullmatch("(jjjjddj){4}", pattern), pattern


def test_kinds_of_files_are_those_of_the_table() -> None:
    for path, kind in (
        ("/a/contacts.db-mj0A1B2C9FF", "super-journal"),
        ("/a/x-mj0a1b2c9ff", "other"),
        ("/var/tmp/etilqs_1b2c", "sqlite-temp"),
        ("/a/PICTURE.JPG", "multimedia"),
        ("/lib/libc.so.6", "executable"),
        ("/a/c.db-shm", "shm"),
        ("/a.db/plain", "other"),
        ("", "other"),
    ):
        assert file_kind(path, ()) == kind, path
    assert file_kind("/a/log", {"/a/log-wal"}) == "db"
