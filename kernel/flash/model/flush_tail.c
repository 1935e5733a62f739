// SPDX-License-Identifier: GPL-2.0-only
/* Draws how much longer a flush takes: see the header. Pure C, no kernel header. */
#include "flush_tail.h"

/* The longest is so many times the median. */
#define HALVINGS_MAX 16U

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014) at a place of its stream. */
static flash_u64 random_at(flash_u64 seed, flash_u64 place)
{
	flash_u64 z = (seed << 32) + (place + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

flash_u64 flash_flush_tail_ns(const struct flash_config *config, flash_u64 number)
{
	flash_u64 chance = random_at(config->flush_tail_seed, 2 * number);
	flash_u64 bits = random_at(config->flush_tail_seed, 2 * number + 1);
	flash_u64 halvings = 0, share = bits >> 32;	/* of the last one, in 1 / 2^32 */

	if ((chance >> 32) * 1000 >> 32 >= config->flush_tail_permille)
		return 0;
	while (halvings + 1 < HALVINGS_MAX && bits >> halvings & 1)
		halvings++;
	return halvings * config->flush_tail_ns + (config->flush_tail_ns * share >> 32);
}
