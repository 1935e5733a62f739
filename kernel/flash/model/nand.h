/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An array of NAND: dies on channels, and when a page read, a program or an erase can begin and
 * ends. It knows no mapping and no cause: the FTL of this model works on one (operations.h), and so
 * does raw NAND (kernel/nand).
 *
 * A die does one thing at a time. Reads for the host go before programs and erases that have not
 * begun, and interrupt them where the device can (die.h). A channel carries one transfer at a time;
 * its capacity is used up in the order in which the work is given, so that a transfer which will be
 * late does not hold up one that could be early.
 */
#ifndef FLASH_NAND_H
#define FLASH_NAND_H

#include "die.h"

struct flash_nand {
	flash_u32 channels;
	flash_u32 dies;			/* of all channels; die n is on channel n % channels */
	flash_u64 channel_bandwidth_bytes_per_s;
	flash_u64 suspend_ns;		/* 0: a read waits for the operation that is under way */

	/* Tables, in the memory handed in. */
	flash_u64 *channel_used_ns;
	struct flash_die *die;
};

/* What the tables take. */
flash_u64 flash_nand_memory_bytes(const struct flash_nand *nand);

/* Points the tables at the memory, which is aligned to 8 bytes. */
void flash_nand_place(struct flash_nand *nand, void *memory);

/* Every die rests and every channel is free, from 0 ns on. */
void flash_nand_init(struct flash_nand *nand);

/* Forgets what was done and to be done: all rest from now_ns on. */
void flash_nand_rest(struct flash_nand *nand, flash_u64 now_ns);

/* Reads of the host: a page, of which `length_bytes` are moved; answers when they are moved. */
flash_u64 flash_nand_host_read(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			       flash_u32 length_bytes, flash_u64 now_ns);

/* The same for the device's own sake, in the order given; nothing later begins before past_ns. */
flash_u64 flash_nand_own_read(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			      flash_u32 length_bytes, flash_u64 past_ns, flash_u64 now_ns);

/*
 * Moves `length_bytes`, whose transfer is asked for at asked_ns, and programs them; answers when
 * that is done.
 */
flash_u64 flash_nand_program(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			     flash_u32 length_bytes, flash_u64 asked_ns, flash_u64 past_ns,
			     flash_u64 now_ns);

/* Erases a block of a die, at now_ns at the earliest; answers when that begins. */
flash_u64 flash_nand_erase(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			   flash_u64 past_ns, flash_u64 now_ns);

#endif
