// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the FTL: mapping cache, garbage collection, wear levelling and ageing, on a device
 * of 2048 slots in rows of 32, of which 80 are there (harness.c).
 */
#include "device.h"

static flash_u64 random_state;

/* Writes single slots of the first `slots` at random, a flush after every unit's worth. */
static void overwrite(flash_u32 slots, flash_u32 writes)
{
	flash_u32 i;

	for (i = 0; i < writes; i++) {
		now_ns = submit(FLASH_WRITE, 0, random_below(&random_state, slots) * 4096, 4096,
				now_ns);
		if (i % 2)
			now_ns = submit(FLASH_FLUSH, 0, 0, 0, now_ns);
	}
}

static void fill_all(void)
{
	flash_u32 slot;

	for (slot = 0; slot < 2048; slot += 16)
		fill(slot, 16);
	random_state = 1;
}

static flash_u64 gc_programs(enum flash_gc_policy policy)
{
	struct flash_config config = plain_config();
	flash_u32 i;

	config.gc_policy = policy;
	config.mapping_program_ns = 0;
	start(config);
	fill_all();
	for (i = 0; i < 20000; i++)	/* nine writes of ten go to a tenth of the disk */
		overwrite(random_below(&random_state, 10) ? 205 : 2048, 2);
	return model.statistics.programs[FLASH_FOR_GC];
}

static void writing_in_order_moves_nothing(void)
{
	int i;

	start(plain_config());
	for (i = 0; i < 5; i++)
		fill_all();
	CHECK(model.statistics.erases[FLASH_FOR_GC], >, 4 * 64 * 2);
	CHECK(model.statistics.programs[FLASH_FOR_GC], ==, 0);
}

static void writing_at_random_moves_valid_data(void)
{
	start(plain_config());
	fill_all();
	overwrite(2048, 20000);
	CHECK(model.statistics.programs[FLASH_FOR_GC], >, 1000);
	CHECK(model.statistics.nand_write_bytes, >, model.statistics.write_bytes);
}

static void cost_benefit_moves_less_than_greedy_when_some_data_are_hot(void)
{
	flash_u64 greedy = gc_programs(FLASH_GC_GREEDY);

	CHECK(greedy, >, 1000);
	CHECK(gc_programs(FLASH_GC_COST_BENEFIT), <, greedy);
}

static flash_u32 wear_spread(flash_u64 wear_spread_max)
{
	struct flash_config config = plain_config();

	config.wear_spread_max = wear_spread_max;
	start(config);
	fill_all();
	overwrite(64, 100000);		/* the rest rests */
	return flash_rows_wear_spread(&model);
}

static void wear_levelling_keeps_the_spread_small(void)
{
	CHECK(wear_spread(0), >, 100);
	CHECK(wear_spread(20), <, 30);
	CHECK(model.statistics.erases[FLASH_FOR_WEAR], >, 0);
}

static void a_small_mapping_cache_makes_random_access_pay(void)
{
	struct flash_config config = plain_config();
	flash_u64 hit_ns, miss_ns, cold_ns;

	config.mapping_cache_bytes = 4096;	/* one of the table's two parts */
	start(config);
	fill_all();
	submit(FLASH_READ, 0, 0, 4096, now_ns);
	now_ns += 1000000000;
	hit_ns = submit(FLASH_READ, 0, 0, 4096, now_ns) - now_ns;
	CHECK(hit_ns, ==, 100 + 1000 + 20000 + 8 + 4096);
	now_ns += 1000000000;
	miss_ns = submit(FLASH_READ, 0, 1024 * 4096, 4096, now_ns) - now_ns;
	CHECK(miss_ns, ==, hit_ns + 20000 + 8);
	/* A part that was changed is written back before another takes its place. */
	submit(FLASH_WRITE, 0, 1024 * 4096, 4096, now_ns + 1000000000);
	submit(FLASH_FLUSH, 0, 0, 0, now_ns + 2000000000);
	now_ns += 3000000000;
	cold_ns = model.statistics.programs[FLASH_FOR_MAPPING];
	submit(FLASH_READ, 0, 0, 4096, now_ns);
	CHECK(model.statistics.programs[FLASH_FOR_MAPPING], ==, cold_ns + 1);
}

static void age(flash_u64 preload_percent, flash_u64 overwrite_percent, flash_u64 seed)
{
	struct flash_config config = plain_config();

	config.preload_percent = preload_percent;
	config.overwrite_percent = overwrite_percent;
	config.ageing_seed = seed;
	start(config);
	fill(0, 16);
	flash_ageing_begin(&model);
	while (flash_ageing_continue(&model, 100))
		;
	flash_ageing_end(&model, now_ns);
}

static flash_u64 hash_of_map(void)
{
	flash_u64 hash = 0;
	flash_u32 i;

	for (i = 0; i < model.geometry.disk_slots; i++)
		hash = hash * 1000003 + model.map[i];
	return hash;
}

static void ageing_fills_without_being_counted(void)
{
	flash_u32 i, mapped = 0;

	age(50, 300, 1);
	for (i = 0; i < model.geometry.disk_slots; i++)
		mapped += model.map[i] != FLASH_NONE;
	CHECK(mapped, ==, 1024);
	CHECK(model.statistics.programs[FLASH_FOR_HOST], ==, 8);
	CHECK(model.statistics.erases[FLASH_FOR_GC], ==, 0);
	CHECK(submit(FLASH_FLUSH, 0, 0, 0, now_ns), ==, now_ns + 70);
}

static void ageing_depends_on_its_numbers_alone(void)
{
	flash_u64 hash;

	age(90, 100, 1);
	hash = hash_of_map();
	age(90, 100, 1);
	CHECK(hash_of_map(), ==, hash);
	age(90, 100, 2);
	CHECK(hash_of_map(), !=, hash);
}

static void an_aged_device_collects_garbage_from_the_start(void)
{
	age(100, 0, 1);
	overwrite(2048, 100);
	CHECK(model.statistics.programs[FLASH_FOR_GC], ==, 0);
	age(100, 200, 1);
	overwrite(2048, 100);
	CHECK(model.statistics.programs[FLASH_FOR_GC], >, 50);
}

int main(void)
{
#define RUN(test) test_run(#test, test)
	RUN(writing_in_order_moves_nothing);
	RUN(writing_at_random_moves_valid_data);
	RUN(cost_benefit_moves_less_than_greedy_when_some_data_are_hot);
	RUN(wear_levelling_keeps_the_spread_small);
	RUN(a_small_mapping_cache_makes_random_access_pay);
	RUN(ageing_fills_without_being_counted);
	RUN(ageing_depends_on_its_numbers_alone);
	RUN(an_aged_device_collects_garbage_from_the_start);
	return test_report();
}
