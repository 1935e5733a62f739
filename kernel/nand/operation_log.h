/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The log of operations, in the order of their issue: what is read of /dev/nand0 leaves it. It ends
 * by itself where the memory that it takes would exceed a limit; the operations after that are
 * counted.
 */
#ifndef RAW_NAND_OPERATION_LOG_H
#define RAW_NAND_OPERATION_LOG_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>

#include "operation.h"

struct operation_log {
	struct mutex lock;
	struct list_head entries;
	u64 bytes;
	u64 lost;
};

void operation_log_init(struct operation_log *log);
void operation_log_free(struct operation_log *log);

/* Adds an operation of the current task, with the bytes it programs. */
void operation_log_add(struct operation_log *log, struct operation operation, const void *data);

/* Moves as many whole operations as fit to the user; -EINVAL where not even one does. */
ssize_t operation_log_read(struct operation_log *log, char __user *to, size_t length);

#endif
