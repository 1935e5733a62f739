// SPDX-License-Identifier: GPL-2.0-only
/*
 * See the header. Reads what is noted of a run, and changes the contents by versions of pages:
 * layer N + 1 of them holds what record N is of, or a state chosen of it; what is changed then goes
 * to the layer above. The model's count of programs goes with the version that is shown.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "../flash/record.h"
#include "raw_nand_device.h"

/* Of the memory, what the versions of a run may take. */
#define SHARE 4

/* What a request made of a page. */
struct changed_page {
	u32 page;
	u8 parts;			/* those that it wrote, a bit each */
	struct version *version;	/* null: erased */
};

static void free_changes(struct raw_nand_device *nand, struct changes *changes)
{
	unsigned long number;

	for (number = 0; number < changes->pieces.count; number++) {
		struct changed_page *piece = flash_paged_list_at(&changes->pieces, number);

		if (piece->version)
			contents_let_go(&nand->contents, piece->version);
	}
	flash_paged_list_free(&changes->pieces);
	flash_paged_list_free(&changes->requests);
	changes->running = changes->overflown = false;
}

int power_cut_init(struct power_cut *cut, u32 blocks)
{
	unsigned int i;

	for (i = 0; i < FLASH_RECORDS; i++) {
		flash_paged_list_init(&cut->changes[i].requests,
				      sizeof(struct flash_recorded_request));
		flash_paged_list_init(&cut->changes[i].pieces, sizeof(struct changed_page));
	}
	cut->blocks = vmalloc(array_size(blocks, sizeof(*cut->blocks)));
	return cut->blocks ? 0 : -ENOMEM;
}

void power_cut_free(struct raw_nand_device *nand)
{
	unsigned int i;

	if (!nand->cut.blocks)
		return;
	for (i = 0; i < FLASH_RECORDS; i++)
		free_changes(nand, &nand->cut.changes[i]);
	vfree(nand->cut.blocks);
}

static struct changes *running(struct raw_nand_device *nand)
{
	unsigned int i;

	for (i = 0; i < FLASH_RECORDS; i++)
		if (nand->cut.changes[i].running)
			return &nand->cut.changes[i];
	return NULL;
}

/* The run goes on as if there were no record. */
static void overflow(struct raw_nand_device *nand, struct changes *changes)
{
	free_changes(nand, changes);
	changes->overflown = true;
	contents_merge(&nand->contents);
}

void power_cut_begin_request(struct raw_nand_device *nand, u64 issue_ns, u64 completion_ns)
{
	struct changes *changes = running(nand);
	struct flash_recorded_request *request;

	if (!changes)
		return;
	request = flash_paged_list_add(&changes->requests);
	if (!request) {
		overflow(nand, changes);
		return;
	}
	request->issue_ns = issue_ns;
	request->completion_ns = completion_ns;
	request->first_piece = changes->pieces.count;
}

void power_cut_note_page(struct raw_nand_device *nand, u32 page, u32 offset, u32 length)
{
	u32 part_bytes = nand->contents.page_bytes / POWER_CUT_PARTS;
	u32 first = min_t(u32, offset / part_bytes, POWER_CUT_PARTS - 1);
	u32 last = min_t(u32, (offset + length - 1) / part_bytes, POWER_CUT_PARTS - 1);
	u64 most = (u64)totalram_pages() * (PAGE_SIZE / SHARE);
	struct changes *changes = running(nand);
	struct flash_recorded_request *request;
	struct changed_page *piece = NULL;

	if (!changes)
		return;
	if (changes->pieces.count * (u64)nand->contents.whole_bytes < most)
		piece = flash_paged_list_add(&changes->pieces);
	if (!piece) {
		overflow(nand, changes);
		return;
	}
	piece->page = page;
	piece->parts = ((2 << last) - 1) & ~((1 << first) - 1);
	piece->version = contents_find(&nand->contents, nand->contents.top, page);
	if (piece->version)
		contents_hold(piece->version);
	request = flash_paged_list_at(&changes->requests, changes->requests.count - 1);
	request->piece_count++;
}

/* The model is as the version says that is shown. */
static void agree(struct raw_nand_device *nand, unsigned int layer, u32 page)
{
	const struct version *version = contents_find(&nand->contents, layer, page);

	nand->model.programs[page] = version ? version->programs : 0;
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

static void drop_changes(struct raw_nand_device *nand, unsigned int first)
{
	for (; first < FLASH_RECORDS; first++)
		free_changes(nand, &nand->cut.changes[first]);
}

static size_t blocks_bytes(const struct raw_nand_device *nand)
{
	return nand->model.blocks * sizeof(*nand->cut.blocks);
}

static int change(struct raw_nand_device *nand, const char *text)
{
	unsigned int number;
	bool clear = !flash_record_of(text, "clear ", &number);

	if (clear || !flash_record_of(text, "restore ", &number)) {
		if (atomic_read(&nand->users))
			return -EBUSY;
		if (!nand->cut.has_ended)
			return -ENODATA;
		drop_changes(nand, number + 1);
		if (clear)
			begin_layer(nand, number);
		begin_layer(nand, number + 1);
		memcpy(nand->model.block, nand->cut.blocks, blocks_bytes(nand));
		nand->cut.untimed = true;
		return 0;
	}
	if (sysfs_streq(text, "end")) {
		if (nand->cut.changes[0].running) {
			memcpy(nand->cut.blocks, nand->model.block, blocks_bytes(nand));
			nand->cut.has_ended = true;
		}
		nand->cut.changes[0].running = nand->cut.changes[1].running = false;
		return 0;
	}
	if (flash_record_of(text, "begin ", &number))
		return -EINVAL;
	if (!number)
		nand->cut.has_ended = false;
	drop_changes(nand, number);
	begin_layer(nand, number);
	nand->cut.changes[number].running = true;
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

/* The record of the layer that is changed; the error otherwise. */
static int top_changes(struct raw_nand_device *nand, loff_t offset, size_t row_bytes,
		       struct changes **found)
{
	unsigned int top = nand->contents.top;

	if (nand->cut.changes[0].overflown || nand->cut.changes[1].overflown)
		return -EOVERFLOW;
	if (!top || top > FLASH_RECORDS || nand->cut.changes[top - 1].running)
		return -ENODATA;
	*found = &nand->cut.changes[top - 1];
	return offset % row_bytes ? -EINVAL : 0;
}

ssize_t power_cut_requests(struct raw_nand_device *nand, char *buffer, loff_t offset,
			   size_t length)
{
	struct flash_recorded_request *told = (struct flash_recorded_request *)buffer;
	unsigned long number = offset / sizeof(*told);
	struct changes *changes;
	size_t done = 0;
	int error;

	mutex_lock(&nand->model_lock);
	error = top_changes(nand, offset, sizeof(*told), &changes);
	while (!error && number < changes->requests.count && done + sizeof(*told) <= length) {
		*told++ = *(struct flash_recorded_request *)
			flash_paged_list_at(&changes->requests, number++);
		done += sizeof(*told);
	}
	mutex_unlock(&nand->model_lock);
	return error ?: done;
}

static void hash_page(const struct raw_nand_device *nand, const struct version *version,
		      u64 *hashes)
{
	u32 words = nand->contents.page_bytes / POWER_CUT_PARTS / sizeof(u64), part, i;

	for (part = 0; part < POWER_CUT_PARTS; part++) {
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

ssize_t power_cut_pieces(struct raw_nand_device *nand, char *buffer, loff_t offset, size_t length)
{
	struct flash_told_piece *told = (struct flash_told_piece *)buffer;
	unsigned long number = offset / sizeof(*told);
	struct changes *changes;
	size_t done = 0;
	int error;

	mutex_lock(&nand->model_lock);
	error = top_changes(nand, offset, sizeof(*told), &changes);
	while (!error && number < changes->pieces.count && done + sizeof(*told) <= length) {
		const struct changed_page *piece = flash_paged_list_at(&changes->pieces, number++);

		told->slot = piece->page;
		told->sectors = piece->parts;
		hash_page(nand, piece->version, told->after);
		hash_page(nand, contents_find(&nand->contents, nand->contents.top - 1,
					      piece->page), told->before);
		told++;
		done += sizeof(*told);
	}
	mutex_unlock(&nand->model_lock);
	return error ?: done;
}

static const struct changed_page *piece_at(const struct changes *changes, u32 number)
{
	return flash_paged_list_at(&changes->pieces, number - 1);
}

static void copy_part(const struct contents *contents, struct version *to,
		      const struct version *from, unsigned int part)
{
	u32 part_bytes = contents->page_bytes / POWER_CUT_PARTS, begin = part * part_bytes;

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
static int put_mixed(struct raw_nand_device *nand, unsigned int layer,
		     const struct flash_chosen_slot *chosen)
{
	const struct changes *changes = &nand->cut.changes[layer - 1];
	struct contents *contents = &nand->contents;
	struct version *mixed = contents_new_version(contents), *newest;
	u32 last = 0;
	unsigned int part;
	int error;

	if (!mixed)
		return -ENOMEM;
	for (part = 0; part < POWER_CUT_PARTS; part++) {
		u32 number = chosen->pieces[part];

		copy_part(contents, mixed, number ? piece_at(changes, number)->version :
			  contents_find(contents, layer - 1, chosen->slot), part);
		last = max(last, number);
	}
	newest = piece_at(changes, last)->version;
	mixed->programs = 1 | RAW_NAND_TORN;
	error = contents_put(contents, layer, chosen->slot,
			     is_whole(contents, mixed, newest) ? newest : mixed);
	contents_let_go(contents, mixed);
	return error;
}

static int choose_page(struct raw_nand_device *nand, unsigned int layer,
		       const struct flash_chosen_slot *chosen)
{
	const struct changes *changes = &nand->cut.changes[layer - 1];
	bool is_one = true;
	unsigned int part;

	for (part = 0; part < POWER_CUT_PARTS; part++) {
		u32 number = chosen->pieces[part];

		is_one &= number == chosen->pieces[0];
		if (number && (number > changes->pieces.count ||
			       piece_at(changes, number)->page != chosen->slot))
			return -EINVAL;
	}
	if (!is_one)
		return put_mixed(nand, layer, chosen);
	if (chosen->pieces[0])
		return contents_put(&nand->contents, layer, chosen->slot,
				    piece_at(changes, chosen->pieces[0])->version);
	contents_uncover(&nand->contents, layer, chosen->slot);
	return 0;
}

ssize_t power_cut_choose(struct raw_nand_device *nand, const char *buffer, size_t length)
{
	const struct flash_chosen_slot *chosen = (const struct flash_chosen_slot *)buffer;
	u64 pages = (u64)nand->model.blocks * nand->model.config.pages_per_block;
	unsigned int layer = nand->contents.top - 1;
	size_t done;
	int error = 0;

	if (atomic_read(&nand->users))
		return -EBUSY;
	if (length % sizeof(*chosen) || !nand->contents.top || !layer)
		return -EINVAL;
	mutex_lock(&nand->model_lock);
	for (done = 0; done < length && !error; done += sizeof(*chosen), chosen++) {
		error = chosen->slot < pages ? choose_page(nand, layer, chosen) : -EINVAL;
		if (!error)
			agree(nand, layer, chosen->slot);
	}
	mutex_unlock(&nand->model_lock);
	return error ?: length;
}
