"""The images of an experiment's cases: one for each kernel that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.experiment.cases import Case
from jojlab.experiment.devices import by_wall_clock, is_on_raw_nand
from jojlab.experiment.plan import Plan
from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import NO_EXTRAS, Image
from jojlab.guest.image.ready import RAW_NAND, ready_image, ready_wall_image


@dataclass(frozen=True)
class Images:
    """Images by the names of their kernels."""

    by_kernel: Mapping[str, Image]

    def of(self, case: Case) -> Image:
        """Return the image that a case runs in."""
        return self.by_kernel[str(case.settings["kernel"])]

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What results depend on: each part by its name; one that differs, by kernel and name."""
        parts = {k: {"image": i.fingerprint, **i.manifest} for k, i in self.by_kernel.items()}
        first, *others = parts.values()
        names = dict.fromkeys(name for each in parts.values() for name in each)
        return {
            name: first[name]
            if all(name in first and each.get(name) == first[name] for each in others)
            else {kernel: each.get(name) for kernel, each in parts.items()}
            for name in names
        }


def images_of(planned: Plan, cache: Cache) -> Images:
    """Return the images that the cases need, made if need be.

    Raises MachineError where this machine lacks something, or a kernel cannot be had.
    """
    cases = planned.experiment.cases
    # By kernel: whether one of its cases is on raw NAND.
    kernels: dict[str, bool] = {}
    for case in cases:
        if not case.skip:
            kernel = str(case.settings["kernel"])
            kernels[kernel] = kernels.get(kernel, False) or is_on_raw_nand(case.settings)
    if by_wall_clock(cases):
        return Images({kernel: ready_wall_image(cache, kernel=kernel) for kernel in kernels})
    return Images(
        {
            kernel: ready_image(cache, RAW_NAND if on_raw_nand else NO_EXTRAS, kernel)
            for kernel, on_raw_nand in kernels.items()
        }
    )
