// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives a device a past. Reads the parameters preload_percent, overwrite_percent and ageing_seed;
 * produces the same mapping, rows and wear for the same numbers. Pure C, no kernel header.
 */
#include "flash_model.h"

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014): one word of state, every seed is good. */
static flash_u64 random_next(flash_u64 *state)
{
	flash_u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static flash_u32 percent_of(flash_u64 percent, flash_u32 slots)
{
	return flash_divide(percent * slots, 100);
}

void flash_ageing_begin(struct flash_model *model)
{
	struct flash_ageing *ageing = &model->ageing;
	flash_u32 slot;

	flash_cache_flush(model, 0);
	ageing->mapped = 0;
	for (slot = 0; slot < model->geometry.disk_slots; slot++)
		ageing->mapped += model->map[slot] != FLASH_NONE;
	ageing->next_fill = 0;
	ageing->overwritten = 0;
	ageing->random = model->config.ageing_seed;
	model->before_ageing = model->statistics;
}

/* Collects slots that have no data yet. */
static flash_u32 fill(struct flash_model *model, flash_u32 *logical)
{
	struct flash_ageing *ageing = &model->ageing;
	flash_u32 count = 0, end = percent_of(model->config.preload_percent,
					      model->geometry.disk_slots);

	while (count < model->geometry.unit_slots && ageing->mapped < end &&
	       ageing->next_fill < model->geometry.disk_slots) {
		if (model->map[ageing->next_fill] == FLASH_NONE) {
			logical[count++] = ageing->next_fill;
			ageing->mapped++;
		}
		ageing->next_fill++;
	}
	return count;
}

/* Chooses slots that have data; the same twice in a unit is programmed twice. */
static flash_u32 choose(struct flash_model *model, flash_u32 *logical)
{
	struct flash_ageing *ageing = &model->ageing;
	flash_u32 count = 0, end = percent_of(model->config.overwrite_percent, ageing->mapped);

	while (count < model->geometry.unit_slots && ageing->overwritten < end) {
		flash_u64 random = random_next(&ageing->random) >> 32;
		flash_u32 slot = random * model->geometry.disk_slots >> 32;

		if (model->map[slot] == FLASH_NONE)
			continue;
		logical[count++] = slot;
		ageing->overwritten++;
	}
	return count;
}

int flash_ageing_continue(struct flash_model *model, flash_u32 slots)
{
	flash_u32 logical[FLASH_UNIT_SLOTS_MAX], done = 0, count, i;

	while (done < slots) {
		count = fill(model, logical);
		if (!count)
			count = choose(model, logical);
		if (!count)
			return 0;
		if (model->observer)
			for (i = 0; i < count; i++)
				model->observer->accepted(model->observer, logical[i]);
		flash_cache_program(model, logical, count, 0);
		done += count;
	}
	return 1;
}

void flash_ageing_end(struct flash_model *model, flash_u64 now_ns)
{
	flash_u32 i;

	model->statistics = model->before_ageing;
	flash_slc_forget(model);
	model->mapping.changed = 0;
	flash_nand_rest(&model->nand, now_ns);
	for (i = 0; i < model->geometry.rows; i++)
		model->row[i].safe_ns = 0;
}
