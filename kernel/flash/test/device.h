/* SPDX-License-Identifier: GPL-2.0-only */
/* The one device of the unit tests, and how they drive it. */
#ifndef FLASH_TEST_DEVICE_H
#define FLASH_TEST_DEVICE_H

#include "harness.h"

extern struct flash_model model;
extern flash_u64 now_ns;	/* for a test's own use; start() sets it to 0, fill() goes on */

void start(struct flash_config config);

flash_u64 submit(enum flash_operation operation, unsigned int fua, flash_u64 offset_bytes,
		 unsigned int length_bytes, flash_u64 submit_ns);

/* Writes slots in order and flushes; long after that it is now_ns. */
void fill(flash_u32 first_slot, flash_u32 slots);

#endif
