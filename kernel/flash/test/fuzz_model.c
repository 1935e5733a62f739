// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer target: any byte string is a configuration, brought within its limits, and a sequence
 * of requests, for which the properties must hold. One that fails aborts, and libFuzzer keeps the
 * input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "properties.h"

/* Longer requests take no other path, only longer: a part of 512 bytes at a time. */
#define REQUEST_BYTES_MAX (1 << 21)

struct step {
	unsigned char operation;
	unsigned char fua;
	unsigned char which;
	unsigned char gap_shift;
	unsigned int length_bytes;
	unsigned int gap_ns;
	unsigned int random;
};

void test_failed(const char *file, int line, const char *check, flash_u64 left, flash_u64 right)
{
	fprintf(stderr, "%s:%d: not true: %s (%llu, %llu)\n", file, line, check, left, right);
	abort();
}

/* Few strings are valid as they are: every value is folded into its limits. */
static void fold(struct flash_config *config)
{
#define FOLD(name, minimum, maximum) \
	config->name = (minimum) + config->name % ((maximum) - (minimum) + 1ULL);
	FLASH_PARAMETERS(FOLD)
	config->capacity_bytes -= config->capacity_bytes % FLASH_BLOCK_BYTES;
	if (config->cache_bytes && config->cache_bytes < config->program_unit_bytes)
		config->cache_bytes += config->program_unit_bytes;
}

static void run_step(struct sequence *sequence, const struct step *step)
{
	static void (*const checks[])(struct sequence *sequence,
				      const struct flash_request *request,
				      flash_u64 gap_ns, flash_u64 random) = {
		check_accounts, check_repeatable, check_durability_costs, check_slower_is_later,
	};
	struct flash_request request = { step->operation % (FLASH_ZEROES + 1), 0, 0 };
	flash_u64 gap_ns = (flash_u64)step->gap_ns << step->gap_shift % 8;

	if (request.operation != FLASH_FLUSH)
		request.length_bytes = step->length_bytes % REQUEST_BYTES_MAX;
	if (request.operation == FLASH_WRITE || request.operation == FLASH_ZEROES)
		request.fua = step->fua & 1;
	checks[step->which % 4](sequence, &request, gap_ns,
				step->random * 0x100000001ULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct sequence sequence = { 0 };
	struct flash_config config;
	struct step step;

	if (size < sizeof(config))
		return 0;
	memcpy(&config, data, sizeof(config));
	if (flash_model_check(&config).name)
		fold(&config);
	CHECK(flash_model_check(&config).name == NULL, ==, 1);
	flash_model_init(&sequence.model, &config);
	for (data += sizeof(config), size -= sizeof(config); size >= sizeof(step);
	     data += sizeof(step), size -= sizeof(step)) {
		memcpy(&step, data, sizeof(step));
		run_step(&sequence, &step);
	}
	return 0;
}
