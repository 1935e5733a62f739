// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer target: any byte string is a configuration, brought within its limits and to the size
 * of a test, and a sequence of requests, for which the properties must hold. One that fails
 * aborts, and libFuzzer keeps the input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "properties.h"

/* A larger disk takes no other path, only longer. */
#define CAPACITY_BYTES_MAX (4 << 20)
#define REQUEST_BYTES_MAX (1 << 18)

struct step {
	unsigned char operation;
	unsigned char fua;
	unsigned char which;
	unsigned char gap_shift;
	unsigned int length_bytes;
	unsigned int gap_ns;
	unsigned int random;
	unsigned int sector;
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
	config->capacity_bytes %= CAPACITY_BYTES_MAX - (1 << 20);
	config->capacity_bytes -= config->capacity_bytes % FLASH_SLOT_BYTES;
	config->capacity_bytes += 1 << 20;
	config->program_unit_bytes = FLASH_SLOT_BYTES * (1 + config->program_unit_bytes % 8);
	config->cache_bytes %= 1 << 22;
	if (config->cache_bytes && config->cache_bytes < config->program_unit_bytes)
		config->cache_bytes += config->program_unit_bytes;
	config->mapping_cache_bytes %= 4 * FLASH_SLOT_BYTES;
	if (config->mapping_cache_bytes && config->mapping_cache_bytes < FLASH_SLOT_BYTES)
		config->mapping_cache_bytes += FLASH_SLOT_BYTES;
	config->channels = 1 + config->channels % 4;
	config->dies_per_channel = 1 + config->dies_per_channel % 4;
	config->units_per_erase_block = 2 + config->units_per_erase_block % 6;
	config->overwrite_percent %= 300;
	config->atomic_write_bytes = 0;
	config->slc_buffer_bytes %= config->capacity_bytes;
	config->slc_program_ns += !config->slc_program_ns;
}

static void run_step(struct sequence *sequence, const struct step *step)
{
	static void (*const checks[])(struct sequence *sequence,
				      const struct flash_request *request,
				      flash_u64 gap_ns, flash_u64 random) = {
		check_accounts, check_repeatable, check_flush_is_whole,
	};
	struct flash_request request = { step->operation % (FLASH_ZEROES + 1), 0, 0, 0 };
	flash_u64 gap_ns = (flash_u64)step->gap_ns << step->gap_shift % 8;
	flash_u64 capacity_bytes = sequence->model.config.capacity_bytes;

	if (request.operation != FLASH_FLUSH) {
		request.length_bytes = step->length_bytes % REQUEST_BYTES_MAX / 512 * 512 + 512;
		request.offset_bytes = step->sector * 512ULL %
				       (capacity_bytes - request.length_bytes + 512);
	}
	if (request.operation == FLASH_WRITE || request.operation == FLASH_ZEROES)
		request.fua = step->fua & 1;
	checks[step->which % 3](sequence, &request, gap_ns,
				step->random * 0x100000001ULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct sequence sequence;
	struct flash_config config;
	struct step step;

	if (size < sizeof(config))
		return 0;
	memcpy(&config, data, sizeof(config));
	fold(&config);
	if (flash_model_check(&config).name)	/* erase blocks too large for the disk */
		config.units_per_erase_block = 2;
	if (flash_model_check(&config).name)
		return 0;
	sequence_start(&sequence, &config);
	for (data += sizeof(config), size -= sizeof(config); size >= sizeof(step);
	     data += sizeof(step), size -= sizeof(step)) {
		memcpy(&step, data, sizeof(step));
		run_step(&sequence, &step);
	}
	sequence_end(&sequence);
	return 0;
}
