// SPDX-License-Identifier: GPL-2.0-only
/* See the header. An item does not cross pages. Whoever adds sees to it that nobody else does. */
#include <linux/gfp.h>
#include <linux/mm.h>

#include "paged_list.h"

static unsigned long items_per_page(const struct flash_paged_list *list)
{
	return PAGE_SIZE / list->item_bytes;
}

void flash_paged_list_init(struct flash_paged_list *list, unsigned int item_bytes)
{
	xa_init(&list->pages);
	list->count = 0;
	list->item_bytes = item_bytes;
}

void flash_paged_list_free(struct flash_paged_list *list)
{
	unsigned long index;
	void *page;

	xa_for_each(&list->pages, index, page)
		free_page((unsigned long)page);
	xa_destroy(&list->pages);
	list->count = 0;
}

void *flash_paged_list_at(const struct flash_paged_list *list, unsigned long number)
{
	char *page = xa_load((struct xarray *)&list->pages, number / items_per_page(list));

	return page + number % items_per_page(list) * list->item_bytes;
}

void *flash_paged_list_add(struct flash_paged_list *list)
{
	gfp_t flags = GFP_ATOMIC | __GFP_NOWARN;
	unsigned long index = list->count / items_per_page(list);

	if (list->count % items_per_page(list) == 0) {
		unsigned long page = __get_free_page(flags | __GFP_ZERO);

		if (!page)
			return NULL;
		if (xa_is_err(xa_store(&list->pages, index, (void *)page, flags))) {
			free_page(page);
			return NULL;
		}
	}
	return flash_paged_list_at(list, list->count++);
}
