// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of cache, flush and FUA, on a device of round numbers (harness.c): two dies of units
 * of two slots. A slot of 4096 bytes takes 4096 ns over the link and 8 ns over the channel.
 */
#include "device.h"

#define WRITE (100 + 10 + 4096)
#define UNIT 16			/* a unit of two slots over the channel */
#define PROGRAM (UNIT + 1000000)
#define MAPPING (UNIT + 3000000)

static void cached_write_is_overhead_access_and_transfer(void)
{
	start(plain_config());
	CHECK(submit(FLASH_WRITE, 0, 0, 4096, 0), ==, WRITE);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 0);
}

static void flush_programs_and_makes_the_mapping_durable_once(void)
{
	start(plain_config());
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, 0), ==, 70);
	submit(FLASH_WRITE, 0, 0, 4096, 1000);
	now_ns = submit(FLASH_WRITE, 0, 65536, 512, 1000);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70 + PROGRAM + MAPPING);
	CHECK(model.statistics.dirty_bytes, ==, 0);
	CHECK(model.statistics.host_programmed_bytes, ==, 8192);
	CHECK(model.statistics.nand_write_bytes, ==, 2 * 8192);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 1);
	CHECK(model.statistics.programs[FLASH_FOR_MAPPING], ==, 1);
	now_ns = model.busy_until_ns;
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70);
	CHECK(model.statistics.flush_requests, ==, 3);
}

static void flush_programs_on_all_dies_at_once(void)
{
	struct flash_config config = plain_config();
	int i;

	config.drain_delay_ns = 1000000000000;
	start(config);
	for (i = 0; i < 3; i++)		/* three slots: the first two are a unit, drained at once */
		now_ns = submit(FLASH_WRITE, 0, i * 4096, 4096, now_ns);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70 + PROGRAM + MAPPING);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 2);
}

static void flush_waits_for_the_program_that_runs(void)
{
	flash_u64 written_ns;

	start(plain_config());
	written_ns = submit(FLASH_WRITE, 0, 0, 8192, 0);
	/* The full unit is being programmed since written_ns; the flush finds no other data. */
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, written_ns + 500000), ==,
	      written_ns + PROGRAM + MAPPING);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 1);
}

static void read_waits_for_the_program_that_runs_on_its_die(void)
{
	flash_u64 written_ns;

	start(plain_config());
	fill(0, 4);
	written_ns = submit(FLASH_WRITE, 0, 65536, 8192, now_ns);
	/* The third unit of the row, and so the first die. */
	CHECK(submit(FLASH_READ, 0, 0, 4096, written_ns + 10), ==,
	      written_ns + PROGRAM + 20000 + 8 + 4096);
	CHECK(submit(FLASH_READ, 0, 8192, 4096, written_ns + 3000000), ==,
	      written_ns + 3000000 + 100 + 1000 + 20000 + 8 + 4096);
}

/*
 * A flush has given each die four programs, and one of them the mapping's. What a read waits for is
 * the program that runs, not the last that has not begun; reads wait for each other, and what they
 * go before is put off.
 */
static void a_read_waits_for_none_of_the_programs_that_have_not_begun(void)
{
	struct flash_config config = plain_config();
	flash_u64 first_ns, read_ns;

	config.queue_depth = 8;
	start(config);
	fill(0, 4);
	submit(FLASH_WRITE, 0, 65536, 65536, now_ns);
	/* The first unit of each die is programmed as soon as it is there, the others behind it. */
	first_ns = now_ns + 100 + 10 + 8192 + UNIT;
	submit(FLASH_FLUSH, 0, 0, 0, now_ns + 100 + 10 + 65536);
	read_ns = first_ns + 1500000;
	CHECK(submit(FLASH_READ, 0, 0, 4096, read_ns - 1100), ==,
	      first_ns + 2000000 + 20000 + 8 + 4096);
	CHECK(submit(FLASH_READ, 0, 0, 4096, read_ns - 1000), ==,
	      first_ns + 2000000 + 40000 + 8 + 4096);
	CHECK(submit(FLASH_READ, 0, 0, 4096, read_ns + 600000), ==,
	      first_ns + 3040000 + 20000 + 8 + 4096);
}

static void less_than_a_unit_is_drained_after_the_delay(void)
{
	flash_u64 begun_ns;

	start(plain_config());
	begun_ns = submit(FLASH_WRITE, 0, 0, 4096, 0) + 50000000;
	flash_model_advance(&model, begun_ns);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
	flash_model_advance(&model, begun_ns + 1);
	CHECK(model.statistics.dirty_bytes, ==, 0);
	CHECK(model.cache.leaving_slots, ==, 1);
	flash_model_advance(&model, begun_ns + PROGRAM);
	CHECK(model.cache.leaving_slots, ==, 0);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 1);
}

static void full_cache_makes_a_write_wait_for_a_program(void)
{
	flash_u64 first_unit_ns = 100 + 10 + 8192, full_ns;

	start(plain_config());
	full_ns = submit(FLASH_WRITE, 0, 0, 65536, 0);
	CHECK(full_ns, ==, 100 + 10 + 65536);
	/* Room is there when the program of the first unit ends. */
	CHECK(submit(FLASH_WRITE, 0, 65536, 4096, full_ns), ==, first_unit_ns + PROGRAM + 4096);
	CHECK(model.statistics.cache_wait_ns, ==, first_unit_ns + PROGRAM - full_ns - 110);
}

static void a_slot_written_again_takes_no_more_room(void)
{
	int i;

	start(plain_config());
	for (i = 0; i < 100; i++)
		now_ns = submit(FLASH_WRITE, 0, 0, 4096, now_ns);
	CHECK(now_ns, ==, 100 * WRITE);
	CHECK(model.statistics.cache_overwritten_bytes, ==, 99 * 4096);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70 + PROGRAM + MAPPING);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 1);
}

static void fua_write_goes_past_the_cache(void)
{
	start(plain_config());
	now_ns = submit(FLASH_WRITE, 0, 65536, 4096, 0);
	/* The last of three slots begins a second unit, on the other die, 4096 ns later. */
	CHECK(submit(FLASH_WRITE, 1, 0, 12288, now_ns), ==,
	      now_ns + 100 + 10 + 12288 + PROGRAM + MAPPING);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
	CHECK(model.statistics.fua_requests, ==, 1);
	CHECK(model.statistics.write_requests, ==, 2);
}

static void fua_write_replaces_what_is_in_the_cache(void)
{
	start(plain_config());
	now_ns = submit(FLASH_WRITE, 0, 0, 4096, 0);
	submit(FLASH_WRITE, 1, 0, 4096, now_ns);
	CHECK(model.statistics.dirty_bytes, ==, 0);
	CHECK(flash_mapping_in_cache(&model, 0), ==, FLASH_NONE);
	CHECK(flash_mapping_physical(&model, 0), !=, FLASH_NONE);
}

static void fua_overhead_is_added(void)
{
	struct flash_config config = plain_config();

	config.fua_overhead_ns = 777;
	start(config);
	CHECK(submit(FLASH_WRITE, 1, 0, 4096, 0), ==, WRITE + 777 + PROGRAM + MAPPING);
}

static void without_a_cache_every_write_is_durable(void)
{
	struct flash_config config = plain_config();

	config.cache_bytes = 0;
	start(config);
	CHECK(submit(FLASH_WRITE, 0, 0, 4096, 0), ==, WRITE + PROGRAM + MAPPING);
	CHECK(model.statistics.dirty_bytes, ==, 0);
	CHECK(model.statistics.fua_requests, ==, 0);
}

static void with_power_loss_protection_flush_and_fua_cost_nothing(void)
{
	struct flash_config config = plain_config();

	config.power_loss_protection = 1;
	start(config);
	CHECK(submit(FLASH_WRITE, 1, 0, 4096, 0), ==, WRITE);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, 10000), ==, 10070);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
}

static void a_device_that_lies_keeps_nothing_by_flush_and_fua(void)
{
	struct flash_config config = plain_config();

	config.flush_lies = 1;
	start(config);
	CHECK(submit(FLASH_WRITE, 1, 0, 4096, 0), ==, WRITE);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, 10000), ==, 10070);
	CHECK(submit(FLASH_ZEROES, 1, 65536, 4096, 20000), ==, 20107);
	CHECK(model.statistics.dirty_bytes, ==, 4096);
	CHECK(model.statistics.nand_write_bytes, ==, 0);
	CHECK(flash_config_is_volatile(&model.config), ==, 1);
}

static void a_part_of_a_slot_is_completed_by_a_read(void)
{
	struct flash_config config = plain_config();

	config.cache_bytes = 0;
	start(config);
	fill(0, 2);
	CHECK(submit(FLASH_WRITE, 0, 512, 512, now_ns), ==,
	      now_ns + 110 + 20000 + 8 + PROGRAM + MAPPING);
	CHECK(model.statistics.page_reads[FLASH_FOR_HOST], ==, 1);
}

int main(void)
{
#define RUN(test) test_run(#test, test)
	RUN(cached_write_is_overhead_access_and_transfer);
	RUN(flush_programs_and_makes_the_mapping_durable_once);
	RUN(flush_programs_on_all_dies_at_once);
	RUN(flush_waits_for_the_program_that_runs);
	RUN(read_waits_for_the_program_that_runs_on_its_die);
	RUN(a_read_waits_for_none_of_the_programs_that_have_not_begun);
	RUN(less_than_a_unit_is_drained_after_the_delay);
	RUN(full_cache_makes_a_write_wait_for_a_program);
	RUN(a_slot_written_again_takes_no_more_room);
	RUN(fua_write_goes_past_the_cache);
	RUN(fua_write_replaces_what_is_in_the_cache);
	RUN(fua_overhead_is_added);
	RUN(without_a_cache_every_write_is_durable);
	RUN(with_power_loss_protection_flush_and_fua_cost_nothing);
	RUN(a_device_that_lies_keeps_nothing_by_flush_and_fua);
	RUN(a_part_of_a_slot_is_completed_by_a_read);
	return test_report();
}
