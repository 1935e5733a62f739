// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hands out units of rows to be programmed and takes erased rows back. Reads and changes the row
 * table; wear is levelled by the choice of the row: the host gets the least worn, data that were
 * moved, which rest, the most worn. Pure C, no kernel header.
 */
#include "flash_model.h"

void flash_rows_init(struct flash_model *model)
{
	static const struct flash_row empty;
	flash_u32 row, stream;

	for (row = 0; row < model->geometry.rows; row++)
		model->row[row] = empty;
	model->rows.free_rows = model->geometry.rows;
	model->rows.age = 0;
	for (stream = 0; stream < FLASH_STREAMS; stream++)
		model->rows.open[stream] = FLASH_NONE;
}

static int better(enum flash_stream stream, flash_u32 erases, flash_u32 than)
{
	return stream == FLASH_STREAM_MOVED ? erases > than : erases < than;
}

static flash_u32 open_row(struct flash_model *model, enum flash_stream stream)
{
	/* The mapping table can wait in the controller's memory; the others cannot. */
	flash_u32 kept = stream == FLASH_STREAM_MAPPING ? FLASH_RESERVED_ROWS - 1 : 0;
	flash_u32 row, best = FLASH_NONE;

	if (model->rows.free_rows <= kept)
		return FLASH_NONE;
	for (row = 0; row < model->geometry.rows; row++)
		if (model->row[row].state == FLASH_ROW_FREE &&
		    (best == FLASH_NONE ||
		     better(stream, model->row[row].erases, model->row[best].erases)))
			best = row;
	model->rows.free_rows--;
	model->row[best].state = FLASH_ROW_OPEN;
	model->row[best].written_units = 0;
	return best;
}

flash_u32 flash_rows_next_unit(struct flash_model *model, enum flash_stream stream)
{
	flash_u32 number = model->rows.open[stream], unit;
	struct flash_row *row;

	if (number == FLASH_NONE) {
		number = open_row(model, stream);
		if (number == FLASH_NONE)
			return FLASH_NONE;
		model->rows.open[stream] = number;
	}
	row = &model->row[number];
	unit = row->written_units++;
	row->age = model->rows.age;
	if (row->written_units == model->geometry.row_units) {
		row->state = FLASH_ROW_FULL;
		model->rows.open[stream] = FLASH_NONE;
	}
	return number * model->geometry.row_slots + unit * model->geometry.unit_slots;
}

int flash_rows_full(const struct flash_model *model, flash_u32 row)
{
	return model->row[row].state == FLASH_ROW_FULL;
}

void flash_rows_erase(struct flash_model *model, flash_u32 row, enum flash_cause cause,
		      flash_u64 now_ns)
{
	flash_u64 begin_ns;

	begin_ns = flash_erase_row(model, cause,
					flash_max(now_ns, model->row[row].safe_ns));
	if (model->observer)
		model->observer->erased(model->observer, row, begin_ns);
	model->row[row].state = FLASH_ROW_FREE;
	model->row[row].erases++;
	model->rows.free_rows++;
}

flash_u32 flash_rows_wear_spread(const struct flash_model *model)
{
	flash_u32 row, least = FLASH_NONE, most = 0;

	for (row = 0; row < model->geometry.rows; row++) {
		flash_u32 erases = model->row[row].erases;

		least = erases < least ? erases : least;
		most = erases > most ? erases : most;
	}
	return most - least;
}
