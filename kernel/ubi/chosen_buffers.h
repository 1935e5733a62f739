/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffers whose allocator is chosen when the kernel runs. Every file of UBI and UBIFS includes it,
 * by an option of the compiler.
 */
#ifndef CHOSEN_BUFFERS_H
#define CHOSEN_BUFFERS_H

#include <linux/types.h>

/* A buffer that the source calls `name`, of so many bytes; NULL where there is no memory. */
#define chosen_buffer(name, bytes) allocate_chosen_buffer(#name, bytes)

void *allocate_chosen_buffer(const char *name, size_t bytes);
void release_buffer(const void *memory);

#endif
