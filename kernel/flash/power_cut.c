// SPDX-License-Identifier: GPL-2.0-only
/*
 * See the header. Reads records and changes the store by pointers: layer N + 1 of it holds what
 * record N is of, or a state chosen of it; what is written then goes to the layer above. Sectors of
 * several pieces in one slot are the only thing that is copied.
 */
#include "compat.h"
#include "disk.h"
#include "power_cut.h"

static u64 hash_sector(const u64 *words)
{
	u64 hash = FLASH_HASH_SEED;
	unsigned int i;

	for (i = 0; i < SECTOR_SIZE / sizeof(*words); i++)
		hash = flash_hash_word(hash, words[i]);
	return hash;
}

static void hash_slot(struct page *page, u64 *hashes)
{
	const char *data = page ? kmap_local_page(page) : NULL;
	const char *zeroes = page_address(ZERO_PAGE(0));
	unsigned int i;

	for (i = 0; i < FLASH_SLOT_SECTORS; i++)
		hashes[i] = hash_sector((const u64 *)((data ?: zeroes) + i * SECTOR_SIZE));
	if (data)
		kunmap_local(data);
}

static void drop_records(struct flash *flash, unsigned int first)
{
	for (; first < FLASH_RECORDS; first++)
		flash_record_free(&flash->records[first], &flash->store);
}

static void end_records(struct flash *flash)
{
	unsigned int number;

	for (number = 0; number < FLASH_RECORDS; number++)
		flash->records[number].running = false;
}

static void begin_record(struct flash *flash, unsigned int number)
{
	drop_records(flash, number);
	flash_store_begin_layer(&flash->store, number);
	flash_record_begin(&flash->records[number], &flash->store);
	flash->untimed = false;
}

/* Requests wait meanwhile. */
static int change_records(struct flash *flash, const char *text)
{
	unsigned int number, frozen = flash_freeze(flash->disk->queue);
	int error = 0;

	if (sysfs_streq(text, "end"))
		end_records(flash);
	else if (!flash_record_of(text, "begin ", &number))
		begin_record(flash, number);
	else
		error = -EINVAL;
	flash_unfreeze(flash->disk->queue, frozen);
	return error;
}

/* Of a disk that nobody has open no request is under way. */
int flash_power_cut_command(struct flash *flash, const char *text)
{
	unsigned int number;
	bool clear = !flash_record_of(text, "clear ", &number);

	if (!clear && flash_record_of(text, "restore ", &number) && !sysfs_streq(text, "follow"))
		return change_records(flash, text);
	if (disk_openers(flash->disk))
		return -EBUSY;
	if (sysfs_streq(text, "follow")) {
		flash_store_follow_changes(&flash->store);
		return 0;
	}
	drop_records(flash, number + 1);
	if (clear)
		flash_store_begin_layer(&flash->store, number);
	flash_store_begin_layer(&flash->store, number + 1);
	flash->untimed = true;
	return 0;
}

/* The record of the layer that is written to; null: there is none. */
static struct flash_record *top_record(struct flash *flash)
{
	unsigned int top = flash->store.top;

	return top && top <= FLASH_RECORDS ? &flash->records[top - 1] : NULL;
}

static int check_readable(struct flash *flash, loff_t offset, size_t row_bytes)
{
	struct flash_record *record = top_record(flash);
	unsigned int i;

	for (i = 0; i < FLASH_RECORDS; i++)
		if (flash->records[i].overflown)
			return -EOVERFLOW;
	if (!record || record->running)
		return -ENODATA;
	return offset % row_bytes ? -EINVAL : 0;
}

ssize_t flash_power_cut_requests(struct flash *flash, char *buffer, loff_t offset, size_t length)
{
	struct flash_recorded_request *told = (struct flash_recorded_request *)buffer;
	int error = check_readable(flash, offset, sizeof(*told));
	struct flash_record *record;
	unsigned long number = offset / sizeof(*told);
	size_t done = 0;

	if (error)
		return error;
	record = top_record(flash);
	for (; number < record->requests.count && done + sizeof(*told) <= length; number++) {
		*told++ = *(struct flash_recorded_request *)
			flash_paged_list_at(&record->requests, number);
		done += sizeof(*told);
	}
	return done;
}

ssize_t flash_power_cut_pieces(struct flash *flash, char *buffer, loff_t offset, size_t length)
{
	struct flash_told_piece *told = (struct flash_told_piece *)buffer;
	int error = check_readable(flash, offset, sizeof(*told));
	struct flash_record *record;
	unsigned long number = offset / sizeof(*told);
	size_t done = 0;

	if (error)
		return error;
	record = top_record(flash);
	for (; number < record->pieces.count && done + sizeof(*told) <= length; number++, told++) {
		const struct flash_piece *piece = flash_paged_list_at(&record->pieces, number);

		told->slot = piece->slot;
		told->sectors = piece->sectors;
		hash_slot(piece->page, told->after);
		hash_slot(flash_store_find(&flash->store, flash->store.top - 1, piece->slot),
			  told->before);
		done += sizeof(*told);
		cond_resched();
	}
	return done;
}

static void copy_sector(struct page *to, struct page *from, unsigned int sector)
{
	if (from)
		memcpy_page(to, sector * SECTOR_SIZE, from, sector * SECTOR_SIZE, SECTOR_SIZE);
	else
		memzero_page(to, sector * SECTOR_SIZE, SECTOR_SIZE);
}

static int put_mixed(struct flash *flash, unsigned int layer,
		     const struct flash_chosen_slot *chosen)
{
	struct flash_store *store = &flash->store;
	struct page *page = flash_store_new_page(store);
	unsigned int sector;
	int error;

	if (!page)
		return -ENOMEM;
	for (sector = 0; sector < FLASH_SLOT_SECTORS; sector++) {
		struct page *from = flash_store_find(store, layer - 1, chosen->slot);

		if (chosen->pieces[sector]) {
			const struct flash_piece *piece =
				flash_paged_list_at(&flash->records[layer - 1].pieces,
						    chosen->pieces[sector] - 1);
			from = piece->page;
		}
		copy_sector(page, from, sector);
	}
	error = flash_store_put(store, layer, chosen->slot, page);
	flash_store_put_page(store, page);
	return error;
}

static int choose_slot(struct flash *flash, unsigned int layer,
		       const struct flash_chosen_slot *chosen)
{
	const struct flash_paged_list *pieces = &flash->records[layer - 1].pieces;
	u32 first = chosen->pieces[0];
	bool is_one = true;
	unsigned int sector;

	for (sector = 0; sector < FLASH_SLOT_SECTORS; sector++) {
		u32 number = chosen->pieces[sector];

		is_one &= number == first;
		if (!number)
			continue;
		if (number > pieces->count || ((struct flash_piece *)
		    flash_paged_list_at(pieces, number - 1))->slot != chosen->slot)
			return -EINVAL;
	}
	if (!is_one)
		return put_mixed(flash, layer, chosen);
	if (first)
		return flash_store_put(&flash->store, layer, chosen->slot, ((struct flash_piece *)
				       flash_paged_list_at(pieces, first - 1))->page);
	flash_store_erase(&flash->store, layer, chosen->slot);
	return 0;
}

ssize_t flash_power_cut_choose(struct flash *flash, const char *buffer, size_t length)
{
	const struct flash_chosen_slot *chosen = (const struct flash_chosen_slot *)buffer;
	unsigned int layer = flash->store.top - 1;
	size_t done;
	int error;

	if (disk_openers(flash->disk))
		return -EBUSY;
	if (length % sizeof(*chosen) || !flash->store.top || !layer)
		return -EINVAL;
	for (done = 0; done < length; done += sizeof(*chosen)) {
		error = choose_slot(flash, layer, chosen++);
		if (error)
			return error;
	}
	return length;
}

ssize_t flash_power_cut_changes(struct flash *flash, char *buffer, size_t length)
{
	u64 *slots = (u64 *)buffer;
	unsigned long slot;
	size_t done = 0;

	if (disk_openers(flash->disk))
		return -EBUSY;
	if (flash->store.lost_change)
		return -ENOMEM;
	for (; done + sizeof(*slots) <= length; done += sizeof(*slots)) {
		if (!flash_store_take_change(&flash->store, &slot))
			break;
		*slots++ = slot;
	}
	return done;
}

ssize_t flash_power_cut_contents(struct flash *flash, char *buffer, loff_t offset, size_t length)
{
	struct flash_store *store = &flash->store;
	u64 end = flash->config.capacity_bytes;
	size_t done;

	if (disk_openers(flash->disk))
		return -EBUSY;
	if (offset % PAGE_SIZE)
		return -EINVAL;
	for (done = 0; done + PAGE_SIZE <= length && offset + done < end; done += PAGE_SIZE) {
		struct page *page = flash_store_find(store, store->top,
						     (offset + done) >> PAGE_SHIFT);

		if (page)
			memcpy_from_page(buffer + done, page, 0, PAGE_SIZE);
		else
			memset(buffer + done, 0, PAGE_SIZE);
	}
	return done;
}
