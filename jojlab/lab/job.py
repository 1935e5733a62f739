"""A job: what a guest is to do, with which image, machine and input files. Its key is a hash of all
that its results depend on, the contents of the input files included.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from jojlab.foundation.cache import Cache, sha256, sha256_file
from jojlab.foundation.errors import MachineError, UseError, unreadable
from jojlab.guest.image.build import Image
from jojlab.guest.machine import MOST_INPUT_BYTES, GuestInput, Machine, WallMachine
from jojlab.guest.memory import memory_mib
from jojlab.guest.memory_model import Core, WatchedBuffer, source_hash
from jojlab.guest.run import run_key
from jojlab.lab.tree import pack
from jojlab.model.architecture import X86_64, Architecture

_CONTENT = "content"
# What a run with the memory model of a core hands out. Its name stands in the key, and so for the
# form of its contents.
FOLDED = "memory_counts.json"


class Kind(Enum):
    """The kind of a job (agent/src/record/job.rs).

    The value is its word in the record; that of power cuts and of disks is a case's
    (`Job.afterwards`).
    """

    CASE = "case"
    POWER_CUTS = "power-cuts"  # a case, and what cuts of its run leave
    DISK_IMAGE = "disk-image"  # a case, and its disks after one of these cuts
    SELF_TEST = "self-test"

    @property
    def answer(self) -> str:
        """The file that the guest hands out, whatever else it hands out."""
        return _ANSWERS[self]


_ANSWERS = {
    Kind.CASE: "manifest.parquet",
    Kind.POWER_CUTS: "power_cuts.json",
    Kind.DISK_IMAGE: "disk_states.json",
    Kind.SELF_TEST: "verification.json",
}


@dataclass(frozen=True)
class Input:
    """A file that a job reads, by its name in the guest; `path` is a copy that never changes.

    `is_tree`: it is the archive of a tree of files, which the guest unpacks into a folder.
    """

    name: str
    sha256: str
    path: Path
    is_tree: bool = False

    @classmethod
    def from_file(cls, cache: Cache, name: str, path: Path) -> Input:
        """Keep the contents of `path` in the cache as they are now.

        Raises UseError when there is no such file, or it is too large.
        """
        try:
            if not path.is_file():
                raise UseError(f"{path}: no such file", f"name a regular file as {name}")
            if path.stat().st_size > MOST_INPUT_BYTES:
                most = f"{MOST_INPUT_BYTES >> 20} MiB"
                raise UseError(f"{path}: larger than {most}, which a guest takes", "give a part")
            content = path.read_bytes()
        except OSError as error:
            raise unreadable(path, error) from error
        return cls(name, sha256(content), keep_content(cache, content))

    @classmethod
    def from_tree(
        cls, cache: Cache, name: str, members: Mapping[str, Path | str], *, is_shared: bool = False
    ) -> Input:
        """Keep a tree of files as they are now; `members` by their paths in the guest's folder,
        and `is_shared` as pack() takes it.

        Raises UseError as pack() does.
        """
        content = pack(members, is_shared=is_shared)
        return cls(name, sha256(content), keep_content(cache, content), is_tree=True)

    @property
    def identity(self) -> str:
        """Return the hash of everything but the name that affects results."""
        return f"tree {self.sha256}" if self.is_tree else self.sha256

    def content(self) -> bytes:
        """Return the contents, or raise MachineError when the copy was damaged since."""
        content = self.path.read_bytes()
        if sha256(content) != self.sha256:
            raise MachineError(f"{self.path}: damaged", "joj cache --empty")
        return content


def keep_content(cache: Cache, content: bytes) -> Path:
    """Return a file of the cache with this content, made if need be; its folder is its hash."""

    def build(folder: Path) -> None:
        (folder / _CONTENT).write_bytes(content)

    def is_sound(folder: Path) -> bool:
        return sha256_file(folder / _CONTENT) == key

    key = sha256(content)
    return cache.entry("inputs", key, build, is_sound) / _CONTENT


@dataclass(frozen=True)
class Job:
    """One job; see record_of for its record."""

    kind: Kind
    record: bytes
    image: Image
    machine: Machine | WallMachine
    inputs: tuple[Input, ...] = ()
    # What is done when a case is over: JSON.
    afterwards: bytes = b"{}"
    # The core whose caches and TLBs are modelled beside it.
    core: Core | None = None
    # Buffers of the kernel whose accesses that model counts.
    watched: tuple[WatchedBuffer, ...] = ()

    @property
    def key(self) -> str:
        """The hash that its results are kept under; empty in real time, where no two are equal."""
        if isinstance(self.machine, WallMachine):
            return ""
        inputs = {each.name: each.identity for each in self.inputs}
        texts = [self.record.decode(), self.afterwards.decode()]
        parts: list[object] = [run_key(self.image, self.machine), *texts, inputs]
        if self.core:
            parts += [asdict(self.core.tables), source_hash(), list(self.watched), FOLDED]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def architecture(self) -> Architecture:
        """Return the architecture of its guest."""
        return self.machine.architecture if isinstance(self.machine, Machine) else X86_64

    def guest_input(self) -> GuestInput:
        """Return what the guest is given, or raise MachineError when an input file is damaged."""
        files, trees = (
            {each.name: each.content() for each in self.inputs if each.is_tree == is_tree}
            for is_tree in (False, True)
        )
        return GuestInput(self.record, files, trees, self.afterwards)

    def contents(self) -> dict[str, Path]:
        """Return all files that the job needs, those of the image among them, by their hashes."""
        image = self.image
        return {
            str(image.manifest["kernel_sha256"]): image.kernel,
            str(image.manifest["initramfs_sha256"]): image.initramfs,
            **{each.sha256: each.path for each in self.inputs},
        }

    def with_files(self, files: Mapping[str, Path]) -> Job:
        """Return the same job with its files elsewhere, by their hashes."""
        manifest = self.image.manifest
        image = replace(
            self.image,
            kernel=files[str(manifest["kernel_sha256"])],
            initramfs=files[str(manifest["initramfs_sha256"])],
        )
        inputs = tuple(replace(each, path=files[each.sha256]) for each in self.inputs)
        return replace(self, image=image, inputs=inputs)


def virtual(
    icount_shift: int, contents_bytes: int = 0, architecture: Architecture = X86_64
) -> Machine:
    """Return the machine of a job whose disks will hold `contents_bytes` in the end.

    Raises UseError where no guest is large enough.
    """
    return Machine(icount_shift, memory_mib(contents_bytes), architecture)


def record_of(kind: Kind, fields: Mapping[str, Any]) -> bytes:
    """Return the record of a job of this kind; equal fields are equal bytes."""
    return canonical({"job": kind.value, **fields})


def canonical(record: object) -> bytes:
    """Return JSON with its keys sorted."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Options:
    """The options of running jobs, no part of what they compute: jobs at a time; whether to use
    results of the cache; real seconds a job, of the smallest guest, more for one with more memory;
    and in place of this machine the address of a cluster's scheduler, which says itself how many
    jobs it takes. `native` is read where jobs of power cuts are made, and stands in these: whether
    User Mode Linux judges what it can.
    """

    jobs: int = 1
    use_cache: bool = True
    timeout_s: float = TIMEOUT_S
    cluster: str = ""
    native: bool = False
