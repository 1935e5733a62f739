"""Tests which is ended when there are too many connections, and how many lines the log gets."""

from __future__ import annotations

import logging
import socket

from jojlab.fleet.server.connections import LINES, ROOM_TO_END, SECONDS, Connections, LogRate


def test_the_oldest_idle_connection_makes_room() -> None:
    connections = Connections(2)
    pairs = [socket.socketpair() for _ in range(4)]
    numbers = [server.fileno() for server, _ in pairs]
    connections.add(pairs[0][0])
    connections.set_busy(numbers[0])
    for server, _ in pairs[1:]:
        connections.add(server)
    assert connections.ended_count == 2
    # The busy one and the newest are left; those between see the end.
    assert [client.recv(1) for _, client in pairs[1:3]] == [b"", b""]
    connections.set_idle(numbers[0])
    connections.add(socket.socketpair()[0])
    assert connections.ended_count == 3
    for server, client in pairs:
        server.close()
        client.close()


def test_ended_connections_hold_their_descriptors_until_they_are_closed() -> None:
    connections = Connections(1)
    pairs = [socket.socketpair() for _ in range(ROOM_TO_END + 1)]
    for server, _ in pairs:
        assert connections.may_accept
        connections.add(server)
    assert not connections.may_accept
    connections.forget(pairs[0][0].fileno())
    assert connections.may_accept
    for server, client in pairs:
        server.close()
        client.close()


def test_lines_that_one_statement_writes_are_bounded() -> None:
    now_s = 0.0
    rate = LogRate(lambda: now_s)

    def record(message: str, *values: object) -> logging.LogRecord:
        return logging.LogRecord("asyncio", logging.ERROR, "", 0, message, values, None)

    written = [record("the store fails: %s", number) for number in range(100)]
    assert sum(map(rate.filter, written)) == LINES
    assert rate.filter(record("something else"))
    now_s = SECONDS
    last = record("the store fails: %s", 7)
    assert rate.filter(last)
    assert last.getMessage() == "the store fails: 7 (95 more like it before)"
