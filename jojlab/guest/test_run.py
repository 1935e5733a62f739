"""The machine that runs in real time: its command line, and that the other one is unchanged."""

from __future__ import annotations

from jojlab.device.profile import EMULATED
from jojlab.guest import qemu, run
from jojlab.guest.image import modules
from jojlab.guest.image.build import DRIVERS
from jojlab.guest.machine import Machine


def test_every_emulated_device_can_be_had() -> None:
    assert list(run.WALL_DEVICES) == list(EMULATED)
    for device in EMULATED:
        given = run.wall_arguments(device, "K", "I")
        assert "-icount" not in given
        line = given[given.index("-append") + 1]
        assert "joj.clock=wall" in line
        assert "memmap=0xc000000$0x40000000 joj.handout=0x40000000:0xc000000" in line
        assert given[given.index("-m") + 1] == "1216M"


def test_the_machine_of_the_virtual_clock_has_no_emulated_disk() -> None:
    given = qemu.arguments(Machine(0), "M", "K", "I")
    line = given[given.index("-append") + 1]
    assert "joj.clock" not in line
    assert "tsc=reliable tsc_early_khz=1000000 memmap=" in line
    assert not set(modules.ROOTS) & set(DRIVERS.modules)
    assert set(modules.PARAMETERS) <= set(DRIVERS.modules)


def test_this_machine_has_a_name() -> None:
    host = run.host()
    assert host["cpu"]
    assert host["cpus"] >= 1
    assert host["kernel"]
