// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses rows and empties them. Reads the row table and the reverse mapping; produces page reads,
 * programs and erases for garbage collection and wear levelling. Pure C, no kernel header.
 */
#include "flash_model.h"

/* So many rows above the reserve, collection begins beside the host's programs. */
#define AHEAD_ROWS 2U

void flash_gc_init(struct flash_model *model)
{
	model->gc.row = FLASH_NONE;
}

static flash_u32 invalid_slots(const struct flash_model *model, flash_u32 row)
{
	return model->geometry.row_slots - model->row[row].valid_slots;
}

/*
 * Greedy: the row with most to gain. Cost-benefit: gain x age over the cost of reading the row and
 * writing what is valid (Rosenblum and Ousterhout, SOSP 1991, section 3.5).
 */
static flash_u64 worth(const struct flash_model *model, flash_u32 row, int greedy)
{
	flash_u64 gain = invalid_slots(model, row);

	if (gain < model->geometry.unit_slots)	/* the padding of its last unit could eat it up */
		return 0;
	if (greedy || model->config.gc_policy == FLASH_GC_GREEDY)
		return gain;
	return 1 + flash_divide(gain * (model->rows.age - model->row[row].age),
				model->geometry.row_slots + model->row[row].valid_slots);
}

static flash_u32 most_worth(const struct flash_model *model, int greedy)
{
	flash_u32 row, best = FLASH_NONE;
	flash_u64 best_worth = 0;

	for (row = 0; row < model->geometry.rows; row++) {
		flash_u64 row_worth;

		if (!flash_rows_full(model, row))
			continue;
		row_worth = worth(model, row, greedy);
		if (row_worth > best_worth) {
			best = row;
			best_worth = row_worth;
		}
	}
	return best;
}

/* The least worn full row, if wear has spread too far; else FLASH_NONE. */
static flash_u32 rested(const struct flash_model *model)
{
	flash_u32 row, best = FLASH_NONE, most = 0;

	if (!model->config.wear_spread_max)
		return FLASH_NONE;
	for (row = 0; row < model->geometry.rows; row++) {
		flash_u32 erases = model->row[row].erases;

		most = erases > most ? erases : most;
		if (flash_rows_full(model, row) &&
		    (best == FLASH_NONE || erases < model->row[best].erases))
			best = row;
	}
	if (best == FLASH_NONE || most - model->row[best].erases <= model->config.wear_spread_max)
		return FLASH_NONE;
	return best;
}

static void begin(struct flash_model *model, flash_u32 row, enum flash_cause cause)
{
	flash_u32 unit_slots = model->geometry.unit_slots;
	flash_u32 valid_units, invalid_units;

	model->gc.row = row;
	if (row == FLASH_NONE)
		return;
	valid_units = flash_divide_up(model->row[row].valid_slots, unit_slots);
	invalid_units = model->geometry.row_units - valid_units;
	model->gc.next_slot = 0;
	model->gc.cause = cause;
	model->gc.steps_per_unit = invalid_units ? valid_units / invalid_units + 1 : 1;
}

/* Gathers the valid slots that come next, a unit at most; *ready_ns: when they have been read. */
static flash_u32 gather(struct flash_model *model, flash_u32 *logical, flash_u64 now_ns,
			flash_u64 *ready_ns)
{
	const struct flash_geometry *geometry = &model->geometry;
	flash_u32 first = model->gc.row * geometry->row_slots, unit = FLASH_NONE, count = 0;

	while (count < geometry->unit_slots && model->gc.next_slot < geometry->row_slots) {
		flash_u32 slot = first + model->gc.next_slot++;

		if (model->reverse[slot] == FLASH_NONE)
			continue;
		logical[count++] = model->reverse[slot];
		if (flash_unit_of(geometry, slot) == unit)
			continue;
		unit = flash_unit_of(geometry, slot);
		*ready_ns = flash_max(*ready_ns,
				      flash_read_slot(model, model->gc.cause, slot,
						      model->config.program_unit_bytes, now_ns));
	}
	return count;
}

/* Moves a unit, and erases the row after the last. A row must be under way. */
static void step(struct flash_model *model, flash_u64 now_ns)
{
	flash_u32 logical[FLASH_UNIT_SLOTS_MAX], count, i;
	flash_u64 ready_ns = now_ns;

	count = gather(model, logical, now_ns, &ready_ns);
	for (i = 0; i < count; i++)
		if (logical[i] < model->geometry.disk_slots)
			ready_ns = flash_max(ready_ns,
					     flash_mapping_use(model, logical[i], 1, now_ns));
	if (count)
		flash_mapping_program(model, FLASH_STREAM_MOVED, model->gc.cause, logical, count,
				      ready_ns);
	if (model->row[model->gc.row].valid_slots)
		return;
	flash_rows_erase(model, model->gc.row, model->gc.cause, now_ns);
	model->gc.row = FLASH_NONE;
}

void flash_gc_make_room(struct flash_model *model, flash_u64 now_ns)
{
	while (model->rows.free_rows < FLASH_RESERVED_ROWS) {
		if (model->gc.row == FLASH_NONE)
			begin(model, most_worth(model, 1), FLASH_FOR_GC);
		if (model->gc.row == FLASH_NONE)	/* geometry.c sees to it that this is not */
			return;
		step(model, now_ns);
	}
}

void flash_gc_keep_pace(struct flash_model *model, flash_u64 now_ns)
{
	flash_u32 steps;

	if (model->gc.row == FLASH_NONE) {
		if (model->rows.free_rows >= FLASH_RESERVED_ROWS + AHEAD_ROWS)
			return;
		begin(model, rested(model), FLASH_FOR_WEAR);
		if (model->gc.row == FLASH_NONE)
			begin(model, most_worth(model, 0), FLASH_FOR_GC);
	}
	for (steps = 0; model->gc.row != FLASH_NONE && steps < model->gc.steps_per_unit; steps++)
		step(model, now_ns);
}

int flash_gc_at_rest(struct flash_model *model, flash_u64 now_ns)
{
	if (!model->config.idle_gc_rows)
		return 0;
	if (model->gc.row == FLASH_NONE) {
		if (model->rows.free_rows >=
		    FLASH_RESERVED_ROWS + AHEAD_ROWS + model->config.idle_gc_rows)
			return 0;
		begin(model, most_worth(model, 0), FLASH_FOR_GC);
	}
	if (model->gc.row == FLASH_NONE)
		return 0;
	step(model, now_ns);
	return 1;
}
