/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a power cut leaves of what was written. Reads when a write was issued and completed, and
 * when flushes were; says of each slot of it whether it is on the flash afterwards.
 *
 * A device with a volatile cache owes the host what a flush that completed before the cut found
 * completed, and completed FUA writes (JESD84-B51, 6.6.34; Documentation/block/
 * writeback_cache_control.rst). Whatever else had been issued may be there or not, in any
 * combination: `survivors` chooses one. A slot is never torn.
 */
#ifndef FLASH_POWER_CUT_H
#define FLASH_POWER_CUT_H

#include "arithmetic.h"

/* Of what no flush and no FUA has made durable. */
enum flash_survivors {
	FLASH_SURVIVORS_NONE,
	FLASH_SURVIVORS_ALL,
	FLASH_SURVIVORS_SOME,	/* each slot as if a coin were tossed, the same for the same seed */
};

struct flash_power_cut {
	flash_u64 cut_ns;
	flash_u64 seed;
	enum flash_survivors survivors;
	unsigned int volatile_cache;	/* 0: what has completed is durable */
	unsigned int flush_lies;	/* 1: nothing is durable by flush and FUA */
	flash_u64 flushed_ns;		/* what had completed by then was flushed; 0 at first */
};

/* Takes note of a flush; of all, before the first question. */
void flash_power_cut_flush(struct flash_power_cut *cut, flash_u64 issue_ns,
			   flash_u64 completion_ns);

/*
 * Whether the slot's data of a write, zeroes or discard are there. `number` tells this one from
 * all others.
 */
unsigned int flash_power_cut_keeps(const struct flash_power_cut *cut, flash_u64 issue_ns,
				   flash_u64 completion_ns, unsigned int fua, flash_u64 number,
				   flash_u64 slot);

#endif
