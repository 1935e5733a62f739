/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model of a flash device: a function (model, request, now_ns) -> completion_ns. No clock,
 * allocation or randomness of its own; memory for its tables is handed in.
 *
 *   flash_model.c          commands: the controller, the link to the host, what each command does
 *   cache.c                the volatile write cache
 *   mapping.c              the FTL's mapping table, of which a part is in memory
 *   garbage_collection.c   freeing rows of erase blocks, and wear levelling
 *   rows.c                 the rows: free, open, full; how worn
 *   operations.c           what all of these have the NAND do, by cause
 *   nand.c                 dies and channels; raw NAND (kernel/nand) works on the same
 *   die.c                  what one die does and is to do
 *   geometry.c             how many of each there are
 *   slc_buffer.c           the buffer of single-level cells
 *   idle.c                 what the device does while nothing is asked of it
 *   flush_tail.c           how much longer some flushes take
 *   ageing.c               a device that has been in use
 *
 * The controller's processor takes commands one at a time, for command_overhead_ns each and more
 * for reads and writes; what follows overlaps with other commands as far as link, channels, dies
 * and cache allow. A device of queue depth 1 serves a command to its end before the next. Requests
 * must be handed in in the order of time; they may complete in another order.
 */
#ifndef FLASH_MODEL_H
#define FLASH_MODEL_H

#include "ageing.h"
#include "cache.h"
#include "flash_config.h"
#include "flush_tail.h"
#include "garbage_collection.h"
#include "geometry.h"
#include "idle.h"
#include "mapping.h"
#include "nand.h"
#include "operations.h"
#include "rows.h"
#include "slc_buffer.h"
#include "statistics.h"

enum flash_operation {
	FLASH_READ,
	FLASH_WRITE,
	FLASH_FLUSH,
	FLASH_DISCARD,
	FLASH_ZEROES,
};

struct flash_request {
	enum flash_operation operation;
	unsigned int fua;		/* 1: durable before it completes; writes and zeroes only */
	unsigned int length_bytes;
	flash_u64 offset_bytes;		/* range within the disk; of a flush: 0, 0 */
};

/* Told what happens to data: for tests that keep the data themselves, and for ../record.c. */
struct flash_observer {
	/* The host's data of a slot are in the cache, or on their way past it. */
	void (*accepted)(const struct flash_observer *observer, flash_u32 logical);
	/* A slot's data are programmed: the accepted ones (for the host), or the newest copy's. */
	void (*programmed)(const struct flash_observer *observer, flash_u32 logical,
			   flash_u32 physical, enum flash_cause cause, flash_u64 end_ns);
	void (*erased)(const struct flash_observer *observer, flash_u32 row, flash_u64 begin_ns);
};

struct flash_model {
	struct flash_config config;
	struct flash_geometry geometry;
	struct flash_statistics statistics;
	struct flash_statistics before_ageing;
	const struct flash_observer *observer;	/* null but in tests and with early_erase */

	flash_u64 controller_free_ns;
	flash_u64 link_used_ns[2];	/* to the host, from it; half duplex: the first alone */
	flash_u64 busy_until_ns;	/* when the last command to complete does */
	flash_u64 drained_ns;		/* no command begins before; flush_drains_queue */
	unsigned int serving;		/* a command is being computed */
	unsigned int pack_length;	/* writes in the command before; 0: it was no write */

	struct flash_cache cache;
	struct flash_mapping mapping;
	struct flash_rows rows;
	struct flash_gc gc;
	struct flash_ageing ageing;
	struct flash_slc_buffer slc_buffer;
	struct flash_nand nand;

	/* Tables, in the memory handed in. */
	struct flash_row *row;
	struct flash_cached *cached;
	struct flash_part *parts;
	struct flash_slc_unit *slc_units;
	flash_u32 *map;			/* logical to physical slot, or FLASH_IN_CACHE | place */
	flash_u32 *reverse;		/* physical to logical slot; FLASH_NONE: not valid */
};

/* What the tables take. `config` must have passed flash_model_check(), here and below. */
flash_u64 flash_model_memory_bytes(const struct flash_config *config);

/* The device is idle, its cache empty and nothing mapped. `memory` is aligned to 8 bytes. */
void flash_model_init(struct flash_model *model, const struct flash_config *config, void *memory);

/* Points the tables at a copy of the memory. */
void flash_model_place(struct flash_model *model, void *memory);

/* Hands a request in at now_ns; answers when it completes. Times are in nanoseconds, below 2^62. */
flash_u64 flash_model_submit(struct flash_model *model, const struct flash_request *request,
			     flash_u64 now_ns);

/* Lets the background work go on until now_ns, so that the statistics are of that instant. */
void flash_model_advance(struct flash_model *model, flash_u64 now_ns);

#endif
