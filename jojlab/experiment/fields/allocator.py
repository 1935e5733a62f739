"""The fields that choose the allocator of the buffers of UBI and of UBIFS.

A case has them only where one of them is named. It then runs with our own build of both modules
(kernel/ubi), in an image of its own.
"""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

# The first is the distribution's own.
ALLOCATORS = ("vmalloc", "kmalloc", "kmem_cache")

ALLOCATOR_FIELDS: tuple[Field, ...] = (
    Field(
        "ubi_allocator",
        "allocator of UBI's buffer peb_buf, in our own build of UBI and UBIFS (docs/raw-nand.md)",
        None,
        ALLOCATORS,
    ),
    Field(
        "ubifs_allocator",
        "allocator of UBIFS's buffers ileb_buf, lpt_buf, sbuf and orph_buf, in the same build",
        None,
        ALLOCATORS,
    ),
)
