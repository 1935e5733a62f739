from jojlab.campaign.device_studies import Effect, Sensitivity, vary_numbers
from jojlab.device.profile import Origin, TriedNumber, numbers, read_profile
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read

NAME = "emmc-galaxy-s3"


def tried_numbers(*keys: str) -> list[TriedNumber]:
    return [number for number in numbers(read_profile(NAME)) if number.key in keys]


def test_each_case_is_made_once_more_for_each_value_one_number_at_a_time() -> None:
    asked = read(find("headlines"))
    cases = vary_numbers(asked, NAME, tried_numbers("drain_delay_ns", "gc_policy")).cases
    assert len(cases) == len(asked.cases) * (1 + 2 + 1)
    assert len({case.case_id for case in cases}) == len(cases)
    added = [
        set(case.settings.items()) - set(base.settings.items())
        for case, base in zip(cases[len(asked.cases) :], 3 * asked.cases, strict=True)
    ]
    assert [len(each) for each in added] == [1] * len(added)
    assert added[0] == {("device.gc_policy", 1)}
    assert added[-1] == {("device.drain_delay_ns", 10_000_000)}
    assert not any(
        case.skip
        for case in plan(vary_numbers(asked, NAME, tried_numbers("channels"))).experiment.cases
    )


def test_a_journal_on_such_a_device_changes_with_it_but_the_processor_is_one() -> None:
    asked = read(find("combined"), ["filesystem=ext4", "journal_mode=wal"])
    cases = vary_numbers(asked, NAME, tried_numbers("drain_delay_ns", "icount_shift")).cases
    external = [case.settings for case in cases if case.settings["journal_device"] == NAME]
    assert any("journal_device.drain_delay_ns" in settings for settings in external)
    assert not any("journal_device.icount_shift" in settings for settings in external)
    for settings in external:
        assert settings.get("device.drain_delay_ns") == settings.get(
            "journal_device.drain_delay_ns"
        )


def test_numbers_are_sorted_by_their_largest_effect() -> None:
    numbers_ = tuple(
        TriedNumber(key, 2, Origin.ASSUMPTION, "assumption: so", values, "half and double")
        for key, values in (("a", (1, 4)), ("b", (1, 4)), ("c", ()))
    )
    effects = (
        Effect("case", "a", 1, 0.01),
        Effect("case", "a", 4, None, "it failed"),
        Effect("case", "b", 1, 0.005),
        Effect("case", "b", 4, -0.2),
    )
    found = Sensitivity("x", "throughput_tps", {"case": 1.0}, numbers_, effects)
    assert [number.key for number in found.numbers_by_effect()] == ["b", "a"]
    assert found.largest("b") == 0.2
