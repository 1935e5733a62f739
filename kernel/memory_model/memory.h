/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data caches and data TLBs of a core, as set-associative tables that drop what was used longest
 * ago. A pure function of the accesses: no clock, no randomness.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* A table of tags; `sets` is a power of two. One without sets holds nothing, and always misses. */
struct table {
	uint32_t sets, ways;
	uint64_t *tags, *used; /* a tag is its key and one, so that none is 0 */
	uint64_t now;
};

struct memory_config {
	uint64_t line_bytes;
	uint64_t l1_bytes, l1_ways, l2_bytes, l2_ways;
	uint64_t micro_tlb_entries; /* fully associative */
	uint64_t main_tlb_entries, main_tlb_ways;
	uint64_t section_bytes; /* of the direct map and the kernel's image */
};

struct memory {
	struct memory_config config;
	struct table l1, l2, micro_tlb, main_tlb;
};

/* What one access met. A walk reads one level of page tables for a section, two for a page. */
struct outcome {
	bool l1_miss, l2_miss, micro_tlb_miss;
	uint8_t walk_levels;
};

/* false where the numbers make no tables: sizes of 0, or sets that are no power of two. */
bool memory_init(struct memory *memory, const struct memory_config *config);
void memory_free(struct memory *memory);

struct outcome memory_access(struct memory *memory, uint64_t virtual_address,
			     uint64_t physical_address);

/* Whether x86-64's kernel without KASLR has this address in what an ARM kernel maps by sections:
 * the direct map, the array of struct page, the image.
 */
bool is_in_section(uint64_t virtual_address);

#endif
