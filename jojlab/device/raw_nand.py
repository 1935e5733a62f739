"""What a profile of raw NAND has: its parameters, their limits, the rules that they keep together,
and the figures that a benchmark of the MTD layer would measure (kernel/nand).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jojlab.foundation.errors import UseError

# Least and greatest value of each parameter, in the order of the module's own list
# (kernel/nand/model/raw_nand.h); a test compares the two.
LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "capacity_bytes": (1 << 20, 1 << 40),
        "page_bytes": (2048, 65536),
        "spare_bytes": (16, 8192),
        "pages_per_block": (16, 4096),
        "programs_per_page": (1, 8),
        "ecc_strength_bits": (1, 72),
        "channels": (1, 32),
        "dies_per_channel": (1, 32),
        "channel_bandwidth_bytes_per_s": (1000, 10**12),
        "page_read_ns": (1, 10**9),
        "program_ns": (1, 10**9),
        "erase_ns": (1, 10**9),
        "factory_bad_blocks": (0, 65536),
        "flipped_reads_per_million": (0, 10**6),
        "read_disturb_reads": (0, 2**32 - 1),
        "endurance_erases": (0, 2**32 - 1),
        "cut_after_operations": (0, 2**32 - 1),
        "error_seed": (0, 2**32 - 1),
    }
)
# Errors, off where a profile leaves them out.
MECHANISMS = tuple(LIMITS)[tuple(LIMITS).index("factory_bad_blocks") :]

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
