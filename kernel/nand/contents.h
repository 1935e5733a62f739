/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contents of the pages of raw NAND, with out-of-band bytes: memory for those that are
 * programmed. Programming clears bits and sets none, as NAND does; erased pages are all ones.
 *
 * There are layers, as of a disk (../flash/store.h): what is programmed or erased goes to the top
 * one, and hides what the layers below hold. Versions of a page are counted by reference, and a
 * program of a page whose version somebody else holds goes to a copy of it.
 */
#ifndef RAW_NAND_CONTENTS_H
#define RAW_NAND_CONTENTS_H

#include <linux/types.h>
#include <linux/xarray.h>

/* What was there before a run; the run, or a cut of it; the recovery, or a cut of it; what then. */
#define CONTENTS_LAYERS 4

/* A page that is not erased. */
struct version {
	u32 holders;
	u8 programs;		/* since its erase; RAW_NAND_TORN: a cut tore it */
	u8 data[];
};

struct contents {
	struct xarray layers[CONTENTS_LAYERS];	/* by page: versions, or that it is erased there */
	unsigned int top;
	u32 page_bytes;		/* the out-of-band bytes come after these */
	u32 whole_bytes;
	struct kmem_cache *cache;
};

int contents_init(struct contents *contents, u32 page_bytes, u32 spare_bytes);
void contents_free(struct contents *contents);

/* All of these under one lock of the caller's; pages by their number through all blocks. */

void contents_read(const struct contents *contents, u32 page, u32 offset, u8 *to, u32 length);

/* `programs` is what the model counts after it. -ENOMEM: nothing is programmed. */
int contents_program(struct contents *contents, u32 page, u32 offset, const u8 *from, u32 length,
		     u8 programs);

/* -ENOMEM: it is not erased. */
int contents_erase(struct contents *contents, u32 page);

/* The version of a page in a layer or else below it; null: erased. Not held for the caller. */
struct version *contents_find(const struct contents *contents, unsigned int layer, u32 page);

/* Shows a version, or an erased page for null, in a layer; holds it. */
int contents_put(struct contents *contents, unsigned int layer, u32 page, struct version *version);

/* Empties a place in a layer: what is below shows. */
void contents_uncover(struct contents *contents, unsigned int layer, u32 page);

/* Makes one layer of all. -ENOMEM: nothing has changed for a reader, but layers are left. */
int contents_merge(struct contents *contents);

/* A new version that is held for the caller, erased; null: no memory is left. */
struct version *contents_new_version(struct contents *contents);

/* Holds a version for the caller; lets it go again. */
void contents_hold(struct version *version);
void contents_let_go(struct contents *contents, struct version *version);

#endif
