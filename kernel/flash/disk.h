/* SPDX-License-Identifier: GPL-2.0-only */
/* One disk and its commands, as flash_module.c makes them and dispatch.c hands them over. */
#ifndef FLASH_DISK_H
#define FLASH_DISK_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>

#include "dispatch.h"
#include "model/flash_model.h"
#include "record.h"
#include "store.h"

/* What belongs to one request. */
struct flash_command {
	struct flash_request request;
	struct hrtimer timer;		/* of a disk without a dispatch thread */
	struct list_head entry;		/* of one with such a thread, as the next field */
	u64 completion_ns;
	blk_status_t status;
};

struct flash {
	struct flash_config config;
	struct blk_mq_tag_set tag_set;
	struct gendisk *disk;
	struct flash_store store;
	struct flash_record record;
	struct flash_dispatch dispatch;
	spinlock_t order;		/* model, copy and record of a request; no interrupt's */
	spinlock_t lock;		/* the fields below; taken in the timer's interrupt too */
	struct flash_model model;
	u64 in_flight;
	u64 failed_requests;
	u64 completion_interrupts;
	void *tables;			/* the model's */
};

/* Its files in /sys/block. */
extern const struct attribute_group *flash_groups[];

/* The command's service begins: moves its data, and returns when the device will be done. */
u64 flash_begin(struct flash_command *command);

/* The command is done. In the context of a process. */
void flash_end(struct flash_command *command);

#endif
