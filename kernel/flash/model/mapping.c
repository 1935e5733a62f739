// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps logical and physical slots apart and together: reads and changes the mapping table, its
 * reverse, and the rows' counts of valid slots; programs what has to be programmed for it. Pure C,
 * no kernel header.
 */
#include "flash_model.h"

void flash_mapping_init(struct flash_model *model)
{
	static const struct flash_part absent;
	const struct flash_geometry *geometry = &model->geometry;
	flash_u32 i;

	for (i = 0; i < geometry->disk_slots + geometry->mapping_slots; i++)
		model->map[i] = FLASH_NONE;
	for (i = 0; i < geometry->rows * geometry->row_slots; i++)
		model->reverse[i] = FLASH_NONE;
	for (i = 0; i < geometry->mapping_slots; i++)
		model->parts[i] = absent;
	model->mapping.newest = model->mapping.oldest = FLASH_NONE;
	model->mapping.cached_parts = 0;
	model->mapping.changed = 0;
}

flash_u32 flash_mapping_in_cache(const struct flash_model *model, flash_u32 logical)
{
	flash_u32 entry = model->map[logical];

	return entry != FLASH_NONE && entry & FLASH_IN_CACHE ? entry & ~FLASH_IN_CACHE : FLASH_NONE;
}

flash_u32 flash_mapping_physical(const struct flash_model *model, flash_u32 logical)
{
	flash_u32 place = flash_mapping_in_cache(model, logical);

	return place == FLASH_NONE ? model->map[logical] : model->cached[place].physical;
}

/* The old copy may be erased once the new one is programmed, at safe_ns. */
static void invalidate(struct flash_model *model, flash_u32 physical, flash_u64 safe_ns)
{
	struct flash_row *row = &model->row[flash_row_of(&model->geometry, physical)];

	model->reverse[physical] = FLASH_NONE;
	row->valid_slots--;
	row->safe_ns = flash_max(row->safe_ns, safe_ns);
	row->age = model->rows.age;
}

static void unlink_part(struct flash_model *model, flash_u32 number)
{
	struct flash_part *part = &model->parts[number];

	if (part->newer == FLASH_NONE)
		model->mapping.newest = part->older;
	else
		model->parts[part->newer].older = part->older;
	if (part->older == FLASH_NONE)
		model->mapping.oldest = part->newer;
	else
		model->parts[part->older].newer = part->newer;
	part->cached = 0;
	model->mapping.cached_parts--;
}

static void link_newest(struct flash_model *model, flash_u32 number)
{
	struct flash_part *part = &model->parts[number];

	part->newer = FLASH_NONE;
	part->older = model->mapping.newest;
	if (part->older == FLASH_NONE)
		model->mapping.oldest = number;
	else
		model->parts[part->older].newer = number;
	model->mapping.newest = number;
	part->cached = 1;
	model->mapping.cached_parts++;
}

/* Writes changed parts back, the least recently used first, as many as one unit takes. */
static void write_back(struct flash_model *model, flash_u64 now_ns)
{
	flash_u32 logical[FLASH_UNIT_SLOTS_MAX], count = 0, number = model->mapping.oldest;

	while (number != FLASH_NONE && count < model->geometry.unit_slots) {
		struct flash_part *part = &model->parts[number];

		if (part->changed)
			logical[count++] = model->geometry.disk_slots + number;
		part->changed = 0;
		number = part->newer;
	}
	flash_mapping_program(model, FLASH_STREAM_MAPPING, FLASH_FOR_MAPPING, logical, count,
			      now_ns);
}

flash_u64 flash_mapping_use(struct flash_model *model, flash_u32 logical, int change,
			    flash_u64 now_ns)
{
	flash_u32 number = logical / FLASH_ENTRIES_PER_SLOT;
	struct flash_part *part = &model->parts[number];
	flash_u32 physical;

	model->mapping.changed |= change;
	if (model->geometry.mapping_cache_slots >= model->geometry.mapping_slots)
		return now_ns;
	if (part->cached) {
		unlink_part(model, number);
	} else {
		model->statistics.mapping_misses++;
		physical = model->map[model->geometry.disk_slots + number];
		if (physical != FLASH_NONE)
			now_ns = flash_read_slot(model, FLASH_FOR_MAPPING, physical,
						 FLASH_SLOT_BYTES, now_ns);
		if (model->mapping.cached_parts >= model->geometry.mapping_cache_slots) {
			if (model->parts[model->mapping.oldest].changed)
				write_back(model, now_ns);
			unlink_part(model, model->mapping.oldest);
		}
	}
	link_newest(model, number);
	part->changed |= change;
	return now_ns;
}

/* Where mapping is programmed for which there is no row: it takes time, and no room. */
static flash_u32 die_without_row(const struct flash_model *model)
{
	return model->statistics.programs[FLASH_FOR_MAPPING] % model->nand.dies;
}

flash_u64 flash_mapping_program(struct flash_model *model, enum flash_stream stream,
				enum flash_cause cause, const flash_u32 *logical, flash_u32 count,
				flash_u64 now_ns)
{
	flash_u32 first = flash_rows_next_unit(model, stream), die, i;
	flash_u64 duration_ns, end_ns;

	duration_ns = count ? model->config.program_ns : model->config.mapping_program_ns;
	if (stream == FLASH_STREAM_HOST && model->geometry.slc_units)
		duration_ns = flash_slc_program_ns(model, first);
	die = first == FLASH_NONE ? die_without_row(model) : flash_die_of(&model->geometry, first);
	end_ns = flash_program_unit(model, cause, die, duration_ns, now_ns);
	for (i = 0; i < count && first != FLASH_NONE; i++) {
		flash_u32 old = model->map[logical[i]];

		if (model->observer)
			model->observer->programmed(model->observer, logical[i], first + i,
						    cause, end_ns);
		if (old != FLASH_NONE && old & FLASH_IN_CACHE) {
			struct flash_cached *cached = &model->cached[old & ~FLASH_IN_CACHE];

			old = cached->physical;
			cached->physical = first + i;
		} else {
			model->map[logical[i]] = first + i;
		}
		if (old != FLASH_NONE)
			invalidate(model, old, end_ns);
		model->reverse[first + i] = logical[i];
		model->row[flash_row_of(&model->geometry, first)].valid_slots++;
	}
	return end_ns;
}

int flash_mapping_unmap(struct flash_model *model, flash_u32 logical, flash_u64 now_ns)
{
	flash_u32 physical = model->map[logical];

	if (physical == FLASH_NONE)
		return 0;
	invalidate(model, physical, now_ns);
	model->map[logical] = FLASH_NONE;
	return 1;
}

flash_u64 flash_mapping_commit(struct flash_model *model, flash_u64 now_ns)
{
	if (!model->mapping.changed)
		return now_ns;
	model->mapping.changed = 0;
	if (!model->config.mapping_program_ns)
		return now_ns;
	return flash_mapping_program(model, FLASH_STREAM_MAPPING, FLASH_FOR_MAPPING, FLASH_NULL, 0,
				     now_ns);
}
