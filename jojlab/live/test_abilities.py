"""Tests that what joj can do here is said as it is: by this machine's kernel, its user and its
devices.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from jojlab.live import abilities as module
from jojlab.live.abilities import Ability, abilities


def ability(name: str, lab_lacks: str = "") -> Ability:
    (found,) = [each for each in abilities(lab_lacks) if each.name == name]
    return found


def test_a_lab_that_lacks_something_cannot_run_cases() -> None:
    assert ability("lab").reason == ""
    assert ability("lab", "qemu, image").reason == "it lacks: qemu, image"


def test_an_old_kernel_and_one_without_btf_cannot_be_traced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "_BTF", tmp_path / "vmlinux")
    assert ability("trace").reason == f"this kernel has no {tmp_path / 'vmlinux'}"
    monkeypatch.setattr(platform, "release", lambda: "4.19.0-21-amd64")
    assert ability("trace").reason == "Linux 4.19.0-21-amd64 is older than 5.10"


def test_tracing_needs_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "vmlinux").touch()
    monkeypatch.setattr(module, "_BTF", tmp_path / "vmlinux")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = ability("trace")
    assert found.reason == "only root may load the tracer into the kernel"
    assert found.remedy == "begin the command with sudo"


def test_a_containers_root_without_capabilities_cannot_trace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "vmlinux").touch()
    (tmp_path / "status").write_text(
        "Name:\tjoj\nCapPrm:\t000001ffffffffff\nCapEff:\t00000000a80425fb\n"
    )
    monkeypatch.setattr(module, "_BTF", tmp_path / "vmlinux")
    monkeypatch.setattr(module, "_STATUS", tmp_path / "status")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert ability("trace").reason == "this container's root lacks CAP_SYS_ADMIN"
