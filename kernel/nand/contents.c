// SPDX-License-Identifier: GPL-2.0-only
/* Keeps what is programmed, page by page; contents.h says how. */
#include <linux/slab.h>
#include <linux/string.h>

#include "contents.h"

/* Where a layer says that a page is erased, whatever is below. */
#define ERASED_THERE xa_mk_value(0)

int contents_init(struct contents *contents, u32 page_bytes, u32 spare_bytes)
{
	unsigned int layer;

	for (layer = 0; layer < CONTENTS_LAYERS; layer++)
		xa_init(&contents->layers[layer]);
	contents->top = 0;
	contents->page_bytes = page_bytes;
	contents->whole_bytes = page_bytes + spare_bytes;
	contents->cache = kmem_cache_create("raw_nand_page", sizeof(struct version) +
					    contents->whole_bytes, 8, 0, NULL);
	return contents->cache ? 0 : -ENOMEM;
}

struct version *contents_new_version(struct contents *contents)
{
	struct version *version = kmem_cache_alloc(contents->cache, GFP_NOFS);

	if (!version)
		return NULL;
	version->holders = 1;
	version->programs = 0;
	memset(version->data, 0xff, contents->whole_bytes);
	return version;
}

void contents_hold(struct version *version)
{
	version->holders++;
}

void contents_let_go(struct contents *contents, struct version *version)
{
	if (!--version->holders)
		kmem_cache_free(contents->cache, version);
}

static void let_go_entry(struct contents *contents, void *entry)
{
	if (entry && !xa_is_value(entry))
		contents_let_go(contents, entry);
}

void contents_free(struct contents *contents)
{
	unsigned int layer;
	unsigned long page;
	void *entry;

	if (!contents->cache)
		return;
	for (layer = 0; layer < CONTENTS_LAYERS; layer++) {
		xa_for_each(&contents->layers[layer], page, entry)
			let_go_entry(contents, entry);
		xa_destroy(&contents->layers[layer]);
	}
	kmem_cache_destroy(contents->cache);
	contents->cache = NULL;
}

static void *find_entry(const struct contents *contents, unsigned int layer, u32 page)
{
	void *entry;

	for (;; layer--) {
		entry = xa_load((struct xarray *)&contents->layers[layer], page);
		if (entry || !layer)
			return entry;
	}
}

struct version *contents_find(const struct contents *contents, unsigned int layer, u32 page)
{
	void *entry = find_entry(contents, layer, page);

	return xa_is_value(entry) ? NULL : entry;
}

void contents_read(const struct contents *contents, u32 page, u32 offset, u8 *to, u32 length)
{
	const struct version *version = contents_find(contents, contents->top, page);

	if (version)
		memcpy(to, version->data + offset, length);
	else
		memset(to, 0xff, length);
}

/* Takes a reference over that the caller has. */
static int put_new(struct contents *contents, unsigned int layer, u32 page, void *entry)
{
	void *old = xa_store(&contents->layers[layer], page, entry, GFP_NOFS);

	if (xa_is_err(old))
		return -ENOMEM;
	let_go_entry(contents, old);
	return 0;
}

int contents_put(struct contents *contents, unsigned int layer, u32 page, struct version *version)
{
	int error = put_new(contents, layer, page, version ? (void *)version : ERASED_THERE);

	if (!error && version)
		contents_hold(version);
	return error;
}

void contents_uncover(struct contents *contents, unsigned int layer, u32 page)
{
	let_go_entry(contents, xa_erase(&contents->layers[layer], page));
}

int contents_merge(struct contents *contents)
{
	unsigned int layer;
	unsigned long page;
	void *entry;

	for (layer = 1; layer <= contents->top; layer++) {
		xa_for_each(&contents->layers[layer], page, entry) {
			if (xa_is_value(entry)) {
				contents_uncover(contents, 0, page);
				continue;
			}
			if (put_new(contents, 0, page, entry))
				return -ENOMEM;
			xa_erase(&contents->layers[layer], page);
		}
		xa_destroy(&contents->layers[layer]);
	}
	contents->top = 0;
	return 0;
}

/* The version to program: that of the top layer which nobody else holds, or a copy for it of what
 * is `there`.
 */
static struct version *own_version(struct contents *contents, u32 page, struct version *there)
{
	struct version *version;

	if (there && there->holders == 1 &&
	    there == xa_load(&contents->layers[contents->top], page))
		return there;
	version = contents_new_version(contents);
	if (!version)
		return NULL;
	if (there)
		memcpy(version->data, there->data, contents->whole_bytes);
	if (put_new(contents, contents->top, page, version)) {
		contents_let_go(contents, version);
		return NULL;
	}
	return version;
}

int contents_program(struct contents *contents, u32 page, u32 offset, const u8 *from, u32 length,
		     u8 programs)
{
	struct version *there = contents_find(contents, contents->top, page);
	struct version *version = own_version(contents, page, there);
	u32 i;

	if (!version)
		return -ENOMEM;
	if (!there)
		memcpy(version->data + offset, from, length);
	else
		for (i = 0; i < length; i++)
			version->data[offset + i] &= from[i];
	version->programs = programs;
	return 0;
}

int contents_erase(struct contents *contents, u32 page)
{
	if (contents->top)
		return put_new(contents, contents->top, page, ERASED_THERE);
	contents_uncover(contents, 0, page);
	return 0;
}
