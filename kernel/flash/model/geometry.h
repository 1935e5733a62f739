/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the device, counted out of its parameters.
 *
 *   slot    4096 bytes: what a mapping entry names, and the unit of all bookkeeping
 *   unit    what one die programs at once: a page of each of its planes; some slots
 *   row     one erase block of every die, filled in turns and erased together ("superblock")
 *
 * A slot's physical number counts through row, unit of the row and slot of the unit; the units of
 * a row lie on the dies in turns. Logical slots beyond the disk's hold the mapping table itself.
 */
#ifndef FLASH_GEOMETRY_H
#define FLASH_GEOMETRY_H

#include "flash_config.h"

#define FLASH_SLOT_BYTES 4096U
#define FLASH_NONE (~0U)		/* no slot, no row */
#define FLASH_UNIT_SLOTS_MAX 64U
#define FLASH_DIES_MAX 1024U

/* Entries of 4 bytes that one slot of the mapping table has. */
#define FLASH_ENTRIES_PER_SLOT 1024U

/* Rows that can never hold valid data: three half-filled ones, and what collection works with. */
#define FLASH_SPARE_ROWS 6U

struct flash_geometry {
	flash_u32 dies;
	flash_u32 unit_slots;
	flash_u32 row_units;
	flash_u32 row_slots;
	flash_u32 rows;
	flash_u32 disk_slots;		/* logical slots the host sees */
	flash_u32 mapping_slots;	/* logical slots of the mapping table, after those */
	flash_u32 cache_slots;		/* of the volatile cache */
	flash_u32 mapping_cache_slots;	/* FLASH_NONE: the whole table */
	flash_u32 slc_units;		/* of the buffer of single-level cells */
};

/* Returns what is wrong, as flash_model_check() does; *geometry is whole if nothing is. */
struct flash_complaint flash_geometry_derive(const struct flash_config *config,
					     struct flash_geometry *geometry);

static inline flash_u32 flash_row_of(const struct flash_geometry *geometry, flash_u32 slot)
{
	return slot / geometry->row_slots;
}

/* A unit's number over the whole device; equal for the slots of one unit. */
static inline flash_u32 flash_unit_of(const struct flash_geometry *geometry, flash_u32 slot)
{
	return slot / geometry->unit_slots;
}

static inline flash_u32 flash_die_of(const struct flash_geometry *geometry, flash_u32 slot)
{
	return flash_unit_of(geometry, slot) % geometry->row_units % geometry->dies;
}

#endif
