"""Variants and parts: which cases they make, and what is rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.experiment.read import read
from jojlab.foundation.errors import UseError

TEXT = """
question = "What?"
[matrix]
filesystem = ["ext4", "xfs"]
[case]
transactions = 11
[[variant]]
name = "stock"
[[variant]]
name = "quick"
note = "n"
unsafe = "u"
filesystem = "f2fs"
synchronous = "normal"
transactions = 7
"""


def write(folder: Path, text: str, name: str = "asked") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def refusal(path: Path, *settings: str) -> str:
    with pytest.raises(UseError) as caught:
        read(path, settings)
    return str(caught.value)


def test_a_variant_is_crossed_with_the_axes_it_does_not_name(tmp_path: Path) -> None:
    experiment = read(write(tmp_path, TEXT))
    assert [(case.case_id, case.variant) for case in experiment.cases] == [
        ("stock-ext4", "stock"), ("stock-xfs", "stock"), ("quick", "quick"),
    ]  # fmt: skip
    quick = experiment.cases[2].settings
    assert (quick["filesystem"], quick["synchronous"], quick["transactions"]) == (
        "f2fs", "normal", 7,
    )  # fmt: skip
    assert "variant" not in quick  # equal cases of different variants are one to the guest
    (_, record) = experiment.record()["variants"]
    assert record["cases"] == ["quick"]
    assert record["unsafe"] == "u"


def test_set_chooses_among_variants_and_overrides_their_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    assert [c.case_id for c in read(path, ["filesystem=ext4"]).cases] == ["stock"]
    assert [c.case_id for c in read(path, ["variant=quick"]).cases] == ["quick"]
    assert {c.settings["transactions"] for c in read(path, ["transactions=3"]).cases} == {3}
    assert "did you mean 'quick'" in refusal(path, "variant=quik")
    assert "no variant is left" in refusal(path, "variant=quick", "filesystem=ext4")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "quick"', "", "number 2: name cannot be ''"),
        ('name = "quick"', 'name = "stock"', "name 'stock' is there already"),
        ('name = "quick"', 'name = "a b"', "name cannot be 'a b'"),
        ('synchronous = "normal"', 'synchronus = "normal"', "did you mean 'synchronous'"),
        ('synchronous = "normal"', 'synchronous = "nrmal"', "did you mean 'normal'"),
        ('synchronous = "normal"', 'sync_mode = "none"', "has no field sync_mode"),
        ('note = "n"', "note = 3", "note must be text"),
    ],
)
def test_bad_variants_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in TEXT
    assert words in refusal(write(tmp_path, TEXT.replace(old, new, 1)))


def test_parts_run_as_one_and_name_their_cases(tmp_path: Path) -> None:
    write(tmp_path, TEXT, "first")
    write(tmp_path, TEXT.replace("What?", "Which?"), "second")
    parts = "".join(f'[[part]]\nexperiment = "{tmp_path}/{n}.toml"\n' for n in ("first", "second"))
    whole = read(write(tmp_path, f'question = "All?"\nseeds = 2\n{parts}'))
    assert [case.case_id for case in whole.cases][2:4] == ["first/quick", "second/stock-ext4"]
    assert whole.seeds == (1, 2)
    assert {part.seeds for part in whole.parts} == {(1, 2)}
    record = whole.record()
    assert [part["question"] for part in record["parts"]] == ["What?", "Which?"]
    assert record["parts"][1]["variants"][0]["cases"] == ["second/stock-ext4", "second/stock-xfs"]
    few = read(tmp_path / "asked.toml", ["variant=quick", "seed=9"])
    assert [case.case_id for case in few.cases] == ["first/quick", "second/quick"]
    assert few.seeds == (9, 10)


def test_bad_parts_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path, TEXT, "one")
    part = f'[[part]]\nexperiment = "{one}"\n'
    assert "named twice" in refusal(write(tmp_path, f'question = "?"\n{part}{part}'))
    assert "matrix beside [[part]]" in refusal(write(tmp_path, f'question = "?"\n[matrix]\n{part}'))
    nested = write(tmp_path, f'question = "?"\n{part}', "nested")
    again = f'question = "?"\n[[part]]\nexperiment = "{nested}"\n'
    assert "has parts itself" in refusal(write(tmp_path, again))
    assert "did you mean 'first-look'" in refusal(
        write(tmp_path, 'question = "?"\n[[part]]\nexperiment = "first-lok"\n')
    )
