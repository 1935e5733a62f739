// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of raw NAND: times added up in the head, the rules of the part, and every error with
 * its parameter and without.
 */
#include <string.h>

#include "../../flash/test/harness.h"
#include "../model/raw_nand.h"

#define PAGES 64U
#define READ_NS (20000ULL + 2048)
#define PROGRAM_NS (2048 + 200000ULL)
#define ERASE_NS 1500000ULL

static struct raw_nand nand;
static unsigned long long tables[1 << 16];

/* Eight blocks; a byte takes a nanosecond on the channel. */
static struct raw_nand_config plain(void)
{
	return (struct raw_nand_config) {
		.capacity_bytes = 8 * PAGES * 2048,
		.page_bytes = 2048,
		.spare_bytes = 64,
		.pages_per_block = PAGES,
		.programs_per_page = 4,
		.ecc_strength_bits = 1,
		.channels = 1,
		.dies_per_channel = 1,
		.channel_bandwidth_bytes_per_s = 1000000000,
		.page_read_ns = 20000,
		.program_ns = 200000,
		.erase_ns = 1500000,
	};
}

static void start(struct raw_nand_config config)
{
	CHECK(raw_nand_check(&config).name == FLASH_NULL, ==, 1);
	CHECK(raw_nand_memory_bytes(&config), <=, sizeof(tables));
	raw_nand_init(&nand, &config, tables);
}

static void times_add_up(void)
{
	start(plain());
	CHECK(raw_nand_read(&nand, 0, 2048, 0).completion_ns, ==, READ_NS);
	CHECK(raw_nand_program(&nand, 0, 2048, 1000000).completion_ns, ==, 1000000 + PROGRAM_NS);
	CHECK(raw_nand_program(&nand, 1, 512, 2000000).completion_ns, ==, 2000000 + 512 + 200000);
	CHECK(raw_nand_erase(&nand, 0, 3000000).completion_ns, ==, 3000000 + ERASE_NS);
	CHECK(nand.statistics.busy_ns, ==, READ_NS + PROGRAM_NS + 512 + 200000 + ERASE_NS);
	CHECK(nand.statistics.nand_write_bytes, ==, 2 * 2048);
	CHECK(nand.statistics.write_bytes, ==, 2048 + 512);
}

static void two_dies_work_at_once_and_share_a_channel(void)
{
	struct raw_nand_config config = plain();

	config.dies_per_channel = 2;
	start(config);
	CHECK(raw_nand_program(&nand, 0, 2048, 0).completion_ns, ==, PROGRAM_NS);
	CHECK(raw_nand_program(&nand, PAGES, 2048, 0).completion_ns, ==, 2048 + PROGRAM_NS);
	CHECK(raw_nand_program(&nand, 2 * PAGES, 2048, 0).completion_ns, ==, PROGRAM_NS + 200000);
}

static void a_page_takes_so_many_programs(void)
{
	unsigned int i;

	start(plain());
	for (i = 0; i < 4; i++)
		CHECK(raw_nand_program(&nand, 5, 512, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(raw_nand_program(&nand, 5, 512, 0).outcome, ==, RAW_NAND_REFUSED);
	CHECK(raw_nand_erase(&nand, 0, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(raw_nand_program(&nand, 5, 512, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(nand.statistics.refused_programs, ==, 1);
}

static void without_parameters_nothing_fails(void)
{
	flash_u64 now_ns = 0, round;

	start(plain());
	for (round = 0; round < 2000; round++) {
		now_ns = raw_nand_program(&nand, round % PAGES, 2048, now_ns).completion_ns;
		CHECK(raw_nand_read(&nand, round % PAGES, 2048, now_ns).flipped_bits, ==, 0);
		if (round % PAGES == PAGES - 1)
			CHECK(raw_nand_erase(&nand, 0, now_ns).outcome, ==, RAW_NAND_DONE);
	}
	CHECK(nand.statistics.corrected_reads + nand.statistics.uncorrectable_reads +
	      nand.statistics.bad_blocks + nand.statistics.failed_erases, ==, 0);
}

static void reads_disturb_until_the_block_is_erased(void)
{
	struct raw_nand_config config = plain();
	unsigned int i;

	config.read_disturb_reads = 100;
	start(config);
	raw_nand_program(&nand, 3, 2048, 0);
	for (i = 0; i < 100; i++)
		CHECK(raw_nand_read(&nand, 3, 2048, 0).flipped_bits, ==, 0);
	for (i = 0; i < 100; i++)
		CHECK(raw_nand_read(&nand, 3, 2048, 0).flipped_bits, ==, 1);
	CHECK(raw_nand_read(&nand, 3, 2048, 0).outcome, ==, RAW_NAND_UNCORRECTABLE);
	/* An erased page of the same block, and a page of another. */
	CHECK(raw_nand_read(&nand, 4, 2048, 0).outcome, ==, RAW_NAND_DONE);
	raw_nand_program(&nand, PAGES, 2048, 0);
	CHECK(raw_nand_read(&nand, PAGES, 2048, 0).flipped_bits, ==, 0);
	raw_nand_erase(&nand, 0, 0);
	raw_nand_program(&nand, 3, 2048, 0);
	CHECK(raw_nand_read(&nand, 3, 2048, 0).flipped_bits, ==, 0);
}

static void bits_flip_as_often_as_asked_and_by_the_seed(void)
{
	struct raw_nand_config config = plain();
	flash_u64 first[2] = { 0, 0 };
	unsigned int seed, i;

	config.flipped_reads_per_million = 100000;
	for (seed = 1; seed <= 2; seed++) {
		config.error_seed = seed;
		start(config);
		raw_nand_program(&nand, 3, 2048, 0);
		for (i = 0; i < 10000; i++)
			if (raw_nand_read(&nand, 3, 2048, 0).flipped_bits && !first[seed - 1])
				first[seed - 1] = i + 1;
		CHECK(nand.statistics.corrected_reads, >=, 900);
		CHECK(nand.statistics.corrected_reads, <=, 1100);
	}
	CHECK(first[0], !=, first[1]);
}

static void bad_blocks_refuse(void)
{
	struct raw_nand_config config = plain();
	unsigned int block, bad = 0;

	config.factory_bad_blocks = 3;
	start(config);
	CHECK(raw_nand_is_bad(&nand, 0), ==, 0);
	for (block = 0; block < 8; block++) {
		int is_bad = raw_nand_is_bad(&nand, block);

		bad += is_bad;
		CHECK(raw_nand_erase(&nand, block, 0).outcome == RAW_NAND_FAILED, ==, is_bad);
		CHECK(raw_nand_program(&nand, block * PAGES, 2048, 0).outcome == RAW_NAND_FAILED,
		      ==, is_bad);
	}
	CHECK(bad, ==, 3);
	raw_nand_mark_bad(&nand, 0);
	CHECK(raw_nand_is_bad(&nand, 0), ==, 1);
	CHECK(nand.statistics.bad_blocks, ==, 4);
}

static void a_worn_block_cannot_be_erased(void)
{
	struct raw_nand_config config = plain();
	unsigned int i;

	config.endurance_erases = 5;
	start(config);
	for (i = 0; i < 5; i++)
		CHECK(raw_nand_erase(&nand, 1, 0).outcome, ==, RAW_NAND_DONE);
	raw_nand_program(&nand, PAGES, 2048, 0);
	CHECK(raw_nand_erase(&nand, 1, 0).outcome, ==, RAW_NAND_FAILED);
	/* What it holds is still there to be copied, and nothing goes beside it. */
	CHECK(raw_nand_read(&nand, PAGES, 2048, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(raw_nand_program(&nand, PAGES + 1, 2048, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(nand.statistics.failed_erases, ==, 1);
	CHECK(raw_nand_erase(&nand, 2, 0).outcome, ==, RAW_NAND_DONE);
}

static void after_a_rest_nothing_is_under_way(void)
{
	start(plain());
	raw_nand_program(&nand, 0, 2048, 1000000);
	raw_nand_rest(&nand);
	CHECK(raw_nand_read(&nand, 0, 2048, 0).completion_ns, ==, READ_NS);
}

static void a_cut_tears_a_program(void)
{
	struct raw_nand_config config = plain();

	config.cut_after_operations = 2;
	start(config);
	CHECK(raw_nand_program(&nand, 0, 2048, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(raw_nand_program(&nand, 1, 2048, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(raw_nand_program(&nand, 2, 2048, 0).outcome, ==, RAW_NAND_CUT);
	CHECK(raw_nand_read(&nand, 0, 2048, 0).outcome, ==, RAW_NAND_OFF);
	CHECK(raw_nand_program(&nand, 3, 2048, 0).outcome, ==, RAW_NAND_OFF);
	raw_nand_power_on(&nand, 0);
	CHECK(raw_nand_read(&nand, 1, 2048, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(raw_nand_read(&nand, 2, 2048, 0).outcome, ==, RAW_NAND_UNCORRECTABLE);
	CHECK(raw_nand_program(&nand, 3, 2048, 0).outcome, ==, RAW_NAND_DONE);
}

static void a_cut_tears_an_erase(void)
{
	start(plain());
	raw_nand_program(&nand, 1, 2048, 0);
	raw_nand_power_on(&nand, 1);
	raw_nand_program(&nand, 0, 2048, 0);
	CHECK(raw_nand_erase(&nand, 0, 0).outcome, ==, RAW_NAND_CUT);
	raw_nand_power_on(&nand, 0);
	CHECK(raw_nand_read(&nand, 1, 2048, 0).outcome, ==, RAW_NAND_UNCORRECTABLE);
	CHECK(raw_nand_read(&nand, 9, 2048, 0).outcome, ==, RAW_NAND_DONE);
	CHECK(raw_nand_erase(&nand, 0, 0).outcome, ==, RAW_NAND_DONE);
	raw_nand_program(&nand, 1, 2048, 0);
	CHECK(raw_nand_read(&nand, 1, 2048, 0).outcome, ==, RAW_NAND_DONE);
}

static unsigned int ones(const unsigned char *bytes, unsigned int length)
{
	unsigned int count = 0, i;

	for (i = 0; i < length * 8; i++)
		count += bytes[i / 8] >> i % 8 & 1;
	return count;
}

static void what_cannot_be_corrected_is_given_wrong(void)
{
	static const unsigned int lengths[] = { 1, 64, 512, 2048 };
	struct raw_nand_config config = plain();
	struct raw_nand_result result;
	unsigned int i;

	config.cut_after_operations = 1;
	start(config);
	raw_nand_program(&nand, 0, 2048, 0);
	CHECK(raw_nand_read(&nand, 0, 2048, 0).wrong_bits, ==, 0);
	raw_nand_program(&nand, 1, 2048, 0);
	raw_nand_power_on(&nand, 0);
	result = raw_nand_read(&nand, 1, 2048, 0);
	CHECK(result.outcome, ==, RAW_NAND_UNCORRECTABLE);
	CHECK(result.wrong_bits, ==, config.ecc_strength_bits + 1);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		unsigned char once[2048] = { 0 }, twice[2048] = { 0 };

		raw_nand_spoil(&nand, 1, result.wrong_bits, once, lengths[i]);
		raw_nand_spoil(&nand, 1, result.wrong_bits, twice, lengths[i]);
		CHECK(ones(once, 2048), >=, result.wrong_bits);
		CHECK(ones(once, 2048), <=, result.wrong_bits + 1);
		CHECK(ones(once, lengths[i]), ==, ones(once, 2048));
		CHECK(memcmp(once, twice, sizeof(once)), ==, 0);
		raw_nand_spoil(&nand, 1, ~0U, twice, lengths[i]);
		CHECK(memcmp(once, twice, lengths[i]) == 0, ==, 0);
	}
}

static void wrong_parameters_are_named(void)
{
	struct raw_nand_config config = plain();

	config.page_bytes = 3000;
	CHECK(strcmp(raw_nand_check(&config).name, "page_bytes") == 0, ==, 1);
	config = plain();
	config.capacity_bytes += 2048;
	CHECK(strcmp(raw_nand_check(&config).name, "capacity_bytes") == 0, ==, 1);
	config = plain();
	config.program_ns = FLASH_NOT_GIVEN;
	CHECK(strcmp(raw_nand_check(&config).name, "program_ns") == 0, ==, 1);
	config = plain();
	config.factory_bad_blocks = 5;
	CHECK(strcmp(raw_nand_check(&config).name, "factory_bad_blocks") == 0, ==, 1);
}

int main(void)
{
	test_run("times_add_up", times_add_up);
	test_run("two_dies_work_at_once_and_share_a_channel",
		 two_dies_work_at_once_and_share_a_channel);
	test_run("a_page_takes_so_many_programs", a_page_takes_so_many_programs);
	test_run("without_parameters_nothing_fails", without_parameters_nothing_fails);
	test_run("reads_disturb_until_the_block_is_erased",
		 reads_disturb_until_the_block_is_erased);
	test_run("bits_flip_as_often_as_asked_and_by_the_seed",
		 bits_flip_as_often_as_asked_and_by_the_seed);
	test_run("bad_blocks_refuse", bad_blocks_refuse);
	test_run("a_worn_block_cannot_be_erased", a_worn_block_cannot_be_erased);
	test_run("after_a_rest_nothing_is_under_way", after_a_rest_nothing_is_under_way);
	test_run("a_cut_tears_a_program", a_cut_tears_a_program);
	test_run("a_cut_tears_an_erase", a_cut_tears_an_erase);
	test_run("what_cannot_be_corrected_is_given_wrong",
		 what_cannot_be_corrected_is_given_wrong);
	test_run("wrong_parameters_are_named", wrong_parameters_are_named);
	return test_report();
}
