// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records what is written to a disk from a moment on, with the data, and puts the disk afterwards
 * into the state that a power cut at a moment in between would have left, as often as is wanted.
 * Reads requests as they are issued; changes the disk's store. What a cut leaves is decided by
 * model/power_cut.c. The timing model is not touched: what was worn stays worn.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "command.h"
#include "record.h"

/* One write, with its data; or a flush, discard or write of zeroes, which has none. */
struct flash_entry {
	struct list_head list;
	struct flash_request request;
	u64 issue_ns;
	u64 completion_ns;
	unsigned int page_count;
	struct page *pages[];		/* the data, from the first byte of the first page on */
};

void flash_record_init(struct flash_record *record)
{
	flash_store_init(&record->before);
	INIT_LIST_HEAD(&record->entries);
	spin_lock_init(&record->lock);
	record->page_count_max = totalram_pages() / 4;
}

static void free_entry(struct flash_entry *entry)
{
	while (entry->page_count)
		__free_page(entry->pages[--entry->page_count]);
	kfree(entry);
}

void flash_record_free(struct flash_record *record)
{
	struct flash_entry *entry, *next;

	record->begun = record->running = record->overflown = false;
	list_for_each_entry_safe(entry, next, &record->entries, list)
		free_entry(entry);
	INIT_LIST_HEAD(&record->entries);
	record->page_count = 0;
	flash_store_free(&record->before);
}

int flash_record_begin(struct flash_record *record, struct flash_store *store)
{
	int error;

	flash_record_free(record);
	error = flash_store_clone(&record->before, store);
	if (error) {
		flash_store_free(&record->before);
		return error;
	}
	spin_lock(&record->lock);
	record->begun = record->running = true;
	spin_unlock(&record->lock);
	return 0;
}

void flash_record_end(struct flash_record *record)
{
	spin_lock(&record->lock);
	record->running = false;
	spin_unlock(&record->lock);
}

/* queue_rq may not sleep. */
static struct flash_entry *new_entry(struct flash_record *record, unsigned int page_count)
{
	struct flash_entry *entry;

	if (record->page_count + page_count > record->page_count_max)
		return NULL;
	entry = kmalloc(struct_size(entry, pages, page_count), GFP_ATOMIC | __GFP_NOWARN);
	if (!entry)
		return NULL;
	for (entry->page_count = 0; entry->page_count < page_count; entry->page_count++) {
		struct page *page = alloc_page(GFP_ATOMIC | __GFP_NOWARN);

		if (!page) {
			free_entry(entry);
			return NULL;
		}
		entry->pages[entry->page_count] = page;
	}
	return entry;
}

static void copy_data(struct flash_entry *entry, struct request *rq)
{
	struct req_iterator iterator;
	struct bio_vec segment;
	unsigned int at = 0, done, length;

	rq_for_each_segment(segment, rq, iterator) {
		for (done = 0; done < segment.bv_len; done += length, at += length) {
			length = min_t(unsigned int, segment.bv_len - done,
				       PAGE_SIZE - offset_in_page(at));
			memcpy_page(entry->pages[at >> PAGE_SHIFT], offset_in_page(at),
				    segment.bv_page, segment.bv_offset + done, length);
		}
	}
}

void flash_record_add(struct flash_record *record, struct request *rq,
		      const struct flash_command *command, u64 issue_ns, u64 completion_ns)
{
	const struct flash_request *request = &command->request;
	bool write = request->operation == FLASH_WRITE;
	struct flash_entry *entry;

	if (request->operation == FLASH_READ || command->status != BLK_STS_OK)
		return;
	spin_lock(&record->lock);
	if (!record->running)
		goto unlock;
	entry = new_entry(record, write ? DIV_ROUND_UP(request->length_bytes, PAGE_SIZE) : 0);
	if (!entry) {
		record->overflown = true;
		record->running = false;
		goto unlock;
	}
	entry->request = *request;
	entry->issue_ns = issue_ns;
	entry->completion_ns = completion_ns;
	if (write)
		copy_data(entry, rq);
	record->page_count += entry->page_count;
	list_add_tail(&entry->list, &record->entries);
unlock:
	spin_unlock(&record->lock);
}

/* Writes a part of the entry's data that lies in one slot of the disk. */
static int write_slot(const struct flash_entry *entry, struct flash_store *store,
		      unsigned int from, unsigned int to)
{
	int error = 0;

	while (from < to && !error) {
		struct bio_vec segment = {
			.bv_page = entry->pages[from >> PAGE_SHIFT],
			.bv_offset = offset_in_page(from),
			.bv_len = min_t(unsigned int, to - from, PAGE_SIZE - offset_in_page(from)),
		};

		error = flash_store_copy(store, &segment, entry->request.offset_bytes + from, true);
		from += segment.bv_len;
	}
	return error;
}

/* Does again what the cut leaves of an entry, slot by slot of the disk. */
static int repeat(const struct flash_entry *entry, struct flash_store *store,
		  const struct flash_power_cut *cut, u64 number)
{
	const struct flash_request *request = &entry->request;
	unsigned int from = 0, to;
	int error = 0;

	for (; from < request->length_bytes && !error; from = to) {
		u64 offset_bytes = request->offset_bytes + from;
		u64 slot = offset_bytes / FLASH_SLOT_BYTES;

		to = min_t(u64, request->length_bytes,
			   (slot + 1) * FLASH_SLOT_BYTES - request->offset_bytes);
		if (!flash_power_cut_keeps(cut, entry->issue_ns, entry->completion_ns,
					   request->fua, number, slot))
			continue;
		if (request->operation == FLASH_WRITE)
			error = write_slot(entry, store, from, to);
		else
			flash_store_zero(store, offset_bytes, to - from);
	}
	return error;
}

int flash_record_cut(struct flash_record *record, struct flash_store *store,
		     struct flash_power_cut *cut)
{
	struct flash_entry *entry;
	u64 number = 0;
	int error;

	if (record->overflown)
		return -EOVERFLOW;
	if (!record->begun || record->running)
		return -ENODATA;
	list_for_each_entry(entry, &record->entries, list)
		if (entry->request.operation == FLASH_FLUSH)
			flash_power_cut_flush(cut, entry->issue_ns, entry->completion_ns);
	flash_store_free(store);
	error = flash_store_clone(store, &record->before);
	list_for_each_entry(entry, &record->entries, list) {
		if (error)
			break;
		if (entry->request.operation != FLASH_FLUSH)
			error = repeat(entry, store, cut, number);
		number++;
	}
	return error;
}
