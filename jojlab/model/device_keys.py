"""The parameters of modelled devices with their limits, and the fields that change one of them.

`device.KEY` and `journal_device.KEY` change one key of [model] or [cpu] of a device's profile
(devices/README.md). They show how much a result depends on a parameter. A case has only those that
were named; the profile gives the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jojlab.model.field import Changes, Field, Value

# The fields that name a profile.
OWNERS = ("device", "journal_device")

# Least and greatest value of each parameter, in the order of the module's own list
# (kernel/flash/model/flash_config.h); a test compares the two.
LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "capacity_bytes": (1 << 20, 1 << 40),
        "queue_depth": (1, 1024),
        "half_duplex": (0, 1),
        "packed_writes": (1, 64),
        "command_overhead_ns": (0, 10**9),
        "read_command_ns": (0, 10**9),
        "write_command_ns": (0, 10**9),
        "read_access_ns": (0, 10**9),
        "read_bandwidth_bytes_per_s": (1000, 10**12),
        "write_access_ns": (0, 10**9),
        "write_bandwidth_bytes_per_s": (1000, 10**12),
        "channels": (1, 32),
        "dies_per_channel": (1, 32),
        "channel_bandwidth_bytes_per_s": (1000, 10**12),
        "program_unit_bytes": (4096, 262144),
        "units_per_erase_block": (2, 8192),
        "page_read_ns": (1, 10**9),
        "program_ns": (1, 10**9),
        "erase_ns": (1, 10**9),
        "mapping_program_ns": (0, 10**9),
        "mapping_cache_bytes": (0, 1 << 30),
        "over_provisioning_percent": (1, 400),
        "gc_policy": (0, 1),
        "wear_spread_max": (0, 1000000),
        "cache_bytes": (0, 1 << 30),
        "power_loss_protection": (0, 1),
        "drain_delay_ns": (0, 10**12),
        "flush_overhead_ns": (0, 10**9),
        "fua": (0, 1),
        "fua_overhead_ns": (0, 10**9),
        "discard_ns": (0, 10**9),
        "zeroes_ns": (0, 10**9),
        "preload_percent": (0, 100),
        "overwrite_percent": (0, 1000),
        "ageing_seed": (0, 2**32 - 1),
        "flush_lies": (0, 1),
        "atomic_slots": (0, 1),
        "torn_slots_max": (0, 65536),
        "unreadable_torn_slots": (0, 1),
        "stale_mapping_flushes": (0, 1024),
        "early_erase": (0, 1),
        "flush_drains_queue": (0, 1),
        "flush_tail_permille": (0, 1000),
        "flush_tail_ns": (0, 10**9),
        "flush_tail_seed": (0, 2**32 - 1),
        "sleep_after_ns": (0, 10**12),
        "wake_up_ns": (0, 10**9),
        "suspend_ns": (0, 10**9),
        "slc_buffer_bytes": (0, 1 << 40),
        "slc_program_ns": (0, 10**9),
        "idle_work_delay_ns": (0, 10**12),
        "idle_gc_rows": (0, 1000000),
    }
)
# What not every device has: a profile may leave these keys out, and then they are 0.
MECHANISMS = tuple(LIMITS)[tuple(LIMITS).index("flush_lies") :]
CPU_LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType({"icount_shift": (0, 9)})
# Why a limit is where it is, for those who meet it. Measured of the greatest shift: a guest of
# 2^10 ns an instruction has 3,906 of them from one timer tick to the next, and does not boot.
REASONS = {
    "icount_shift": "beyond, the guest's kernel spends all its time on its timer tick of 4 ms"
}


# Least and greatest value of each parameter, in the order of the module's own list
# (kernel/nand/model/raw_nand.h); a test compares the two.
RAW_NAND_LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
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
RAW_NAND_MECHANISMS = tuple(RAW_NAND_LIMITS)[tuple(RAW_NAND_LIMITS).index("factory_bad_blocks") :]


def _merge(
    first: Mapping[str, tuple[int, int]], second: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the keys of both kinds of device; the profile knows which of them are its own."""
    merged = {**first, **second}
    for key in first.keys() & second.keys():
        lows, highs = zip(first[key], second[key], strict=True)
        merged[key] = min(lows), max(highs)
    return merged


# Only the profile of `device` describes the guest's processor.
_KEYS = {"device": {**CPU_LIMITS, **_merge(RAW_NAND_LIMITS, LIMITS)}, "journal_device": LIMITS}

DEVICE_FIELDS: tuple[Field, ...] = tuple(
    Field(
        f"{owner}.{key}",
        f"overrides {key} of the profile of {owner}",
        None,
        limits=limits,
        changes=Changes.TARGET,
    )
    for owner in OWNERS
    for key, limits in _KEYS[owner].items()
)


def device_values(settings: Mapping[str, Value], owner: str) -> dict[str, int]:
    """Return the keys that a case changes of the profile of `owner`, with their values."""
    prefix = f"{owner}."
    return {
        name.removeprefix(prefix): int(value)
        for name, value in settings.items()
        if name.startswith(prefix)
    }


def with_dotted_keys(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of an experiment file with device.KEY = ... as the key "device.KEY".

    To TOML, a dotted key without quotes is a table in a table.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name in OWNERS and isinstance(value, dict):
            found |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            found[name] = value
    return found
