"""What a profile of raw NAND has: its parameters, their limits, the rules that they keep together,
and the figures that a benchmark of the MTD layer would measure (kernel/nand).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jojlab.foundation.errors import UseError

# kernel/nand/figures/figures.c prints them in this order.
FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "page_read_latency_ns": "a page read, its bytes moved, one at a time",
        "page_program_latency_ns": "a page moved and programmed, one at a time",
        "block_erase_latency_ns": "a block erased, one at a time",
        "sequential_read_bytes_per_s": "pages read in order, one at a time",
        "sequential_program_bytes_per_s": "pages programmed in order, one at a time",
    }
)


def check_together(where: str, model: Mapping[str, int]) -> None:
    """Refuse what no part can have; raw_nand_check() of the model has the same rules."""

    def wrong(key: str, remedy: str) -> UseError:
        return UseError(f"{where}.{key} is {model[key]}", remedy)

    for key in ("page_bytes", "pages_per_block", "programs_per_page"):
        if model[key] & (model[key] - 1):
            raise wrong(key, "give a power of two")
    block_bytes = model["page_bytes"] * model["pages_per_block"]
    blocks, rest = divmod(model["capacity_bytes"], block_bytes)
    if rest:
        raise wrong("capacity_bytes", f"give whole blocks of {block_bytes} bytes")
    if blocks * model["pages_per_block"] >= 2**32 - 1:
        raise wrong("capacity_bytes", "give less than 2^32 pages")
    if model["factory_bad_blocks"] > blocks // 2:
        raise wrong("factory_bad_blocks", f"give at most half of the {blocks} blocks")
