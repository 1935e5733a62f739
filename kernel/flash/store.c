// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps the contents of the flash device in memory. Reads and writes bio segments; allocates a
 * page when something other than zeroes is first written to it, frees it when it is discarded.
 * Takes three quarters of the memory at most; for a disk, a write beyond ends the machine.
 *
 * Called in process context only (queue_rq), so the lock leaves interrupts on. It is held for a
 * page at a time; flash_store_clone() takes none, as both stores are at rest.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "store.h"

void flash_store_init(struct flash_store *store)
{
	xa_init(&store->pages);
	store->page_count = 0;
	store->page_count_max = totalram_pages() / 4 * 3;
	spin_lock_init(&store->lock);
}

void flash_store_free(struct flash_store *store)
{
	struct page *page;
	unsigned long index;

	xa_for_each(&store->pages, index, page)
		__free_page(page);
	xa_destroy(&store->pages);
	store->page_count = 0;
}

static bool segment_is_zero(const struct bio_vec *segment, unsigned int done, unsigned int length)
{
	const char *data = kmap_local_page(segment->bv_page);
	bool zero = !memchr_inv(data + segment->bv_offset + done, 0, length);

	kunmap_local(data);
	return zero;
}

int flash_store_clone(struct flash_store *store, struct flash_store *from)
{
	struct page *page, *copy;
	unsigned long index;

	xa_for_each(&from->pages, index, page) {
		if (store->page_count >= store->page_count_max)
			return -ENOMEM;
		copy = alloc_page(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
		if (!copy)
			return -ENOMEM;
		copy_highpage(copy, page);
		if (xa_is_err(xa_store(&store->pages, index, copy, GFP_KERNEL))) {
			__free_page(copy);
			return -ENOMEM;
		}
		store->page_count++;
	}
	return 0;
}

/* queue_rq may not sleep, so it may not wait for memory to be reclaimed. */
static struct page *add_page(struct flash_store *store, unsigned long index)
{
	struct page *page;

	if (store->page_count >= store->page_count_max)
		return NULL;
	page = alloc_page(GFP_ATOMIC | __GFP_ZERO | __GFP_NOWARN);
	if (!page)
		return NULL;
	if (xa_is_err(xa_store(&store->pages, index, page, GFP_ATOMIC | __GFP_NOWARN))) {
		__free_page(page);
		return NULL;
	}
	store->page_count++;
	return page;
}

static int write_part(struct flash_store *store, unsigned long index, unsigned int offset,
		      const struct bio_vec *segment, unsigned int done, unsigned int length)
{
	struct page *page = xa_load(&store->pages, index);

	if (!page) {
		if (segment_is_zero(segment, done, length))
			return 0;
		page = add_page(store, index);
		if (!page)
			return -ENOMEM;
	}
	memcpy_page(page, offset, segment->bv_page, segment->bv_offset + done, length);
	return 0;
}

static void read_part(struct flash_store *store, unsigned long index, unsigned int offset,
		      const struct bio_vec *segment, unsigned int done, unsigned int length)
{
	struct page *page = xa_load(&store->pages, index);

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

static void zero_part(struct flash_store *store, loff_t offset_bytes, loff_t length_bytes)
{
	struct page *page;

	spin_lock(&store->lock);
	page = xa_load(&store->pages, offset_bytes >> PAGE_SHIFT);
	if (page)
		memzero_page(page, offset_in_page(offset_bytes), length_bytes);
	spin_unlock(&store->lock);
}

/* Visits the pages that are there, however large the range. */
static void free_pages_between(struct flash_store *store, unsigned long first, unsigned long end)
{
	unsigned long index = first;
	struct page *page;

	if (first >= end)
		return;
	for (;;) {
		spin_lock(&store->lock);
		page = xa_find(&store->pages, &index, end - 1, XA_PRESENT);
		if (page) {
			xa_erase(&store->pages, index);
			store->page_count--;
			__free_page(page);
		}
		spin_unlock(&store->lock);
		if (!page)
			return;
	}
}

void flash_store_zero(struct flash_store *store, loff_t offset_bytes, loff_t length_bytes)
{
	loff_t end = offset_bytes + length_bytes;
	loff_t whole = round_up(offset_bytes, PAGE_SIZE);
	loff_t whole_end = round_down(end, PAGE_SIZE);

	if (whole > whole_end) {	/* inside one page */
		zero_part(store, offset_bytes, length_bytes);
		return;
	}
	if (whole > offset_bytes)
		zero_part(store, offset_bytes, whole - offset_bytes);
	if (end > whole_end)
		zero_part(store, whole_end, end - whole_end);
	free_pages_between(store, whole >> PAGE_SHIFT, whole_end >> PAGE_SHIFT);
}
