"""Tests of the self-test on this kernel: what is not there is skipped, what fails is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from jojlab.cli import app
from jojlab.commands import verify
from jojlab.foundation.errors import MACHINE_CANNOT, MachineError
from jojlab.verify import attribution as host

LACKING = "this kernel has no f2fs"


def crashing(folder: Path, script: str) -> Path:
    agent = folder / "agent"
    agent.write_text(f"#!/bin/sh\n{script}\n")
    agent.chmod(0o755)
    return agent


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo panicked >&2; exit 101", "exit code 101: panicked"),
        ("kill -ABRT $$", "exit code -6"),
        ("echo half of it", "the agent's verification.json: JSON is malformed"),
    ],
)
def test_an_agent_that_crashed_is_no_lack(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        host.run_self_test(crashing(tmp_path, script), "ext4", "/dev/loop0", tmp_path)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_failure_is_told_and_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    def crash(filesystem: str) -> None:
        raise MachineError("exit code 101: panicked") if filesystem == "ext4" else lacking()

    def lacking() -> host.LackingError:
        return host.LackingError(LACKING)

    monkeypatch.setattr(verify, "trace_lack", lambda: ("", ""))
    monkeypatch.setattr(verify, "verify_on_host", crash)
    asked = ["verify", "attribution", "--host", "--filesystem", "ext4", "--filesystem", "f2fs"]
    answer = CliRunner().invoke(app, [*asked, *options])
    assert answer.exit_code == MACHINE_CANNOT
    if options:
        found = json.loads(answer.stdout)
        assert found["in_short"] == ["Not tested: f2fs, ext4."]
        assert found["failed"] == {"ext4": "exit code 101: panicked"}
        assert found["skipped"] == {"f2fs": LACKING}
    else:
        assert answer.stdout.startswith("Not tested: f2fs, ext4.\n")
        assert "ext4: failed: exit code 101: panicked" in answer.stdout
