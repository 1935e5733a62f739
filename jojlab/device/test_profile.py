import re
from pathlib import Path

import pytest

from jojlab.device.profile import INTERFACES, read_profile
from jojlab.foundation.errors import UseError
from jojlab.foundation.places import DEVICES
from jojlab.model.device_keys import LIMITS, MECHANISMS, RAW_NAND_LIMITS

PROFILES = sorted(DEVICES.glob("*.toml"))
GOOD = (DEVICES / "emmc-galaxy-s3.toml").read_text()


def changed_profile(tmp_path: Path, old: str, new: str) -> Path:
    assert old in GOOD
    path = tmp_path / "emmc-galaxy-s3.toml"
    path.write_text(GOOD.replace(old, new, 1))
    return path


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_profile_is_good(path: Path) -> None:
    profile = read_profile(path.stem)
    assert profile == read_profile(path)
    kind = INTERFACES[profile.interface]
    assert list(profile.model) == list(kind.limits)
    written = path.read_text()
    told = {key for key in kind.limits if key not in kind.mechanisms or f"\n{key} = " in written}
    assert set(profile.sources) == {*told, "icount_shift"}


def test_values_are_the_files() -> None:
    profile = read_profile("emmc-galaxy-s3")
    for key, value in profile.model.items():
        if key in profile.sources:
            assert re.search(rf"^{key} = {value}$", GOOD, re.MULTILINE), key


def test_a_mechanism_is_off_where_it_is_left_out_and_needs_a_source_where_it_is_not(
    tmp_path: Path,
) -> None:
    assert not any(read_profile("emmc-galaxy-s3").model[key] for key in MECHANISMS)
    path = changed_profile(tmp_path, "ageing_seed = 1\n", "ageing_seed = 1\nflush_lies = 1\n")
    with pytest.raises(UseError, match="sources lacks flush_lies"):
        read_profile(path)
    told = path.read_text().replace('zeroes_ns = "', 'flush_lies = "planted"\nzeroes_ns = "', 1)
    path.write_text(told)
    assert read_profile(path).model["flush_lies"] == 1
    assert read_profile(path).sources["flush_lies"] == "planted"


def test_two_hypotheses_of_one_phone_have_one_anchor() -> None:
    cached, uncached = read_profile("emmc-galaxy-s3"), read_profile("emmc-galaxy-s3-no-cache")
    assert cached.calibration
    assert uncached.calibration
    assert uncached.calibration.parameter != cached.calibration.parameter
    # Each is fitted with the software that it is for.
    assert uncached.calibration.case == {**cached.calibration.case, "software": "2012"}
    assert uncached.calibration.throughput_tps == cached.calibration.throughput_tps
    differing = {key for key, value in cached.model.items() if uncached.model[key] != value}
    assert differing == {
        *("cache_bytes", "drain_delay_ns", "flush_overhead_ns", "mapping_program_ns", "fua"),
        *("write_access_ns", "write_bandwidth_bytes_per_s"),
    }


@pytest.mark.parametrize(
    ("source", "limits"),
    [("flash/model/flash_config.h", LIMITS), ("nand/model/raw_nand.h", RAW_NAND_LIMITS)],
)
def test_limits_are_read_of_every_parameter(
    source: str, limits: dict[str, tuple[int, int]]
) -> None:
    header = (DEVICES.parent / "kernel" / source).read_text()
    listed = re.search(r"#define \w+_PARAMETERS\(P\) ((?:.*\\\n)+.*)", header)
    assert listed
    assert listed[1].count("P(") == len(limits)
    assert all(least <= greatest for least, greatest in limits.values())


def test_limits_are_those_of_the_header() -> None:
    assert LIMITS["gc_policy"] == (0, 1)
    assert RAW_NAND_LIMITS["page_bytes"] == (2048, 65536)


def test_every_key_is_described() -> None:
    described = re.findall(r"^\| `(\w+)` \|", (DEVICES / "README.md").read_text(), re.MULTILINE)
    assert described == [*LIMITS, *RAW_NAND_LIMITS]


@pytest.mark.parametrize(
    ("old", "new", "message", "remedy"),
    [
        (
            "\nprogram_ns =",
            "\nprogam_ns =",
            "model has no key 'progam_ns' (did you mean 'program_ns'?",
            "known: ",
        ),
        ("queue_depth = 1\n", "", "model lacks queue_depth", "devices/README.md"),
        ("queue_depth = 1\n", "queue_depth = 0\n", "model.queue_depth is 0", "1 to 1024"),
        (
            "queue_depth = 1\n",
            "queue_depth = true\n",
            "model.queue_depth must be a whole number, not True",
            "in digits",
        ),
        (
            "queue_depth = 1\n",
            "queue_depth = 1.5\n",
            "model.queue_depth must be a whole number, not 1.5",
            "in digits",
        ),
        (
            "queue_depth = 1\n",
            'queue_depth = "1"\n',
            "queue_depth must be a whole number, not '1'",
            "without quotes",
        ),
        ("icount_shift = 0\n", "icount_shift = 10\n", "cpu.icount_shift is 10", "0 to 9: beyond"),
        ("\nfua = 0\n", "\nfua = 2\n", "model.fua is 2", "0 to 1"),
        ("= 2147483648", "= 2147483649", "capacity_bytes is 2147483649", "multiple of 4096"),
        ("\ncache_bytes = 524288", "\ncache_bytes = 4096", "is 4096", "program_unit_bytes"),
        ("mapping_cache_bytes = 131072", "mapping_cache_bytes = 1", "bytes is 1", "whole table"),
        ("unit_bytes = 16384", "unit_bytes = 16385", "unit_bytes is 16385", "multiple of 4096"),
        ("provisioning_percent = 7", "provisioning_percent = 0", "percent is 0", "1 to 400"),
        ("= 2147483648", "= 16777216", "units_per_erase_block is 128", "fit in the capacity"),
        ("dies_per_channel = 2", "dies_per_channel = 33", "channel is 33", "1 to 32"),
        ('figure = "random_read_iops"', 'figure = "read_iops"', "'read_iops'", "random_read_iops"),
        ('sets = "read_access_ns"', 'sets = "read_acces_ns"', "did you mean 'read_access_ns'", ""),
        ("value = 3500", "value = 0", "stated[2].value cannot be 0", "allowed: >= 1"),
        ("[[stated]]", "[[states]]", "no key 'states' (did you mean 'stated'?)", "known: "),
        (
            'zeroes_ns = "',
            'zeros_ns = "',
            "no key 'zeros_ns' (did you mean 'zeroes_ns'?)",
            "known: ",
        ),
        (
            'zeroes_ns = "assumption: as discard_ns"',
            "",
            "sources lacks zeroes_ns",
            "devices/README.md",
        ),
        ('"assumption: as discard_ns"', '" "', "sources.zeroes_ns is empty: ' '", "write a text"),
        ('name = "emmc-galaxy-s3"', 'name = "emmc"', "name is 'emmc'", "a name of its own"),
        ("[sources]", "[source]", "no key 'source' (did you mean 'sources'?)", "known: "),
        ("[cpu]\nicount_shift = 0", "cpu = 0", "cpu must be a table, not 0", "[cpu]"),
        ("[cpu]", "[cpu", "line", "correct it; devices/README.md"),
    ],
)
def test_bad_profiles_are_refused(
    tmp_path: Path, old: str, new: str, message: str, remedy: str
) -> None:
    path = changed_profile(tmp_path, old, new)
    with pytest.raises(UseError) as caught:
        read_profile(path)
    assert str(path) in caught.value.message
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_unknown_device_names_the_nearest() -> None:
    with pytest.raises(UseError) as caught:
        read_profile("emmc-galaxy-s4")
    assert "(did you mean 'emmc-galaxy-s3'?)" in caught.value.message
    with pytest.raises(UseError) as caught:
        read_profile("floppy")
    assert "emmc-galaxy-s3" in caught.value.remedy


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UseError) as caught:
        read_profile(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("page_bytes", 3000, "power of two"),
        ("capacity_bytes", (512 << 20) + 2048, "whole blocks of 131072"),
        ("factory_bad_blocks", 2049, "half of the 4096 blocks"),
        ("queue_depth", 1, "known: capacity_bytes, page_bytes"),
    ],
)
def test_raw_nand_has_rules_of_its_own(key: str, value: int, remedy: str) -> None:
    with pytest.raises(UseError) as caught:
        read_profile("nand-slc-512mb").change_values({key: value}, "device")
    assert key in caught.value.message
    assert remedy in caught.value.remedy
