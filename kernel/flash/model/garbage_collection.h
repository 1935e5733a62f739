/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Garbage collection: moves the valid slots of a full row to another and erases the row.
 *
 * It goes on beside the host's programs when few rows are free, so many steps for each that the
 * row is done before the room it gives is needed; and to the end, before the host's next program,
 * when only the reserve is left. A step moves a unit. Now and then a row is collected for wear
 * levelling: the least worn one, whose data rest, once the most worn is wear_spread_max ahead.
 */
#ifndef FLASH_GARBAGE_COLLECTION_H
#define FLASH_GARBAGE_COLLECTION_H

#include "geometry.h"
#include "statistics.h"

struct flash_model;

struct flash_gc {
	flash_u32 row;			/* being collected; FLASH_NONE: none */
	flash_u32 next_slot;		/* of the row, to be looked at */
	flash_u32 steps_per_unit;
	enum flash_cause cause;
};

void flash_gc_init(struct flash_model *model);

/* Collects until the host may take a row: more than the reserve is free. */
void flash_gc_make_room(struct flash_model *model, flash_u64 now_ns);

/* Does a step while the device rests; answers 0 when there is nothing to do. */
int flash_gc_at_rest(struct flash_model *model, flash_u64 now_ns);

/* Collects on, beside one program of the host. */
void flash_gc_keep_pace(struct flash_model *model, flash_u64 now_ns);

#endif
