"""Tests how recordings end: with the process that was joined, by signals, and by the recorder's
death.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.hangs import HANG_S
from tests.live.recordings import (
    JOINED,
    PYTHON,
    Recording,
    await_joined,
    await_that,
    check_joined,
    command_of,
)


def test_a_process_is_joined_and_left_while_it_runs(here: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PYTHON, JOINED], cwd=here, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        pid = program.stdout.readline().strip()
        folder = tmp_path / "r"
        recorder = subprocess.Popen([*command_of(folder), "--pid", pid], stderr=subprocess.PIPE)
        await_joined(recorder, here)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(HANG_S) == 128 + signal.SIGINT
        assert program.poll() is None
        state = Path(f"/proc/{pid}/status").read_text()
        assert "TracerPid:\t0" in state
        (here / "end").touch()
        assert program.wait(HANG_S) == 0
    check_joined(Recording(folder, 0), int(pid))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_the_recording_is_whole(
    number: signal.Signals, here: Path, tmp_path: Path
) -> None:
    command = [*command_of(tmp_path / "r"), "--", "sh", "-c", "echo x > f; exec sleep 60"]
    with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE) as recorder:
        await_text(here / "f")
        recorder.send_signal(number)
        assert recorder.wait(HANG_S) == 128 + number
    recording = Recording(tmp_path / "r", 0)
    assert recording.manifest["incomplete"] is False
    assert recording.table("threads")[0]["exit_signal"] == number


def test_a_program_that_goes_on_after_the_signal_is_killed_by_the_second(
    here: Path, tmp_path: Path
) -> None:
    script = "trap 'echo x > passed-on' INT; echo x > f; while :; do sleep 0.1; done"
    command = [*command_of(tmp_path / "r"), "--", "sh", "-c", script]
    with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE) as recorder:
        await_text(here / "f")
        recorder.send_signal(signal.SIGINT)
        await_text(here / "passed-on")
        assert recorder.poll() is None
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(HANG_S) == 128 + signal.SIGKILL
    manifest = Recording(tmp_path / "r", 0).manifest
    assert manifest["incomplete_reasons"] == ["threads were killed to end the recording"]


def test_a_killed_recorder_takes_the_program_along_and_leaves_a_readable_folder(
    here: Path, tmp_path: Path
) -> None:
    command = [*command_of(tmp_path / "r"), "--", "sh", "-c", "echo $$ > f; exec sleep 60"]
    with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE) as recorder:
        await_text(here / "f")
        recorder.kill()
        recorder.wait(HANG_S)
    program = Path("/proc", (here / "f").read_text().strip())
    await_that(lambda: not program.exists(), "the program ends")
    reasons = Recording(tmp_path / "r", 0).manifest["incomplete_reasons"]
    assert reasons == ["the recording was not ended properly"]


def await_text(file: Path) -> None:
    await_that(lambda: file.exists() and bool(file.read_text()), f"text in {file}")
