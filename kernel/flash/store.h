/* SPDX-License-Identifier: GPL-2.0-only */
/* The flash device's memory: what was written, page by page; what was not reads as zeroes. */
#ifndef FLASH_STORE_H
#define FLASH_STORE_H

#include <linux/blkdev.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

struct flash_store {
	struct xarray pages;		/* by offset in pages; absent: zeroes */
	unsigned long page_count;
	unsigned long page_count_max;	/* leaves memory to the rest of the machine */
	spinlock_t lock;		/* a discard must not free a page that is being copied */
};

void flash_store_init(struct flash_store *store);
void flash_store_free(struct flash_store *store);

/* Fills an empty store with what another holds. May sleep. -ENOMEM: with a part of it. */
int flash_store_clone(struct flash_store *store, struct flash_store *from);

/* Copies one segment, within one page, from (write) or to the store. -ENOMEM: no page is left. */
int flash_store_copy(struct flash_store *store, const struct bio_vec *segment, loff_t offset_bytes,
		     bool write);

/* Makes a range read as zeroes and frees the pages it covers whole. */
void flash_store_zero(struct flash_store *store, loff_t offset_bytes, loff_t length_bytes);

#endif
