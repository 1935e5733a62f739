"""Tests what is told of an agent that gives up."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.live.agent import LivePlace, run_agent


def test_an_agent_that_aborts_is_told_with_its_words(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_text(
        "#!/bin/sh\necho \"thread 'main' panicked at x.rs: no such page\" >&2\nkill -ABRT $$\n"
    )
    agent.chmod(0o755)
    with pytest.raises(MachineError) as told:
        run_agent(agent, LivePlace(tmp_path), {}, 1, tmp_path, lambda _: None)
    assert "has no result" in told.value.message
    assert "no such page" in told.value.message
