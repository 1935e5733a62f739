/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mapping table of the FTL: where the newest programmed copy of each logical slot is.
 *
 * The table itself is divided into logical slots of its own, 1024 entries each, which are written
 * to the NAND like data and collected like data. The controller's memory holds a limited number
 * of them (as in DFTL: Gupta, Kim and Urgaonkar, ASPLOS 2009): an access to another one reads it
 * first, and writes back the least recently used ones when they were changed.
 */
#ifndef FLASH_MAPPING_H
#define FLASH_MAPPING_H

#include "geometry.h"
#include "statistics.h"
#include "rows.h"

struct flash_model;

/* In place of a physical slot: data in the volatile cache; the other bits are its place there. */
#define FLASH_IN_CACHE (1U << 31)

/* A part of the table: 1024 entries, one slot. Linked, the most recently used first. */
struct flash_part {
	flash_u32 newer;
	flash_u32 older;
	flash_u32 cached;
	flash_u32 changed;
};

struct flash_mapping {
	flash_u32 newest;
	flash_u32 oldest;
	flash_u32 cached_parts;
	flash_u32 changed;	/* since the table was last made durable */
};

void flash_mapping_init(struct flash_model *model);

/* The place in the cache of a logical slot's data, or FLASH_NONE. */
flash_u32 flash_mapping_in_cache(const struct flash_model *model, flash_u32 logical);

/* The physical slot of the newest programmed copy, or FLASH_NONE. */
flash_u32 flash_mapping_physical(const struct flash_model *model, flash_u32 logical);

/* Has the part of the table with this entry in memory; answers from when on it is. */
flash_u64 flash_mapping_use(struct flash_model *model, flash_u32 logical, int change,
			    flash_u64 now_ns);

/*
 * Programs a unit with the data of `count` logical slots, and lets the table say so. Without
 * logical slots it is a record that nothing refers to. Answers when the program ends.
 */
flash_u64 flash_mapping_program(struct flash_model *model, enum flash_stream stream,
				enum flash_cause cause, const flash_u32 *logical, flash_u32 count,
				flash_u64 now_ns);

/* Forgets a logical slot's data; answers whether there were any. */
int flash_mapping_unmap(struct flash_model *model, flash_u32 logical, flash_u64 now_ns);

/* Makes the table durable if it changed; answers when it is. */
flash_u64 flash_mapping_commit(struct flash_model *model, flash_u64 now_ns);

#endif
