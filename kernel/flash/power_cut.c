// SPDX-License-Identifier: GPL-2.0-only
/*
 * See the header. Reads records and changes the store by pointers. Sectors of several pieces in one
 * slot are the only thing that is copied.
 */
#include "command.h"
#include "compat.h"
#include "disk.h"
#include "power_cut.h"

static struct flash_store *store_of(struct flash_records *records)
{
	return &container_of(records, struct flash, records)->store;
}

static void *find_page(struct flash_records *records, unsigned int layer, u64 slot)
{
	return flash_store_find(store_of(records), layer, slot);
}

static void release_page(struct flash_records *records, void *page)
{
	flash_store_put_page(store_of(records), page);
}

static u64 hash_sector(const u64 *words)
{
	u64 hash = FLASH_HASH_SEED;
	unsigned int i;

	for (i = 0; i < SECTOR_SIZE / sizeof(*words); i++)
		hash = flash_hash_word(hash, words[i]);
	return hash;
}

static void hash_page(struct flash_records *records, void *page, u64 *hashes)
{
	const char *data = page ? kmap_local_page((struct page *)page) : NULL;
	const char *zeroes = page_address(ZERO_PAGE(0));
	unsigned int i;

	for (i = 0; i < FLASH_SLOT_PARTS; i++)
		hashes[i] = hash_sector((const u64 *)((data ?: zeroes) + i * SECTOR_SIZE));
	if (data)
		kunmap_local(data);
}

static int put_page_in_layer(struct flash_records *records, unsigned int layer, u64 slot,
			     void *page)
{
	return flash_store_put(store_of(records), layer, slot, page);
}

static void copy_sector(struct page *to, struct page *from, unsigned int sector)
{
	if (from)
		memcpy_page(to, sector * SECTOR_SIZE, from, sector * SECTOR_SIZE, SECTOR_SIZE);
	else
		memzero_page(to, sector * SECTOR_SIZE, SECTOR_SIZE);
}

static int put_mixed(struct flash_records *records, unsigned int layer,
		     const struct flash_chosen_slot *chosen)
{
	struct flash_store *store = store_of(records);
	struct page *page = flash_store_new_page(store);
	unsigned int sector;
	int error;

	if (!page)
		return -ENOMEM;
	for (sector = 0; sector < FLASH_SLOT_PARTS; sector++) {
		struct page *from = flash_store_find(store, layer - 1, chosen->slot);

		if (chosen->pieces[sector])
			from = flash_records_piece(records, layer, chosen->pieces[sector])->version;
		copy_sector(page, from, sector);
	}
	error = flash_store_put(store, layer, chosen->slot, page);
	flash_store_put_page(store, page);
	return error;
}

static int uncover_slot(struct flash_records *records, unsigned int layer, u64 slot)
{
	flash_store_erase(store_of(records), layer, slot);
	return 0;
}

static int choose_unreadable(struct flash_records *records, unsigned int layer, u64 slot,
			     u8 sectors, u8 below)
{
	struct flash *flash = container_of(records, struct flash, records);

	return flash_unreadable_choose_slot(flash, layer - 1, slot, sectors, below);
}

static int merge_layers(struct flash_records *records)
{
	return flash_store_merge(store_of(records));
}

const struct flash_versions flash_disk_versions = {
	.find = find_page,
	.release = release_page,
	.hash = hash_page,
	.put = put_page_in_layer,
	.put_mixed = put_mixed,
	.uncover = uncover_slot,
	.choose_unreadable = choose_unreadable,
	.merge = merge_layers,
};

static void begin_record(struct flash *flash, unsigned int number)
{
	flash_records_begin(&flash->records, number);
	flash_store_begin_layer(&flash->store, number);
	flash->course &= FLASH_UNREADABLE;
	if (!number)
		flash_unreadable_clear_all(flash, number);
}

/* Requests wait meanwhile. */
static int change_records(struct flash *flash, const char *text)
{
	unsigned int number, frozen = flash_freeze(flash->disk->queue);
	int error = 0;

	if (sysfs_streq(text, "end"))
		flash_records_end(&flash->records);
	else if (!flash_parse_record(text, "begin ", &number))
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
	bool clear = !flash_parse_record(text, "clear ", &number);

	if (!clear && flash_parse_record(text, "restore ", &number) && !sysfs_streq(text, "follow"))
		return change_records(flash, text);
	if (disk_openers(flash->disk))
		return -EBUSY;
	if (sysfs_streq(text, "follow")) {
		flash_store_follow_changes(&flash->store);
		return 0;
	}
	flash_records_drop(&flash->records, number + 1);
	if (clear)
		flash_store_begin_layer(&flash->store, number);
	flash_store_begin_layer(&flash->store, number + 1);
	if (clear)
		flash_unreadable_clear_all(flash, number);
	else
		flash_unreadable_restore_all(flash, number);
	flash->course = (flash->course & FLASH_UNREADABLE) | FLASH_UNTIMED;
	return 0;
}

ssize_t flash_power_cut_requests(struct flash *flash, char *buffer, loff_t offset, size_t length)
{
	return flash_records_requests(&flash->records, flash->store.top, buffer, offset, length);
}

ssize_t flash_power_cut_pieces(struct flash *flash, char *buffer, loff_t offset, size_t length)
{
	return flash_records_pieces(&flash->records, flash->store.top, buffer, offset, length);
}

ssize_t flash_power_cut_moves(struct flash *flash, char *buffer, loff_t offset, size_t length)
{
	return flash_records_moves(&flash->records, flash->store.top, buffer, offset, length);
}

ssize_t flash_power_cut_choose(struct flash *flash, const char *buffer, size_t length)
{
	if (disk_openers(flash->disk))
		return -EBUSY;
	return flash_records_choose(&flash->records, flash->store.top, buffer, length);
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
