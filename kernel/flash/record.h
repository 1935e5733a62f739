/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The record of what was written to a disk, for power cuts: requests in the order of issue, and
 * what each made of the slots that it changed (record.c).
 */
#ifndef FLASH_RECORD_H
#define FLASH_RECORD_H

#include <linux/blk-mq.h>

#include "paged_list.h"
#include "store.h"

struct flash_command;

/* A request that was not a read; as it is read from flash_record_requests. */
struct flash_recorded_request {
	u64 issue_ns;
	u64 completion_ns;
	u64 first_piece;
	u32 piece_count;
	u8 is_flush;
	u8 is_fua;
	u8 reserved[2];
};

/* What a request made of a slot. */
struct flash_piece {
	u64 slot;
	struct page *page;	/* the slot's contents after it; null: zeroes */
	u8 sectors;		/* those that it wrote, a bit each */
};

struct flash_record {
	struct flash_paged_list requests;
	struct flash_paged_list pieces;
	bool running;
	bool overflown;		/* memory ran out: there is no saying what was written */
};

void flash_record_init(struct flash_record *record);
void flash_record_free(struct flash_record *record, struct flash_store *store);

/* Begins a new record of what is written to the top layer. */
void flash_record_begin(struct flash_record *record, struct flash_store *store);

/*
 * Takes a request down, which is issued at issue_ns and whose data are in the store; in that order,
 * so under the disk's `order`.
 */
void flash_record_add(struct flash_record *record, struct flash_store *store,
		      const struct flash_command *command, u64 issue_ns, u64 completion_ns);

/* Gives up a running record, and with it the layers: the run goes on as if there were none. */
void flash_record_overflow(struct flash_record *record, struct flash_store *store);

#endif
