"""Wrong types in run.json or a manifest are told as damage, with the place, whatever they are."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jojlab.foundation.errors import DataError, JojError
from jojlab.trace.run_folder import RunFolder

DOCUMENT: dict[str, Any] = {
    "schema_version": 3,
    "experiment": {
        "name": "e", "question": "Q?", "notes": ["n"],
        "published": [
            {
                "says": "v", "source": "s", "place": "p", "figure": "throughput_tps", "value": 17,
                "unit": "%", "case": {"x": 1}, "against": {"x": [2]}, "status": "stated",
            },
            {
                "source": "s", "place": "p", "figure": "f", "holds": "above", "case": {"x": 1},
                "against": {"variant": "v"}, "than": {"x": 2},
            },
        ],
        "charts": [{"title": "t", "figure": "f", "groups": "x", "bars": "", "case": {"x": [1]}}],
        "cases": ["a"], "parts": [],
        "variants": [{"name": "v", "note": "", "unsafe": "", "fields": {"x": 1}, "cases": ["a"]}],
        "settings": {"fixed": {"x": 1}, "matrix": {"y": [1, "2"]}},
    },
    "seeds": [1],
    "cases": [
        {
            "case_id": "a", "case": {"x": 1}, "status": "ok", "reason": "",
            "captures": [{"seed": 1, "folder": "captures/a/seed-1", "cached": False}],
        }
    ],
    "fingerprint": {"image": "i"},
}  # fmt: skip


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place within a document."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    below = [place for key, element in inner for place in places(element, (*path, key))]
    return [*([path] if path else []), *below]


def test_a_written_run_file_has_its_declared_shape(tmp_path: Path) -> None:
    run = open_with(tmp_path, ("seeds",), [1, 2])
    assert run.seeds == [1, 2]
    assert run.experiment == DOCUMENT["experiment"]
    assert run.cases[0].captures[0].folder == "captures/a/seed-1"


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("seeds",), None, "seeds must be a list, not None"),
        (("cases", 0, "case_id"), None, "cases[0].case_id must be text, not None"),
        (("cases", 0, "captures", 0, "folder"), [], "cases[0].captures[0].folder must be text"),
        (("experiment", "variants"), 0, "experiment.variants must be a list"),
        (("experiment", "settings", "fixed", "x"), {}, "settings.fixed.x must be a single value"),
        (("seeds", 0), True, "seeds[0] must be a whole number, not True"),
        (
            ("experiment", "published", 0, "value"),
            "17",
            "published[0].value must be a number, not '17'",
        ),
        (
            ("experiment", "published", 0, "value"),
            -100,
            "published[0]: a change of -100 % leaves nothing",
        ),
        (("experiment", "published", 0, "value"), 1e999, "damaged: JSON is malformed"),
        (("experiment", "published", 0, "case"), [], "published[0].case must be a table"),
        (("experiment", "published", 0), {}, "published[0] lacks source"),
        (("experiment", "published", 1, "holds"), "over", "published[1].holds cannot be 'over'"),
        (
            ("experiment", "published", 1, "than", "x"),
            {},
            "published[1].than.x must be a single value or a list",
        ),
        (("experiment", "charts", 0), {}, "charts[0] lacks title"),
        (("experiment", "variants", 0), {}, "variants[0] lacks name"),
        (("fingerprint",), "", "fingerprint must be a table"),
    ],
)
def test_the_place_is_named(
    tmp_path: Path, place: tuple[str | int, ...], value: object, words: str
) -> None:
    with pytest.raises(DataError) as caught:
        open_with(tmp_path, place, value)
    assert "run.json: damaged" in str(caught.value)
    assert words in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from(places(DOCUMENT)),
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
        st.just([]), st.just({}), st.just([1]), st.just({"a": 1}),
    ),
)  # fmt: skip
def test_any_value_in_run_json_is_read_or_refused(
    tmp_path: Path, place: tuple[str | int, ...], value: object
) -> None:
    try:
        open_with(tmp_path, place, value)
    except JojError as error:
        assert str(tmp_path) in str(error)


def open_with(folder: Path, place: tuple[str | int, ...], value: object) -> RunFolder:
    """Open a run whose document has `value` at `place`."""
    document: Any = json.loads(json.dumps(DOCUMENT))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (folder / "run.json").write_text(json.dumps(document))
    return RunFolder.open(folder)
