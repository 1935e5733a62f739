// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of what not every device has, on a device of round numbers (harness.c) that has one of
 * it at a time: two dies of units of two slots. Every other test is of a device without.
 */
#include "../model/unreadable.h"
#include "device.h"

#define READ (100 + 1000 + 4096)
#define WRITE (100 + 10 + 4096)
#define PROGRAM (16 + 1000000)	/* a unit of two slots over the channel */
#define MAPPING (16 + 3000000)
#define SECOND 1000000000ULL

static void a_flush_that_drains_the_queue_waits_for_all_and_all_wait_for_it(void)
{
	struct flash_config config = plain_config();
	flash_u64 read_ns, flushed_ns;
	int drains;

	config.queue_depth = 8;
	for (drains = 0; drains < 2; drains++) {
		config.flush_drains_queue = drains;
		start(config);
		fill(0, 4);
		read_ns = submit(FLASH_READ, 0, 0, 4096, now_ns);
		flushed_ns = submit(FLASH_FLUSH, 0, 0, 0, now_ns + 100);
		CHECK(flushed_ns, ==, (drains ? read_ns : now_ns + 100) + 70);
		submit(FLASH_WRITE, 0, 65536, 4096, read_ns);
		flushed_ns = submit(FLASH_FLUSH, 0, 0, 0, read_ns + WRITE);
		read_ns = submit(FLASH_READ, 0, 1 << 20, 4096, read_ns + WRITE + 100);
		CHECK(read_ns >= flushed_ns + READ, ==, drains);
	}
}

static void a_flush_with_a_tail_takes_longer_now_and_then(void)
{
	struct flash_config config = plain_config();
	flash_u64 plain_ns = 70 + PROGRAM + MAPPING, longer_ns, i;
	unsigned int tails = 0, above[3] = { 0 };

	config.capacity_bytes = 64 << 20;	/* so that no garbage is collected */
	config.flush_tail_permille = 250;
	config.flush_tail_ns = 1000;
	config.flush_tail_seed = 5;
	start(config);
	for (i = 0; i < 4000; i++) {
		now_ns = submit(FLASH_WRITE, 0, 0, 4096, now_ns);
		longer_ns = submit(FLASH_FLUSH, 0, 0, 0, now_ns) - now_ns - plain_ns;
		tails += longer_ns > 0;
		above[0] += longer_ns > 1000;
		above[1] += longer_ns > 2000;
		above[2] += longer_ns > 16000;
		now_ns += 10000000;
	}
	CHECK(tails, >, 900);
	CHECK(tails, <, 1100);
	CHECK(above[0], >, tails * 45 / 100);
	CHECK(above[0], <, tails * 55 / 100);
	CHECK(above[1], >, tails * 20 / 100);
	CHECK(above[1], <, tails * 30 / 100);
	CHECK(above[2], ==, 0);
	/* Nothing to write: nothing to wait for. */
	for (i = 0; i < 100; i++)
		CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns + i * 70), ==, now_ns + (i + 1) * 70);
}

static void another_seed_draws_other_tails_and_the_same_seed_the_same(void)
{
	struct flash_config config = plain_config(), other;
	flash_u64 i, differ = 0;

	config.flush_tail_permille = 500;
	config.flush_tail_ns = 1000;
	other = config;
	other.flush_tail_seed = 1;
	for (i = 0; i < 1000; i++) {
		flash_u64 tail_ns = flash_flush_tail_ns(&config, i);

		CHECK(flash_flush_tail_ns(&config, i), ==, tail_ns);
		differ += flash_flush_tail_ns(&other, i) != tail_ns;
	}
	CHECK(differ, >, 500);
}

static void a_device_that_sleeps_takes_time_to_wake_up(void)
{
	struct flash_config config = plain_config();

	config.sleep_after_ns = 1000000;
	config.wake_up_ns = 500;
	start(config);
	now_ns = submit(FLASH_READ, 0, 0, 4096, 1000000);
	CHECK(now_ns, ==, 1000000 + READ);
	now_ns += 1000000;
	CHECK(submit(FLASH_READ, 0, 0, 4096, now_ns), ==, now_ns + READ);
	now_ns += READ + 1000001;
	CHECK(submit(FLASH_READ, 0, 0, 4096, now_ns), ==, now_ns + 500 + READ);
	CHECK(model.statistics.wake_ups, ==, 1);
}

static void a_read_suspends_the_program_that_runs(void)
{
	struct flash_config config = plain_config();
	flash_u64 begin_ns, read_ns, flushed_ns;

	config.queue_depth = 8;
	config.suspend_ns = 5000;
	start(config);
	fill(0, 4);
	/* The units of 16 slots: four programs on each die, one after another. */
	submit(FLASH_WRITE, 0, 65536, 65536, now_ns);
	begin_ns = now_ns + 100 + 10 + 8192 + 16;
	flushed_ns = submit(FLASH_FLUSH, 0, 0, 0, now_ns + 100 + 10 + 65536);
	read_ns = begin_ns + 1500000;
	CHECK(submit(FLASH_READ, 0, 0, 4096, read_ns - 1100), ==,
	      read_ns + 5000 + 20000 + 8 + 4096);
	/* What is left of it goes on, and is suspended again: it still has 495 us to go. */
	CHECK(submit(FLASH_READ, 0, 0, 4096, read_ns + 25000 + 490000 - 1100), ==,
	      read_ns + 25000 + 495000 + 20000 + 8 + 4096);
	CHECK(model.nand.die[0].free_ns, <=, flushed_ns + 40000);
	CHECK(model.nand.die[0].free_ns, >=, begin_ns + 4000000 + 40000);
}

/* The suspended one against the other, over what dies are given in a random order. */
static void a_read_of_a_die_that_suspends_waits_no_longer(void)
{
	flash_u64 state = 1, submit_ns = 1, longest_ns = 0;
	struct flash_die suspends = { 0 };
	int i;

	for (i = 0; i < 100000; i++) {
		flash_u64 duration_ns = 1 + random_below(&state, 1000);
		flash_u64 free_ns = suspends.free_ns, end_ns;

		submit_ns += random_below(&state, 500);
		flash_die_forget(&suspends, submit_ns);
		if (random_below(&state, 2)) {
			flash_die_append(&suspends, duration_ns, submit_ns);
			continue;
		}
		end_ns = flash_die_read(&suspends, 10, 30, submit_ns);
		longest_ns = flash_max(longest_ns, end_ns - submit_ns);
		/* No work is lost, and none is made. */
		CHECK(suspends.free_ns, >=, free_ns);
		CHECK(suspends.free_ns, <=, flash_max(free_ns, end_ns) + 10);
	}
	/* At most a stop, and the reads that came just before. */
	CHECK(longest_ns, <, 200);
}

static void a_buffer_of_single_level_cells_is_fast_until_it_is_full(void)
{
	struct flash_config config = plain_config();
	int i;

	config.slc_buffer_bytes = 8 * 8192;
	config.slc_program_ns = 200000;
	start(config);
	for (i = 0; i < 10; i++) {
		now_ns = submit(FLASH_WRITE, 0, i * 8192, 8192, now_ns);
		CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==,
		      now_ns + 70 + 16 + (i < 8 ? 200000 : 1000000) + MAPPING);
		now_ns = model.busy_until_ns;
	}
	CHECK(model.statistics.slc_programs, ==, 8);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 10);
	CHECK(model.statistics.programs[FLASH_FOR_SLC], ==, 0);
	/* Without rest there is never room again. */
	submit(FLASH_FLUSH, 0, 0, 0, now_ns + 100 * SECOND);
	CHECK(model.slc_buffer.used_units, ==, 8);
}

static void at_rest_the_buffer_is_emptied_of_what_is_still_valid(void)
{
	struct flash_config config = plain_config();

	config.slc_buffer_bytes = 8 * 8192;
	config.slc_program_ns = 200000;
	config.idle_work_delay_ns = 1000000;
	start(config);
	now_ns = submit(FLASH_WRITE, 1, 0, 6 * 8192, 0);
	submit(FLASH_DISCARD, 0, 0, 8192, now_ns);	/* one unit of six */
	now_ns = model.busy_until_ns;
	CHECK(model.slc_buffer.used_units, ==, 6);
	flash_model_advance(&model, now_ns + 1000000);
	CHECK(model.slc_buffer.used_units, ==, 6);
	flash_model_advance(&model, now_ns + SECOND);
	CHECK(model.slc_buffer.used_units, ==, 0);
	CHECK(model.statistics.programs[FLASH_FOR_SLC], ==, 5);
	CHECK(model.statistics.page_reads[FLASH_FOR_SLC], ==, 5);
	CHECK(model.statistics.slc_programs, ==, 6);
	/* Two dies: three rounds of at most two, each a page read and a program. */
	CHECK(model.statistics.idle_rounds, ==, 3);
	now_ns = submit(FLASH_WRITE, 0, 1 << 20, 8192, now_ns + 2 * SECOND);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70 + 16 + 200000 + MAPPING);
}

/* Random writes, a rest after every hundred: what garbage collection adds to the writes' time. */
static flash_u64 write_ns(flash_u64 idle_gc_rows)
{
	struct flash_config config = plain_config();
	flash_u64 state = 1, sum_ns = 0;
	int i;

	config.idle_gc_rows = idle_gc_rows;
	config.idle_work_delay_ns = idle_gc_rows ? 1000000 : 0;
	config.mapping_program_ns = 0;
	config.cache_bytes = 0;
	config.preload_percent = 70;
	config.overwrite_percent = 200;
	start(config);
	flash_ageing_begin(&model);
	while (flash_ageing_continue(&model, ~0U))
		;
	flash_ageing_end(&model, 0);
	for (i = 0; i < 5000; i++) {
		flash_u64 begin_ns = now_ns;

		now_ns = submit(FLASH_WRITE, 0, random_below(&state, 1024) * 4096, 4096, begin_ns);
		sum_ns += now_ns - begin_ns;
		if (i % 100 == 99)
			now_ns += 10 * SECOND;
	}
	return sum_ns;
}

static void what_is_collected_at_rest_need_not_be_beside_writes(void)
{
	flash_u64 beside_ns = write_ns(0), at_rest_ns = write_ns(12);

	CHECK(model.statistics.erases[FLASH_FOR_GC], >, 0);
	CHECK(at_rest_ns, <, beside_ns);
}

static void a_sector_is_unreadable_until_it_is_written_and_again_in_the_same_state(void)
{
	unsigned long word = flash_unreadable_choose(0, 0, 0x0f, 0xf0);

	CHECK(flash_unreadable_now(word), ==, 0x0f);
	word = flash_unreadable_write(word, 0x03);
	CHECK(flash_unreadable_now(word), ==, 0x0c);
	CHECK(flash_unreadable_now(flash_unreadable_restore(word, 0)), ==, 0x0f);
	CHECK(flash_unreadable_clear(word, 0), ==, 0);
	CHECK(flash_unreadable_now(flash_unreadable_choose(word, 0, 0, 0xff)), ==, 0);
}

static void a_cut_of_a_recovery_has_the_unreadable_sectors_that_it_did_not_write(void)
{
	unsigned long word = flash_unreadable_choose(0, 0, 0x0f, 0xf0);

	word = flash_unreadable_clear(flash_unreadable_write(word, 0xff), 1);
	CHECK(flash_unreadable_now(word), ==, 0x0f);
	/* Sector 0 survived, sector 7 was torn, the others are as before the recovery. */
	word = flash_unreadable_choose(word, 1, 0x80, 0x7e);
	CHECK(flash_unreadable_now(word), ==, 0x8e);
	word = flash_unreadable_write(word, 0xff);
	CHECK(flash_unreadable_now(flash_unreadable_restore(word, 1)), ==, 0x8e);
	CHECK(flash_unreadable_now(flash_unreadable_clear(word, 1)), ==, 0x0f);
	CHECK(flash_unreadable_now(flash_unreadable_restore(word, 0)), ==, 0x0f);
}

static void mechanisms_that_cannot_be_are_refused(void)
{
	struct flash_config config = plain_config();

	config.slc_buffer_bytes = config.capacity_bytes + 1;
	config.slc_program_ns = 1;
	CHECK(flash_model_check(&config).name != FLASH_NULL, ==, 1);
	config.slc_buffer_bytes = config.capacity_bytes;
	CHECK(flash_model_check(&config).name == FLASH_NULL, ==, 1);
	config.slc_program_ns = 0;
	CHECK(flash_model_check(&config).name != FLASH_NULL, ==, 1);
	config.slc_buffer_bytes = 0;
	config.atomic_write_bytes = 16384;
	CHECK(flash_model_check(&config).name == FLASH_NULL, ==, 1);
	config.atomic_write_bytes = 12288;
	CHECK(flash_model_check(&config).name != FLASH_NULL, ==, 1);
	config.atomic_write_bytes = 2048;
	CHECK(flash_model_check(&config).name != FLASH_NULL, ==, 1);
}

int main(void)
{
#define RUN(test) test_run(#test, test)
	RUN(a_flush_that_drains_the_queue_waits_for_all_and_all_wait_for_it);
	RUN(a_flush_with_a_tail_takes_longer_now_and_then);
	RUN(another_seed_draws_other_tails_and_the_same_seed_the_same);
	RUN(a_device_that_sleeps_takes_time_to_wake_up);
	RUN(a_read_suspends_the_program_that_runs);
	RUN(a_read_of_a_die_that_suspends_waits_no_longer);
	RUN(a_buffer_of_single_level_cells_is_fast_until_it_is_full);
	RUN(at_rest_the_buffer_is_emptied_of_what_is_still_valid);
	RUN(what_is_collected_at_rest_need_not_be_beside_writes);
	RUN(a_sector_is_unreadable_until_it_is_written_and_again_in_the_same_state);
	RUN(a_cut_of_a_recovery_has_the_unreadable_sectors_that_it_did_not_write);
	RUN(mechanisms_that_cannot_be_are_refused);
	return test_report();
}
