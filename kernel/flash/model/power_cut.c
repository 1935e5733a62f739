// SPDX-License-Identifier: GPL-2.0-only
/*
 * Says what a power cut leaves: see the header. Reads and changes only what it is given. Pure C, no
 * kernel header.
 */
#include "power_cut.h"

void flash_power_cut_flush(struct flash_power_cut *cut, flash_u64 issue_ns,
			   flash_u64 completion_ns)
{
	if (completion_ns <= cut->cut_ns && !cut->flush_lies)
		cut->flushed_ns = flash_max(cut->flushed_ns, issue_ns);
}

/* The finalizer of SplitMix64: every bit of the result depends on every bit of the value. */
static flash_u64 mixed(flash_u64 value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}

static unsigned int coin(flash_u64 seed, flash_u64 number, flash_u64 slot)
{
	return mixed(mixed(mixed(seed + 0x9e3779b97f4a7c15ULL) + number) + slot) & 1;
}

unsigned int flash_power_cut_keeps(const struct flash_power_cut *cut, flash_u64 issue_ns,
				   flash_u64 completion_ns, unsigned int fua, flash_u64 number,
				   flash_u64 slot)
{
	if (issue_ns > cut->cut_ns)
		return 0;
	if (completion_ns <= cut->cut_ns && ((fua && !cut->flush_lies) || !cut->volatile_cache))
		return 1;
	if (completion_ns <= cut->flushed_ns)
		return 1;
	switch (cut->survivors) {
	case FLASH_SURVIVORS_NONE:
		return 0;
	case FLASH_SURVIVORS_ALL:
		return 1;
	case FLASH_SURVIVORS_SOME:
		return coin(cut->seed, number, slot);
	}
	return 0;
}
