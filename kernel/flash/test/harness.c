// SPDX-License-Identifier: GPL-2.0-only
/* Runs tests of the model in user space: counts what passes, prints what does not and its seed. */
#include <stdio.h>

#include "harness.h"

static unsigned int passed, failed;
static unsigned int failed_checks;	/* of the test that is running */
static flash_u64 current_seed;

void test_failed(const char *file, int line, const char *check, flash_u64 left, flash_u64 right)
{
	if (failed_checks++ < 3)
		printf("%s:%d: not true: %s (%llu, %llu)\n", file, line, check, left, right);
}

int test_seed(flash_u64 seed)
{
	if (failed_checks)
		return 0;
	current_seed = seed;
	return 1;
}

void test_run(const char *name, void (*test)(void))
{
	failed_checks = 0;
	current_seed = 0;
	test();
	if (!failed_checks) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED %s", name);
	if (current_seed)
		printf(", seed %llu", current_seed);
	printf(": %u checks\n", failed_checks);
}

int test_report(void)
{
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}

flash_u64 random_next(flash_u64 *state)
{
	flash_u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

flash_u64 random_below(flash_u64 *state, flash_u64 limit)
{
	return random_next(state) % limit;
}

struct flash_config plain_config(void)
{
	return (struct flash_config) {
		.capacity_bytes = 8 << 20,
		.queue_depth = 1,
		.half_duplex = 1,
		.packed_writes = 1,
		.command_overhead_ns = 100,
		.read_access_ns = 1000,
		.read_bandwidth_bytes_per_s = 1000000000,	/* 1 byte a ns */
		.write_access_ns = 10,
		.write_bandwidth_bytes_per_s = 1000000000,
		.channels = 1,
		.dies_per_channel = 2,
		.channel_bandwidth_bytes_per_s = 512000000000,	/* 8 ns a slot */
		.program_unit_bytes = 8192,
		.units_per_erase_block = 8,
		.page_read_ns = 20000,
		.program_ns = 1000000,
		.erase_ns = 5000000,
		.mapping_program_ns = 3000000,
		.over_provisioning_percent = 25,
		.cache_bytes = 65536,
		.drain_delay_ns = 50000000,
		.flush_overhead_ns = 70,
		.fua = 1,
		.discard_ns = 5,
		.zeroes_ns = 7,
	};
}
