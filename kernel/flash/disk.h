/* SPDX-License-Identifier: GPL-2.0-only */
/* One disk: its model, contents, record and dispatch thread, and what it counts. */
#ifndef FLASH_DISK_H
#define FLASH_DISK_H

#include <linux/blk-mq.h>

#include "dispatch.h"
#include "model/flash_model.h"
#include "power_cut.h"
#include "records.h"
#include "room.h"
#include "store.h"
#include "unreadable.h"

struct flash {
	struct flash_config config;
	struct blk_mq_tag_set tag_set;
	struct gendisk *disk;
	struct flash_store store;
	struct flash_records records;
	struct flash_observer moves;	/* adds to them, with early_erase */
	struct xarray unreadable;	/* by slot: words of model/unreadable.h */
	struct flash_room room;
	struct flash_dispatch dispatch;
	unsigned int course;		/* bits of command.h: no request is as usual */
	spinlock_t order;		/* model, copy and record of a request; no interrupt's */
	spinlock_t lock;		/* the fields below; taken in the timer's interrupt too */
	struct flash_model model;
	u64 in_flight;
	u64 failed_requests;
	u64 completion_interrupts;
	void *tables;			/* the model's */
};

#endif
