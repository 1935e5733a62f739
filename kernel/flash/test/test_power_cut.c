// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of what a power cut leaves. A write is issued at 100 and completes at 200. */
#include "../model/power_cut.h"
#include "device.h"

static struct flash_power_cut at(flash_u64 cut_ns, enum flash_survivors survivors)
{
	struct flash_power_cut cut = { .cut_ns = cut_ns, .survivors = survivors };

	cut.volatile_cache = 1;
	return cut;
}

static unsigned int keeps(const struct flash_power_cut *cut, unsigned int fua)
{
	return flash_power_cut_keeps(cut, 100, 200, fua, 7, 3);
}

static void what_was_not_issued_is_never_there(void)
{
	struct flash_power_cut cut = at(99, FLASH_SURVIVORS_ALL);

	CHECK(keeps(&cut, 0), ==, 0);
	CHECK(keeps(&cut, 1), ==, 0);
}

static void what_is_in_the_cache_is_as_the_survivors_say(void)
{
	struct flash_power_cut none = at(1000, FLASH_SURVIVORS_NONE);
	struct flash_power_cut all = at(1000, FLASH_SURVIVORS_ALL);

	CHECK(keeps(&none, 0), ==, 0);
	CHECK(keeps(&all, 0), ==, 1);
}

static void completed_fua_is_durable_and_fua_under_way_is_not(void)
{
	struct flash_power_cut completed = at(200, FLASH_SURVIVORS_NONE);
	struct flash_power_cut under_way = at(199, FLASH_SURVIVORS_NONE);

	CHECK(keeps(&completed, 1), ==, 1);
	CHECK(keeps(&under_way, 1), ==, 0);
}

static void a_flush_covers_what_had_completed_when_it_was_issued(void)
{
	struct flash_power_cut cut = at(400, FLASH_SURVIVORS_NONE);

	flash_power_cut_flush(&cut, 199, 300);	/* too early for the write */
	CHECK(keeps(&cut, 0), ==, 0);
	flash_power_cut_flush(&cut, 200, 401);	/* not completed before the cut */
	CHECK(keeps(&cut, 0), ==, 0);
	flash_power_cut_flush(&cut, 200, 400);
	CHECK(keeps(&cut, 0), ==, 1);
	flash_power_cut_flush(&cut, 150, 350);	/* an earlier one takes nothing back */
	CHECK(keeps(&cut, 0), ==, 1);
}

static void without_a_volatile_cache_completed_is_durable(void)
{
	struct flash_power_cut cut = at(200, FLASH_SURVIVORS_NONE);

	cut.volatile_cache = 0;
	CHECK(keeps(&cut, 0), ==, 1);
	cut.cut_ns = 199;
	CHECK(keeps(&cut, 0), ==, 0);
}

static void a_device_that_lies_has_nothing_durable_by_flush_or_fua(void)
{
	struct flash_power_cut cut = at(1000, FLASH_SURVIVORS_NONE);

	cut.flush_lies = 1;
	flash_power_cut_flush(&cut, 200, 400);
	CHECK(keeps(&cut, 0), ==, 0);
	CHECK(keeps(&cut, 1), ==, 0);
	cut.survivors = FLASH_SURVIVORS_ALL;
	CHECK(keeps(&cut, 1), ==, 1);
}

static void some_are_about_half_and_the_same_for_the_same_seed(void)
{
	struct flash_power_cut cut = at(1000, FLASH_SURVIVORS_SOME), again = cut, other = cut;
	unsigned int kept = 0, differ = 0;
	flash_u64 slot;

	other.seed = 1;
	for (slot = 0; slot < 1000; slot++) {
		unsigned int one = flash_power_cut_keeps(&cut, 100, 200, 0, slot % 10, slot);

		kept += one;
		CHECK(flash_power_cut_keeps(&again, 100, 200, 0, slot % 10, slot), ==, one);
		differ += one != flash_power_cut_keeps(&other, 100, 200, 0, slot % 10, slot);
	}
	CHECK(kept, >, 400);
	CHECK(kept, <, 600);
	CHECK(differ, >, 400);
}

int main(void)
{
#define RUN(test) test_run(#test, test)
	RUN(what_was_not_issued_is_never_there);
	RUN(what_is_in_the_cache_is_as_the_survivors_say);
	RUN(completed_fua_is_durable_and_fua_under_way_is_not);
	RUN(a_flush_covers_what_had_completed_when_it_was_issued);
	RUN(without_a_volatile_cache_completed_is_durable);
	RUN(a_device_that_lies_has_nothing_durable_by_flush_or_fua);
	RUN(some_are_about_half_and_the_same_for_the_same_seed);
	return test_report();
}
