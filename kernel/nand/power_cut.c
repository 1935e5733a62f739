// SPDX-License-Identifier: GPL-2.0-only
/*
 * See the header. Notes what a run makes of pages, and changes the contents by their versions. The
 * model's count of programs goes with the version that is shown.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "raw_nand_device.h"

/* Of the memory, what the versions of a run may take. */
#define SHARE 4

static struct raw_nand_device *device_of(struct flash_records *records)
{
	return container_of(records, struct raw_nand_device, cut.records);
}

static void *find_version(struct flash_records *records, unsigned int layer, u64 slot)
{
	return contents_find(&device_of(records)->contents, layer, slot);
}

static void release_version(struct flash_records *records, void *version)
{
	contents_let_go(&device_of(records)->contents, version);
}

static void hash_page(struct flash_records *records, void *page_version, u64 *hashes)
{
	const struct raw_nand_device *nand = device_of(records);
	const struct version *version = page_version;
	u32 words = nand->contents.page_bytes / FLASH_SLOT_PARTS / sizeof(u64), part, i;

	for (part = 0; part < FLASH_SLOT_PARTS; part++) {
		u64 hash = FLASH_HASH_SEED;

		for (i = 0; i < words; i++) {
			u64 word = ~0ULL;

			if (version)
				memcpy(&word, version->data + (part * words + i) * sizeof(word),
				       sizeof(word));
			hash = flash_hash_word(hash, word);
		}
		hashes[part] = hash;
	}
}

/* The model is as the version says that is shown. */
static void agree(struct raw_nand_device *nand, unsigned int layer, u32 page)
{
	const struct version *version = contents_find(&nand->contents, layer, page);

	nand->model.programs[page] = version ? version->programs : 0;
}

static void copy_part(const struct contents *contents, struct version *to,
		      const struct version *from, unsigned int part)
{
	u32 part_bytes = contents->page_bytes / FLASH_SLOT_PARTS, begin = part * part_bytes;

	if (from)
		memcpy(to->data + begin, from->data + begin, part_bytes);
}

static bool is_whole(const struct contents *contents, const struct version *mixed,
		     const struct version *newest)
{
	if (newest)
		return !memcmp(mixed->data, newest->data, contents->page_bytes);
	return !memchr_inv(mixed->data, 0xff, contents->page_bytes);
}

/* Of several pieces: whole where it is what the newest of them left, and torn otherwise. */
static int put_mixed(struct flash_records *records, unsigned int layer,
		     const struct flash_chosen_slot *chosen)
{
	struct raw_nand_device *nand = device_of(records);
	struct contents *contents = &nand->contents;
	struct version *mixed = contents_new_version(contents), *newest;
	u32 last = 0;
	unsigned int part;
	int error;

	if (!mixed)
		return -ENOMEM;
	for (part = 0; part < FLASH_SLOT_PARTS; part++) {
		u32 number = chosen->pieces[part];

		copy_part(contents, mixed, number ?
			  flash_records_piece(records, layer, number)->version :
			  contents_find(contents, layer - 1, chosen->slot), part);
		last = max(last, number);
	}
	newest = flash_records_piece(records, layer, last)->version;
	mixed->programs = 1 | RAW_NAND_TORN;
	error = contents_put(contents, layer, chosen->slot,
			     is_whole(contents, mixed, newest) ? newest : mixed);
	contents_let_go(contents, mixed);
	if (!error)
		agree(nand, layer, chosen->slot);
	return error;
}

static int put_version(struct flash_records *records, unsigned int layer, u64 slot, void *version)
{
	struct raw_nand_device *nand = device_of(records);
	int error = contents_put(&nand->contents, layer, slot, version);

	if (!error)
		agree(nand, layer, slot);
	return error;
}

static int uncover_page(struct flash_records *records, unsigned int layer, u64 slot)
{
	struct raw_nand_device *nand = device_of(records);

	if (slot >= (u64)nand->model.blocks * nand->model.config.pages_per_block)
		return -EINVAL;
	contents_uncover(&nand->contents, layer, slot);
	agree(nand, layer, slot);
	return 0;
}

static int merge_layers(struct flash_records *records)
{
	return contents_merge(&device_of(records)->contents);
}

static const struct flash_versions page_versions = {
	.find = find_version,
	.release = release_version,
	.hash = hash_page,
	.put = put_version,
	.put_mixed = put_mixed,
	.uncover = uncover_page,
	.merge = merge_layers,
};

int power_cut_init(struct power_cut *cut, u32 blocks)
{
	flash_records_init(&cut->records, &page_versions);
	cut->blocks = vmalloc(array_size(blocks, sizeof(*cut->blocks)));
	return cut->blocks ? 0 : -ENOMEM;
}

void power_cut_free(struct raw_nand_device *nand)
{
	if (!nand->cut.blocks)
		return;
	flash_records_drop(&nand->cut.records, 0);
	vfree(nand->cut.blocks);
}

void power_cut_begin_request(struct raw_nand_device *nand, u64 issue_ns, u64 completion_ns)
{
	struct flash_record *record = flash_records_running(&nand->cut.records);

	if (record && !flash_record_add(record, issue_ns, completion_ns))
		flash_records_give_up(&nand->cut.records, record);
}

void power_cut_note_page(struct raw_nand_device *nand, u32 page, u32 offset, u32 length)
{
	u32 part_bytes = nand->contents.page_bytes / FLASH_SLOT_PARTS;
	u32 first = min_t(u32, offset / part_bytes, FLASH_SLOT_PARTS - 1);
	u32 last = min_t(u32, (offset + length - 1) / part_bytes, FLASH_SLOT_PARTS - 1);
	u64 most = (u64)totalram_pages() * (PAGE_SIZE / SHARE);
	struct flash_record *record = flash_records_running(&nand->cut.records);
	struct flash_recorded_request *request;
	struct flash_piece *piece = NULL;

	if (!record)
		return;
	if (record->pieces.count * (u64)nand->contents.whole_bytes < most)
		piece = flash_paged_list_add(&record->pieces);
	if (!piece) {
		flash_records_give_up(&nand->cut.records, record);
		return;
	}
	piece->slot = page;
	piece->parts = ((2 << last) - 1) & ~((1 << first) - 1);
	piece->version = contents_find(&nand->contents, nand->contents.top, page);
	if (piece->version)
		contents_hold(piece->version);
	request = flash_paged_list_at(&record->requests, record->requests.count - 1);
	request->piece_count++;
}

/* Empties all layers above this one, and lets changes go to the one above it. */
static void begin_layer(struct raw_nand_device *nand, unsigned int below)
{
	struct contents *contents = &nand->contents;
	unsigned int layer;
	unsigned long page;
	void *entry;

	for (layer = CONTENTS_LAYERS - 1; layer > below; layer--) {
		xa_for_each(&contents->layers[layer], page, entry) {
			contents_uncover(contents, layer, page);
			agree(nand, layer - 1, page);
			cond_resched();
		}
		xa_destroy(&contents->layers[layer]);
	}
	contents->top = below + 1;
}

static size_t blocks_bytes(const struct raw_nand_device *nand)
{
	return nand->model.blocks * sizeof(*nand->cut.blocks);
}

static int change(struct raw_nand_device *nand, const char *text)
{
	unsigned int number;
	bool clear = !flash_parse_record(text, "clear ", &number);

	if (clear || !flash_parse_record(text, "restore ", &number)) {
		if (atomic_read(&nand->users))
			return -EBUSY;
		if (!nand->cut.has_ended)
			return -ENODATA;
		flash_records_drop(&nand->cut.records, number + 1);
		if (clear)
			begin_layer(nand, number);
		begin_layer(nand, number + 1);
		memcpy(nand->model.block, nand->cut.blocks, blocks_bytes(nand));
		nand->cut.untimed = true;
		return 0;
	}
	if (sysfs_streq(text, "end")) {
		if (nand->cut.records.record[0].running) {
			memcpy(nand->cut.blocks, nand->model.block, blocks_bytes(nand));
			nand->cut.has_ended = true;
		}
		flash_records_end(&nand->cut.records);
		return 0;
	}
	if (flash_parse_record(text, "begin ", &number))
		return -EINVAL;
	if (!number)
		nand->cut.has_ended = false;
	flash_records_begin(&nand->cut.records, number);
	begin_layer(nand, number);
	if (nand->cut.untimed)
		raw_nand_rest(&nand->model);
	nand->cut.untimed = false;
	return 0;
}

int power_cut_command(struct raw_nand_device *nand, const char *text)
{
	int error;

	mutex_lock(&nand->model_lock);
	error = change(nand, text);
	mutex_unlock(&nand->model_lock);
	return error;
}

ssize_t power_cut_requests(struct raw_nand_device *nand, char *buffer, loff_t offset,
			   size_t length)
{
	ssize_t done;

	mutex_lock(&nand->model_lock);
	done = flash_records_requests(&nand->cut.records, nand->contents.top, buffer, offset,
				      length);
	mutex_unlock(&nand->model_lock);
	return done;
}

ssize_t power_cut_pieces(struct raw_nand_device *nand, char *buffer, loff_t offset, size_t length)
{
	ssize_t done;

	mutex_lock(&nand->model_lock);
	done = flash_records_pieces(&nand->cut.records, nand->contents.top, buffer, offset, length);
	mutex_unlock(&nand->model_lock);
	return done;
}

ssize_t power_cut_choose(struct raw_nand_device *nand, const char *buffer, size_t length)
{
	ssize_t done;

	if (atomic_read(&nand->users))
		return -EBUSY;
	mutex_lock(&nand->model_lock);
	done = flash_records_choose(&nand->cut.records, nand->contents.top, buffer, length);
	mutex_unlock(&nand->model_lock);
	return done;
}
