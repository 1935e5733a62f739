"""The syncs of a program, left out site by site: each kind of call does nothing then, all others
go on, and what each protects is found.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.places import EXPERIMENTS
from jojlab.lab.lab import Lab
from tests.guest.test_own_check import answers
from tests.this_process import joj

CASE = """
question = "Which sync protects what?"
[case]
workload = "program"
program  = "./app.py"
check    = "./check.py"
filesystem = "ext4"
"""
# Makes two of each, by another call that syncs: what it acknowledges is the file's name.
APP = """#!/usr/bin/python3 -IS
import ctypes, mmap, os, struct
# The numbers of openat2(2) and io_uring_setup(2), and the rule of openat2 that the keeper does not
# follow: RESOLVE_BENEATH.
OPENAT2, IO_URING_SETUP, BENEATH = 437, 425, 8
def openat2(name, resolve):
    how = struct.pack("QQQ", os.O_RDWR | os.O_CREAT | os.O_DSYNC, 0o640, resolve)
    file = ctypes.CDLL(None).syscall(OPENAT2, -100, name.encode(), how, len(how))
    assert file >= 0
    return file
def acknowledge(name):
    os.write(int(os.environ["JOJ_ACKS"]), name.encode() + b"\\n")
def opened(name, flags=0):
    return os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o640)
os.mkdir("sub")
for number in range(2):
    for name, sync in (("plain", os.fsync), ("data", os.fdatasync), ("all", lambda _: os.sync())):
        path = f"{name}-{number}"
        file = opened(path)
        os.write(file, b"0" * 200)
        sync(file)
        acknowledge(path)
    path = f"mapped-{number}"
    file = opened(path)
    os.ftruncate(file, 200)
    os.fsync(file)
    memory = mmap.mmap(file, 200)
    memory[:] = b"0" * 200
    memory.flush()
    acknowledge(path)
    for name, flag in (("synced", os.O_SYNC), ("dsynced", os.O_DSYNC)):
        path = f"sub/../sub/{name}-{number}"
        file = opened(path, flag)
        assert os.stat(path).st_uid == os.getuid() and os.stat(path).st_mode & 0o777 == 0o640
        os.write(file, b"0" * 200)
        acknowledge(f"sub/{name}-{number}")
    path = f"second-{number}"
    os.write(openat2(path, 0), b"0" * 200)
    acknowledge(path)
    path = f"fixed-{number}"
    file = openat2(path, BENEATH)
    os.pwritev(file, [b"0" * 200], 0, os.RWF_DSYNC)
    ctypes.CDLL(None).syscall(IO_URING_SETUP, 1, None)
    acknowledge(path)
"""
# A shell, as it starts sooner than Python.
CHECK = """#!/bin/sh
whole=$(printf %0200d 0)
lost=
while read -r name; do
    content=
    [ -e "$name" ] && read -r content <"$name"
    [ "$content" = "$whole" ] || lost="$lost ${name%-*}"
done <"$JOJ_ACKED"
echo "not whole:$lost"
[ -z "$lost" ]
"""
SITES = {
    "fsync plain-#": "plain",
    "fdatasync data-#": "data",
    "sync": "all",
    "msync mapped-#": "mapped",
    "O_SYNC sub/synced-#": "sub/synced",
    "O_DSYNC sub/dsynced-#": "sub/dsynced",
    "O_DSYNC second-#": "second",
}
FIXED = ("openat2 fixed-#", "RWF_DSYNC fixed-#", "io_uring_setup")
OTHERS = ("fsync mapped-#", *FIXED)
OFTEN = ("fsync plain-#",)
RARE = tuple(site for site in SITES if site not in OFTEN)


@pytest.mark.full
@pytest.mark.parametrize("sites", [OFTEN, RARE], ids=["often", "rare"])
def test_each_kind_of_sync_is_left_out_alone(
    lab: Lab, tmp_path: Path, sites: tuple[str, ...]
) -> None:
    for name, text in (("app.py", APP), ("check.py", CHECK)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    file = tmp_path / "experiment.toml"
    file.write_text(CASE)
    values = ",".join(("none", *sites))
    found = answers(lab, str(file), f"omitted_sync={values}")
    whole = found.pop("none")
    assert set(whole["outcomes"]) <= {"kept", "unmountable"}, whole["outcomes"]
    counts = {f"{it['call']} {it['file']}".strip(): it["calls"] for it in whole["sync_sites"]}
    assert counts == dict.fromkeys((*SITES, *OTHERS), 2)
    fixed = {f"{it['call']} {it['file']}".strip() for it in whole["sync_sites"] if it["is_fixed"]}
    assert fixed == set(FIXED)
    for site in sites:
        answer: dict[str, Any] = found[site]
        lost = [it["message"] for it in answer["states"] if it["outcome"] == "lost"]
        assert lost, (site, answer["outcomes"])
        assert any(message.endswith(f"not whole: {SITES[site]}") for message in lost), (site, lost)


@pytest.mark.full
def test_the_command_says_what_each_sync_of_an_engine_protects() -> None:
    done = joj(
        *("verify", "durability", EXPERIMENTS / "own-engine", "--without-sync", "--json"),
        *("--set", "filesystem=ext4", "--set", "variant=records", "--states", "24"),
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    needs = {row["site"]: row for row in answer["syncs"]}
    assert set(needs) == {"fsync records/#", "fsync records/", "fsync ./"}
    file = needs["fsync records/#"]
    assert (file["verdict"], file["calls"]) == ("protects", 24)
    assert file["outcomes_without_it_alone"]["lost"] > 2
    # A sync takes longer than none.
    assert file["cost_ns"] > 0
    assert " of 3 sync sites protect what is judged" in answer["in_short"][0]
    [case] = answer["cases"]
    assert not case["proven_unsafe"]
