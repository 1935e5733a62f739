// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the model's commands: each adds the terms up by hand, on a device of round numbers
 * (harness.c). A slot of 4096 bytes takes 4096 ns over the link and 8 ns over the channel.
 */
#include <string.h>

#include "device.h"

#define READ (100 + 1000 + 4096)	/* of what is not on the NAND */
#define NAND (20000 + 8)		/* more, of what is */
#define WRITE (100 + 10 + 4096)
#define UNIT 16				/* a unit of two slots over the channel */
#define PROGRAM (UNIT + 1000000)
#define MAPPING (UNIT + 3000000)

static void read_is_overhead_access_and_transfer(void)
{
	start(plain_config());
	CHECK(submit(FLASH_READ, 0, 0, 4096, 5000), ==, 5000 + READ);
	CHECK(model.statistics.read_requests, ==, 1);
	CHECK(model.statistics.read_bytes, ==, 4096);
	CHECK(model.statistics.busy_ns, ==, READ);
	CHECK(model.statistics.page_reads[FLASH_FOR_HOST], ==, 0);
}

static void transfer_is_rounded_up(void)
{
	struct flash_config config = plain_config();

	config.read_bandwidth_bytes_per_s = 3000000000;
	start(config);
	CHECK(submit(FLASH_READ, 0, 0, 4096, 0), ==, 100 + 1000 + 1366);
}

static void reading_what_was_programmed_takes_a_page_read(void)
{
	start(plain_config());
	fill(0, 4);
	CHECK(submit(FLASH_READ, 0, 0, 4096, now_ns), ==, now_ns + READ + NAND);
	/* Two slots of one unit: one page read. Two units are on two dies: at the same time. */
	now_ns += 10000000;
	CHECK(submit(FLASH_READ, 0, 0, 8192, now_ns), ==, now_ns + READ + NAND + 4096);
	CHECK(model.statistics.page_reads[FLASH_FOR_HOST], ==, 2);
	now_ns += 10000000;
	CHECK(submit(FLASH_READ, 0, 0, 16384, now_ns), ==, now_ns + READ + NAND + 3 * 4096);
	CHECK(model.statistics.page_reads[FLASH_FOR_HOST], ==, 4);
}

static void reading_what_is_in_the_cache_takes_none(void)
{
	start(plain_config());
	submit(FLASH_WRITE, 0, 0, 4096, 0);
	CHECK(submit(FLASH_READ, 0, 0, 4096, 10000), ==, 10000 + READ);
	CHECK(model.statistics.cache_read_bytes, ==, 4096);
}

static void depth_one_serves_one_command_at_a_time(void)
{
	start(plain_config());
	CHECK(submit(FLASH_READ, 0, 0, 4096, 0), ==, READ);
	CHECK(submit(FLASH_READ, 0, 0, 4096, 10), ==, 2 * READ);
	CHECK(submit(FLASH_READ, 0, 0, 4096, 20000), ==, 20000 + READ);
	CHECK(model.statistics.busy_ns, ==, 3 * READ);
}

static void deeper_queues_overlap_but_for_processor_and_link(void)
{
	struct flash_config config = plain_config();

	config.queue_depth = 8;
	start(config);
	CHECK(submit(FLASH_READ, 0, 0, 4096, 0), ==, READ);
	/* The link is taken up: the second transfer follows the first. */
	CHECK(submit(FLASH_READ, 0, 0, 4096, 0), ==, READ + 4096);
	CHECK(submit(FLASH_WRITE, 0, 0, 4096, 0), ==, READ + 2 * 4096);
	config.half_duplex = 0;
	start(config);
	submit(FLASH_READ, 0, 0, 4096, 0);
	submit(FLASH_READ, 0, 0, 4096, 0);
	CHECK(submit(FLASH_WRITE, 0, 0, 4096, 0), ==, 3 * 100 + 10 + 4096);
}

static void reads_and_writes_take_the_processor_for_unlike_times(void)
{
	struct flash_config config = plain_config();

	config.queue_depth = 8;
	config.read_command_ns = 7;
	config.write_command_ns = 11;
	start(config);
	CHECK(submit(FLASH_READ, 0, 0, 4096, 0), ==, 7 + READ);
	CHECK(submit(FLASH_WRITE, 0, 0, 4096, 100000), ==, 100000 + 11 + 110 + 4096);
	CHECK(submit(FLASH_DISCARD, 0, 0, 4096, 200000), ==, 200105);
}

static void completions_come_out_of_order(void)
{
	struct flash_config config = plain_config();
	flash_u64 slow_ns;

	config.queue_depth = 8;
	config.half_duplex = 0;
	start(config);
	fill(0, 2);
	slow_ns = submit(FLASH_READ, 0, 0, 4096, now_ns);
	CHECK(submit(FLASH_WRITE, 0, 65536, 4096, now_ns), <, slow_ns);
}

static void writes_that_wait_are_packed(void)
{
	struct flash_config config = plain_config();
	flash_u64 first_ns;

	config.packed_writes = 3;
	start(config);
	first_ns = submit(FLASH_WRITE, 0, 0, 4096, 0);
	CHECK(submit(FLASH_WRITE, 0, 4096, 4096, 0), ==, first_ns + WRITE - 100);
	CHECK(submit(FLASH_WRITE, 0, 8192, 4096, 0), ==, first_ns + 2 * (WRITE - 100));
	/* Three are a whole pack. */
	CHECK(submit(FLASH_WRITE, 0, 12288, 4096, 0), ==, first_ns + 3 * WRITE - 200);
	CHECK(model.statistics.packed_requests, ==, 2);
	now_ns = model.busy_until_ns;
	CHECK(submit(FLASH_WRITE, 0, 0, 4096, now_ns), ==, now_ns + WRITE);
	CHECK(model.statistics.packed_requests, ==, 2);
}

static void discard_and_zeroes_forget_whole_slots(void)
{
	start(plain_config());
	fill(0, 8);
	CHECK(submit(FLASH_DISCARD, 0, 512, 3 * 4096, now_ns), ==, now_ns + 105);
	CHECK(flash_mapping_physical(&model, 0), !=, FLASH_NONE);
	CHECK(flash_mapping_physical(&model, 1), ==, FLASH_NONE);
	CHECK(flash_mapping_physical(&model, 2), ==, FLASH_NONE);
	CHECK(flash_mapping_physical(&model, 3), !=, FLASH_NONE);
	now_ns += 1000;
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70 + MAPPING);
	now_ns += 10000000;
	CHECK(submit(FLASH_ZEROES, 0, 3 * 4096, 4096, now_ns), ==, now_ns + 107);
	now_ns += 1000;
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70 + MAPPING);
	now_ns += 10000000;
	CHECK(submit(FLASH_ZEROES, 1, 4 * 4096, 4096, now_ns), ==, now_ns + 107 + MAPPING);
	CHECK(model.statistics.discard_bytes, ==, 3 * 4096);
	CHECK(model.statistics.zeroes_requests, ==, 2);
	CHECK(model.statistics.zeroes_bytes, ==, 8192);
}

static void discarding_nothing_leaves_nothing_to_flush(void)
{
	start(plain_config());
	CHECK(submit(FLASH_DISCARD, 0, 0, 8 << 20, 0), ==, 105);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, 1000), ==, 1070);
}

static int names(struct flash_config config, const char *name)
{
	struct flash_complaint complaint = flash_model_check(&config);

	return complaint.name && !strcmp(complaint.name, name);
}

static void check_names_the_parameter_that_is_wrong(void)
{
	struct flash_config config;

#define WRONG(field, wrong) do { \
	config = plain_config(); \
	config.field = (wrong); \
	CHECK(names(config, #field), ==, 1); \
} while (0)
#define OUTSIDE(field, minimum, maximum) \
	WRONG(field, FLASH_NOT_GIVEN); \
	WRONG(field, (maximum) + 1ULL); \
	if (minimum) \
		WRONG(field, (minimum) - 1ULL);
	FLASH_PARAMETERS(OUTSIDE)
	WRONG(capacity_bytes, (1 << 20) + 512);
	WRONG(program_unit_bytes, 4096 + 512);
	WRONG(cache_bytes, 8191);
	WRONG(mapping_cache_bytes, 4095);
	/* No row to spare. */
	WRONG(over_provisioning_percent, 2);
	config = plain_config();
	config.units_per_erase_block = 64;
	CHECK(names(config, "over_provisioning_percent"), ==, 1);
	config = plain_config();
	CHECK(flash_model_check(&config).name == NULL, ==, 1);
}

static void the_largest_disk_is_counted_without_overflow(void)
{
	struct flash_config config = plain_config();
	struct flash_geometry geometry;

	config.capacity_bytes = 1ULL << 40;
	config.over_provisioning_percent = 400;
	CHECK(flash_geometry_derive(&config, &geometry).name == NULL, ==, 1);
	CHECK(geometry.disk_slots, ==, 1 << 28);
	CHECK((flash_u64)geometry.rows * geometry.row_slots, <, FLASH_IN_CACHE);
	CHECK(flash_model_memory_bytes(&config), >, 6ULL << 30);
}

int main(void)
{
#define RUN(test) test_run(#test, test)
	RUN(read_is_overhead_access_and_transfer);
	RUN(transfer_is_rounded_up);
	RUN(reading_what_was_programmed_takes_a_page_read);
	RUN(reading_what_is_in_the_cache_takes_none);
	RUN(depth_one_serves_one_command_at_a_time);
	RUN(deeper_queues_overlap_but_for_processor_and_link);
	RUN(reads_and_writes_take_the_processor_for_unlike_times);
	RUN(completions_come_out_of_order);
	RUN(writes_that_wait_are_packed);
	RUN(discard_and_zeroes_forget_whole_slots);
	RUN(discarding_nothing_leaves_nothing_to_flush);
	RUN(check_names_the_parameter_that_is_wrong);
	RUN(the_largest_disk_is_counted_without_overflow);
	return test_report();
}
