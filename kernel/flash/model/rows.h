/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows of erase blocks: which are free, being filled or full, and how worn. Data of three kinds
 * are kept in rows of their own, as they live for unlike times: what the host wrote, what was
 * moved, and the mapping table.
 */
#ifndef FLASH_ROWS_H
#define FLASH_ROWS_H

#include "geometry.h"
#include "statistics.h"

struct flash_model;

enum flash_stream {
	FLASH_STREAM_HOST,
	FLASH_STREAM_MOVED,
	FLASH_STREAM_MAPPING,
	FLASH_STREAMS,
};

enum flash_row_state {
	FLASH_ROW_FREE,
	FLASH_ROW_OPEN,
	FLASH_ROW_FULL,
};

struct flash_row {
	flash_u32 state;
	flash_u32 valid_slots;
	flash_u32 written_units;
	flash_u32 erases;
	flash_u64 safe_ns;	/* when the newer copies of what became invalid are programmed */
	flash_u64 age;		/* host programs counted when it was last written or invalidated */
};

struct flash_rows {
	flash_u32 free_rows;
	flash_u32 open[FLASH_STREAMS];	/* FLASH_NONE: none yet */
	flash_u64 age;			/* host units programmed */
};

/* What only garbage collection may use of the free rows; see FLASH_SPARE_ROWS. */
#define FLASH_RESERVED_ROWS 3U

void flash_rows_init(struct flash_model *model);

/* The first slot of the unit that a stream programs next; FLASH_NONE if no row is free for it. */
flash_u32 flash_rows_next_unit(struct flash_model *model, enum flash_stream stream);

/* Whether a row is full and so may be collected. */
int flash_rows_full(const struct flash_model *model, flash_u32 row);

/* Erases a row without valid slots; now_ns at the earliest. */
void flash_rows_erase(struct flash_model *model, flash_u32 row, enum flash_cause cause,
		      flash_u64 now_ns);

/* Greatest less smallest number of erases of a row. */
flash_u32 flash_rows_wear_spread(const struct flash_model *model);

#endif
