"""One live run of the agent: hands it the case, hears how far it is, passes signals on to it.

The agent makes a private directory in the one it is given, or UBIFS on the raw NAND, and removes it
whatever happens; so a signal that asks joj to end is handed on, and joj ends once the agent has. It
ends too when joj is killed, which can hand nothing on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import WRONG_USE, JojError, MachineError, UseError
from jojlab.foundation.places import BUILD_AGENT
from jojlab.foundation.signals import Handler, SignalReceived, handled_signals, relayed_signals


@dataclass(frozen=True)
class LivePlace:
    """The place where a case runs: a directory, or with `is_nand` raw NAND, by MTD's node."""

    path: Path
    is_nand: bool = False

    @property
    def option(self) -> str:
        """The agent's option for it."""
        return "--nand" if self.is_nand else "--directory"


def run_agent(
    agent: Path,
    place: LivePlace,
    settings: Mapping[str, object],
    seed: int,
    output: Path,
    on_stage: Callable[[str], None],
) -> None:
    """Run one case in a place; its tables are in the folder `output` then.

    Raises UseError or MachineError in the agent's words, and SignalReceived when asked to end.
    """
    command = [str(agent), "bench", place.option, str(place.path), "--output", str(output)]
    command += ["--parent", str(os.getpid())]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as messages,
        relayed_signals() as relay,
    ):
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages, text=True
            )
        except OSError as error:
            raise MachineError(f"{agent}: cannot be run: {error.strerror}", BUILD_AGENT) from error
        relay.forward_to(process)
        with process:
            assert process.stdin
            assert process.stdout
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps({"seed": seed, "case": dict(settings)}))
                process.stdin.close()
            for line in process.stdout:
                on_stage(line.removeprefix("stage ").strip())
        messages.seek(0)
        words = messages.read().replace("joj-agent: ", "").strip()
        if relay.number:
            raise SignalReceived(relay.number)
        if process.returncode:
            raise _error(process.returncode, words)
    if words:
        print(words, file=sys.stderr)


def _error(code: int, words: str) -> JojError:
    if code == WRONG_USE:
        return UseError(words)
    if code == -signal.SIGABRT:
        # A panic, or no memory: the words are Rust's, and say where.
        return MachineError(
            f"the agent gave up and has no result; what it read may be damaged: {words}",
            "if its input is a recording, make it again; else this is a fault of joj's: report it",
        )
    # A signal that the agent got and joj did not: somebody meant the agent.
    if words:
        return MachineError(words)
    return MachineError(f"the agent ended with {code} and said nothing", "run it again")


def option_words(options: Mapping[str, object]) -> list[str]:
    """Return options as the words of a command line: True is a flag, None and False are not
    given.
    """
    words = []
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words += [name, str(value)]
    return words


def attend(arguments: list[str]) -> int:
    """Run the agent to its end; a Ctrl-C or a kill is its to answer, by keeping what it has."""
    agent = subprocess.Popen(arguments)
    handlers: dict[int, Handler] = {
        signal.SIGINT: signal.SIG_IGN,
        signal.SIGTERM: lambda *_: agent.terminate(),
    }
    with handled_signals(handlers):
        code = agent.wait()
    return 128 - code if code < 0 else code
