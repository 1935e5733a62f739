"""Whatever stands in a run's run.json: what reads runs tells it in a message, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.cli import app
from jojlab.foundation.errors import FINE, INCOMPLETE, WRONG_USE
from jojlab.trace.test_shapes import places
from tests.captures import make_run

WAL, TRUNCATE = {"journal_mode": "wal"}, {"journal_mode": "truncate"}
# Beside what differs from statement to statement.
PRINTED = {"says": "it is", "source": "ATC", "place": "figure 5", "note": "n", "explanation": "e"}
PUBLISHED: list[dict[str, Any]] = [
    {"figure": "throughput_tps", "value": 17, "unit": "%", "case": WAL, "against": TRUNCATE},
    {"figure": "throughput_tps", "holds": "above", "case": {"variant": "W"}, "against": TRUNCATE,
     "than": {"filesystem": ["ext4"]}},
    {"figure": "bytes_per_commit", "value": 17.5, "unit": "KiB", "case": WAL, "anchor": True},
    {"figure": "throughput_tps", "status": "missing"},
]  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from([10**400, "[/bold]", "\x1b[31m", "<script>", "../..", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)  # fmt: skip


def experiment(case_ids: list[str]) -> dict[str, Any]:
    """One that has everything an experiment can have but parts."""
    return {
        "name": "e", "question": "Q?", "notes": ["n"], "cases": case_ids, "parts": [],
        "published": [{**PRINTED, **entry} for entry in PUBLISHED],
        "charts": [{"title": "t", "figure": "throughput_tps", "groups": "filesystem",
                    "bars": "variant", "panels": "journal_mode", "case": {"filesystem": ["ext4"]}}],
        "variants": [{"name": "W", "note": "n", "unsafe": "u", "fields": WAL,
                      "cases": case_ids[1:2]}],
        "settings": {"fixed": {"transactions": 2},
                     "matrix": {"filesystem": ["ext4"], "journal_mode": ["truncate", "wal"]}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Any]]]:
    """A run's folder, and two documents it may have: of one experiment, and of one with parts."""
    folder = tmp_path_factory.mktemp("any") / "run"
    make_run(folder, seeds=[1], transactions=2)
    document = json.loads((folder / "run.json").read_text())
    own = experiment([case["case_id"] for case in document["cases"]])
    whole = {**own, "published": [], "charts": [], "variants": [], "parts": [own]}
    yield folder, [{**document, "experiment": own}, {**document, "experiment": whole}]


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "RUN"),
        ("show", "RUN", "--json"),
        ("report", "RUN"),
        ("diff", "RUN", "RUN"),
        ("query", "RUN", "SELECT journal_mode, count(*) FROM requests GROUP BY ALL"),
    ],
    ids=" ".join,
)
@settings(deadline=None, max_examples=8)
@given(st.data())
def test_any_run_json_is_shown_or_refused_in_words(
    documents: tuple[Path, list[Any]], arguments: tuple[str, ...], data: st.DataObject
) -> None:
    folder, choices = documents
    document = json.loads(json.dumps(data.draw(st.sampled_from(choices))))
    place = data.draw(st.sampled_from(places(document)))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    if data.draw(st.booleans()):
        inner[place[-1]] = data.draw(ANYTHING)
    else:
        del inner[place[-1]]
    (folder / "run.json").write_text(json.dumps(document))
    answer = CliRunner().invoke(app, [str(folder) if a == "RUN" else a for a in arguments])
    # 4 is also what a run with a case that is pending ends with.
    assert answer.exit_code in (FINE, WRONG_USE, INCOMPLETE), answer.stderr
    if answer.exit_code == WRONG_USE or not answer.stdout:
        assert answer.stderr.startswith("joj: ")
        assert str(folder) in answer.stderr
