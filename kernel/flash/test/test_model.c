// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of the timing model: each adds the terms up by hand, on a device of round numbers. */
#include <string.h>

#include "harness.h"

static struct flash_model model;

static flash_u64 submit(enum flash_operation operation, unsigned int fua,
			unsigned int length_bytes, flash_u64 now_ns)
{
	struct flash_request request = { operation, fua, length_bytes };

	return flash_model_submit(&model, &request, now_ns);
}

static void start(struct flash_config config)
{
	CHECK(flash_model_check(&config).name == NULL, ==, 1);
	flash_model_init(&model, &config);
}

static void read_is_overhead_access_and_transfer(void)
{
	start(plain_config());
	CHECK(submit(FLASH_READ, 0, 4096, 5000), ==, 5000 + 100 + 1000 + 4096);
	CHECK(model.statistics.read_requests, ==, 1);
	CHECK(model.statistics.read_bytes, ==, 4096);
	CHECK(model.statistics.busy_ns, ==, 5196);
}

static void transfer_is_rounded_up(void)
{
	struct flash_config config = plain_config();

	config.read_bandwidth_bytes_per_s = 3000000000;
	start(config);
	CHECK(submit(FLASH_READ, 0, 4096, 0), ==, 100 + 1000 + 1366);
}

static void commands_are_served_one_at_a_time(void)
{
	start(plain_config());
	CHECK(submit(FLASH_READ, 0, 4096, 0), ==, 5196);
	CHECK(submit(FLASH_READ, 0, 4096, 10), ==, 2 * 5196);
	CHECK(submit(FLASH_READ, 0, 4096, 20000), ==, 20000 + 5196);
	CHECK(model.statistics.busy_ns, ==, 3 * 5196);
}

static void cached_write_is_overhead_access_and_transfer(void)
{
	start(plain_config());
	CHECK(submit(FLASH_WRITE, 0, 4096, 0), ==, 100 + 10 + 4096);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
	CHECK(model.statistics.programs, ==, 0);
}

static void flush_programs_by_units_and_the_mapping_once(void)
{
	flash_u64 now_ns;

	start(plain_config());
	CHECK(submit(FLASH_FLUSH, 0, 0, 0), ==, 70);
	submit(FLASH_WRITE, 0, 4096, 1000);
	now_ns = submit(FLASH_WRITE, 0, 512, 1000);
	CHECK(submit(FLASH_FLUSH, 0, 0, now_ns), ==, now_ns + 70 + 1000000 + 3000000);
	CHECK(model.statistics.dirty_bytes, ==, 0);
	CHECK(model.statistics.programmed_bytes, ==, 4608);
	now_ns = model.free_ns;
	CHECK(submit(FLASH_FLUSH, 0, 0, now_ns), ==, now_ns + 70);
	CHECK(model.statistics.flush_requests, ==, 3);
	CHECK(model.statistics.mapping_programs, ==, 1);
}

static void flush_waits_for_the_program_that_runs(void)
{
	flash_u64 written_ns;

	start(plain_config());
	written_ns = submit(FLASH_WRITE, 0, 8192, 0);
	/* The full unit is being programmed since written_ns; the flush finds no other data. */
	CHECK(submit(FLASH_FLUSH, 0, 0, written_ns + 500000), ==, written_ns + 1000000 + 3000000);
	CHECK(model.statistics.programs, ==, 1);
}

static void read_waits_for_the_program_that_runs(void)
{
	flash_u64 written_ns;

	start(plain_config());
	written_ns = submit(FLASH_WRITE, 0, 16384, 0);
	/* Two full units: the read goes before the second, which follows the read. */
	CHECK(submit(FLASH_READ, 0, 1, written_ns + 10), ==, written_ns - 8192 + 1000000 + 1001);
	CHECK(model.statistics.programs, ==, 1);
	CHECK(model.statistics.dirty_bytes, ==, 8192);
	flash_model_advance(&model, model.free_ns + 1000000 - 1);
	CHECK(model.statistics.dirty_bytes, ==, 8192);
	flash_model_advance(&model, model.free_ns + 1000000);
	CHECK(model.statistics.dirty_bytes, ==, 0);
}

static void less_than_a_unit_is_drained_after_the_delay(void)
{
	flash_u64 written_ns, begun_ns;

	start(plain_config());
	written_ns = submit(FLASH_WRITE, 0, 4096, 0);
	begun_ns = written_ns + 50000000;
	flash_model_advance(&model, begun_ns + 1000000 - 1);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
	flash_model_advance(&model, begun_ns + 1000000);
	CHECK(model.statistics.dirty_bytes, ==, 0);
	CHECK(model.statistics.programs, ==, 1);
}

static void a_command_at_the_delay_goes_before_the_drain_and_after_it_waits(void)
{
	flash_u64 begun_ns;

	start(plain_config());
	begun_ns = submit(FLASH_WRITE, 0, 4096, 0) + 50000000;
	CHECK(submit(FLASH_READ, 0, 1, begun_ns), ==, begun_ns + 100 + 1001);

	start(plain_config());
	submit(FLASH_WRITE, 0, 4096, 0);
	CHECK(submit(FLASH_READ, 0, 1, begun_ns + 1), ==, begun_ns + 1000000 + 1001);
}

static void full_cache_makes_a_write_wait_for_a_program(void)
{
	flash_u64 first_unit_ns = 100 + 10 + 8192, full_ns;

	start(plain_config());
	full_ns = submit(FLASH_WRITE, 0, 65536, 0);
	CHECK(full_ns, ==, 100 + 10 + 65536);
	CHECK(model.statistics.dirty_bytes, ==, 65536);
	/* Room is there when the program of the first unit ends. */
	CHECK(submit(FLASH_WRITE, 0, 4096, full_ns), ==, first_unit_ns + 1000000 + 4096);
}

static void a_write_larger_than_the_cache_streams_through(void)
{
	flash_u64 end_ns;

	start(plain_config());
	end_ns = submit(FLASH_WRITE, 0, 20 * 8192, 0);
	/* 20 units, 8 stay in the cache: the 12th program ends before the last transfer. */
	CHECK(end_ns, ==, 100 + 10 + 8192 + 12 * 1000000 + 8192);
	CHECK(model.statistics.programmed_bytes + model.statistics.dirty_bytes, ==, 20 * 8192);
}

static void fua_write_goes_past_the_cache(void)
{
	flash_u64 written_ns;

	start(plain_config());
	written_ns = submit(FLASH_WRITE, 0, 4096, 0);
	CHECK(submit(FLASH_WRITE, 1, 12288, written_ns), ==,
	      written_ns + 100 + 10 + 12288 + 2 * 1000000 + 3000000);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
	CHECK(model.statistics.fua_requests, ==, 1);
	CHECK(model.statistics.write_requests, ==, 2);
}

static void fua_write_waits_for_the_program_that_runs(void)
{
	flash_u64 written_ns;

	start(plain_config());
	written_ns = submit(FLASH_WRITE, 0, 8192, 0);
	CHECK(submit(FLASH_WRITE, 1, 4096, written_ns + 10), ==,
	      written_ns + 1000000 + 4096 + 1000000 + 3000000);
}

static void without_a_cache_every_write_is_durable(void)
{
	struct flash_config config = plain_config();

	config.cache_bytes = 0;
	start(config);
	CHECK(submit(FLASH_WRITE, 0, 4096, 0), ==, 100 + 10 + 4096 + 1000000 + 3000000);
	CHECK(model.statistics.dirty_bytes, ==, 0);
	CHECK(model.statistics.fua_requests, ==, 0);
}

static void discard_and_zeroes_change_the_mapping(void)
{
	start(plain_config());
	CHECK(submit(FLASH_DISCARD, 0, 1 << 30, 0), ==, 105);
	CHECK(submit(FLASH_FLUSH, 0, 0, 1000), ==, 1000 + 70 + 3000000);
	CHECK(submit(FLASH_ZEROES, 0, 1 << 20, 5000000), ==, 5000107);
	CHECK(submit(FLASH_FLUSH, 0, 0, 6000000), ==, 6000000 + 70 + 3000000);
	CHECK(submit(FLASH_ZEROES, 1, 4096, 10000000), ==, 10000000 + 107 + 3000000);
	CHECK(submit(FLASH_FLUSH, 0, 0, 20000000), ==, 20000070);
	CHECK(model.statistics.discard_bytes, ==, 1 << 30);
	CHECK(model.statistics.zeroes_requests, ==, 2);
	CHECK(model.statistics.zeroes_bytes, ==, (1 << 20) + 4096);
	CHECK(model.statistics.programs, ==, 0);
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
	WRONG(cache_bytes, 8191);
	config = plain_config();
	CHECK(flash_model_check(&config).name == NULL, ==, 1);
}

int main(void)
{
#define RUN(test) test_run(#test, test)
	RUN(read_is_overhead_access_and_transfer);
	RUN(transfer_is_rounded_up);
	RUN(commands_are_served_one_at_a_time);
	RUN(cached_write_is_overhead_access_and_transfer);
	RUN(flush_programs_by_units_and_the_mapping_once);
	RUN(flush_waits_for_the_program_that_runs);
	RUN(read_waits_for_the_program_that_runs);
	RUN(less_than_a_unit_is_drained_after_the_delay);
	RUN(a_command_at_the_delay_goes_before_the_drain_and_after_it_waits);
	RUN(full_cache_makes_a_write_wait_for_a_program);
	RUN(a_write_larger_than_the_cache_streams_through);
	RUN(fua_write_goes_past_the_cache);
	RUN(fua_write_waits_for_the_program_that_runs);
	RUN(without_a_cache_every_write_is_durable);
	RUN(discard_and_zeroes_change_the_mapping);
	RUN(check_names_the_parameter_that_is_wrong);
	return test_report();
}
