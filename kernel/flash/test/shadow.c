// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps versions of data beside the model, by what it tells its observer, and checks them. An erase
 * is checked when it happens: data that must survive power loss need a newer copy, programmed
 * before the erase begins.
 */
#include <stdlib.h>
#include <string.h>

#include "shadow.h"

#define RECENT_MAX 1024

static struct shadow *of(const struct flash_observer *observer)
{
	return (struct shadow *)observer;
}

static void accepted(const struct flash_observer *observer, flash_u32 logical)
{
	struct shadow *shadow = of(observer);

	shadow->accepted[logical] = ++shadow->next_version;
	if (shadow->recent_count < RECENT_MAX)
		shadow->recent[shadow->recent_count] = logical;
	shadow->recent_count++;
}

static void programmed(const struct flash_observer *observer, flash_u32 logical,
		       flash_u32 physical, enum flash_cause cause, flash_u64 end_ns)
{
	struct shadow *shadow = of(observer);
	flash_u32 old = flash_mapping_physical(shadow->model, logical);

	CHECK(shadow->owner[physical], ==, FLASH_NONE);
	shadow->owner[physical] = logical;
	shadow->end_ns[physical] = end_ns;
	if (logical >= shadow->model->geometry.disk_slots)
		return;
	if (cause == FLASH_FOR_HOST) {
		shadow->content[physical] = shadow->accepted[logical];
		return;
	}
	CHECK(old, !=, FLASH_NONE);
	CHECK(shadow->owner[old], ==, logical);
	shadow->content[physical] = shadow->content[old];
}

/* Whether power lost at now_ns would leave a copy of what must survive it, outside the row. */
static int survives(const struct shadow *shadow, flash_u32 logical, flash_u32 row, flash_u64 now_ns)
{
	flash_u32 slots = shadow->model->geometry.row_slots, i;

	for (i = 0; i < shadow->model->geometry.rows * slots; i++)
		if (shadow->owner[i] == logical && i / slots != row &&
		    shadow->content[i] >= shadow->durable[logical] && shadow->end_ns[i] <= now_ns)
			return 1;
	return 0;
}

static void erased(const struct flash_observer *observer, flash_u32 row, flash_u64 begin_ns)
{
	struct shadow *shadow = of(observer);
	flash_u32 slots = shadow->model->geometry.row_slots, i;

	for (i = row * slots; i < (row + 1) * slots; i++) {
		flash_u32 logical = shadow->owner[i];

		CHECK(shadow->model->reverse[i], ==, FLASH_NONE);
		if (logical == FLASH_NONE || logical >= shadow->model->geometry.disk_slots ||
		    !shadow->durable[logical] || shadow->content[i] < shadow->durable[logical])
			continue;
		CHECK(survives(shadow, logical, row, begin_ns), ==, 1);
	}
	for (i = row * slots; i < (row + 1) * slots; i++)
		shadow->owner[i] = FLASH_NONE;
}

void shadow_start(struct shadow *shadow, struct flash_model *model)
{
	size_t logical = model->geometry.disk_slots, i;
	size_t physical = (size_t)model->geometry.rows * model->geometry.row_slots;

	shadow->observer = (struct flash_observer) { accepted, programmed, erased };
	shadow->model = model;
	shadow->next_version = 0;
	shadow->accepted = calloc(logical, sizeof(*shadow->accepted));
	shadow->durable = calloc(logical, sizeof(*shadow->durable));
	shadow->content = calloc(physical, sizeof(*shadow->content));
	shadow->owner = calloc(physical, sizeof(*shadow->owner));
	shadow->end_ns = calloc(physical, sizeof(*shadow->end_ns));
	shadow->recent = calloc(RECENT_MAX, sizeof(*shadow->recent));
	shadow->recent_count = 0;
	for (i = 0; i < physical; i++)
		shadow->owner[i] = FLASH_NONE;
	model->observer = &shadow->observer;
}

void shadow_aged(struct shadow *shadow)
{
	size_t physical = (size_t)shadow->model->geometry.rows * shadow->model->geometry.row_slots;

	memset(shadow->end_ns, 0, physical * sizeof(*shadow->end_ns));
	shadow_flushed(shadow);
}

void shadow_end(struct shadow *shadow)
{
	free(shadow->accepted);
	free(shadow->durable);
	free(shadow->content);
	free(shadow->owner);
	free(shadow->end_ns);
	free(shadow->recent);
}

static flash_u32 first_slot(const struct flash_request *request)
{
	return request->offset_bytes / FLASH_SLOT_BYTES;
}

static flash_u32 end_slot(const struct flash_request *request)
{
	return flash_divide_up(request->offset_bytes + request->length_bytes, FLASH_SLOT_BYTES);
}

void shadow_discard(struct shadow *shadow, const struct flash_request *request)
{
	flash_u32 slot = flash_divide_up(request->offset_bytes, FLASH_SLOT_BYTES);
	flash_u32 end = (request->offset_bytes + request->length_bytes) / FLASH_SLOT_BYTES;

	for (; slot < end; slot++)
		shadow->accepted[slot] = shadow->durable[slot] = 0;
}

void shadow_flushed(struct shadow *shadow)
{
	unsigned int i;

	if (shadow->recent_count > RECENT_MAX)
		for (i = 0; i < shadow->model->geometry.disk_slots; i++)
			shadow->durable[i] = shadow->accepted[i];
	else
		for (i = 0; i < shadow->recent_count; i++)
			shadow->durable[shadow->recent[i]] = shadow->accepted[shadow->recent[i]];
	shadow->recent_count = 0;
}

void shadow_forced(struct shadow *shadow, const struct flash_request *request)
{
	flash_u32 slot;

	for (slot = first_slot(request); slot < end_slot(request); slot++)
		shadow->durable[slot] = shadow->accepted[slot];
}

static void check_slot(const struct shadow *shadow, flash_u32 logical)
{
	const struct flash_model *model = shadow->model;
	flash_u32 physical = flash_mapping_physical(model, logical);
	flash_u32 place = flash_mapping_in_cache(model, logical);

	if (physical != FLASH_NONE) {
		CHECK(model->reverse[physical], ==, logical);
		CHECK(shadow->owner[physical], ==, logical);
		CHECK(shadow->content[physical], >=, shadow->durable[logical]);
	}
	if (place != FLASH_NONE) {
		CHECK(model->cached[place].logical, ==, logical);
		CHECK(shadow->accepted[logical], !=, 0);
	} else if (physical != FLASH_NONE) {
		CHECK(shadow->content[physical], ==, shadow->accepted[logical]);
	} else {
		CHECK(shadow->accepted[logical], ==, 0);
	}
}

void shadow_check_range(const struct shadow *shadow, const struct flash_request *request)
{
	flash_u32 slot;

	for (slot = first_slot(request); slot < end_slot(request); slot++)
		check_slot(shadow, slot);
}

void shadow_check_all(const struct shadow *shadow)
{
	const struct flash_model *model = shadow->model;
	const struct flash_geometry *geometry = &model->geometry;
	flash_u32 slot, row, free_rows = 0, valid, total_valid = 0, mapped = 0;

	for (slot = 0; slot < geometry->disk_slots; slot++)
		check_slot(shadow, slot);
	for (slot = 0; slot < geometry->disk_slots + geometry->mapping_slots; slot++)
		mapped += flash_mapping_physical(model, slot) != FLASH_NONE;
	for (row = 0; row < geometry->rows; row++) {
		valid = 0;
		for (slot = 0; slot < geometry->row_slots; slot++)
			valid += model->reverse[row * geometry->row_slots + slot] != FLASH_NONE;
		CHECK(model->row[row].valid_slots, ==, valid);
		total_valid += valid;
		free_rows += model->row[row].state == FLASH_ROW_FREE;
	}
	CHECK(total_valid, ==, mapped);
	CHECK(free_rows, ==, model->rows.free_rows);
	CHECK(free_rows, >=, 1);
}
