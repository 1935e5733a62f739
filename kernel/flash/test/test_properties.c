// SPDX-License-Identifier: GPL-2.0-only
/*
 * Properties of the timing model over random configurations and requests.
 *   test_properties [sequences [seed]]
 * Every sequence has its own seed, which is printed when a property fails; `test_properties 1 SEED`
 * runs that sequence alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "properties.h"

#define OPERATIONS_PER_SEQUENCE 1000

typedef void (*property)(struct sequence *sequence, const struct flash_request *request,
			 flash_u64 gap_ns, flash_u64 random);

static flash_u64 sequences = 1000, first_seed = 1;
static flash_u64 operations, erases, wear_erases, mapping_programs, slc_moves, idle_rounds;

/* 0 to 2^bits - 1, every order of magnitude as likely as another. */
static flash_u64 random_magnitude(flash_u64 *state, unsigned int bits)
{
	return random_next(state) >> (64 - 1 - random_below(state, bits)) >> 1;
}

/* Half of the devices have some, each about every second of them. */
static void add_mechanisms(struct flash_config *config, flash_u64 *state)
{
	flash_u64 which = random_below(state, 2) ? random_next(state) : 0;

	config->flush_drains_queue = which & 1;
	config->flush_tail_permille = which & 2 ? random_below(state, 1001) : 0;
	config->flush_tail_ns = random_magnitude(state, 20);
	config->sleep_after_ns = which & 4 ? random_magnitude(state, 24) : 0;
	config->wake_up_ns = random_magnitude(state, 20);
	config->suspend_ns = which & 8 ? random_magnitude(state, 18) : 0;
	if (which & 16)
		config->slc_buffer_bytes = random_below(state, config->capacity_bytes);
	config->slc_program_ns = 1 + random_magnitude(state, 20);
	config->idle_work_delay_ns = which & 32 ? random_magnitude(state, 20) : 0;
	config->idle_gc_rows = which & 64 ? random_below(state, 40) : 0;
}

/* Small devices, so that data are overwritten and collected many times. */
static struct flash_config random_config(flash_u64 *state)
{
	struct flash_config config = plain_config();

	config.capacity_bytes = FLASH_SLOT_BYTES * (256 + random_below(state, 1024));
	config.queue_depth = random_below(state, 2) ? 1 : 1 + random_below(state, 32);
	config.half_duplex = random_below(state, 2);
	config.packed_writes = random_below(state, 4) ? 1 : 1 + random_below(state, 8);
	config.command_overhead_ns = random_magnitude(state, 20);
	config.read_command_ns = random_magnitude(state, 16);
	config.write_command_ns = random_magnitude(state, 16);
	config.read_access_ns = random_magnitude(state, 20);
	config.read_bandwidth_bytes_per_s = 1000000 + random_magnitude(state, 33);
	config.write_access_ns = random_magnitude(state, 20);
	config.write_bandwidth_bytes_per_s = 1000000 + random_magnitude(state, 33);
	config.channels = 1 + random_below(state, 3);
	config.dies_per_channel = 1 + random_below(state, 3);
	config.channel_bandwidth_bytes_per_s = 1000000 + random_magnitude(state, 33);
	config.program_unit_bytes = FLASH_SLOT_BYTES * (1 + random_below(state, 4));
	config.units_per_erase_block = 2 + random_below(state, 6);
	config.page_read_ns = 1 + random_magnitude(state, 18);
	config.program_ns = 1 + random_magnitude(state, 21);
	config.erase_ns = 1 + random_magnitude(state, 23);
	config.mapping_program_ns = random_magnitude(state, 21);
	config.mapping_cache_bytes = random_below(state, 3) ? FLASH_SLOT_BYTES : 0;
	config.over_provisioning_percent = 20 + random_below(state, 200);
	config.gc_policy = random_below(state, 2);
	config.wear_spread_max = random_below(state, 2) * (1 + random_below(state, 10));
	config.cache_bytes = config.program_unit_bytes + random_magnitude(state, 20);
	if (random_below(state, 8) == 0)
		config.cache_bytes = 0;
	config.power_loss_protection = random_below(state, 8) == 0;
	config.drain_delay_ns = random_magnitude(state, 24);
	config.flush_overhead_ns = random_magnitude(state, 18);
	config.fua_overhead_ns = random_magnitude(state, 20);
	config.discard_ns = random_magnitude(state, 20);
	config.zeroes_ns = random_magnitude(state, 20);
	config.preload_percent = random_below(state, 101);
	config.overwrite_percent = random_below(state, 200);
	config.ageing_seed = random_below(state, 1000);
	config.flush_lies = random_below(state, 16) == 0;
	add_mechanisms(&config, state);
	return config;
}

static struct flash_request random_request(flash_u64 *state, const struct flash_config *config)
{
	static const enum flash_operation operations[] = {
		FLASH_WRITE, FLASH_WRITE, FLASH_WRITE, FLASH_WRITE, FLASH_WRITE, FLASH_WRITE,
		FLASH_WRITE, FLASH_WRITE, FLASH_WRITE, FLASH_WRITE, FLASH_READ, FLASH_READ,
		FLASH_FLUSH, FLASH_FLUSH, FLASH_DISCARD, FLASH_ZEROES,
	};
	struct flash_request request = { operations[random_below(state, 16)], 0, 0, 0 };
	flash_u64 sectors = config->capacity_bytes / 512, length;

	if (request.operation == FLASH_FLUSH)
		return request;
	length = 1 + random_magnitude(state, 8);
	if (random_below(state, 4))		/* mostly whole slots */
		length = (length + 7) / 8 * 8;
	request.length_bytes = 512 * length;
	request.offset_bytes = 512 * random_below(state, sectors - length + 1);
	if (random_below(state, 4))
		request.offset_bytes -= request.offset_bytes % FLASH_SLOT_BYTES;
	if (request.operation == FLASH_WRITE || request.operation == FLASH_ZEROES)
		request.fua = random_below(state, 8) == 0;
	return request;
}

static void run_sequence(property check, flash_u64 seed)
{
	struct flash_config config = random_config(&seed);
	struct sequence sequence;
	int i;

	while (flash_model_check(&config).name)
		config = random_config(&seed);
	sequence_start(&sequence, &config);
	for (i = 0; i < OPERATIONS_PER_SEQUENCE; i++) {
		struct flash_request request = random_request(&seed, &config);
		flash_u64 gap_ns = random_magnitude(&seed, 24);

		if (random_below(&seed, 64) == 0)	/* a rest: all is done before */
			gap_ns += flash_max(sequence.model.busy_until_ns, sequence.now_ns) -
				  sequence.now_ns + random_magnitude(&seed, 30);

		check(&sequence, &request, gap_ns, random_next(&seed));
		operations++;
	}
	erases += sequence.model.statistics.erases[FLASH_FOR_GC];
	wear_erases += sequence.model.statistics.erases[FLASH_FOR_WEAR];
	mapping_programs += sequence.model.statistics.programs[FLASH_FOR_MAPPING];
	slc_moves += sequence.model.statistics.programs[FLASH_FOR_SLC];
	idle_rounds += sequence.model.statistics.idle_rounds;
	sequence_end(&sequence);
}

static void run_sequences(property check)
{
	flash_u64 i;

	for (i = 0; i < sequences && test_seed(first_seed + i); i++)
		run_sequence(check, first_seed + i);
}

#define PROPERTY(name) static void name(void) { run_sequences(check_##name); }
PROPERTY(accounts)
PROPERTY(repeatable)
PROPERTY(flush_is_whole)

/* The random devices are such that all parts of the model have something to do. */
static void every_part_works(void)
{
	CHECK(erases, >=, operations / 100);
	CHECK(wear_erases, >=, operations / 10000);
	CHECK(mapping_programs, >=, operations / 100);
	CHECK(slc_moves, >=, operations / 1000);
	CHECK(idle_rounds, >=, operations / 1000);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		sequences = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	test_run("accounts", accounts);
	test_run("repeatable", repeatable);
	test_run("flush_is_whole", flush_is_whole);
	if (first_seed == 1)
		test_run("every_part_works", every_part_works);
	printf("%llu operations, %llu erase blocks collected, %llu for wear, "
	       "%llu mapping programs\n", operations, erases, wear_erases, mapping_programs);
	return test_report();
}
