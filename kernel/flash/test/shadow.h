/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data that the model does not have: a version number for every slot the host wrote, kept for
 * the cache and for each physical slot, so that a lost or stale one is found.
 */
#ifndef FLASH_TEST_SHADOW_H
#define FLASH_TEST_SHADOW_H

#include "harness.h"

struct shadow {
	struct flash_observer observer;		/* first: the model hands it back */
	struct flash_model *model;
	unsigned int next_version;
	unsigned int *accepted;		/* by logical slot: version the host wrote last; 0: none */
	unsigned int *durable;		/* by logical slot: version that must survive power loss */
	unsigned int *content;		/* by physical slot: version that is programmed there */
	unsigned int *owner;		/* by physical slot: its logical slot; FLASH_NONE: erased */
	flash_u64 *end_ns;		/* by physical slot: when its program ends */
	unsigned int *recent;		/* logical slots accepted since the last flush, if few */
	unsigned int recent_count;
};

/* Begins to watch a model that nothing was written to. */
void shadow_start(struct shadow *shadow, struct flash_model *model);
void shadow_end(struct shadow *shadow);

/* The device has been aged, which takes no time: all is durable. */
void shadow_aged(struct shadow *shadow);

/* The host is about to have the range forgotten. */
void shadow_discard(struct shadow *shadow, const struct flash_request *request);

/* What was accepted until now (or the range of a FUA write) is durable from now on. */
void shadow_flushed(struct shadow *shadow);
void shadow_forced(struct shadow *shadow, const struct flash_request *request);

/* Checks that the slots of a range would be read as they were written. */
void shadow_check_range(const struct shadow *shadow, const struct flash_request *request);

/* The same for the whole disk, and that table, reverse table and rows agree. */
void shadow_check_all(const struct shadow *shadow);

#endif
