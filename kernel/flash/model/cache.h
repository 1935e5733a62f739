/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The volatile cache: slots that were written and not yet programmed, the oldest first.
 *
 * It is drained in the background: a full program unit as soon as the die whose turn it is is
 * free, what is less than a unit once no command has been in service for drain_delay_ns. Data leave
 * when their program begins, and their room is free when it ends. A slot written again while it
 * waits keeps its turn and takes no more room.
 */
#ifndef FLASH_CACHE_H
#define FLASH_CACHE_H

#include "geometry.h"

struct flash_model;

struct flash_cached {
	flash_u64 ready_ns;	/* when the data were there */
	flash_u32 logical;
	flash_u32 physical;	/* the newest programmed copy, or FLASH_NONE */
	flash_u32 newer;
	flash_u32 older;	/* of a free place: the next free one */
};

struct flash_cache {
	flash_u32 newest;
	flash_u32 oldest;
	flash_u32 free;
	flash_u32 waiting_slots;	/* not yet begun to be programmed */
	flash_u32 leaving_slots;	/* being programmed */
};

void flash_cache_init(struct flash_model *model);

/* Does the background work that begins before now_ns. */
void flash_cache_drain(struct flash_model *model, flash_u64 now_ns);

/* Puts a slot's data in, which are transferred in duration_ns as soon as there is room. */
flash_u64 flash_cache_write(struct flash_model *model, flash_u32 logical, flash_u64 duration_ns,
			    flash_u64 now_ns);

/* Takes a slot out; answers whether it was in. */
int flash_cache_remove(struct flash_model *model, flash_u32 logical);

/* Programs all of it; answers when the last program ends. */
flash_u64 flash_cache_flush(struct flash_model *model, flash_u64 now_ns);

/*
 * Programs a unit of data of the host, out of the cache or past it, with the collection of garbage
 * that goes with it; answers when it ends.
 */
flash_u64 flash_cache_program(struct flash_model *model, const flash_u32 *logical,
			      flash_u32 count, flash_u64 now_ns);

#endif
