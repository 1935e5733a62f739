// SPDX-License-Identifier: GPL-2.0-only
/* Keeps operations until they are read; record.h says how. */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <asm/syscall.h>

#include "record.h"

/* Of the guest's memory. */
#define RECORD_SHARE 4

struct entry {
	struct list_head list;
	struct operation operation;
	u8 data[];
};

void record_init(struct record *record)
{
	mutex_init(&record->lock);
	INIT_LIST_HEAD(&record->entries);
}

void record_free(struct record *record)
{
	struct entry *entry, *next;

	list_for_each_entry_safe(entry, next, &record->entries, list)
		kvfree(entry);
	INIT_LIST_HEAD(&record->entries);
	record->bytes = 0;
}

static u32 current_call(void)
{
	return current->flags & PF_KTHREAD ? ~0U :
	       (u32)syscall_get_nr(current, task_pt_regs(current));
}

void record_add(struct record *record, struct operation operation, const void *data)
{
	size_t bytes = sizeof(struct entry) + operation.data_bytes;
	u64 most = (u64)totalram_pages() * (PAGE_SIZE / RECORD_SHARE);
	struct entry *entry = NULL;

	operation.pid = current->tgid;
	operation.tid = current->pid;
	operation.call = current_call();
	strscpy_pad(operation.comm, current->comm, sizeof(operation.comm));
	mutex_lock(&record->lock);
	if (!record->lost && record->bytes + bytes <= most)
		entry = kvmalloc(bytes, GFP_NOFS);
	if (entry) {
		entry->operation = operation;
		memcpy(entry->data, data, operation.data_bytes);
		list_add_tail(&entry->list, &record->entries);
		record->bytes += bytes;
	} else {
		record->lost++;
	}
	mutex_unlock(&record->lock);
}

ssize_t record_take(struct record *record, char __user *to, size_t length)
{
	struct entry *entry, *next;
	ssize_t taken = 0;

	mutex_lock(&record->lock);
	list_for_each_entry_safe(entry, next, &record->entries, list) {
		size_t bytes = sizeof(entry->operation) + entry->operation.data_bytes;

		if (bytes > length - taken) {
			taken = taken ?: -EINVAL;
			break;
		}
		if (copy_to_user(to + taken, &entry->operation, sizeof(entry->operation)) ||
		    copy_to_user(to + taken + sizeof(entry->operation), entry->data,
				 entry->operation.data_bytes)) {
			taken = -EFAULT;
			break;
		}
		taken += bytes;
		record->bytes -= sizeof(struct entry) + entry->operation.data_bytes;
		list_del(&entry->list);
		kvfree(entry);
	}
	mutex_unlock(&record->lock);
	return taken;
}
