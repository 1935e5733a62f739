"""Runs a subcommand of the agent that a person watches: it answers Ctrl-C itself."""

from __future__ import annotations

import signal
import subprocess


def attend(arguments: list[str]) -> int:
    """Run the agent to its end; a Ctrl-C or a kill is its to answer, by keeping what it has."""
    agent = subprocess.Popen(arguments)
    handlers = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: agent.terminate()),
    }
    try:
        code = agent.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code
