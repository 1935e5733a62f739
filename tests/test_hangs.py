"""A program that does not end fails its test, with the stacks of its threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.hangs import SHOWS_STACKS, await_end

WAITS = "import threading; print('begun', flush=True); threading.Event().wait()"


def start(text: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", text],
        env={**os.environ, **SHOWS_STACKS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_output_of_a_process_that_ends_is_returned() -> None:
    with start("import sys; print(1); print(2, file=sys.stderr)") as process:
        assert await_end(process) == ("1\n", "2\n")


def test_a_process_that_waits_without_end_is_shown() -> None:
    with start(WAITS) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        with pytest.raises(pytest.fail.Exception, match=r"(?s)did not end within .*in wait"):
            await_end(process, 0.1)
    assert process.returncode < 0
