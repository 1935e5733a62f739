/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ageing: a device that has been in use. Slots the host has not written are filled, in order, until
 * preload_percent of the disk are mapped; then overwrite_percent as many as are mapped are written
 * again, each chosen at random among them. This takes no time and is not counted but as
 * wear: afterwards rows are as full and as mixed as use leaves them.
 */
#ifndef FLASH_AGEING_H
#define FLASH_AGEING_H

#include "geometry.h"

struct flash_model;

struct flash_ageing {
	flash_u32 next_fill;		/* logical slot to be looked at */
	flash_u32 mapped;		/* slots that have data */
	flash_u32 overwritten;
	flash_u64 random;
};

/* Begins; programs what is in the cache. No request may come until the end. */
void flash_ageing_begin(struct flash_model *model);

/* Goes on for about `slots` slots; answers whether there is more to do. */
int flash_ageing_continue(struct flash_model *model, flash_u32 slots);

/* Ends at now_ns: statistics and times are as before, dies and channels are free. */
void flash_ageing_end(struct flash_model *model, flash_u64 now_ns);

#endif
