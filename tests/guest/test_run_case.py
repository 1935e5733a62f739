"""Cases in real guests: the same bytes every time, and guests that go wrong harm nobody.

Slower processors are in tests/full/test_icount_shifts.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError
from jojlab.guest import process
from jojlab.guest.image.build import Image, build_image
from jojlab.guest.machine import Machine
from jojlab.guest.snapshot import MEMORY, SHA256, STATE, snapshot
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case
from tests.hangs import await_end

CASE = real_case(filesystem="xfs", journal_mode="wal")
SHIFT = 0
# Of guests that misbehave: one that fills its memory is done sooner.
SMALL = Machine(SHIFT, memory_mib=256)


def guests(cache: Cache) -> list[int]:
    """The processes whose command line names this cache: its QEMUs and their children."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(cache.root).encode() in line and b"qemu" in line:
            found.append(int(folder.name))
    return found


def worked_s(pid: int) -> float:
    """The processor time of a process (proc_pid_stat(5)); none if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run_anew(cache: Cache, image: Image, out_dir: Path, case: bytes = CASE) -> dict[str, bytes]:
    """The files of a case that really ran."""
    outcome = run_case(cache, image, case, SHIFT, out_dir, use_cached=False)
    assert not outcome.from_cache
    assert sorted(outcome.files) == sorted(contents(out_dir))
    return contents(out_dir)


@pytest.fixture(scope="module")
def lone_case(
    cache: Cache, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The files of the case from a guest that nothing of this process ran beside."""
    return run_anew(cache, image, tmp_path_factory.mktemp("alone"))


def test_a_case_has_results_and_repeats_to_the_byte(
    cache: Cache, image: Image, tmp_path: Path, lone_case: dict[str, bytes]
) -> None:
    assert lone_case
    assert run_anew(cache, image, tmp_path / "second") == lone_case
    cached = run_case(cache, image, CASE, SHIFT, tmp_path / "third")
    assert cached.from_cache
    assert contents(tmp_path / "third") == lone_case
    assert guests(cache) == []


@pytest.mark.full
def test_parallel_and_busy_change_nothing(
    cache: Cache, image: Image, tmp_path: Path, lone_case: dict[str, bytes]
) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as load:
        try:
            with ThreadPoolExecutor(2) as pool:
                folders = [tmp_path / str(number) for number in range(2)]
                results = list(pool.map(lambda folder: run_anew(cache, image, folder), folders))
        finally:
            load.kill()
    assert all(result == lone_case for result in results)


@pytest.mark.full
def test_a_damaged_snapshot_is_made_anew_and_gives_the_same_results(
    cache: Cache, private: Cache, image: Image, tmp_path: Path, lone_case: dict[str, bytes]
) -> None:
    """Two boots of one image are one guest; in the private cache, half of the first's memory."""
    ours = snapshot(cache, image, Machine(SHIFT))
    damaged = private.folder("snapshots") / ours.name
    damaged.mkdir()
    shutil.copy(ours / STATE, damaged)
    shutil.copy(ours / SHA256, damaged)
    with (ours / MEMORY).open("rb") as whole:
        (damaged / MEMORY).write_bytes(whole.read(1 << 20))
    assert run_anew(private, image, tmp_path / "after") == lone_case
    another = snapshot(private, image, Machine(SHIFT))
    assert (another / MEMORY).stat().st_size == (ours / MEMORY).stat().st_size
    assert ours.resolve() != another.resolve()


@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param(
            b'"out of memory"', "(?s)panicked.*deadlocked on memory", marks=pytest.mark.full
        ),
        (b'"exit"', "(?s)panicked.*had enough.*Attempted to kill init"),
        (b'"reboot"', "panicked, reset or ended"),
        (b'"nothing"', "without handing results out"),
        (b'"lie"', "more than fit"),
    ],
)
def test_a_guest_that_goes_wrong_is_reported(
    cache: Cache, bad_image: Image, tmp_path: Path, case: bytes, words: str
) -> None:
    with pytest.raises(GuestError, match=words):
        run_case(cache, bad_image, case, SMALL, tmp_path / "out", timeout_s=240)
    assert guests(cache) == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", [b'"hang"', b'"idle"'])
def test_a_guest_that_never_ends_is_killed(
    cache: Cache, bad_image: Image, tmp_path: Path, case: bytes
) -> None:
    with pytest.raises(GuestError, match="did not finish within 1 s"):
        # The time is for 1 GiB of memory, and less for less.
        run_case(cache, bad_image, case, SMALL, tmp_path / "out", timeout_s=4)
    assert guests(cache) == []


def test_a_guest_that_fails_harms_no_other(
    cache: Cache, image: Image, bad_image: Image, tmp_path: Path, lone_case: dict[str, bytes]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        bad = pool.submit(run_case, cache, bad_image, b'"exit"', SMALL, tmp_path / "bad")
        assert pool.submit(run_anew, cache, image, tmp_path / "during").result() == lone_case
        assert isinstance(bad.exception(), GuestError)


@pytest.mark.full
def test_an_agent_that_cannot_start_is_reported(cache: Cache, tmp_path: Path) -> None:
    image = build_image(cache, Path("/bin/true"), None)
    with pytest.raises(GuestError, match=r"(?s)panicked.*Attempted to kill init"):
        run_case(cache, image, CASE, SHIFT, tmp_path / "out")


def test_kill_all_ends_running_cases(cache: Cache, bad_image: Image, tmp_path: Path) -> None:
    snapshot(cache, bad_image, SMALL)
    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(run_case, cache, bad_image, b'"hang"', SMALL, tmp_path / "out")
        # It was loaded within the first of these seconds, and runs.
        wait_until(lambda: sum(map(worked_s, guests(cache))) > 2)
        process.kill_all()
        with pytest.raises(GuestError, match="ended before"):
            ran.result()
    assert guests(cache) == []


# A shell's background job inherits an ignored SIGINT, and the lab would with it.
RUN = """
import resource, signal, sys
from pathlib import Path
from jojlab.foundation.cache import Cache, sha256_file
from jojlab.foundation.errors import MachineError
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine
from jojlab.lab.job import Job, Kind
from jojlab.lab.workers import work
signal.signal(signal.SIGINT, signal.default_int_handler)
root, fingerprint, *files, memory_mib, case, most_bytes = sys.argv[1:]
kernel, initramfs = map(Path, files)
if int(most_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), int(most_bytes)))
hashes = {"kernel_sha256": sha256_file(kernel), "initramfs_sha256": sha256_file(initramfs)}
image = Image(fingerprint, kernel, initramfs, hashes)
try:
    job = Job(Kind.CASE, case.encode(), image, Machine(0, int(memory_mib)))
    work(Cache(Path(root)), job, 600, lambda stage: print(stage, flush=True))
except MachineError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def run_in_another_process(
    cache: Cache, image: Image, machine: Machine, case: str, most_bytes: int = 0
) -> subprocess.Popen[str]:
    """A Python of its own that runs the case; its files may have `most_bytes`, if not 0."""
    arguments = [cache.root, image.fingerprint, image.kernel, image.initramfs, machine.memory_mib]
    command = [sys.executable, "-c", RUN, *map(str, arguments), case, str(most_bytes)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGTERM, signal.SIGKILL],
)
def test_a_killed_lab_leaves_no_guest(
    cache: Cache, bad_image: Image, number: signal.Signals
) -> None:
    snapshot(cache, bad_image, SMALL)
    with run_in_another_process(cache, bad_image, SMALL, '"hang"') as lab:
        assert lab.stdout
        assert "run" in map(str.strip, lab.stdout), "it ended before its guest ran"
        wait_until(lambda: len(guests(cache)) > 0)
        os.kill(lab.pid, number)
        lab.wait()
    wait_until(lambda: guests(cache) == [])


def test_a_full_disk_is_reported(cache: Cache, image: Image, tmp_path: Path) -> None:
    own = Cache(tmp_path / "cache")
    with run_in_another_process(
        own, image, Machine(SHIFT), CASE.decode(), most_bytes=1 << 20
    ) as lab:
        text, _ = await_end(lab)
    assert lab.returncode == 3, text
    assert "disk" in text
    assert own.sizes()["snapshots"] == 0


def wait_until(condition: object) -> None:
    """Waits for what must come soon; a minute is for machines in trouble."""
    assert callable(condition)
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come")
