/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flash device's memory: what was written, page by page; what was not reads as zeroes.
 *
 * It has layers. What is written goes to the top one, and hides what the layers below hold, which
 * stays as it is. Pages are counted by reference: the record of a run (record.c) and a layer hold
 * one and the same page, and a write to a page that somebody else holds goes to a copy of it. So to
 * keep a version of a slot, or to show it again, takes a pointer.
 */
#ifndef FLASH_STORE_H
#define FLASH_STORE_H

#include <linux/blkdev.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

/* What was there before a run; the run, or a cut of it; the recovery, or a cut of it; what then. */
#define FLASH_LAYERS 4

struct flash_store {
	struct xarray layers[FLASH_LAYERS];	/* by offset in pages: pages, or zeroes there */
	unsigned int top;
	unsigned long page_count;
	unsigned long page_count_max;	/* leaves memory to the rest of the machine */
	spinlock_t lock;		/* a discard must not free a page that is being copied */
	bool follows_changes;
	bool lost_change;		/* no memory was left to note one */
	struct xarray changed;		/* places that may differ from when last told */
};

void flash_store_init(struct flash_store *store);
void flash_store_free(struct flash_store *store);

/* Empties all layers above this one, and lets writes go to the one above it. At rest only. */
void flash_store_begin_layer(struct flash_store *store, unsigned int below);

/* Notes from now on which places change; all that hold something count as changed. At rest only. */
void flash_store_follow_changes(struct flash_store *store);

/* Tells a changed place, once; false: there is none. */
bool flash_store_take_change(struct flash_store *store, unsigned long *index);

/* Makes one layer of all. -ENOMEM: nothing has changed for a reader, but layers are left. */
int flash_store_merge(struct flash_store *store);

/* Copies one segment, within one page, from (write) or to the store. -ENOMEM: no page is left. */
int flash_store_copy(struct flash_store *store, const struct bio_vec *segment, loff_t offset_bytes,
		     bool write);

/* Makes a range read as zeroes and frees the pages it covers whole. -ENOMEM: not all of it. */
int flash_store_zero(struct flash_store *store, loff_t offset_bytes, loff_t length_bytes);

/* The page at an index in a layer or else below it; null: zeroes. Held by nobody for the caller. */
struct page *flash_store_find(struct flash_store *store, unsigned int layer, unsigned long index);

/* Whether something was ever written at an index at or after this one, before end; and where. */
bool flash_store_next(struct flash_store *store, unsigned long *index, unsigned long end);

/* Puts a page, or zeroes for null, into a layer; takes a reference of its own. */
int flash_store_put(struct flash_store *store, unsigned int layer, unsigned long index,
		    struct page *page);

/* Empties a place in a layer: what is below shows. */
void flash_store_erase(struct flash_store *store, unsigned int layer, unsigned long index);

/* A new page that is held for the caller, zeroed; null: none is left. */
struct page *flash_store_new_page(struct flash_store *store);

/* Holds a page for the caller; lets it go again. */
void flash_store_get_page(struct page *page);
void flash_store_put_page(struct flash_store *store, struct page *page);

#endif
