from __future__ import annotations

import csv
import io
import json

import pytest

from jojlab.foundation.printable import CsvStream, json_text, printable
from jojlab.report.shared.console import QuietConsole, print_rows


def test_commands_to_a_terminal_are_shown_and_not_sent() -> None:
    assert printable("a\x1b]52;c;eA==\x07b\x9b2J\x7f\u202ec\r") == (
        "a␛]52;c;eA==␇b\ufffd2J␡\ufffdc␍"
    )
    assert printable("ein Satz,\n\t日本 – “x”\n") == "ein Satz,\n\t日本 – “x”\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_gets_csv_printable_and_a_file_what_is_there(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    csv.writer(CsvStream(stream), lineterminator="\n").writerow(["a\x1b[2J", "b"])
    assert stream.getvalue() == ("a␛[2J,b\n" if terminal else "a\x1b[2J,b\n")


def test_no_console_sends_them() -> None:
    said = io.StringIO()
    console = QuietConsole(file=said, width=100, force_terminal=True, highlight=False)
    console.print("[bold]a\x1b]0;title\x07[/bold]")
    print_rows(console, ["na\x1b[2Jme"], [["va\x1b[2Jlue"]])
    # What is left of ESC is rich's own: bold, and its end.
    assert set(said.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")) <= {
        *"a␛]0;title␇name[2Jvalue \n"
    }


def test_json_sends_them_escaped_and_loses_nothing() -> None:
    document = {"na\x9bme": ["a\x1b]0;title\x07", "\x7f\u202e", "é – 日本"]}
    text = json_text(document)
    assert json.loads(text) == document
    assert text.isprintable() or set(filter(lambda sign: not sign.isprintable(), text)) == {"\n"}
    assert "é – 日本" in text
