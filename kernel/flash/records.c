// SPDX-License-Identifier: GPL-2.0-only
/*
 * See the header. Notes what a device writes, by pointers to versions of its slots, and lets states
 * be chosen of it.
 */
#include <linux/sched.h>

#include "records.h"

void flash_records_init(struct flash_records *records, const struct flash_versions *versions)
{
	unsigned int i;

	records->versions = versions;
	for (i = 0; i < FLASH_RECORDS; i++) {
		struct flash_record *record = &records->record[i];

		flash_paged_list_init(&record->requests, sizeof(struct flash_recorded_request));
		flash_paged_list_init(&record->pieces, sizeof(struct flash_piece));
		flash_paged_list_init(&record->moves, sizeof(struct flash_recorded_move));
		record->running = record->overflown = record->lost_move = false;
	}
}

static void empty(struct flash_records *records, struct flash_record *record)
{
	unsigned long number;

	for (number = 0; number < record->pieces.count; number++) {
		struct flash_piece *piece = flash_paged_list_at(&record->pieces, number);

		if (piece->version)
			records->versions->release(records, piece->version);
	}
	flash_paged_list_free(&record->pieces);
	flash_paged_list_free(&record->requests);
	flash_paged_list_free(&record->moves);
	record->erased_moves = 0;
	record->running = record->overflown = record->lost_move = false;
}

void flash_records_drop(struct flash_records *records, unsigned int first)
{
	for (; first < FLASH_RECORDS; first++)
		empty(records, &records->record[first]);
}

void flash_records_begin(struct flash_records *records, unsigned int number)
{
	flash_records_drop(records, number);
	records->record[number].running = true;
}

void flash_records_end(struct flash_records *records)
{
	unsigned int i;

	for (i = 0; i < FLASH_RECORDS; i++)
		records->record[i].running = false;
}

struct flash_record *flash_records_running(struct flash_records *records)
{
	unsigned int i;

	for (i = 0; i < FLASH_RECORDS; i++)
		if (records->record[i].running)
			return &records->record[i];
	return NULL;
}

struct flash_recorded_request *flash_record_add(struct flash_record *record, u64 issue_ns,
						u64 completion_ns)
{
	struct flash_recorded_request *request = flash_paged_list_add(&record->requests);

	if (!request)
		return NULL;
	request->issue_ns = issue_ns;
	request->completion_ns = completion_ns;
	request->first_piece = record->pieces.count;
	return request;
}

void flash_record_move(struct flash_record *record, u64 slot)
{
	struct flash_recorded_move *move = flash_paged_list_add(&record->moves);

	if (!move) {
		record->lost_move = true;
		return;
	}
	move->slot = slot;
	move->request = record->requests.count;
}

void flash_record_erase(struct flash_record *record, u64 erase_ns)
{
	for (; record->erased_moves < record->moves.count; record->erased_moves++) {
		struct flash_recorded_move *move =
			flash_paged_list_at(&record->moves, record->erased_moves);

		move->erase_ns = erase_ns;
	}
}

void flash_records_give_up(struct flash_records *records, struct flash_record *record)
{
	empty(records, record);
	record->overflown = true;
	records->versions->merge(records);
}

/* The record of the layer that is written to; the error otherwise. */
static int top_record(struct flash_records *records, unsigned int top, loff_t offset,
		      size_t row_bytes, const struct flash_record **record)
{
	unsigned int i;

	for (i = 0; i < FLASH_RECORDS; i++)
		if (records->record[i].overflown)
			return -EOVERFLOW;
	if (!top || top > FLASH_RECORDS || records->record[top - 1].running)
		return -ENODATA;
	*record = &records->record[top - 1];
	return offset % row_bytes ? -EINVAL : 0;
}

/* Copies items of a list, from an offset on. */
static ssize_t copy_items(const struct flash_paged_list *list, char *buffer, loff_t offset,
			  size_t length)
{
	unsigned long number = offset / list->item_bytes;
	size_t done = 0;

	for (; number < list->count && done + list->item_bytes <= length; number++) {
		memcpy(buffer + done, flash_paged_list_at(list, number), list->item_bytes);
		done += list->item_bytes;
	}
	return done;
}

ssize_t flash_records_requests(struct flash_records *records, unsigned int top, char *buffer,
			       loff_t offset, size_t length)
{
	const struct flash_record *record;
	int error = top_record(records, top, offset, sizeof(struct flash_recorded_request),
			       &record);

	return error ?: copy_items(&record->requests, buffer, offset, length);
}

ssize_t flash_records_moves(struct flash_records *records, unsigned int top, char *buffer,
			    loff_t offset, size_t length)
{
	const struct flash_record *record;
	int error = top_record(records, top, offset, sizeof(struct flash_recorded_move), &record);

	if (!error && record->lost_move)
		error = -EOVERFLOW;
	return error ?: copy_items(&record->moves, buffer, offset, length);
}

ssize_t flash_records_pieces(struct flash_records *records, unsigned int top, char *buffer,
			     loff_t offset, size_t length)
{
	const struct flash_versions *versions = records->versions;
	struct flash_piece_hashes *row = (struct flash_piece_hashes *)buffer;
	unsigned long number = offset / sizeof(*row);
	const struct flash_record *record;
	size_t done = 0;
	int error = top_record(records, top, offset, sizeof(*row), &record);

	if (error)
		return error;
	for (; number < record->pieces.count && done + sizeof(*row) <= length; number++, row++) {
		const struct flash_piece *piece = flash_paged_list_at(&record->pieces, number);

		row->slot = piece->slot;
		row->parts = piece->parts;
		versions->hash(records, piece->version, row->after);
		versions->hash(records, versions->find(records, top - 1, piece->slot),
			       row->before);
		done += sizeof(*row);
		cond_resched();
	}
	return done;
}

struct flash_piece *flash_records_piece(const struct flash_records *records, unsigned int layer,
					u32 number)
{
	return flash_paged_list_at(&records->record[layer - 1].pieces, number - 1);
}

static int choose_slot(struct flash_records *records, unsigned int layer,
		       const struct flash_chosen_slot *chosen)
{
	const struct flash_versions *versions = records->versions;
	unsigned long count = records->record[layer - 1].pieces.count;
	u32 first = chosen->pieces[0];
	bool is_one = true;
	unsigned int part;

	for (part = 0; part < FLASH_SLOT_PARTS; part++) {
		u32 number = chosen->pieces[part];

		is_one &= number == first;
		if (number && (number > count ||
			       flash_records_piece(records, layer, number)->slot != chosen->slot))
			return -EINVAL;
	}
	if (!is_one)
		return versions->put_mixed(records, layer, chosen);
	if (first)
		return versions->put(records, layer, chosen->slot,
				     flash_records_piece(records, layer, first)->version);
	return versions->uncover(records, layer, chosen->slot);
}

/* Takes the mark off the parts that cannot be read: they hold what was before. */
static int choose_unreadable(struct flash_records *records, unsigned int layer,
			     struct flash_chosen_slot *chosen)
{
	const struct flash_versions *versions = records->versions;
	u8 unreadable = 0, below = 0;
	unsigned int part;

	for (part = 0; part < FLASH_SLOT_PARTS; part++) {
		unreadable |= (chosen->pieces[part] == FLASH_UNREADABLE_PART) << part;
		below |= !chosen->pieces[part] << part;
		if (unreadable & 1 << part)
			chosen->pieces[part] = 0;
	}
	if (!versions->choose_unreadable)
		return unreadable ? -EINVAL : 0;
	return versions->choose_unreadable(records, layer, chosen->slot, unreadable, below);
}

ssize_t flash_records_choose(struct flash_records *records, unsigned int top, const char *buffer,
			     size_t length)
{
	struct flash_chosen_slot chosen;
	size_t done;
	int error;

	if (length % sizeof(chosen) || top < 2)
		return -EINVAL;
	for (done = 0; done < length; done += sizeof(chosen)) {
		memcpy(&chosen, buffer + done, sizeof(chosen));
		error = choose_unreadable(records, top - 1, &chosen) ?:
			choose_slot(records, top - 1, &chosen);
		if (error)
			return error;
	}
	return length;
}
