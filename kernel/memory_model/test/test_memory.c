// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the caches and TLBs of the memory model, by accesses worked out by hand. */
#include <stdio.h>

#include "../memory.h"

#define DIRECT 0xffff888000000000ull
#define VMALLOC 0xffffc90000000000ull

static int passed, failed;

static void check(bool holds, const char *what)
{
	passed += holds;
	failed += !holds;
	if (!holds)
		printf("FAILED: %s\n", what);
}

static const struct memory_config arm11 = {
	.line_bytes = 32,
	.l1_bytes = 16 << 10,
	.l1_ways = 4,
	.micro_tlb_entries = 10,
	.main_tlb_entries = 64,
	.main_tlb_ways = 2,
	.section_bytes = 1 << 20,
};

/* Accesses every 4 KiB of 128 KiB, twice; gives the levels of page tables that the second time
 * reads.
 */
static unsigned int walks(uint64_t virtual_address, unsigned int *micro)
{
	struct memory memory;
	unsigned int levels = 0;

	memory_init(&memory, &arm11);
	*micro = 0;
	for (int turn = 0; turn < 2; turn++) {
		for (uint64_t at = 0; at < 128 << 10; at += 4096) {
			struct outcome found = memory_access(&memory, virtual_address + at, at);

			if (turn)
				levels += found.walk_levels;
			if (turn)
				*micro += found.micro_tlb_miss;
		}
	}
	memory_free(&memory);
	return levels;
}

static void test_pages_and_sections(void)
{
	unsigned int micro;

	check(walks(DIRECT, &micro) == 0 && micro == 0, "one section stays in the micro TLB");
	check(walks(VMALLOC, &micro) == 0 && micro == 32, "32 pages stay in the main TLB alone");
}

static void test_walk_levels(void)
{
	struct memory memory;

	memory_init(&memory, &arm11);
	check(memory_access(&memory, DIRECT, 0).walk_levels == 1, "a section has one level");
	check(memory_access(&memory, VMALLOC, 0).walk_levels == 2, "a page has two");
	check(memory_access(&memory, DIRECT + (1 << 20) - 1, 0).walk_levels == 0, "same section");
	check(memory_access(&memory, VMALLOC + 4096, 0).walk_levels == 2, "the next page");
	memory_free(&memory);
}

static void test_lines_and_ways(void)
{
	struct memory memory;
	unsigned int misses = 0;
	const uint64_t apart = (16 << 10) / 4; /* the same set */

	memory_init(&memory, &arm11);
	check(memory_access(&memory, DIRECT, 64).l1_miss, "the first access misses");
	check(!memory_access(&memory, DIRECT, 95).l1_miss, "its line is there");
	check(memory_access(&memory, DIRECT, 96).l1_miss, "the next line is not");
	for (int turn = 0; turn < 2; turn++)
		for (uint64_t way = 0; way < 5; way++)
			misses += memory_access(&memory, DIRECT, 1 << 20 | way * apart).l1_miss;
	check(misses == 10, "five lines in turn never stay in four ways");
	check(memory_access(&memory, DIRECT, 8 << 20).l2_miss, "without L2 every miss goes on");
	memory_free(&memory);
}

static void test_second_level(void)
{
	struct memory_config config = arm11;
	struct memory memory;
	struct outcome found;

	config.l2_bytes = 1 << 20;
	config.l2_ways = 16;
	memory_init(&memory, &config);
	for (uint64_t at = 0; at < 64 << 10; at += 32)
		memory_access(&memory, DIRECT + at, at);
	found = memory_access(&memory, DIRECT, 0);
	check(found.l1_miss && !found.l2_miss, "64 KiB do not stay in L1, but in L2");
	memory_free(&memory);
}

static void test_wrong_numbers(void)
{
	struct memory_config config = arm11;
	struct memory memory;

	config.l1_ways = 3;
	check(!memory_init(&memory, &config), "ways that do not divide the cache");
	memory_free(&memory);
	config = arm11;
	config.line_bytes = 0;
	check(!memory_init(&memory, &config), "lines of nothing");
	memory_free(&memory);
}

int main(void)
{
	test_pages_and_sections();
	test_walk_levels();
	test_lines_and_ways();
	test_second_level();
	test_wrong_numbers();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
