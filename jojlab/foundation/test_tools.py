"""The messages when something is not installed, or fails."""

from __future__ import annotations

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.foundation.tools import need_tool, package_version, run_tool


def test_a_missing_package_or_tool_is_named() -> None:
    with pytest.raises(MachineError, match="sudo apt-get install no-such-package"):
        package_version("no-such-package")
    with pytest.raises(MachineError, match="sudo apt-get install its-package"):
        need_tool("no-such-tool", "its-package")
    assert package_version("dpkg")
    assert need_tool("sh", "dash").exists()


def test_a_failing_tool_tells_its_last_lines() -> None:
    with pytest.raises(MachineError, match=r"cannot test it: sh failed:\nwhy"):
        run_tool(["sh", "-c", "echo why >&2; exit 3"], "test it")
