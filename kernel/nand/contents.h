/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the pages of raw NAND hold, with their out-of-band bytes: memory for those that are
 * programmed. Programming clears bits and sets none, as NAND does; erased pages are all ones.
 */
#ifndef RAW_NAND_CONTENTS_H
#define RAW_NAND_CONTENTS_H

#include <linux/types.h>

struct contents {
	u8 **pages;		/* null: erased */
	u32 count;
	u32 page_bytes;		/* the out-of-band bytes come after these */
	u32 whole_bytes;
	struct kmem_cache *cache;
};

int contents_init(struct contents *contents, u32 count, u32 page_bytes, u32 spare_bytes);
void contents_free(struct contents *contents);

void contents_read(const struct contents *contents, u32 page, u32 offset, u8 *to, u32 length);

/* Without memory it answers -ENOMEM, and nothing is programmed. */
int contents_program(struct contents *contents, u32 page, u32 offset, const u8 *from, u32 length);

void contents_erase(struct contents *contents, u32 page);

#endif
