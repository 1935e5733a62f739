// SPDX-License-Identifier: GPL-2.0-only
/* Keeps what is programmed, page by page; contents.h says how. */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "contents.h"

int contents_init(struct contents *contents, u32 count, u32 page_bytes, u32 spare_bytes)
{
	contents->count = count;
	contents->page_bytes = page_bytes;
	contents->whole_bytes = page_bytes + spare_bytes;
	contents->pages = vzalloc(array_size(count, sizeof(*contents->pages)));
	contents->cache = kmem_cache_create("raw_nand_page", contents->whole_bytes, 8, 0, NULL);
	if (contents->pages && contents->cache)
		return 0;
	contents_free(contents);
	return -ENOMEM;
}

void contents_free(struct contents *contents)
{
	u32 page;

	for (page = 0; contents->pages && page < contents->count; page++)
		contents_erase(contents, page);
	vfree(contents->pages);
	kmem_cache_destroy(contents->cache);
	contents->pages = NULL;
	contents->cache = NULL;
}

void contents_read(const struct contents *contents, u32 page, u32 offset, u8 *to, u32 length)
{
	if (contents->pages[page])
		memcpy(to, contents->pages[page] + offset, length);
	else
		memset(to, 0xff, length);
}

int contents_program(struct contents *contents, u32 page, u32 offset, const u8 *from, u32 length)
{
	u8 *held = contents->pages[page];
	u32 i;

	if (!held) {
		held = kmem_cache_alloc(contents->cache, GFP_NOFS);
		if (!held)
			return -ENOMEM;
		memset(held, 0xff, contents->whole_bytes);
		memcpy(held + offset, from, length);
		contents->pages[page] = held;
		return 0;
	}
	for (i = 0; i < length; i++)
		held[offset + i] &= from[i];
	return 0;
}

void contents_erase(struct contents *contents, u32 page)
{
	if (contents->pages[page])
		kmem_cache_free(contents->cache, contents->pages[page]);
	contents->pages[page] = NULL;
}
