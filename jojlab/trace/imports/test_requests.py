from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jojlab.trace.imports import requests as module
from jojlab.trace.imports.event import Event, flags_of
from jojlab.trace.imports.requests import LACKS, Joiner, Request, Survey, lack_sentence


def event(
    time: int,
    action: str,
    sector: int = 0,
    sectors: int = 0,
    *,
    rwbs: str = "WS",
    comm: str = "writer",
    device: str = "8:0",
    block_type: str = "",
    path: str = "",
    to_sector: int = 0,
    error: int = 0,
    origin: str = "",
) -> Event:
    where = (block_type, path, to_sector, error, origin)
    return Event(time, device, action, flags_of(rwbs), sector, sectors, 7, comm, *where)


def survey_of(events: Iterable[Event]) -> Survey:
    survey = Survey()
    for one in events:
        survey.see(one)
    return survey


def join_events(events: list[Event]) -> tuple[list[Request], Joiner]:
    joiner = Joiner(survey_of(events))
    for one in events:
        joiner.add(one)
    return list(joiner.ready(at_end=True)), joiner


def lacking(joiner: Joiner) -> dict[str, int]:
    return {name: joiner.counts[name] for name in module.LACKS if joiner.counts[name]}


def test_merged_bios_are_one_request_of_the_first_submitter() -> None:
    [request], joiner = join_events(
        [
            event(10, "Q", 108, 8, comm="second"),
            event(5, "Q", 100, 8, comm="first", rwbs="WM"),
            event(12, "M", 108, 8),
            event(20, "D", 100, 16, comm="kworker/0:1"),
            event(90, "C", 100, 16, comm=""),
        ]
    )
    assert (request.sector, request.sectors, request.bio_count) == (100, 16, 2)
    assert (request.queue_ns, request.issue_ns, request.complete_ns) == (5, 20, 90)
    assert request.comm == "first"
    assert request.flags.meta
    assert lacking(joiner) == {"out_of_order": 1}
    assert joiner.counts["back_merges"] == 1


def test_neighbouring_bios_of_one_owner_are_one_page_run() -> None:
    [request], _ = join_events(
        [
            event(1, "Q", 0, 8, block_type="fs-journal"),
            event(2, "Q", 8, 8, block_type="fs-journal"),
            event(3, "Q", 16, 8, block_type="data", path="/a.db"),
            event(4, "D", 0, 24),
            event(5, "C", 0, 24),
        ]
    )
    assert request.runs == [(0, 16, "fs-journal", ""), (16, 8, "data", "/a.db")]


def test_a_requeued_request_is_one_with_its_last_issue() -> None:
    for between in ([event(3, "R", 0, 8)], []):
        [request], joiner = join_events(
            [
                event(1, "Q", 0, 8),
                event(2, "D", 0, 8),
                *between,
                event(9, "D", 0, 8),
                event(11, "C", 0, 8),
            ]
        )
        assert (request.queue_ns, request.issue_ns, request.complete_ns) == (1, 9, 11)
        assert joiner.counts["requeues"] == 1
        assert not lacking(joiner)


def test_a_split_bio_is_two_requests() -> None:
    for again in ([event(3, "Q", 8, 16)], []):
        requests, joiner = join_events(
            [
                event(1, "Q", 0, 24),
                event(2, "X", 0, to_sector=8),
                *again,
                event(4, "D", 0, 8),
                event(5, "D", 8, 16),
                event(6, "C", 8, 16),
                event(7, "C", 0, 8),
            ]
        )
        assert [(r.sector, r.sectors, r.bio_count) for r in requests] == [(0, 8, 1), (8, 16, 1)]
        assert not lacking(joiner)


def test_a_request_may_complete_in_parts() -> None:
    [request], joiner = join_events(
        [
            event(1, "Q", 0, 16),
            event(2, "D", 0, 16),
            event(5, "C", 0, 8),
            event(8, "C", 8, 8),
        ]
    )
    assert request.complete_ns == 8
    assert not lacking(joiner)


def test_bios_of_a_stacked_device_are_no_requests() -> None:
    requests, joiner = join_events(
        [
            event(1, "Q", 0, 8, device="253:0"),
            event(2, "A", 500, 8, origin="253:0"),
            event(2, "Q", 500, 8),
            event(3, "D", 500, 8),
            event(4, "C", 500, 8),
            event(5, "C", 0, 8, device="253:0"),
        ]
    )
    assert [(r.device, r.sector) for r in requests] == [("8:0", 500)]
    assert joiner.counts["stacked"] == 1
    assert not lacking(joiner)


def test_flushes_that_are_issued() -> None:
    [flush, write], joiner = join_events(
        [
            event(1, "Q", rwbs="FWS", comm="jbd2"),
            event(2, "D", rwbs="FN", comm="kworker"),
            event(6, "C", rwbs="FN"),
            event(7, "Q", 0, 8, rwbs="FWFS"),
            event(8, "D", 0, 8, rwbs="WFS"),
            event(9, "C", 0, 8, rwbs="WFS"),
        ]
    )
    assert (flush.operation, flush.comm, flush.queue_ns, flush.complete_ns) == (
        "flush",
        "jbd2",
        1,
        6,
    )
    assert (write.operation, write.preflush, write.flags.fua) == ("write", True, True)
    assert not lacking(joiner)


def test_flushes_that_are_only_queued_and_completed() -> None:
    requests, joiner = join_events(
        [
            event(1, "Q", rwbs="WBS"),
            event(4, "C", rwbs="WS"),
            event(5, "Q", 64, 8, rwbs="WBS"),
            event(6, "D", 64, 8),
            event(9, "C", 64, 8),
            event(12, "C", 64, 0),
        ]
    )
    times = [(r.operation, r.issue_ns, r.complete_ns) for r in requests]
    assert times == [("flush", 1, 4), ("write", 6, 9), ("flush", 9, 12)]
    assert requests[1].preflush
    assert not lacking(joiner)


def test_each_bio_of_a_device_without_requests_is_one() -> None:
    requests, joiner = join_events(
        [
            event(1, "Q", 0, 24, rwbs="WM"),
            event(2, "X", 0, to_sector=8, rwbs="WM"),
            event(3, "Q", 96, 8, rwbs="FWFS"),
            event(4, "C", 0, 8, rwbs="WM"),
            event(5, "Q", rwbs="FWS"),
            event(6, "C", 8, 16, rwbs="WM"),
            event(7, "C", rwbs="FWS"),
            event(8, "Q", 0, 8, rwbs="R"),
            event(9, "C", 96, 8, rwbs="FWFS"),
        ]
    )
    shown = [(r.operation, r.sector, r.sectors, r.issue_ns, r.complete_ns) for r in requests]
    assert shown == [
        ("write", 0, 8, 1, 4),
        ("write", 8, 16, 2, 6),
        ("write", 96, 8, 3, 9),
        ("flush", 0, 0, 5, 7),
        ("read", 0, 8, 8, None),
    ]
    assert [r.queue_ns for r in requests] == [1, 1, 3, 5, 8]
    assert (requests[2].preflush, requests[2].flags.fua) == (True, True)
    assert requests[1].runs == [(8, 16, "", "")]
    assert lacking(joiner) == {"unfinished": 1}
    assert joiner.counts["bios_as_requests"] == 4


def test_a_device_of_which_only_bios_are_there_has_no_requests() -> None:
    requests, joiner = join_events([event(1, "Q", 0, 8), event(2, "Q", 8, 8)])
    assert not requests
    assert lacking(joiner) == {"unissued": 2}


def test_the_block_layers_flushes_are_requests_and_their_ends_are_none() -> None:
    requests, joiner = join_events(
        [
            event(1, "Q", rwbs="FWS", comm="app"),
            event(3, "D", rwbs="FN", comm="kworker"),
            event(4, "C", rwbs="FN"),
            event(5, "C", rwbs="WS"),
            event(10, "Q", 900, 8, rwbs="FWFSM", comm="jbd2"),
            event(11, "D", rwbs="FN", comm="kworker"),
            event(12, "C", rwbs="FN"),
            event(13, "D", 900, 8, rwbs="WSM", comm="kworker"),
            event(14, "C", 900, 8, rwbs="WSM"),
            event(15, "D", rwbs="FN", comm="kworker"),
            event(16, "C", rwbs="FN"),
            event(17, "C", 900, 0, rwbs="WSM"),
        ]
    )
    shown = [(r.operation, r.comm, r.queue_ns, r.issue_ns, r.complete_ns) for r in requests]
    assert shown == [
        ("flush", "app", 1, 3, 4),
        ("flush", "jbd2", 11, 11, 12),
        ("write", "jbd2", 10, 13, 14),
        ("flush", "jbd2", 15, 15, 16),
    ]
    assert not lacking(joiner)


def test_one_flush_may_serve_two_who_asked() -> None:
    requests, joiner = join_events(
        [
            event(1, "Q", rwbs="FWS", comm="first"),
            event(2, "Q", rwbs="FWS", comm="second"),
            event(3, "D", rwbs="FN"),
            event(4, "C", rwbs="FN"),
            event(5, "C", rwbs="WS"),
            event(6, "C", rwbs="WS"),
        ]
    )
    assert [(r.operation, r.comm) for r in requests] == [("flush", "first")]
    assert not lacking(joiner)
    assert joiner.counts["shared_flushes"] == 1


def test_a_zone_append_is_complete_where_the_device_put_it() -> None:
    [one, other], joiner = join_events(
        [
            event(1, "Q", 4096, 8, rwbs="ZA"),
            event(2, "D", 4096, 8, rwbs="ZA"),
            event(3, "Q", 8192, 8, rwbs="ZA"),
            event(4, "D", 8192, 8, rwbs="ZA"),
            event(5, "C", 4200, 8, rwbs="ZA"),
            event(6, "C", 8192, 8, rwbs="ZA"),
        ]
    )
    assert (one.operation, one.sector, one.complete_ns) == ("write", 4200, 5)
    assert one.runs == [(4200, 8, "", "")]
    assert (other.sector, other.complete_ns) == (8192, 6)
    assert not lacking(joiner)


def test_events_without_a_partner_are_counted() -> None:
    requests, joiner = join_events(
        [
            event(1, "C", 0, 8),
            event(2, "D", 8, 8),
            event(3, "Q", 16, 8),
            event(4, "C", 8, 8, error=-5),
            event(5, "Q", 32, 8),
            event(6, "D", 32, 8),
        ]
    )
    assert [r.complete_ns for r in requests] == [4, None]
    assert lacking(joiner) == {
        "unknown_completions": 1,
        "issued_unqueued": 1,
        "unissued": 1,
        "unfinished": 1,
        "errors": 1,
    }


def test_an_import_keeps_few_open_bios_and_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN_BIOS", 400)
    monkeypatch.setattr(module, "MOST_OPEN_REQUESTS", 100)
    joiner = Joiner(survey_of([event(0, "D", 0, 8)]))
    given = 0
    for number in range(3 * module.MOST_OPEN_BIOS):
        joiner.add(event(number, "Q", 8 * number, 8))
        if number % 2:
            joiner.add(event(number, "D", 8 * number, 8))
        given += sum(1 for _ in joiner.ready())
        assert len(joiner._open) <= module.MOST_OPEN_REQUESTS
        assert joiner._bios <= module.MOST_OPEN_BIOS
    given += sum(1 for _ in joiner.ready(at_end=True))
    assert given == joiner.counts["unfinished"] == 3 * module.MOST_OPEN_BIOS // 2
    assert joiner.counts["unissued"] == 3 * module.MOST_OPEN_BIOS // 2


EVENTS = st.lists(
    st.builds(
        event,
        st.integers(0, 50),
        st.sampled_from("QDCRXAMF"),
        st.integers(0, 40),
        st.sampled_from([0, 1, 8, 16]),
        rwbs=st.sampled_from(["W", "R", "FWS", "FN", "D", "N", "WBS"]),
        to_sector=st.integers(0, 60),
        device=st.sampled_from(["8:0", "8:16"]),
    ),
    max_size=60,
)


@given(EVENTS)
def test_whatever_comes_every_issue_is_a_request(events: list[Event]) -> None:
    requests, joiner = join_events(events)
    moved = [r for r in requests if r.operation != "flush"]
    for request in moved:
        assert request.queue_ns <= request.issue_ns or joiner.counts["out_of_order"]
        if request.runs:
            assert sum(sectors for _, sectors, _, _ in request.runs) == request.sectors
            assert request.runs[0][0] == request.sector
    issues = sum(e.action == "D" for e in events)
    bios = joiner.counts["bios_as_requests"] + joiner.counts["splits"]
    assert len([r for r in requests if r.sectors]) <= issues + bios
    assert joiner._bios == 0


@pytest.mark.parametrize("name", LACKS)
def test_a_lack_is_told_in_singular_or_plural(name: str) -> None:
    one, two = lack_sentence(name, 1), lack_sentence(name, 2)
    noun = LACKS[name][0]
    assert one.startswith(f"1 {noun} ")
    assert two.startswith(f"2 {noun}s ")
    assert not {"are", "were"} & set(one.split())
    assert not {"is", "was"} & set(two.split())
