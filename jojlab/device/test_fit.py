import os
from pathlib import Path

import pytest

from jojlab.device.fit import KNOBS, FittedModel, fit, measure_model, profile_text
from jojlab.device.measure import Effort, Probe
from jojlab.device.profile import read_profile
from jojlab.foundation.errors import MachineError, UseError

QUICK = Effort(seconds=0.05, span_bytes=1 << 20)


def test_the_model_s_own_figures_are_found_again() -> None:
    """A device that is the model itself: a fit from another profile shows its figures."""
    wanted = measure_model(read_profile("ufs-2.1").model)
    measured = {name: wanted[name] for name in KNOBS}
    fitted = fit(read_profile("ufs-3.1").model, measured)
    assert fitted.unmet == []


def test_a_figure_out_of_reach_is_told() -> None:
    measured = {"random_read_latency_ns": 1}
    base = read_profile("sd-card")
    fitted = fit(base.model, measured)
    assert fitted.unmet == ["random_read_latency_ns"]
    text = profile_text("my-card", base, fitted, measured, "/dev/sdb")
    share = fitted.off["random_read_latency_ns"] * 100
    told = f"fitted to random_read_latency_ns of /dev/sdb, which the model misses by {share:+.1f} %"
    assert f'read_access_ns = "{told}"' in text
    assert share > 5


def test_a_figure_is_unmet_that_is_missed_by_more_than_five_per_cent() -> None:
    """A benchmark need not meet a figure as exactly as a calibration its anchor."""
    assert FittedModel({}, {}, {"near": -0.04, "far": 0.06}).unmet == ["far"]


def test_a_fitted_profile_can_be_read_and_says_what_was_not_measured(tmp_path: Path) -> None:
    base = read_profile("emmc-5.1")
    measured = {"random_read_iops": 5000, "random_read_latency_ns": 250_000}
    fitted = fit(base.model, measured)
    path = tmp_path / "my-card.toml"
    path.write_text(profile_text("my-card", base, fitted, measured, '/dev/"odd"'))
    profile = read_profile(path)
    assert dict(profile.model) == fitted.model
    assert "fitted to random_read_iops" in profile.sources["read_command_ns"]
    assert profile.sources["program_ns"] == "not measured: as emmc-5.1"
    assert {row.figure: row.value for row in profile.stated} == measured
    assert {row.figure: row.sets for row in profile.stated} == {
        "random_read_iops": "read_command_ns",
        "random_read_latency_ns": "read_access_ns",
    }


def make_disk(tmp_path: Path, size_bytes: int) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(os.urandom(size_bytes))
    return path


def probe_of(path: Path, *, write: bool) -> Probe:
    try:
        return Probe(path, write=write, effort=QUICK)
    except MachineError as error:
        pytest.skip(f"this folder takes no O_DIRECT: {error}")


def test_measuring_reads_changes_nothing_on_the_disk(tmp_path: Path) -> None:
    path = make_disk(tmp_path, 2 << 20)
    before = path.read_bytes()
    with probe_of(path, write=False) as probe:
        figures = probe.reads()
    assert set(figures) < set(KNOBS)
    assert all(value > 0 for value in figures.values())
    assert path.read_bytes() == before


def test_writes_are_measured_where_they_are_asked_for(tmp_path: Path) -> None:
    path = make_disk(tmp_path, 2 << 20)
    before = path.read_bytes()
    with probe_of(path, write=True) as probe:
        figures = probe.reads() | probe.writes()
    assert set(figures) == set(KNOBS)
    assert path.read_bytes() != before
    assert path.stat().st_size == 2 << 20


def test_a_probe_of_a_folder_or_no_device_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing", Path("/dev/null")):
        with pytest.raises(UseError):
            Probe(path, write=False, effort=QUICK)
    with pytest.raises(UseError, match="1 MiB"):
        probe_of(make_disk(tmp_path, 4096), write=False)
