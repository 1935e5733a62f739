/* SPDX-License-Identifier: GPL-2.0-only */
/* What must hold for every configuration and every sequence of requests. */
#ifndef FLASH_TEST_PROPERTIES_H
#define FLASH_TEST_PROPERTIES_H

#include "shadow.h"

/* A device under way, what it was given, and when. */
struct sequence {
	struct flash_model model;
	struct shadow shadow;
	struct flash_statistics submitted;	/* requests and bytes, counted by the test */
	flash_u64 now_ns;
	flash_u64 completion_ns;
	flash_u64 operations;
	void *memory;
	void *copy;				/* room for a second device's tables */
};

void sequence_start(struct sequence *sequence, const struct flash_config *config);
void sequence_end(struct sequence *sequence);

/* Each hands the request in, gap_ns after the one before, and checks one family of properties. */

/*
 * Time goes forward, nothing is lost: requests, bytes, data; what was flushed survives power loss;
 * NAND bytes are accounted for.
 */
void check_accounts(struct sequence *sequence, const struct flash_request *request,
		    flash_u64 gap_ns, flash_u64 random);

/* The same again gives the same, even when the statistics are read in between. */
void check_repeatable(struct sequence *sequence, const struct flash_request *request,
		      flash_u64 gap_ns, flash_u64 random);

/* A second flush right after the first has nothing to do; one write after that, little. */
void check_flush_is_whole(struct sequence *sequence, const struct flash_request *request,
			  flash_u64 gap_ns, flash_u64 random);

#endif
