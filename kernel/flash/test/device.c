// SPDX-License-Identifier: GPL-2.0-only
/* Drives the one device of the unit tests. */
#include <stdlib.h>

#include "device.h"

struct flash_model model;
flash_u64 now_ns;

static void *tables;

void start(struct flash_config config)
{
	CHECK(flash_model_check(&config).name == NULL, ==, 1);
	free(tables);
	tables = malloc(flash_model_memory_bytes(&config));
	flash_model_init(&model, &config, tables);
	now_ns = 0;
}

flash_u64 submit(enum flash_operation operation, unsigned int fua, flash_u64 offset_bytes,
		 unsigned int length_bytes, flash_u64 submit_ns)
{
	struct flash_request request = { operation, fua, length_bytes, offset_bytes };

	return flash_model_submit(&model, &request, submit_ns);
}

void fill(flash_u32 first_slot, flash_u32 slots)
{
	flash_u64 end_ns;

	end_ns = submit(FLASH_WRITE, 0, (flash_u64)first_slot * FLASH_SLOT_BYTES,
			slots * FLASH_SLOT_BYTES, now_ns);
	end_ns = submit(FLASH_FLUSH, 0, 0, 0, end_ns);
	now_ns = end_ns + 1000000000;
}
