from __future__ import annotations

from pathlib import Path

from jojlab.inspection.storage import Mount, device_under, mount_under, read_mounts

TABLE = r"""36 35 98:0 / / rw,noatime shared:1 - ext4 /dev/root rw,data=writeback
37 36 179:2 /sub /mnt/my\040card rw - f2fs /dev/mmcblk1p2 rw,discard
no mount
"""


def test_a_table_of_mounts_is_read_with_its_escapes() -> None:
    root, card = read_mounts(TABLE)
    assert root.options == ("rw", "noatime", "data=writeback")
    assert card == Mount(
        Path("/mnt/my card"), "f2fs", "/dev/mmcblk1p2", ("rw", "discard"), (179, 2)
    )


def test_the_mount_under_this_file_is_one_of_this_machine() -> None:
    mount = mount_under(Path(__file__))
    assert Path(__file__).resolve().is_relative_to(mount.point)


def test_an_overlay_is_its_upper_layer_where_that_is_seen(tmp_path: Path) -> None:
    table, merged, upper = (tmp_path / name for name in ("mountinfo", "merged", "upper"))
    overlay = f"40 36 0:41 / {merged} rw - overlay overlay rw,lowerdir=low,upperdir={upper}"
    table.write_text(f"36 35 98:0 / / rw - ext4 /dev/root rw\n{overlay},workdir=work\n")
    assert mount_under(merged / "app.db", table).filesystem == "overlay"
    upper.mkdir()
    mount = mount_under(merged / "app.db", table)
    assert (mount.filesystem, mount.source, mount.is_upper) == ("ext4", "/dev/root", True)
    assert not mount_under(upper / "app.db", table).is_upper


def make_disk(sysfs: Path, files: dict[str, str]) -> Path:
    disk = sysfs / "devices" / "mmcblk1"
    for name, text in {"queue/write_cache": "write back\n", **files}.items():
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_text(text)
    partition = disk / "mmcblk1p2"
    partition.mkdir()
    (partition / "partition").write_text("2\n")
    link = sysfs / "dev" / "block" / "179:2"
    link.parent.mkdir(parents=True)
    link.symlink_to(partition)
    return disk


def test_a_partition_is_of_its_disk(tmp_path: Path) -> None:
    counters = " ".join(str(number) for number in range(1, 18))
    make_disk(
        tmp_path,
        {
            "queue/fua": "1\n",
            "queue/rotational": "0\n",
            "queue/logical_block_size": "512\n",
            "stat": counters,
            "device/life_time": "0x01 0x02\n",
            "device/pre_eol_info": "0x01\n",
        },
    )
    _, card = read_mounts(TABLE)
    device = device_under(card, tmp_path)
    assert device
    assert (device.name, device.interface) == ("mmcblk1", "eMMC or SD")
    assert (device.write_cache, device.fua, device.rotational) == (True, True, False)
    assert (device.written_bytes, device.flushes) == (7 * 512, 16)
    assert device.wear == "life_time 0x01 0x02, pre_eol_info 0x01"


def test_a_loop_device_is_made_of_a_file(tmp_path: Path) -> None:
    make_disk(tmp_path, {"loop/backing_file": "/var/app.img\n"})
    _, card = read_mounts(TABLE)
    device = device_under(card, tmp_path)
    assert device
    assert device.below == ("/var/app.img",)


def test_device_facts_that_sysfs_lacks_are_unknown(tmp_path: Path) -> None:
    make_disk(tmp_path, {"stat": "1 2 3"})
    _, card = read_mounts(TABLE)
    device = device_under(card, tmp_path)
    assert device
    assert device.fua is None
    assert device.written_bytes is None
    assert device.flushes is None
    assert device.wear is None


def test_a_filesystem_without_a_device_has_none(tmp_path: Path) -> None:
    mount = Mount(Path("/tmp"), "tmpfs", "tmpfs", ("rw",), (0, 31))
    assert device_under(mount, tmp_path) is None
