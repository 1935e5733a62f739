/* SPDX-License-Identifier: GPL-2.0-only */
/* What must hold for every configuration and every sequence of requests. */
#ifndef FLASH_TEST_PROPERTIES_H
#define FLASH_TEST_PROPERTIES_H

#include "harness.h"

/* A device under way, what it was given, and when. Start from all zero but the model. */
struct sequence {
	struct flash_model model;
	struct flash_statistics submitted;	/* requests and bytes, counted by the test */
	flash_u64 now_ns;
	flash_u64 completion_ns;
};

/* Each hands the request in, gap_ns after the one before, and checks one family of properties. */

/* Time goes forward, nothing is lost: bytes, requests, the cache's size, the busy time. */
void check_accounts(struct sequence *sequence, const struct flash_request *request,
		    flash_u64 gap_ns, flash_u64 random);

/* The same again gives the same, even when the statistics are read in between. */
void check_repeatable(struct sequence *sequence, const struct flash_request *request,
		      flash_u64 gap_ns, flash_u64 random);

/* In any state, a durable write takes at least as long as a cached one. */
void check_durability_costs(struct sequence *sequence, const struct flash_request *request,
			    flash_u64 gap_ns, flash_u64 random);

/* In any state, the request completes no earlier on a device that is slower in one parameter. */
void check_slower_is_later(struct sequence *sequence, const struct flash_request *request,
			   flash_u64 gap_ns, flash_u64 random);

#endif
