import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.foundation.errors import DataError, JojError, UseError
from jojlab.trace.dataset import Dataset
from jojlab.trace.imports import blkparse, most
from jojlab.trace.imports.file_kind import file_kind
from jojlab.trace.imports.trace_file import Imported, import_trace

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


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def imported(tmp_path: Path, text: str, name: str = "") -> tuple[list[dict[str, Any]], Imported]:
    run, counted = import_trace(written(tmp_path / "trace.txt", text), tmp_path / "run", name)
    return Dataset.of(run).rows("SELECT * FROM requests ORDER BY request_id"), counted


def test_blkparse_text_becomes_requests(tmp_path: Path) -> None:
    rows, counted = imported(tmp_path, BLKPARSE)
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
    assert counted.untold == [
        f"{8192 + 2 * 65536} bytes have no owner: the trace does not tell it",
    ]


def test_what_was_imported_stands_in_the_manifest(tmp_path: Path) -> None:
    run, counted = import_trace(written(tmp_path / "sda.txt", BLKPARSE), tmp_path / "run")
    [(entry, seed, capture)] = list(run.captures())
    assert (entry.case_id, entry.case["source"], seed) == ("trace", "sda.txt", 0)
    manifest = capture.manifest
    assert (manifest["clock"], manifest["incomplete"]) == ("wall", True)
    assert manifest["incomplete_reasons"] == counted.reasons + counted.untold
    assert manifest["configuration"]["source"]["lines"] == BLKPARSE.count("\n")
    assert json.dumps(run.fingerprint) and len(run.fingerprint["source_sha256"]) == 64


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
    run, counted = import_trace(written(tmp_path / "result.po", MOST), tmp_path / "run")
    data = Dataset.of(run)
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
    _, counted = imported(tmp_path, MOST.rstrip("\n")[:-3])
    assert "1 line is cut short: the last, which is left out" in counted.reasons
    assert counted.requests == 5 and counted.counts["unfinished"] == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (BLKPARSE.replace("223490 + 16", "223490 - 16", 1), 9),
        (BLKPARSE.replace("  Q  WS", "  Y  WS", 1), 2),
        (BLKPARSE.replace(" FWS ", " FQS ", 1), 11),
        (BLKPARSE.replace("[0]", "", 1), 10),
        (BLKPARSE.replace("223490 + 8 [", "223490 + 99999999999 [", 1), 2),
        (MOST.replace("\tQ\t", "\tX\t", 1), 1),
        (MOST.replace("\tJ\n", "\tK\n", 1), 8),
        (MOST.replace("\tD\t/a", "\tD\t/a\tb", 1), 1),
    ],
)
def test_a_bad_line_is_named_and_leaves_no_run(tmp_path: Path, text: str, number: int) -> None:
    path = written(tmp_path / "bad.txt", text)
    name = "most" if "\t" in text.splitlines()[0] else "blkparse"
    with pytest.raises(DataError, match=f"bad.txt: line {number}: "):
        import_trace(path, tmp_path / "run", name)
    assert not (tmp_path / "run").exists()


def test_files_of_no_format_are_refused(tmp_path: Path) -> None:
    for text in ("", "\n\n", "hello\n", "\x00\x01\n"):
        with pytest.raises(UseError):
            import_trace(written(tmp_path / "x", text), tmp_path / "run")
    (tmp_path / "latin").write_bytes(MOST.encode().replace(b"/a/x", b"/a/\xe9"))
    with pytest.raises(DataError, match="line 1: not UTF-8"):
        import_trace(tmp_path / "latin", tmp_path / "run")
    (tmp_path / "long").write_bytes(MOST.encode() + b"x" * 100_000 + b"\n")
    with pytest.raises(DataError, match="line 15: longer"):
        import_trace(tmp_path / "long", tmp_path / "run")


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
        assert Dataset.of(run).rows("SELECT count(*) FROM requests")
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
    rows, counted = imported(tmp_path, answer.stdout)
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
    data = Dataset.of(run)
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
