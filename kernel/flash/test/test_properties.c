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

/* 0 to 2^bits - 1, every order of magnitude as likely as another. */
static flash_u64 random_magnitude(flash_u64 *state, unsigned int bits)
{
	return random_next(state) >> (64 - 1 - random_below(state, bits)) >> 1;
}

static struct flash_config random_config(flash_u64 *state)
{
	struct flash_config config = plain_config();

	config.command_overhead_ns = random_magnitude(state, 20);
	config.read_access_ns = random_magnitude(state, 20);
	config.read_bandwidth_bytes_per_s = 1000000 + random_magnitude(state, 33);
	config.write_access_ns = random_magnitude(state, 20);
	config.write_bandwidth_bytes_per_s = 1000000 + random_magnitude(state, 33);
	config.program_unit_bytes = 512 * (1 + random_magnitude(state, 8));
	config.program_ns = 1 + random_magnitude(state, 21);
	config.mapping_program_ns = random_magnitude(state, 21);
	config.cache_bytes = config.program_unit_bytes + random_magnitude(state, 20);
	if (random_below(state, 8) == 0)
		config.cache_bytes = 0;
	config.drain_delay_ns = random_magnitude(state, 24);
	config.flush_overhead_ns = random_magnitude(state, 18);
	config.discard_ns = random_magnitude(state, 20);
	config.zeroes_ns = random_magnitude(state, 20);
	return config;
}

static struct flash_request random_request(flash_u64 *state)
{
	static const enum flash_operation operations[] = {
		FLASH_WRITE, FLASH_WRITE, FLASH_WRITE, FLASH_WRITE,
		FLASH_READ, FLASH_FLUSH, FLASH_DISCARD, FLASH_ZEROES,
	};
	struct flash_request request = { operations[random_below(state, 8)], 0, 0 };

	if (request.operation == FLASH_FLUSH)
		return request;
	request.length_bytes = 512 * (1 + random_magnitude(state, 10));
	if (request.operation != FLASH_READ && request.operation != FLASH_DISCARD)
		request.fua = random_below(state, 4) == 0;
	return request;
}

static void run_sequence(property check, flash_u64 seed)
{
	struct sequence sequence = { 0 };
	struct flash_config config = random_config(&seed);
	int i;

	CHECK(flash_model_check(&config).name == NULL, ==, 1);
	flash_model_init(&sequence.model, &config);
	for (i = 0; i < OPERATIONS_PER_SEQUENCE; i++) {
		struct flash_request request = random_request(&seed);
		flash_u64 gap_ns = random_magnitude(&seed, 26);

		check(&sequence, &request, gap_ns, random_next(&seed));
	}
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
PROPERTY(durability_costs)
PROPERTY(slower_is_later)

int main(int argc, char **argv)
{
	if (argc > 1)
		sequences = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	test_run("accounts", accounts);
	test_run("repeatable", repeatable);
	test_run("durability_costs", durability_costs);
	test_run("slower_is_later", slower_is_later);
	printf("%llu operations\n", 4 * sequences * OPERATIONS_PER_SEQUENCE);
	return test_report();
}
