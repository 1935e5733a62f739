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
#include "record.h"

static_assert(PAGE_SIZE == FLASH_SLOT_BYTES);

void flash_record_init(struct flash_record *record)
{
	flash_paged_list_init(&record->requests, sizeof(struct flash_recorded_request));
	flash_paged_list_init(&record->pieces, sizeof(struct flash_piece));
	record->running = record->overflown = false;
}

void flash_record_free(struct flash_record *record, struct flash_store *store)
{
	unsigned long number;

	for (number = 0; number < record->pieces.count; number++) {
		struct flash_piece *piece = flash_paged_list_at(&record->pieces, number);

		if (piece->page)
			flash_store_put_page(store, piece->page);
	}
	flash_paged_list_free(&record->pieces);
	flash_paged_list_free(&record->requests);
	record->running = record->overflown = false;
}

void flash_record_begin(struct flash_record *record, struct flash_store *store)
{
	flash_record_free(record, store);
	record->running = true;
}

void flash_record_overflow(struct flash_record *record, struct flash_store *store)
{
	flash_record_free(record, store);
	record->overflown = true;
	/* If it cannot, the store is full, as the next write will find. */
	flash_store_merge(store);
}

/* The sectors of a slot that lie between two offsets of the disk. */
static u8 sectors_between(u64 slot, u64 offset_bytes, u64 end_bytes)
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
		piece->sectors = sectors_between(slot, request->offset_bytes, end_bytes);
		piece->page = flash_store_find(store, store->top, slot);
		if (piece->page)
			flash_store_get_page(piece->page);
		recorded->piece_count++;
	}
	return 0;
}

void flash_record_add(struct flash_record *record, struct flash_store *store,
		      const struct flash_command *command, u64 issue_ns, u64 completion_ns)
{
	const struct flash_request *request = &command->request;
	struct flash_recorded_request *recorded;

	if (request->operation == FLASH_READ || command->status != BLK_STS_OK)
		return;
	recorded = flash_paged_list_add(&record->requests);
	if (!recorded)
		goto overflow;
	recorded->issue_ns = issue_ns;
	recorded->completion_ns = completion_ns;
	recorded->first_piece = record->pieces.count;
	recorded->is_flush = request->operation == FLASH_FLUSH;
	recorded->is_fua = request->fua;
	if (request->operation == FLASH_FLUSH || !add_pieces(record, store, request, recorded))
		return;
overflow:
	flash_record_overflow(record, store);
}
