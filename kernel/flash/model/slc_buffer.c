// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills and empties the buffer of single-level cells: reads which slots are still valid, produces
 * the time of a program, and the page reads and programs that move data on. Pure C, no kernel
 * header.
 */
#include "flash_model.h"

flash_u64 flash_slc_program_ns(struct flash_model *model, flash_u32 first_slot)
{
	struct flash_slc_buffer *buffer = &model->slc_buffer;
	struct flash_slc_unit *unit;

	if (buffer->used_units >= model->geometry.slc_units)
		return model->config.program_ns;
	unit = &model->slc_units[((flash_u64)buffer->oldest + buffer->used_units++) %
				 model->geometry.slc_units];
	unit->first_slot = first_slot;
	unit->erases = model->row[flash_row_of(&model->geometry, first_slot)].erases;
	model->statistics.slc_programs++;
	return model->config.slc_program_ns;
}

/* Whether a slot of the unit is valid, and the unit the one that was put in. */
static int has_valid(const struct flash_model *model, const struct flash_slc_unit *unit)
{
	flash_u32 i;

	if (model->row[flash_row_of(&model->geometry, unit->first_slot)].erases != unit->erases)
		return 0;
	for (i = 0; i < model->geometry.unit_slots; i++)
		if (model->reverse[unit->first_slot + i] != FLASH_NONE)
			return 1;
	return 0;
}

int flash_slc_move(struct flash_model *model, flash_u64 now_ns)
{
	struct flash_slc_buffer *buffer = &model->slc_buffer;

	while (buffer->used_units) {
		struct flash_slc_unit unit = model->slc_units[buffer->oldest];

		if (++buffer->oldest == model->geometry.slc_units)
			buffer->oldest = 0;
		buffer->used_units--;
		if (!has_valid(model, &unit))
			continue;
		now_ns = flash_read_slot(model, FLASH_FOR_SLC, unit.first_slot,
					 model->config.program_unit_bytes, now_ns);
		flash_program_unit(model, FLASH_FOR_SLC,
				   flash_die_of(&model->geometry, unit.first_slot),
				   model->config.program_ns, now_ns);
		return 1;
	}
	return 0;
}

void flash_slc_forget(struct flash_model *model)
{
	model->slc_buffer.oldest = model->slc_buffer.used_units = 0;
}
