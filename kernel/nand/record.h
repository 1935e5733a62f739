/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The record of operations, in the order of their issue: what is read of /dev/nand0 is taken out of
 * it. It ends by itself where the memory that it takes would exceed a limit; the operations after
 * that are counted.
 */
#ifndef RAW_NAND_RECORD_H
#define RAW_NAND_RECORD_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>

#include "operation.h"

struct record {
	struct mutex lock;
	struct list_head entries;
	u64 bytes;
	u64 lost;
};

void record_init(struct record *record);
void record_free(struct record *record);

/* Adds an operation of the current task, with the bytes it programs. */
void record_add(struct record *record, struct operation operation, const void *data);

/* Moves as many whole operations as fit to the user; -EINVAL where not even one does. */
ssize_t record_take(struct record *record, char __user *to, size_t length);

#endif
