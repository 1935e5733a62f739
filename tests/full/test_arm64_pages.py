"""The tracer on a kernel of arm64 whose pages are of 16 KiB: no byte of the self-test is of the
wrong file, and no block of the wrong tree or table, where several blocks or nodes share a page.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.kernel.archive import suite_sources
from jojlab.guest.kernel.catalogue import fetch_kernel, kernel_of
from jojlab.guest.kernel.installed import PAGES_16_KIB
from jojlab.guest.kernel.kernel import Kernel
from jojlab.model.architecture import ARM64
from jojlab.verify.compare import Verdict, check
from tests.full.arm64_guest import run_script

SUITE = "bookworm-backports"
# F2FS is not among them: it mounts blocks of a page alone, and Debian 12's mkfs makes smaller ones.
MADE = (
    "ext4",
    "ext4 -b 1024",
    "xfs",
    "btrfs",
    "btrfs -s 4096 -n 16384",
    "btrfs -s 4096 -n 8192",
    "btrfs -s 4096 -n 4096",
    "nilfs2",
    "nilfs2 -b 1024",
)


@pytest.fixture(scope="module")
def kernel(cache: Cache) -> Kernel:
    """The newest of Debian's kernels of 16 KiB pages."""
    pattern = f"6.12.*-arm64{PAGES_16_KIB}"

    def build(folder: Path) -> None:
        fetch_kernel(cache, suite_sources(SUITE), pattern, ARM64, folder)

    entry = cache.entry("packages", f"kernel-of-16-kib-{SUITE}", build)
    return kernel_of(entry, SUITE, ARM64)


@pytest.mark.parametrize("made", MADE)
def test_no_byte_is_of_the_wrong_file(
    cache: Cache, tmp_path: Path, kernel: Kernel, made: str
) -> None:
    filesystem, _, options = made.partition(" ")
    script = (
        f"joj-agent verify --device /dev/vda --filesystem {filesystem} --directory /disk "
        f"--mkfs-options '{options}' >/out/verdict.json\n"
    )
    left = run_script(cache, tmp_path / "guest", script, {}, kernel)
    found = json.loads((left / "verdict.json").read_text())
    addresses = check(filesystem, tmp_path / "guest" / "disk", found["writers"])
    row = Verdict.from_answer(filesystem, found).with_addresses(addresses).row()
    wrong = {
        name: row[name]
        for name in ("misattributed_bytes", "unknown_bytes", "missing_bytes", "lost_events",
                     "address_wrong_bytes")
    }  # fmt: skip
    assert wrong == dict.fromkeys(wrong, 0), (found["complaints"][:5], addresses.wrong[:5])
    assert row["checked_bytes"] > 900_000
    assert row["address_checked_bytes"] > 500_000
