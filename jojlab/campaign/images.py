"""The images of an experiment's cases: one for each kernel and kind of device that they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from jojlab.experiment.cases import Case
from jojlab.experiment.plan import Plan, chooses_buffers, is_on_raw_nand, runs_by_wall_clock
from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import (
    CHOSEN_BUFFERS,
    DRIVERS,
    NO_EXTRAS,
    RAW_NAND,
    Extras,
    Image,
    ready_image,
)
from jojlab.guest.image.own_sqlite import agent_with_sqlite
from jojlab.model.architecture import ARCHITECTURES, X86_64
from jojlab.model.field import Value

# What the name of an image says of what it holds.
_KINDS = (("raw NAND", (RAW_NAND, CHOSEN_BUFFERS)), ("chosen buffers", (CHOSEN_BUFFERS,)))


def image_name(case: Case) -> str:
    """Return the name of a case's image: its kernel, its architecture where that is not x86-64, its
    SQLite where that is not the agent's own, `raw NAND` where the case is on it, and `chosen
    buffers` where it names the allocator of UBI's or UBIFS's buffers.

    Cases on block devices have the same image, and so the same numbers, whether or not another case
    of the experiment is on raw NAND: more modules move the guest's addresses and so its times.
    """
    kernel = str(case.settings["kernel"])
    machine = str(case.settings["machine"])
    others = [machine] if machine != X86_64.name else []
    others += [f"the SQLite of {folder}"] if (folder := case.sqlite_folder) else []
    words = [
        kernel,
        *others,
        *(word for word, extras in _KINDS if _extras(case.settings) in extras),
    ]
    return ", ".join(words)


def _extras(settings: Mapping[str, Value]) -> Extras:
    """Return what the image of a case has beside the usual."""
    if chooses_buffers(settings):
        return CHOSEN_BUFFERS
    return RAW_NAND if is_on_raw_nand(settings) else NO_EXTRAS


@dataclass(frozen=True)
class Images:
    """Images by their names (image_name)."""

    images_by_name: Mapping[str, Image]

    def image_of(self, case: Case) -> Image:
        """Return the image that a case runs in."""
        return self.images_by_name[image_name(case)]

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Return what results depend on, by name; what differs, by image and name."""
        parts = {k: {"image": i.fingerprint, **i.manifest} for k, i in self.images_by_name.items()}
        first, *others = parts.values()
        names = dict.fromkeys(name for each in parts.values() for name in each)
        return {
            name: first[name]
            if all(name in first and each.get(name) == first[name] for each in others)
            else {image: each.get(name) for image, each in parts.items()}
            for name in names
        }


def images_of(
    planned: Plan, cache: Cache, tell: Callable[[str], None] = lambda name: None
) -> Images:
    """Return the images that the cases need, made if need be; `tell` hears the name of each that
    is about to be made.

    Raises MachineError where this machine lacks something, or a kernel cannot be had.
    """
    cases = planned.experiment.cases
    needed = {image_name(case): case for case in cases if not case.skip}
    live = runs_by_wall_clock(cases)
    images = dict[str, Image]()
    for name, case in needed.items():
        kernel, machine = str(case.settings["kernel"]), str(case.settings["machine"])
        own, agent = partial(tell, name), None
        if folder := case.sqlite_folder:
            agent = agent_with_sqlite(cache, folder, own)
        extras, architecture = DRIVERS if live else _extras(case.settings), ARCHITECTURES[machine]
        images[name] = ready_image(cache, extras, kernel, own, architecture, agent)
    return Images(images)
