/* SPDX-License-Identifier: GPL-2.0-only */
/* The record of what was written to a disk, for power cuts; see record.c. */
#ifndef FLASH_RECORD_H
#define FLASH_RECORD_H

#include <linux/blk-mq.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "model/power_cut.h"
#include "store.h"

struct flash;
struct flash_command;

struct flash_record {
	struct flash_store before;	/* the contents when the record began */
	struct list_head entries;	/* in the order of issue */
	unsigned long page_count;
	unsigned long page_count_max;
	spinlock_t lock;		/* the list; taken in process context only */
	bool begun;			/* there is a record, complete or not */
	bool running;
	bool overflown;			/* memory ran out: there is no saying what was written */
};

void flash_record_init(struct flash_record *record);
void flash_record_free(struct flash_record *record);

/* Begins a new record. -ENOMEM: the contents do not fit into memory twice. */
int flash_record_begin(struct flash_record *record, struct flash_store *store);
void flash_record_end(struct flash_record *record);

/* Takes a request down, which is issued at issue_ns; in that order, so under the disk's `order`. */
void flash_record_add(struct flash_record *record, struct request *rq,
		      const struct flash_command *command, u64 issue_ns, u64 completion_ns);

/*
 * Puts the store into the state that the power cut leaves. -ENODATA: there is no record;
 * -EOVERFLOW: not of all that was written; -ENOMEM: the store is only a part of the state.
 */
int flash_record_cut(struct flash_record *record, struct flash_store *store,
		     struct flash_power_cut *cut);

#endif
