// SPDX-License-Identifier: GPL-2.0-only
/* Keeps operations until they are read; operation_log.h says how. */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <asm/syscall.h>

#include "operation_log.h"

/* Of the guest's memory. */
#define LOG_SHARE 4

struct entry {
	struct list_head list;
	struct operation operation;
	u8 data[];
};

void operation_log_init(struct operation_log *log)
{
	mutex_init(&log->lock);
	INIT_LIST_HEAD(&log->entries);
}

void operation_log_free(struct operation_log *log)
{
	struct entry *entry, *next;

	list_for_each_entry_safe(entry, next, &log->entries, list)
		kvfree(entry);
	INIT_LIST_HEAD(&log->entries);
	log->bytes = 0;
}

static u32 current_call(void)
{
	return current->flags & PF_KTHREAD ? ~0U :
	       (u32)syscall_get_nr(current, task_pt_regs(current));
}

void operation_log_add(struct operation_log *log, struct operation operation, const void *data)
{
	size_t bytes = sizeof(struct entry) + operation.data_bytes;
	u64 most = (u64)totalram_pages() * (PAGE_SIZE / LOG_SHARE);
	struct entry *entry = NULL;

	operation.pid = current->tgid;
	operation.tid = current->pid;
	operation.call = current_call();
	strscpy_pad(operation.comm, current->comm, sizeof(operation.comm));
	mutex_lock(&log->lock);
	if (!log->lost && log->bytes + bytes <= most)
		entry = kvmalloc(bytes, GFP_NOFS);
	if (entry) {
		entry->operation = operation;
		memcpy(entry->data, data, operation.data_bytes);
		list_add_tail(&entry->list, &log->entries);
		log->bytes += bytes;
	} else {
		log->lost++;
	}
	mutex_unlock(&log->lock);
}

ssize_t operation_log_read(struct operation_log *log, char __user *to, size_t length)
{
	struct entry *entry, *next;
	ssize_t moved = 0;

	mutex_lock(&log->lock);
	list_for_each_entry_safe(entry, next, &log->entries, list) {
		size_t bytes = sizeof(entry->operation) + entry->operation.data_bytes;

		if (bytes > length - moved) {
			moved = moved ?: -EINVAL;
			break;
		}
		if (copy_to_user(to + moved, &entry->operation, sizeof(entry->operation)) ||
		    copy_to_user(to + moved + sizeof(entry->operation), entry->data,
				 entry->operation.data_bytes)) {
			moved = -EFAULT;
			break;
		}
		moved += bytes;
		log->bytes -= sizeof(struct entry) + entry->operation.data_bytes;
		list_del(&entry->list);
		kvfree(entry);
	}
	mutex_unlock(&log->lock);
	return moved;
}
