"""Tests that what a document lacks or has wrongly is told by place, value and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from jojlab.foundation.document import Mismatch, check_document, conform, read_toml
from jojlab.foundation.errors import UseError


class Inner(Struct, forbid_unknown_fields=True):
    name: str
    size: Annotated[int, Meta(ge=1)] = 1
    kind: Literal["plain", "odd"] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name == "odd" and self.kind == "plain":
            raise Mismatch("odd is not plain", "choose another kind")


class Outer(Struct):
    inner: list[Inner] = []
    fields: dict[str, str | int | bool | None] = {}
    share: float = 0.0
    lists: dict[str, list[int]] = {}


@pytest.mark.parametrize(
    ("document", "message", "remedy"),
    [
        ([], "here must be a table, not []", "write [here]"),
        ({"inner": 1}, "here: inner must be a list, not 1", "[[inner]]"),
        ({"inner": [{}]}, "here: inner[0] lacks name", "add name"),
        ({"inner": [{"name": 2}]}, "here: inner[0].name must be text, not 2", "in quotes"),
        ({"inner": [{"name": "a", "size": 0}]}, "inner[0].size cannot be 0", "allowed: >= 1"),
        ({"inner": [{"name": "a", "sise": 0}]}, "has no key 'sise' (did you mean 'size'?)", "kind"),
        ({"inner": [{"name": "", "kind": "od"}]}, "cannot be 'od' (did you mean 'odd'?)", "plain,"),
        ({"inner": [{"name": "odd", "kind": "plain"}]}, "inner[0]: odd is not plain", "another"),
        ({"fields": {"a": 1, "b": []}}, "here: fields.b must be true or false or a whole", "tr"),
        ({"lists": {"a": [1], "b": [1, True]}}, "lists.b[1] must be a whole number, not True", "d"),
        ({"share": "1"}, "share must be a number, not '1'", "without quotes"),
    ],
)
def test_the_place_the_value_and_the_remedy_are_named(
    document: object, message: str, remedy: str
) -> None:
    with pytest.raises(UseError) as caught:
        check_document(document, Outer, "here", "README has the form")
    assert message in caught.value.message
    assert caught.value.message.startswith("here")
    assert remedy in caught.value.remedy
    assert caught.value.remedy.endswith("README has the form")


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["inner", "fields", "share", "lists", "name", "size", "kind"])
            | st.text(),
            inner,
            max_size=4,
        )
    ),
)


@given(ANYTHING)
def test_anything_is_read_or_told(document: object) -> None:
    try:
        conform(document, Outer)
    except Mismatch as error:
        assert error.message


def test_a_slip_in_the_syntax_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("a = 1\nb = \n")
    with pytest.raises(UseError, match=r"a\.toml: not TOML: .*line 2"):
        read_toml(path, "README has the form")
