/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dies and channels: when a page read, a program or an erase can begin, and when it ends.
 *
 * A die does one thing at a time. Reads for the host go before programs and erases that have not
 * begun, and interrupt them where the device can (die.h). A channel carries one transfer at a time;
 * its capacity is used up in the order in which the work is given, so that a transfer which will be
 * late does not hold up one that could be early.
 */
#ifndef FLASH_NAND_H
#define FLASH_NAND_H

#include "die.h"
#include "geometry.h"
#include "statistics.h"

struct flash_model;

/* Reads the part of a unit that holds `length_bytes`; answers when they are in the controller. */
flash_u64 flash_nand_read(struct flash_model *model, enum flash_cause cause, flash_u32 slot,
			  flash_u32 length_bytes, flash_u64 now_ns);

/* Programs the unit that begins with `slot` for `duration_ns`; answers when it is done. */
flash_u64 flash_nand_program(struct flash_model *model, enum flash_cause cause, flash_u32 die,
			     flash_u64 duration_ns, flash_u64 now_ns);

/* Erases a block of every die, at now_ns at the earliest; answers when the first erase begins. */
flash_u64 flash_nand_erase_row(struct flash_model *model, enum flash_cause cause,
			       flash_u64 now_ns);

#endif
