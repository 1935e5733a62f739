from __future__ import annotations

from random import Random

from jojlab.recording.sql_export import RecordedUnit, find_followers, lock_times

A, B = frozenset({"a.db"}), frozenset({"b.db"})


def unit(number: int, begin: int, end: int, committed: int | None = None) -> RecordedUnit:
    """One of a single statement, the one of its script with this number."""
    return RecordedUnit(number, number + 1, number, begin, end, committed)


def test_a_transaction_follows_the_commits_before_its_own() -> None:
    one = [unit(0, 0, 10, 9), unit(1, 40, 50, 49)]
    # It waited for the lock from 5 on, and committed after the first.
    two = [unit(0, 5, 30, 25), unit(1, 30, 35)]
    found = [
        (script, each.first, after) for script, each, after in find_followers([one, two], [A, A])
    ]
    assert found == [(0, 1, [(1, 2)]), (1, 0, [(0, 1)])]
    assert not list(find_followers([one, two], [A, B]))


def test_readers_are_in_no_order_among_themselves() -> None:
    readers = [[unit(0, 0, 10)], [unit(0, 20, 30)]]
    assert not list(find_followers(readers, [A, A]))


def test_no_order_goes_in_a_circle() -> None:
    random = Random(5)
    for _ in range(300):
        scripts = []
        for _ in range(3):
            own = []
            for number in range(random.randrange(1, 8)):
                begin = random.randrange(60)
                end = begin + random.randrange(1, 30)
                own.append(unit(number, begin, end, random.choice([None, begin + 1, end - 1])))
            scripts.append(sorted(own, key=lambda it: (it.begin_ns, it.first)))
        scripts = [
            [RecordedUnit(n, n + 1, n, it.begin_ns, it.end_ns, it.committed_ns)
             for n, it in enumerate(own)]
            for own in scripts
        ]  # fmt: skip
        waits = {(s, it.first): after for s, it, after in find_followers(scripts, [A, A, A])}
        made = [0, 0, 0]
        while made != [len(own) for own in scripts]:
            ready = [
                script
                for script, own in enumerate(scripts)
                if made[script] < len(own)
                and all(made[o] >= n for o, n in waits.get((script, made[script]), []))
            ]
            assert ready, "each waits for another"
            made[ready[0]] += 1


def test_a_rolled_back_transaction_is_where_it_had_the_lock() -> None:
    names = ("begin_ns", "end_ns", "readonly", "error")
    busy = (10, 20, False, "SQLITE_BUSY")
    rows = [busy, (30, 50, False, None), (60, 61, False, "SQLITE_CONSTRAINT"), (70, 75, True, None)]
    found = [dict(zip(names, row, strict=True)) for row in rows]
    assert lock_times(found) == (50, 70)
    # Alone: its end is noted after it gave the lock back, and no time within it is known.
    assert lock_times(found[2:3]) == (61, 61)
    assert lock_times(found[:1]) is None
    assert lock_times(found[3:]) is None
