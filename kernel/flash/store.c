// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps the contents of the flash device in memory. Reads and writes bio segments; allocates a
 * page when something other than zeroes is first written to it, frees it when it is discarded and
 * nobody else holds it. Takes three quarters of the memory at most, versions included; for a disk,
 * a write beyond ends the machine.
 *
 * Called in process context only, so the lock leaves interrupts on. It is held for a page at a
 * time. Whoever calls for single layers (power_cut.c) does so while no request is under way.
 */
#include <linux/mm.h>
#include <linux/string.h>

#include "compat.h"
#include "store.h"

/* Where a layer says that there are zeroes, whatever is below. */
#define FLASH_ZEROES_THERE xa_mk_value(0)

void flash_store_init(struct flash_store *store)
{
	unsigned int layer;

	for (layer = 0; layer < FLASH_LAYERS; layer++)
		xa_init(&store->layers[layer]);
	store->top = 0;
	store->page_count = 0;
	store->page_count_max = totalram_pages() / 4 * 3;
	spin_lock_init(&store->lock);
	store->follows_changes = false;
	store->lost_change = false;
	xa_init(&store->changed);
}

static void note_change(struct flash_store *store, unsigned long index)
{
	void *noted = xa_mk_value(0);

	if (store->follows_changes && !xa_load(&store->changed, index) &&
	    xa_is_err(xa_store(&store->changed, index, noted, GFP_ATOMIC | __GFP_NOWARN)))
		store->lost_change = true;
}

void flash_store_follow_changes(struct flash_store *store)
{
	unsigned int layer;
	unsigned long index;
	void *entry;

	store->follows_changes = true;
	for (layer = 0; layer < FLASH_LAYERS; layer++)
		xa_for_each(&store->layers[layer], index, entry)
			note_change(store, index);
}

bool flash_store_take_change(struct flash_store *store, unsigned long *index)
{
	*index = 0;
	if (!xa_find(&store->changed, index, ULONG_MAX, XA_PRESENT))
		return false;
	xa_erase(&store->changed, *index);
	return true;
}

/* queue_rq may not sleep, so it may not wait for memory to be reclaimed. */
struct page *flash_store_new_page(struct flash_store *store)
{
	struct page *page;

	if (store->page_count >= store->page_count_max)
		return NULL;
	page = alloc_page(GFP_ATOMIC | __GFP_ZERO | __GFP_NOWARN);
	if (page)
		store->page_count++;
	return page;
}

void flash_store_get_page(struct page *page)
{
	get_page(page);
}

void flash_store_put_page(struct flash_store *store, struct page *page)
{
	store->page_count -= page_ref_count(page) == 1;
	put_page(page);
}

static void put_entry(struct flash_store *store, void *entry)
{
	if (entry && !xa_is_value(entry))
		flash_store_put_page(store, entry);
}

static void empty_layer(struct flash_store *store, unsigned int layer)
{
	unsigned long index;
	void *entry;

	xa_for_each(&store->layers[layer], index, entry) {
		note_change(store, index);
		put_entry(store, entry);
	}
	xa_destroy(&store->layers[layer]);
}

void flash_store_free(struct flash_store *store)
{
	unsigned int layer;

	store->follows_changes = false;
	for (layer = 0; layer < FLASH_LAYERS; layer++)
		empty_layer(store, layer);
	xa_destroy(&store->changed);
	store->top = 0;
}

void flash_store_begin_layer(struct flash_store *store, unsigned int below)
{
	unsigned int layer;

	for (layer = below + 1; layer < FLASH_LAYERS; layer++)
		empty_layer(store, layer);
	store->top = below + 1;
}

static int put_new(struct flash_store *store, unsigned int layer, unsigned long index, void *entry)
{
	void *old = xa_store(&store->layers[layer], index, entry, GFP_ATOMIC | __GFP_NOWARN);

	if (xa_is_err(old))
		return -ENOMEM;
	note_change(store, index);
	put_entry(store, old);
	return 0;
}

int flash_store_merge(struct flash_store *store)
{
	unsigned int layer;
	unsigned long index;
	void *entry;

	for (layer = 1; layer <= store->top; layer++) {
		xa_for_each(&store->layers[layer], index, entry) {
			if (xa_is_value(entry)) {
				put_entry(store, xa_erase(&store->layers[0], index));
				continue;
			}
			if (put_new(store, 0, index, entry))
				return -ENOMEM;
			xa_erase(&store->layers[layer], index);
		}
		xa_destroy(&store->layers[layer]);
	}
	store->top = 0;
	return 0;
}

static void *find_entry(struct flash_store *store, unsigned int layer, unsigned long index)
{
	void *entry;

	for (;; layer--) {
		entry = xa_load(&store->layers[layer], index);
		if (entry || !layer)
			return entry;
	}
}

struct page *flash_store_find(struct flash_store *store, unsigned int layer, unsigned long index)
{
	void *entry = find_entry(store, layer, index);

	return xa_is_value(entry) ? NULL : entry;
}

bool flash_store_next(struct flash_store *store, unsigned long *index, unsigned long end)
{
	unsigned long first = end, found;
	unsigned int layer;

	for (layer = 0; layer <= store->top && *index < end; layer++) {
		found = *index;
		if (xa_find(&store->layers[layer], &found, end - 1, XA_PRESENT))
			first = min(first, found);
	}
	*index = first;
	return first < end;
}

int flash_store_put(struct flash_store *store, unsigned int layer, unsigned long index,
		    struct page *page)
{
	if (put_new(store, layer, index, page ? (void *)page : FLASH_ZEROES_THERE))
		return -ENOMEM;
	if (page)
		flash_store_get_page(page);
	return 0;
}

void flash_store_erase(struct flash_store *store, unsigned int layer, unsigned long index)
{
	note_change(store, index);
	put_entry(store, xa_erase(&store->layers[layer], index));
}

static bool segment_is_zero(const struct bio_vec *segment, unsigned int done, unsigned int length)
{
	const char *data = kmap_local_page(segment->bv_page);
	bool zero = !memchr_inv(data + segment->bv_offset + done, 0, length);

	kunmap_local(data);
	return zero;
}

/* The page to write to: that of the top layer which nobody else holds, or a new one for it. */
static struct page *own_page(struct flash_store *store, unsigned long index, struct page *there)
{
	struct page *page;

	if (there && there == xa_load(&store->layers[store->top], index) &&
	    page_ref_count(there) == 1) {
		note_change(store, index);
		return there;
	}
	page = flash_store_new_page(store);
	if (!page)
		return NULL;
	if (there)
		copy_highpage(page, there);
	if (put_new(store, store->top, index, page)) {
		flash_store_put_page(store, page);
		return NULL;
	}
	return page;
}

static int write_part(struct flash_store *store, unsigned long index, unsigned int offset,
		      const struct bio_vec *segment, unsigned int done, unsigned int length)
{
	struct page *page = flash_store_find(store, store->top, index);

	if (!page && segment_is_zero(segment, done, length))
		return 0;
	page = own_page(store, index, page);
	if (!page)
		return -ENOMEM;
	memcpy_page(page, offset, segment->bv_page, segment->bv_offset + done, length);
	return 0;
}

static void read_part(struct flash_store *store, unsigned long index, unsigned int offset,
		      const struct bio_vec *segment, unsigned int done, unsigned int length)
{
	struct page *page = flash_store_find(store, store->top, index);

	if (page)
		memcpy_page(segment->bv_page, segment->bv_offset + done, page, offset, length);
	else
		memset_page(segment->bv_page, segment->bv_offset + done, 0, length);
}

int flash_store_copy(struct flash_store *store, const struct bio_vec *segment, loff_t offset_bytes,
		     bool write)
{
	unsigned int done = 0;
	int error = 0;

	while (done < segment->bv_len && !error) {
		unsigned long index = offset_bytes >> PAGE_SHIFT;
		unsigned int offset = offset_in_page(offset_bytes);
		unsigned int length = min_t(unsigned int, segment->bv_len - done,
					    PAGE_SIZE - offset);

		spin_lock(&store->lock);
		if (write)
			error = write_part(store, index, offset, segment, done, length);
		else
			read_part(store, index, offset, segment, done, length);
		spin_unlock(&store->lock);
		done += length;
		offset_bytes += length;
	}
	return error;
}

static int zero_part(struct flash_store *store, loff_t offset_bytes, loff_t length_bytes)
{
	unsigned long index = offset_bytes >> PAGE_SHIFT;
	struct page *page;
	int error = 0;

	spin_lock(&store->lock);
	page = flash_store_find(store, store->top, index);
	if (page) {
		page = own_page(store, index, page);
		if (page)
			memzero_page(page, offset_in_page(offset_bytes), length_bytes);
		else
			error = -ENOMEM;
	}
	spin_unlock(&store->lock);
	return error;
}

/* Above the lowest layer the place stays, so that it is known that something was there. */
static int drop_page(struct flash_store *store, unsigned long index)
{
	if (store->top)
		return put_new(store, store->top, index, FLASH_ZEROES_THERE);
	note_change(store, index);
	put_entry(store, xa_erase(&store->layers[0], index));
	return 0;
}

/* Visits the pages that are there, however large the range. */
static int free_pages_between(struct flash_store *store, unsigned long first, unsigned long end)
{
	unsigned long index;
	int error = 0;
	bool found = true;

	for (index = first; found && !error; index++) {
		spin_lock(&store->lock);
		found = flash_store_next(store, &index, end);
		if (found)
			error = drop_page(store, index);
		spin_unlock(&store->lock);
	}
	return error;
}

int flash_store_zero(struct flash_store *store, loff_t offset_bytes, loff_t length_bytes)
{
	loff_t end = offset_bytes + length_bytes;
	loff_t whole = round_up(offset_bytes, PAGE_SIZE);
	loff_t whole_end = round_down(end, PAGE_SIZE);
	int error = 0;

	if (whole > whole_end)	/* inside one page */
		return zero_part(store, offset_bytes, length_bytes);
	if (whole > offset_bytes)
		error = zero_part(store, offset_bytes, whole - offset_bytes);
	if (end > whole_end && !error)
		error = zero_part(store, whole_end, end - whole_end);
	if (error)
		return error;
	return free_pages_between(store, whole >> PAGE_SHIFT, whole_end >> PAGE_SHIFT);
}
