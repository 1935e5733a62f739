"""The key of a job: all that its results depend on, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache, sha256
from jojlab.foundation.errors import MachineError, UseError
from jojlab.guest.image.build import Image
from jojlab.guest.machine import MOST_INPUT_BYTES, GuestInput, WallMachine
from jojlab.lab.job import Input, Job, Kind, keep_content, record_of, virtual
from jojlab.lab.power_cuts import power_cuts


@pytest.fixture
def own(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def image(tmp_path: Path) -> Image:
    files = {}
    for name in ("kernel", "initramfs"):
        files[name] = tmp_path / name
        files[name].write_text(name)
    hashes = {f"{name}_sha256": sha256(name.encode()) for name in files}
    return Image("fingerprint", files["kernel"], files["initramfs"], hashes)


def job(image: Image, *inputs: Input, shift: int = 0, **fields: object) -> Job:
    return Job(Kind.CASE, record_of(Kind.CASE, fields), image, virtual(shift), inputs)


def script(cache: Cache, folder: Path, text: str) -> Input:
    (folder / "script").write_text(text)
    return Input.from_file(cache, "script", folder / "script")


def test_the_contents_of_an_input_file_are_part_of_the_key(
    own: Cache, image: Image, tmp_path: Path
) -> None:
    first = job(image, script(own, tmp_path, "1 0 close 3"))
    other = job(image, script(own, tmp_path, "1 0 close 4"))
    again = job(image, script(own, tmp_path, "1 0 close 3"))
    assert first.key == again.key != other.key
    assert first.key != job(image).key
    # Whatever becomes of the file: a job has what there was when it was made.
    assert other.guest_input() == GuestInput(other.record, {"script": b"1 0 close 4"})
    (tmp_path / "script").unlink()
    assert first.guest_input().inputs == {"script": b"1 0 close 3"}
    name = replace(first.inputs[0], name="other")
    assert replace(first, inputs=(name,)).key != first.key


def test_image_machine_and_record_are_part_of_a_job_s_key(image: Image) -> None:
    keys = {
        job(image).key,
        job(replace(image, fingerprint="other")).key,
        job(image, shift=1).key,
        job(image, seed=1).key,
        *(each.key for each in power_cuts(job(image), 600)),
    }
    assert len(keys) == 6
    assert job(image, seed=1, case=2).key == job(image, case=2, seed=1).key
    elsewhere = replace(image, kernel=Path("/elsewhere"))
    assert job(elsewhere).key == job(image).key


def test_a_job_in_real_time_has_no_key(image: Image) -> None:
    assert replace(job(image), machine=WallMachine("qemu-nvme")).key == ""


def test_all_that_a_job_needs_can_be_elsewhere(own: Cache, image: Image, tmp_path: Path) -> None:
    twice = script(own, tmp_path, "text")
    here = job(image, twice, replace(twice, name="again"))
    contents = {sha: path.read_bytes() for sha, path in here.contents().items()}
    assert all(sha256(content) == sha for sha, content in contents.items())
    other = Cache(tmp_path / "other")
    there = here.with_files({sha: keep_content(other, it) for sha, it in contents.items()})
    assert there.key == here.key
    assert there.guest_input() == here.guest_input()
    paths = [there.image.kernel, there.image.initramfs, *(it.path for it in there.inputs)]
    assert all(path.is_relative_to(other.root) for path in paths)
    assert there.image.kernel.read_text() == "kernel"


def test_a_file_that_is_none_or_too_large_is_refused(own: Cache, tmp_path: Path) -> None:
    with pytest.raises(UseError, match="no such file"):
        Input.from_file(own, "script", tmp_path)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(MOST_INPUT_BYTES + 1)
    with pytest.raises(UseError, match="larger than 64 MiB"):
        Input.from_file(own, "script", large)


def test_a_damaged_copy_is_told_and_made_anew(own: Cache, image: Image, tmp_path: Path) -> None:
    made = job(image, script(own, tmp_path, "text"))
    made.inputs[0].path.write_text("else")
    with pytest.raises(MachineError, match="damaged"):
        made.guest_input()
    assert job(image, script(own, tmp_path, "text")).guest_input().inputs == {"script": b"text"}


@pytest.mark.parametrize("name", ["", "a/b", "..", "a,b", "x" * 33, "A"])
def test_a_name_that_the_agent_would_refuse_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        GuestInput(b"{}", {name: b""})


def test_guest_input_becomes_items_of_fw_cfg(tmp_path: Path) -> None:
    arguments = GuestInput(b"{}", {"script": b"x"}).write(tmp_path)
    assert arguments == [
        "-fw_cfg", "name=opt/jojlab/case,file=item-0",
        "-fw_cfg", "name=opt/jojlab/afterwards,file=item-1",
        "-fw_cfg", "name=opt/jojlab/input/script,file=item-2",
    ]  # fmt: skip
    assert (tmp_path / "item-0").read_bytes() == b"{}"
    assert (tmp_path / "item-1").read_bytes() == b"{}"
    assert (tmp_path / "item-2").read_bytes() == b"x"
