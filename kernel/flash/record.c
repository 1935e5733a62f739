// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records what is written to a disk from a moment on. Reads requests as they are issued, and the
 * store, into which their data were just moved; holds the page of each slot that they changed, so
 * that the next write to the slot goes to another page. Of a discard or a write of zeroes it notes
 * the slots in which something ever was: the others read as zeroes in any case.
 *
 * It runs in every measured run, so it hashes nothing then. What it costs is the store's: a page
 * for each slot of a write, which begins as a copy of the one that is held. Where it would take
 * more than a quarter of the memory, it ends.
 */
#include <linux/mm.h>

#include "command.h"
#include "disk.h"
#include "record.h"

static_assert(PAGE_SIZE == FLASH_SLOT_BYTES);
static_assert(FLASH_SLOT_PARTS == FLASH_SLOT_BYTES / SECTOR_SIZE);

u8 flash_sectors_between(u64 slot, u64 offset_bytes, u64 end_bytes)
{
	u64 begin = slot * FLASH_SLOT_BYTES;
	unsigned int first = max(offset_bytes, begin) - begin, end;

	end = min_t(u64, end_bytes - begin, FLASH_SLOT_BYTES);
	return ((1 << (end >> SECTOR_SHIFT)) - 1) & ~((1 << (first >> SECTOR_SHIFT)) - 1);
}

static int add_pieces(struct flash_record *record, struct flash_store *store,
		      const struct flash_request *request, struct flash_recorded_request *recorded)
{
	u64 end_bytes = request->offset_bytes + request->length_bytes;
	unsigned long slot = request->offset_bytes / FLASH_SLOT_BYTES;
	unsigned long end = DIV_ROUND_UP_ULL(end_bytes, FLASH_SLOT_BYTES);
	struct flash_piece *piece;

	for (; slot < end; slot++) {
		if (request->operation != FLASH_WRITE && !flash_store_next(store, &slot, end))
			break;
		if (record->pieces.count >= totalram_pages() / 4)
			return -ENOMEM;
		piece = flash_paged_list_add(&record->pieces);
		if (!piece)
			return -ENOMEM;
		piece->slot = slot;
		piece->parts = flash_sectors_between(slot, request->offset_bytes, end_bytes);
		piece->version = flash_store_find(store, store->top, slot);
		if (piece->version)
			flash_store_get_page(piece->version);
		recorded->piece_count++;
	}
	return 0;
}

void flash_record_command(struct flash *flash, const struct flash_command *command, u64 issue_ns,
			  u64 completion_ns)
{
	struct flash_record *record = flash_records_running(&flash->records);
	const struct flash_request *request = &command->request;
	struct flash_recorded_request *recorded;

	if (!record || request->operation == FLASH_READ || command->status != BLK_STS_OK)
		return;
	recorded = flash_record_add(record, issue_ns, completion_ns);
	if (!recorded)
		goto overflow;
	recorded->is_flush = request->operation == FLASH_FLUSH;
	recorded->is_fua = request->fua;
	recorded->is_atomic = command->is_atomic;
	if (request->operation == FLASH_FLUSH ||
	    !add_pieces(record, &flash->store, request, recorded))
		return;
overflow:
	flash_records_give_up(&flash->records, record);
}

static void accepted(const struct flash_observer *observer, flash_u32 logical)
{
}

/*
 * A newer version that is still in the cache hides the copy, and takes its place when it is
 * programmed: there is no saying what is left of either, and nothing is said.
 */
static void programmed(const struct flash_observer *observer, flash_u32 logical,
		       flash_u32 physical, enum flash_cause cause, flash_u64 end_ns)
{
	struct flash *flash = container_of(observer, struct flash, moves);
	struct flash_record *record = flash_records_running(&flash->records);

	if (record && (cause == FLASH_FOR_GC || cause == FLASH_FOR_WEAR) &&
	    logical < flash->model.geometry.disk_slots &&
	    flash_mapping_in_cache(&flash->model, logical) == FLASH_NONE)
		flash_record_move(record, logical);
}

/* One row is emptied at a time, so that all moves since the last erase were out of this one. */
static void erased(const struct flash_observer *observer, flash_u32 row, flash_u64 begin_ns)
{
	struct flash *flash = container_of(observer, struct flash, moves);
	struct flash_record *record = flash_records_running(&flash->records);

	if (record)
		flash_record_erase(record, begin_ns);
}

void flash_record_observe(struct flash *flash)
{
	flash->moves = (struct flash_observer) { accepted, programmed, erased };
	flash->model.observer = &flash->moves;
}
