"""The tracer's reads of structures that kernels lay out in different ways: each is loaded with the
BTF of a made kernel, and reads a structure of that kernel's.

Of 6.7 to 6.10 no kernel is at hand; their `__i_mtime`, and the order of a folio on 6.1, are known
by this alone.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tests.live.loop import need_tracer

HERE = Path(__file__).parent / "layouts"
CLANG = ("clang", "-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror")
PG_HEAD = 16
ORDER = 9
SECONDS, NANOSECONDS = 1_700_000_000, 123_456_789

# What the BTF of every one of them has beside the structures in question.
COMMON = """
struct qstr { union { struct { unsigned hash, len; }; unsigned long long hash_len; };
              const unsigned char *name; } qstr;
enum pageflags { PG_locked, PG_head = 16 } flags;
struct timespec64 { long long tv_sec; long tv_nsec; };
"""
# By release: its inode and where its time is, its folio and where its order is.
INODES = {
    "6.1": ("struct inode { long pad[2]; struct timespec64 i_mtime; } inode;", "<16xqq"),
    "6.7": ("struct inode { long pad[3]; struct timespec64 __i_mtime; } inode;", "<24xqq"),
    "6.11": (
        "struct inode { long pad; long long i_mtime_sec, i_ctime_sec; unsigned i_mtime_nsec; } "
        "inode;",
        "<8xq8xI",
    ),
}
FOLIOS = {
    "6.1": (
        "struct folio { unsigned long flags, pad[8], _flags_1, head; unsigned char dtor, "
        "_folio_order; } folio;",
        "<Q64xQ9xB",
        (0, ORDER),
    ),
    "6.7": ("struct folio { unsigned long flags, pad[7], _flags_1; } folio;", "<Q56xQ", (ORDER,)),
}
FOLIOS["6.11"] = FOLIOS["6.7"]


@pytest.fixture(scope="module")
def probe_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with probe.o and ask."""
    need_tracer()
    folder = tmp_path_factory.mktemp("layouts")
    probe = [
        *CLANG,
        "-D__TARGET_ARCH_x86",
        "-c",
        str(HERE / "probe.bpf.c"),
        "-o",
        str(folder / "probe.o"),
    ]
    include = ["-idirafter", "/usr/include/x86_64-linux-gnu"]
    subprocess.run([*probe, *include], check=True)
    ask = ["cc", "-Wall", "-Werror", str(HERE / "ask.c"), "-o", str(folder / "ask"), "-lbpf"]
    subprocess.run(ask, check=True)
    return folder


def ask_program(
    probe_folder: Path, kernel: str, inode: bytes = b"", folio: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Return what the probe answers on a kernel that is given as the C of its structures."""
    (probe_folder / "kernel.c").write_text(COMMON + kernel)
    subprocess.run(
        [*CLANG, "-c", probe_folder / "kernel.c", "-o", probe_folder / "kernel.o"], check=True
    )
    given = struct.pack("<64s128sQQ", inode, folio, 0, 0)
    command = [probe_folder / "ask", probe_folder / "probe.o", probe_folder / "kernel.o"]
    return subprocess.run(command, input=given, capture_output=True, check=False)


@pytest.mark.parametrize("release", INODES)
def test_times_and_orders_are_read_where_each_kernel_has_them(
    probe_folder: Path, release: str
) -> None:
    inode, time_at = INODES[release]
    folio, order_at, order = FOLIOS[release]
    answer = ask_program(
        probe_folder,
        inode + folio,
        struct.pack(time_at, SECONDS, NANOSECONDS),
        struct.pack(order_at, 1 << PG_HEAD, *order),
    )
    assert answer.returncode == 0, answer.stderr.decode()
    *_, time_ns, found = struct.unpack("<64s128sQQ", answer.stdout)
    assert time_ns == SECONDS * 1_000_000_000 + NANOSECONDS
    assert found == ORDER


def test_a_page_alone_has_no_order(probe_folder: Path) -> None:
    (inode, _), (folio, order_at, order) = INODES["6.1"], FOLIOS["6.1"]
    answer = ask_program(probe_folder, inode + folio, folio=struct.pack(order_at, 0, *order))
    assert answer.returncode == 0, answer.stderr.decode()
    assert struct.unpack("<64s128sQQ", answer.stdout)[-1] == 0


def test_a_kernel_with_another_time_is_refused_by_the_field(probe_folder: Path) -> None:
    unknown = "struct inode { struct timespec64 when; } inode;" + FOLIOS["6.7"][0]
    answer = ask_program(probe_folder, unknown)
    assert answer.returncode == 1
    assert b"inode___timespec.i_mtime" in answer.stderr
