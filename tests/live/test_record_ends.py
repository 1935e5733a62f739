"""How recordings end: with the process that was joined, by signals, and by the recorder's death."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.live.recordings import JOINED, PYTHON, Recording, check_joined, command_of


def test_a_process_is_joined_and_left_while_it_runs(here: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PYTHON, JOINED], cwd=here, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        pid = program.stdout.readline().strip()
        folder = tmp_path / "r"
        recorder = subprocess.Popen([*command_of(folder), "--pid", pid], stderr=subprocess.PIPE)
        time.sleep(1)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(timeout=20) == 128 + signal.SIGINT
        time.sleep(0.2)
        assert program.poll() is None
        state = Path(f"/proc/{pid}/status").read_text()
        assert "TracerPid:\t0" in state
        (here / "end").touch()
        assert program.wait(timeout=20) == 0
    check_joined(Recording(folder, 0), int(pid))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_the_recording_is_whole(
    number: signal.Signals, here: Path, tmp_path: Path
) -> None:
    command = [*command_of(tmp_path / "r"), "--", "sh", "-c", "echo x > f; exec sleep 60"]
    with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE) as recorder:
        wait_for(here / "f")
        recorder.send_signal(number)
        assert recorder.wait(timeout=20) == 128 + number
    recording = Recording(tmp_path / "r", 0)
    assert recording.manifest["incomplete"] is False
    assert recording.table("threads")[0]["exit_signal"] == number


def test_a_program_that_ignores_the_signal_is_killed_by_the_second(
    here: Path, tmp_path: Path
) -> None:
    script = "trap '' INT; echo x > f; while :; do sleep 0.1; done"
    command = [*command_of(tmp_path / "r"), "--", "sh", "-c", script]
    with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE) as recorder:
        wait_for(here / "f")
        recorder.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert recorder.poll() is None
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(timeout=20) == 128 + signal.SIGKILL
    manifest = Recording(tmp_path / "r", 0).manifest
    assert manifest["incomplete_reasons"] == ["threads were killed to end the recording"]


def test_a_killed_recorder_takes_the_program_along_and_leaves_a_readable_folder(
    here: Path, tmp_path: Path
) -> None:
    command = [*command_of(tmp_path / "r"), "--", "sh", "-c", "echo $$ > f; exec sleep 60"]
    with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE) as recorder:
        wait_for(here / "f")
        time.sleep(0.2)
        recorder.kill()
        recorder.wait(timeout=20)
    pid = int((here / "f").read_text())
    until = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    reasons = Recording(tmp_path / "r", 0).manifest["incomplete_reasons"]
    assert reasons == ["the recording was not ended properly"]


def wait_for(file: Path) -> None:
    until = time.monotonic() + 20
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < until, f"{file} does not come"
        time.sleep(0.02)
