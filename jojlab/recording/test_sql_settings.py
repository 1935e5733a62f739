"""The settings of a recorded program are those that most of its commits were made with."""

from __future__ import annotations

from jojlab.recording.sql_settings import ConnectionSettings, lines


def test_connections_that_differ_are_said_to() -> None:
    connections = [
        ConnectionSettings("a.db", [], was_there=True, own={"synchronous": "off"}, commits=9),
        ConnectionSettings("a.db", ["DEFAULT_SYNCHRONOUS=1"], was_there=True, commits=2),
    ]
    found = list(lines(connections))
    assert 'synchronous = "off"  # PRAGMA synchronous; others had normal' in found
    assert "# journal_mode: not known: the database was there before" in found


def test_pages_are_those_that_the_file_was_made_with() -> None:
    maker = ConnectionSettings("a.db", [], was_there=False)
    maker.note(["page_size", "=", "1024"])
    maker.commits = 1
    maker.note(["page_size", "=", "8192"])
    later = ConnectionSettings("a.db", [], was_there=False, commits=9)
    late = ConnectionSettings("a.db", [], was_there=False, own={"page_size": "8192"}, commits=9)
    assert "page_size_bytes = 1024  # PRAGMA page_size" in lines([maker, later, late])


def test_pages_of_a_database_that_was_there_are_not_known() -> None:
    connection = ConnectionSettings("a.db", [], was_there=True)
    connection.note(["page_size", "=", "1024"])
    assert "# page_size_bytes: not known: the database was there before" in lines([connection])


def test_a_connection_to_a_file_in_wal_has_the_default_of_wal() -> None:
    options = ["DEFAULT_WAL_SYNCHRONOUS=1"]
    setter = ConnectionSettings("a.db", options, was_there=False, own={"journal_mode": "wal"})
    later = ConnectionSettings("a.db", options, was_there=False, commits=9)
    assert 'synchronous = "normal"  # the default of its SQLite' in lines([setter, later])


def test_a_pragma_of_an_attached_database_is_none_of_main() -> None:
    connection = ConnectionSettings("a.db", [], was_there=False)
    connection.note(["main", ".", "synchronous", "=", "normal"])
    connection.note(["audit", ".", "synchronous", "=", "off"])
    assert 'synchronous = "normal"  # PRAGMA synchronous' in lines([connection])
