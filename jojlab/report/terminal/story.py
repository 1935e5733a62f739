"""Prints a typical commit as a story."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.commit.story import story
from jojlab.analysis.run.answer import time_shares
from jojlab.analysis.run.summary import CaseSummary
from jojlab.report.words import story as words


def print_story(console: Console, case: CaseSummary) -> None:
    """Print the calls of a case's typical commit, or of its checkpoint, in sentences."""
    assert case.trace
    console.print(f"[bold]{escape(words.opening(case))}[/bold]")
    filesystem = str(case.case.get("filesystem", ""))
    calls = words.told(story(case.trace), filesystem, case.trace.phase)
    for number, call in enumerate(calls, 1):
        console.print(f"{number}. {escape(call.heading)}")
        for sentence in call.sentences:
            console.print(f"   - {escape(sentence)}", soft_wrap=True)
    console.print(escape(words.closing(time_shares(case.trace))))
