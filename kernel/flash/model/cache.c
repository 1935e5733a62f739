// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills and empties the volatile cache. Reads and changes its list of slots; produces programs,
 * and the times at which there is room. Pure C, no kernel header.
 */
#include "flash_model.h"

void flash_cache_init(struct flash_model *model)
{
	struct flash_cache *cache = &model->cache;
	flash_u32 i;

	cache->newest = cache->oldest = cache->free = FLASH_NONE;
	cache->waiting_slots = cache->leaving_slots = 0;
	for (i = model->geometry.cache_slots; i-- > 0;) {
		model->cached[i].older = cache->free;
		cache->free = i;
	}
}

/* Gives the room back of programs that have ended. */
static void release(struct flash_model *model, flash_u64 now_ns)
{
	flash_u32 i;

	if (!model->cache.leaving_slots)
		return;
	for (i = 0; i < model->nand.dies; i++) {
		struct flash_die *die = &model->nand.die[i];

		if (!die->program_slots || die->program_end_ns > now_ns)
			continue;
		model->cache.leaving_slots -= die->program_slots;
		die->program_slots = 0;
	}
}

/* The die that the next unit of the host's row is on. */
static struct flash_die *next_die(struct flash_model *model)
{
	flash_u32 row = model->rows.open[FLASH_STREAM_HOST];
	flash_u32 unit = row == FLASH_NONE ? 0 : model->row[row].written_units;

	return &model->nand.die[unit % model->nand.dies];
}

static void take_out(struct flash_model *model, flash_u32 place)
{
	struct flash_cache *cache = &model->cache;
	struct flash_cached *slot = &model->cached[place];

	if (slot->newer == FLASH_NONE)
		cache->newest = slot->older;
	else
		model->cached[slot->newer].older = slot->older;
	if (slot->older == FLASH_NONE)
		cache->oldest = slot->newer;
	else
		model->cached[slot->older].newer = slot->newer;
	model->map[slot->logical] = slot->physical;
	slot->older = cache->free;
	cache->free = place;
	cache->waiting_slots--;
	model->statistics.dirty_bytes -= FLASH_SLOT_BYTES;
}

flash_u64 flash_cache_program(struct flash_model *model, const flash_u32 *logical,
			      flash_u32 count, flash_u64 now_ns)
{
	flash_u64 ready_ns = now_ns, end_ns;
	flash_u32 i;

	flash_gc_make_room(model, now_ns);
	for (i = 0; i < count; i++)
		ready_ns = flash_max(ready_ns, flash_mapping_use(model, logical[i], 1, now_ns));
	model->statistics.mapping_wait_ns += ready_ns - now_ns;
	model->rows.age++;
	end_ns = flash_mapping_program(model, FLASH_STREAM_HOST, FLASH_FOR_HOST, logical, count,
				       ready_ns);
	model->statistics.host_programmed_bytes += (flash_u64)count * FLASH_SLOT_BYTES;
	flash_gc_keep_pace(model, now_ns);
	return end_ns;
}

/* Programs the oldest slots, a unit at most. The die must have ended what it programs by then. */
static flash_u64 program_oldest(struct flash_model *model, flash_u64 now_ns)
{
	flash_u32 logical[FLASH_UNIT_SLOTS_MAX], count = 0;
	struct flash_die *die = next_die(model);

	while (count < model->geometry.unit_slots && model->cache.waiting_slots) {
		logical[count++] = model->cached[model->cache.oldest].logical;
		take_out(model, model->cache.oldest);
	}
	release(model, die->program_end_ns);
	now_ns = flash_cache_program(model, logical, count, now_ns);
	die->program_slots = count;
	die->program_end_ns = now_ns;
	model->cache.leaving_slots += count;
	return now_ns;
}

/* When the data of the oldest unit were all there. */
static flash_u64 oldest_ready_ns(const struct flash_model *model)
{
	flash_u32 place = model->cache.oldest, count;
	flash_u64 ready_ns = 0;

	for (count = 0; count < model->geometry.unit_slots && place != FLASH_NONE; count++) {
		ready_ns = flash_max(ready_ns, model->cached[place].ready_ns);
		place = model->cached[place].newer;
	}
	return ready_ns;
}

/* When the next program of the background can begin; ~0 if there is none. */
static flash_u64 next_begin_ns(struct flash_model *model)
{
	flash_u64 begin_ns;

	if (!model->cache.waiting_slots)
		return ~0ULL;
	begin_ns = flash_max(next_die(model)->free_ns, oldest_ready_ns(model));
	if (model->cache.waiting_slots >= model->geometry.unit_slots)
		return begin_ns;
	if (model->serving)
		return ~0ULL;
	return flash_max(begin_ns, model->busy_until_ns + model->config.drain_delay_ns);
}

void flash_cache_drain(struct flash_model *model, flash_u64 now_ns)
{
	flash_u64 begin_ns = next_begin_ns(model);

	while (begin_ns < now_ns) {
		program_oldest(model, begin_ns);
		begin_ns = next_begin_ns(model);
	}
	release(model, now_ns);
}

/* The first end of a program that is running; there must be one. */
static flash_u64 first_end_ns(const struct flash_model *model)
{
	flash_u64 end_ns = ~0ULL;
	flash_u32 i;

	for (i = 0; i < model->nand.dies; i++)
		if (model->nand.die[i].program_slots)
			end_ns = flash_min(end_ns, model->nand.die[i].program_end_ns);
	return end_ns;
}

/* When one more slot has room. */
static flash_u64 wait_for_room(struct flash_model *model, flash_u64 now_ns)
{
	struct flash_cache *cache = &model->cache;

	flash_cache_drain(model, now_ns);
	while (cache->waiting_slots + cache->leaving_slots >= model->geometry.cache_slots) {
		if (!cache->leaving_slots)
			program_oldest(model, flash_max(now_ns, next_die(model)->free_ns));
		now_ns = flash_max(now_ns, first_end_ns(model));
		flash_cache_drain(model, now_ns);
	}
	return now_ns;
}

static flash_u32 put_in(struct flash_model *model, flash_u32 logical)
{
	struct flash_cache *cache = &model->cache;
	flash_u32 place = cache->free;
	struct flash_cached *slot = &model->cached[place];

	cache->free = slot->older;
	slot->logical = logical;
	slot->physical = model->map[logical];
	slot->newer = FLASH_NONE;
	slot->older = cache->newest;
	if (slot->older == FLASH_NONE)
		cache->oldest = place;
	else
		model->cached[slot->older].newer = place;
	cache->newest = place;
	cache->waiting_slots++;
	model->map[logical] = FLASH_IN_CACHE | place;
	model->statistics.dirty_bytes += FLASH_SLOT_BYTES;
	return place;
}

flash_u64 flash_cache_write(struct flash_model *model, flash_u32 logical, flash_u64 duration_ns,
			    flash_u64 now_ns)
{
	flash_u32 place = flash_mapping_in_cache(model, logical);
	flash_u64 since_ns = now_ns;

	if (place == FLASH_NONE) {
		now_ns = wait_for_room(model, now_ns);
		model->statistics.cache_wait_ns += now_ns - since_ns;
		place = put_in(model, logical);
	} else {
		model->statistics.cache_overwritten_bytes += FLASH_SLOT_BYTES;
	}
	if (model->observer)
		model->observer->accepted(model->observer, logical);
	model->statistics.mapped_write_bytes += FLASH_SLOT_BYTES;
	now_ns += duration_ns;
	model->cached[place].ready_ns = now_ns;
	return now_ns;
}

int flash_cache_remove(struct flash_model *model, flash_u32 logical)
{
	flash_u32 place = flash_mapping_in_cache(model, logical);

	if (place == FLASH_NONE)
		return 0;
	take_out(model, place);
	return 1;
}

flash_u64 flash_cache_flush(struct flash_model *model, flash_u64 now_ns)
{
	flash_u32 i;

	release(model, now_ns);
	while (model->cache.waiting_slots)
		program_oldest(model, now_ns);
	for (i = 0; i < model->nand.dies; i++)
		if (model->nand.die[i].program_slots)
			now_ns = flash_max(now_ns, model->nand.die[i].program_end_ns);
	release(model, now_ns);
	return now_ns;
}
