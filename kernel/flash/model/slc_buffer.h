/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A buffer of cells that hold one bit each, in front of those that hold two or three: what the host
 * writes is programmed into it, in slc_program_ns, while it has room. The device moves the data on
 * when it rests (idle.h). UFS calls it WriteBooster buffer (JESD220E, 13.4.18), SSDs dynamic SLC
 * cache or TurboWrite.
 *
 * The place that data will have in the end is set aside when they are written, so that the mapping
 * table does not change when they move. A unit whose data were all written again or discarded in
 * the meantime need not move. Reading from the buffer takes as long as from elsewhere, and its own
 * erases take no time.
 */
#ifndef FLASH_SLC_BUFFER_H
#define FLASH_SLC_BUFFER_H

#include "geometry.h"

struct flash_model;

/* A unit in the buffer: its first slot, and how often that row had been erased by then. */
struct flash_slc_unit {
	flash_u32 first_slot;
	flash_u32 erases;
};

struct flash_slc_buffer {
	flash_u32 oldest;
	flash_u32 used_units;
};

/* Takes room for a unit of the host's, if there is any; answers how long its program takes. */
flash_u64 flash_slc_program_ns(struct flash_model *model, flash_u32 first_slot);

/* Moves the oldest unit that has valid data on; answers 0 when there is none. */
int flash_slc_move(struct flash_model *model, flash_u64 now_ns);

/* Empties it, as a device does that has rested for long. */
void flash_slc_forget(struct flash_model *model);

#endif
