import pytest

from jojlab.device.fit import measure_model
from jojlab.device.profile import FIGURES, read_profile
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import DEVICES

WITHIN = 0.10

PROFILES = sorted(path.stem for path in DEVICES.glob("*.toml"))


@pytest.mark.parametrize("name", PROFILES)
def test_stated_figures_are_met(name: str) -> None:
    profile = read_profile(name)
    figures = measure_model(profile.model, interface=profile.interface)
    assert len(profile.stated) >= 3
    for stated in profile.stated:
        error = figures[stated.figure] / stated.value - 1
        assert abs(error) <= WITHIN, f"{stated.figure} is off by {error:+.1%}: {stated.source}"


def test_the_seven_devices_are_there() -> None:
    assert set(PROFILES) >= {
        *("emmc-galaxy-s3", "emmc-5.1", "ufs-2.1", "ufs-3.1"),
        *("sd-card", "nvme-consumer", "nvme-plp"),
    }


def test_figures_are_the_same_again_and_differ_as_the_parameters_do() -> None:
    model = dict(read_profile("emmc-galaxy-s3").model)
    figures = measure_model(model)
    assert list(figures) == list(FIGURES)
    told: list[str] = []
    assert measure_model(model, next_is=told.append) == figures
    assert told == [*FIGURES, ""]
    slower = measure_model({**model, "flush_overhead_ns": model["flush_overhead_ns"] + 1000})
    changed = {name for name in figures if slower[name] != figures[name]}
    assert changed == {"flush_empty_ns", "flush_dirty_ns", "write_and_flush_ns"}
    assert slower["flush_empty_ns"] == figures["flush_empty_ns"] + 1000


def test_ageing_costs_what_garbage_collection_does() -> None:
    figures = measure_model(read_profile("ufs-2.1").model)
    assert figures["aged_ftl_wa_percent"] > 200
    assert figures["aged_random_write_iops"] < figures["wide_random_write_iops"] / 2


def test_a_random_write_pays_for_a_small_mapping_cache() -> None:
    model = dict(read_profile("emmc-5.1").model)
    whole = measure_model({**model, "mapping_cache_bytes": 0})
    part = measure_model({**model, "mapping_cache_bytes": 131072})
    assert part["wide_random_write_iops"] < 0.8 * whole["wide_random_write_iops"]


def test_impossible_parameters_are_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = {**read_profile("emmc-5.1").model, "queue_depth": 0}
    with pytest.raises(MachineError, match="queue_depth is 0: must be 1 to 1024"):
        measure_model(model, Cache(tmp_path_factory.mktemp("cache")))
