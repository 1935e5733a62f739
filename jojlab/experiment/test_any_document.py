"""Any value in any place of an experiment file is either read or rejected with a message."""

from __future__ import annotations

import copy
import datetime
import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.experiment.published import refuse_idle
from jojlab.experiment.read import parse
from jojlab.foundation.errors import UseError
from jojlab.foundation.places import EXPERIMENTS
from jojlab.model.fields import BY_NAME
from jojlab.trace.test_shapes import places

# Between them they have everything that an experiment can have.
DOCUMENTS: list[dict[str, Any]] = [
    tomllib.loads((EXPERIMENTS / name / "experiment.toml").read_text())
    for name in ("fdatasync-and-external-journal", "combined", "polled-io-uring", "atc13")
]
# TOML has no null, and dates beside what JSON has.
ANYTHING = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from([10**400, -1, "", "ext4", "sqlite-insert", "variant", *BY_NAME])
    | st.dates() | st.times() | st.just(datetime.datetime(2013, 6, 26)),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5) | st.sampled_from(sorted(BY_NAME)), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_any_experiment_file_is_read_or_refused_in_words(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    place = data.draw(st.sampled_from(places(document)))
    inner: Any = document
    for key in place[:-1]:
        inner = inner[key]
    if data.draw(st.booleans()):
        inner[place[-1]] = data.draw(ANYTHING)
    else:
        del inner[place[-1]]
    try:
        asked = parse(document, "any", "", "any.toml")
        for part in asked.expand().parts or (asked.expand(),):
            refuse_idle(part.published, part.tables, part.cases, part.where)
    except UseError as error:
        assert str(error).startswith("any.toml: ")
