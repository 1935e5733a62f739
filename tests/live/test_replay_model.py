"""Made programs, recorded and replayed: the replay writes as many bytes and syncs as often as the
program says it did, and its files have the same sizes at the end; nothing is missing.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jojlab.foundation.places import agent_path
from tests.live.recordings import ENVIRONMENT, PYTHON, command_of
from tests.live.test_replay_again import replay_case

# What a program does, drawn from a seed. It counts its own writes and syncs, and those of its
# children, each of which is waited for: nothing depends on what the scheduler does. At the end it
# asks for the size of every file, which a replay that lost a write or a name answers otherwise.
MADE = r"""
import ctypes, fcntl, json, mmap, os, random, sys
libc = ctypes.CDLL(None, use_errno=True)
draw, counts, opened = random.Random(int(sys.argv[1])), [0, 0], []
FIONCLEX, FIOCLEX = 0x5450, 0x5451
def file():
    return draw.choice(opened) if opened else open_one()
def name():
    return f"f{draw.randrange(6)}"
def open_one():
    flags = os.O_RDWR | os.O_CREAT | draw.choice([0, os.O_TRUNC, os.O_APPEND, os.O_CLOEXEC])
    opened.append(os.open(name(), flags, 0o640))
    return opened[-1]
def wrote(count):
    counts[0] += count
def write():
    where, data = draw.randrange(3), bytes(draw.randrange(1, 9000))
    if where == 0:
        wrote(os.write(file(), data))
    elif where == 1:
        wrote(os.pwrite(file(), data, draw.randrange(50_000)))
    else:
        wrote(os.pwritev(file(), [data, data], draw.randrange(50_000)))
def sync():
    draw.choice([os.fsync, os.fdatasync])(file())
    counts[1] += 1
def copy():
    kind = draw.randrange(3)
    if kind == 0:
        opened.append(os.dup(file()))
    elif kind == 1 and len(opened) > 1:
        os.dup2(opened[0], opened[-1])
    else:
        opened.append(fcntl.fcntl(file(), fcntl.F_DUPFD, 20))
def close():
    if opened:
        os.close(opened.pop(draw.randrange(len(opened))))
def names():
    try:
        draw.choice([os.rename, os.link])(name(), name())
    except OSError:
        pass
    if draw.random() < 0.3:
        try:
            os.unlink(name())
        except OSError:
            pass
def nameless():
    own = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    wrote(os.write(own, b"x" * draw.randrange(1, 5000)))
    os.fsync(own)
    counts[1] += 1
    libc.linkat(-100, b"/proc/self/fd/%d" % own, -100, name().encode(), 0x400)
    opened.append(own)
def resize():
    os.ftruncate(file(), draw.randrange(60_000))
def seek():
    os.lseek(file(), draw.randrange(9000), draw.choice([os.SEEK_SET, os.SEEK_END]))
def read():
    os.read(file(), draw.randrange(1, 9000))
def mark():
    fcntl.ioctl(file(), draw.choice([FIONCLEX, FIOCLEX]))
def grow():
    own = os.open("map", os.O_RDWR | os.O_CREAT)
    os.ftruncate(own, 1 << 20)
    view = mmap.mmap(own, 8192)
    view.resize(draw.choice([4096, 65536, 1 << 20]))
    view.close()
    os.close(own)
def child():
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        counts[:] = [0, 0]
        for _ in range(5):
            draw.choice([write, write, sync, close, names])()
        kept = file()
        is_run = draw.random() < 0.5
        if is_run and os.get_inheritable(kept):
            wrote(3)
        os.write(theirs, json.dumps(counts).encode())
        if is_run:
            os.execv("/bin/sh", ["sh", "-c", f"printf abc >>/proc/self/fd/{kept} || true"])
        os._exit(0)
    os.close(theirs)
    told = b""
    while piece := os.read(ours, 4096):
        told += piece
    os.close(ours)
    os.waitpid(pid, 0)
    counts[0] += json.loads(told)[0]
    counts[1] += json.loads(told)[1]
steps = [open_one, open_one, write, write, write, write, sync, sync, copy, close, names, nameless,
         resize, seek, read, mark, grow, child]
for _ in range(80):
    draw.choice(steps)()
for left in sorted(os.listdir(".")):
    os.lseek(os.open(left, os.O_RDONLY), 0, os.SEEK_END)
print(json.dumps(counts))
"""


def check(seed: int, recorder: str, tmp_path: Path) -> None:
    """Record the program of a seed, replay it, and hold one against the other."""
    (here := tmp_path / "here").mkdir()
    folder = tmp_path / "recording"
    made = subprocess.run(
        [*command_of(folder, "--by", recorder), "--", *PYTHON, MADE, str(seed)],
        cwd=here, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    written_bytes, syncs = json.loads(made.stdout)
    (again := tmp_path / "again").mkdir()
    (tables := tmp_path / "tables").mkdir()
    case = json.loads(replay_case(str(folder)))
    case["case"]["recorded_root"] = str(here)
    command = [str(agent_path()), "bench", "--directory", str(again), "--output", str(tables)]
    subprocess.run(command, input=json.dumps(case), text=True, check=True)
    rows = pq.read_table(tables / "manifest.parquet").to_pylist()
    manifest = {row["key"]: json.loads(row["value"]) for row in rows}
    found = manifest["replay"]
    assert (manifest["incomplete_reasons"], found["otherwise"]) == ([], {})
    by_name = {name: each["calls"] for name, each in found["by_name"].items()}
    assert by_name.get("fsync", 0) + by_name.get("fdatasync", 0) == syncs
    assert found["written_bytes"] == written_bytes


@pytest.mark.parametrize("recorder", ["ptrace", "ebpf"])
@pytest.mark.parametrize("seed", range(3))
def test_a_made_program_is_replayed_with_its_bytes_and_syncs(
    seed: int, recorder: str, tmp_path: Path
) -> None:
    check(seed, recorder, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("recorder", ["ptrace", "ebpf"])
def test_sixty_made_programs_are_replayed(recorder: str, tmp_path: Path) -> None:
    for seed in range(100, 160):
        (tmp_path / str(seed)).mkdir()
        check(seed, recorder, tmp_path / str(seed))
