/* SPDX-License-Identifier: GPL-2.0-only */
/* A command of a disk: what a block request asks of the device. */
#ifndef FLASH_COMMAND_H
#define FLASH_COMMAND_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/list.h>

#include "model/flash_model.h"

struct flash;

/* Why requests do not take the model's time; a disk in a measured run has none of these. */
#define FLASH_UNTIMED 1		/* they end at once: what a cut left is looked at */
#define FLASH_FAILS 2		/* the next write or flush fails: once */
#define FLASH_UNREADABLE 4	/* there are sectors that cannot be read until they are written */

/* What belongs to one block request; it lies behind it (blk_mq_rq_to_pdu). */
struct flash_command {
	struct flash_request request;
	struct hrtimer timer;		/* of a disk without a dispatch thread */
	struct list_head entry;		/* of one with such a thread, as the next field */
	u64 completion_ns;
	blk_status_t status;
	bool is_atomic;			/* a power cut shall leave all of it or nothing */
};

/* Describes a block request to the model; false for an operation that the device has not. */
bool flash_describe(struct request *rq, struct flash_command *command);

/* One more command is in flight. */
void flash_count_begin(struct flash *flash);

/* The command's service begins: moves its data, and returns when the device will be done. */
u64 flash_begin(struct flash_command *command);

/*
 * Takes a command from begin to end without the model, where the disk's course says so: no time
 * passes, and of what fails alone something is counted. False: the command is to be begun.
 */
bool flash_do_apart(struct flash_command *command);

/* One less; INTERRUPT: an interrupt told so. */
void flash_count_end(struct flash_command *command, bool interrupt);

/* The command is done, and with it the block request. In the context of a process. */
void flash_end(struct flash_command *command);

#endif
