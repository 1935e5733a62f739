// SPDX-License-Identifier: GPL-2.0-only
/* See memory.h. */
#include "memory.h"

#include <stdlib.h>

#define PAGE_SHIFT 12

static bool is_power_of_two(uint64_t number)
{
	return number && !(number & (number - 1));
}

static bool table_init(struct table *table, uint64_t entries, uint64_t ways)
{
	if (!entries)
		return true;
	if (!ways || entries % ways || !is_power_of_two(entries / ways) || entries > 1 << 24)
		return false;
	table->sets = entries / ways;
	table->ways = ways;
	table->tags = calloc(entries, sizeof(*table->tags));
	table->used = calloc(entries, sizeof(*table->used));
	return table->tags && table->used;
}

static bool table_hit(struct table *table, uint64_t key)
{
	uint32_t first, oldest, at;

	if (!table->sets)
		return false;
	first = (key & (table->sets - 1)) * table->ways;
	oldest = first;
	table->now++;
	for (at = first; at < first + table->ways; at++) {
		if (table->tags[at] == key + 1) {
			table->used[at] = table->now;
			return true;
		}
		if (table->used[at] < table->used[oldest])
			oldest = at;
	}
	table->tags[oldest] = key + 1;
	table->used[oldest] = table->now;
	return false;
}

bool memory_init(struct memory *memory, const struct memory_config *config)
{
	uint64_t line = config->line_bytes;

	*memory = (struct memory){ .config = *config };
	return is_power_of_two(line) && is_power_of_two(config->section_bytes) &&
	       config->l1_bytes && config->micro_tlb_entries &&
	       table_init(&memory->l1, config->l1_bytes / line, config->l1_ways) &&
	       table_init(&memory->l2, config->l2_bytes / line, config->l2_ways) &&
	       table_init(&memory->micro_tlb, config->micro_tlb_entries,
			  config->micro_tlb_entries) &&
	       table_init(&memory->main_tlb, config->main_tlb_entries, config->main_tlb_ways);
}

void memory_free(struct memory *memory)
{
	struct table *tables[] = { &memory->l1, &memory->l2, &memory->micro_tlb,
				   &memory->main_tlb };

	for (unsigned int at = 0; at < sizeof(tables) / sizeof(*tables); at++) {
		free(tables[at]->tags);
		free(tables[at]->used);
	}
	*memory = (struct memory){ 0 };
}

bool is_in_section(uint64_t address)
{
	/* Documentation/x86/x86_64/mm.rst: direct map, vmemmap, kernel text. */
	return (address >= 0xffff888000000000 && address < 0xffffc88000000000) ||
	       (address >= 0xffffea0000000000 && address < 0xffffeb0000000000) ||
	       (address >= 0xffffffff80000000 && address < 0xffffffffa0000000);
}

struct outcome memory_access(struct memory *memory, uint64_t virtual_address,
			     uint64_t physical_address)
{
	bool section = is_in_section(virtual_address);
	uint64_t unit = section ? memory->config.section_bytes : 1 << PAGE_SHIFT;
	/* A section and a page are never the same entry. */
	uint64_t page = virtual_address / unit * 2 + section;
	uint64_t line = physical_address / memory->config.line_bytes;
	struct outcome outcome = { 0 };

	if (!table_hit(&memory->micro_tlb, page)) {
		outcome.micro_tlb_miss = true;
		/* The lowest bits choose the set; that of the kind must not. */
		page = virtual_address / unit + ((uint64_t)section << 62);
		if (!table_hit(&memory->main_tlb, page))
			outcome.walk_levels = section ? 1 : 2;
	}
	if (!table_hit(&memory->l1, line)) {
		outcome.l1_miss = true;
		outcome.l2_miss = !table_hit(&memory->l2, line);
	}
	return outcome;
}
