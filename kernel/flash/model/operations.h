/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations that the FTL has its NAND do, slot by slot and row by row, counted by cause.
 */
#ifndef FLASH_OPERATIONS_H
#define FLASH_OPERATIONS_H

#include "geometry.h"
#include "nand.h"
#include "statistics.h"

struct flash_model;

/* Reads the part of a unit that holds `length_bytes`; answers when they are in the controller. */
flash_u64 flash_read_slot(struct flash_model *model, enum flash_cause cause, flash_u32 slot,
			  flash_u32 length_bytes, flash_u64 now_ns);

/* Programs a unit on the die for `duration_ns`; answers when it is done. */
flash_u64 flash_program_unit(struct flash_model *model, enum flash_cause cause, flash_u32 die,
			     flash_u64 duration_ns, flash_u64 now_ns);

/* Erases a block of every die, at now_ns at the earliest; answers when the first erase begins. */
flash_u64 flash_erase_row(struct flash_model *model, enum flash_cause cause, flash_u64 now_ns);

#endif
