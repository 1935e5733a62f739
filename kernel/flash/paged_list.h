/* SPDX-License-Identifier: GPL-2.0-only */
/* A list of equal items that grows where nobody may sleep, and never moves: in pages. */
#ifndef FLASH_PAGED_LIST_H
#define FLASH_PAGED_LIST_H

#include <linux/xarray.h>

struct flash_paged_list {
	struct xarray pages;
	unsigned long count;		/* items */
	unsigned int item_bytes;
};

void flash_paged_list_init(struct flash_paged_list *list, unsigned int item_bytes);
void flash_paged_list_free(struct flash_paged_list *list);

/* A new last item, zeroed; null: memory has run out. */
void *flash_paged_list_add(struct flash_paged_list *list);

/* An item that is there. */
void *flash_paged_list_at(const struct flash_paged_list *list, unsigned long number);

#endif
