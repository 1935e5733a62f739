/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of what was written to a device, for power cuts: requests in the order of issue, and
 * what each made of the slots that it changed. A disk and raw NAND (../nand) have the same ones. A
 * slot is 4 KiB of a disk, or a page of raw NAND; its contents have versions, in layers, each of
 * which hides those below it: layer N + 1 holds what record N is of, or a state chosen of it.
 */
#ifndef FLASH_RECORDS_H
#define FLASH_RECORDS_H

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>

#include "paged_list.h"

/* A record of a run, and one of a recovery after a cut of that run. */
#define FLASH_RECORDS 2

/* Parts of a slot that a cut leaves old or new: the sectors of a disk, eighths of a NAND page. */
#define FLASH_SLOT_PARTS 8

/* A request that was not a read; as it is read from flash_record_requests. */
struct flash_recorded_request {
	u64 issue_ns;
	u64 completion_ns;
	u64 first_piece;
	u32 piece_count;
	u8 is_flush;
	u8 is_fua;
	u8 is_atomic;		/* the host asked for all of it or nothing */
	u8 reserved;
};

/* What a request made of a slot. */
struct flash_piece {
	u64 slot;
	void *version;		/* of the slot after it; null: blank */
	u8 parts;		/* those that it wrote, a bit each */
};

/* A copy of a slot that the device made to erase the row it was in; as it is read. */
struct flash_recorded_move {
	u64 slot;
	u64 request;		/* the one that was served meanwhile, or else the next */
	u64 erase_ns;		/* begin of the erase; 0: not in the record's time */
};

/* A piece as it is read: hashes of its parts, and of what was there before the record began. */
struct flash_piece_hashes {
	u64 slot;
	u64 parts;
	u64 after[FLASH_SLOT_PARTS];
	u64 before[FLASH_SLOT_PARTS];
};

/*
 * What a slot shall hold: of each part the number of a piece plus one; 0: what was before. A part
 * of a disk may be one that cannot be read until it is written.
 */
#define FLASH_UNREADABLE_PART (~0U)
struct flash_chosen_slot {
	u64 slot;
	u32 pieces[FLASH_SLOT_PARTS];
};

struct flash_record {
	struct flash_paged_list requests;
	struct flash_paged_list pieces;
	struct flash_paged_list moves;
	unsigned long erased_moves;	/* those whose row was erased: the first ones */
	bool running;
	bool overflown;		/* memory ran out: there is no saying what was written */
	bool lost_move;		/* memory ran out for a move */
};

struct flash_records;

/* The versions of a device's slots. */
struct flash_versions {
	/* The one in a layer or else below it; null: blank. */
	void *(*find)(struct flash_records *records, unsigned int layer, u64 slot);
	/* Lets one go that a piece holds. */
	void (*release)(struct flash_records *records, void *version);
	/* Hashes the parts of one; null: those of a blank slot. */
	void (*hash)(struct flash_records *records, void *version, u64 *hashes);
	/* Shows one in a layer, null: a blank one. */
	int (*put)(struct flash_records *records, unsigned int layer, u64 slot, void *version);
	/* Shows one made of several in a layer; its pieces are there. */
	int (*put_mixed)(struct flash_records *records, unsigned int layer,
			 const struct flash_chosen_slot *chosen);
	/* Shows what is below a layer. */
	int (*uncover)(struct flash_records *records, unsigned int layer, u64 slot);
	/* Says which parts of a slot cannot be read, and which are those below; null: all can. */
	int (*choose_unreadable)(struct flash_records *records, unsigned int layer, u64 slot,
				 u8 unreadable, u8 below);
	/* Makes one layer of all. If it cannot, memory is full, as the next write will find. */
	int (*merge)(struct flash_records *records);
};

struct flash_records {
	struct flash_record record[FLASH_RECORDS];
	const struct flash_versions *versions;
};

/* Hashes a part, from FLASH_HASH_SEED on. Two of a million are equal once in 10^7 records. */
#define FLASH_HASH_SEED 0x9e3779b97f4a7c15ULL

static inline u64 flash_hash_word(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xbf58476d1ce4e5b9ULL;
	return hash ^ hash >> 29;
}

/* Reads which record a command names, after its word. */
static inline int flash_parse_record(const char *text, const char *word, unsigned int *number)
{
	size_t length = strlen(word);

	if (strncmp(text, word, length))
		return -ENOENT;
	if (kstrtouint(text + length, 10, number) || *number >= FLASH_RECORDS)
		return -EINVAL;
	return 0;
}

void flash_records_init(struct flash_records *records, const struct flash_versions *versions);

/* Empties the records from this one on. */
void flash_records_drop(struct flash_records *records, unsigned int first);

/* Begins a new record of what is written to the layer above `number`; ends all. */
void flash_records_begin(struct flash_records *records, unsigned int number);
void flash_records_end(struct flash_records *records);

/* The record that requests are added to; null: none. */
struct flash_record *flash_records_running(struct flash_records *records);

/* A new request of a record; null: no memory is left. */
struct flash_recorded_request *flash_record_add(struct flash_record *record, u64 issue_ns,
						u64 completion_ns);

/* Adds a copy of a slot that is beside the next request; its row is erased at erase_ns. */
void flash_record_move(struct flash_record *record, u64 slot);
void flash_record_erase(struct flash_record *record, u64 erase_ns);

/* Gives up a running record, and with it the layers: the run goes on as if there were none. */
void flash_records_give_up(struct flash_records *records, struct flash_record *record);

/* The piece of a chosen slot with this number, which is not 0. */
struct flash_piece *flash_records_piece(const struct flash_records *records, unsigned int layer,
					u32 number);

/*
 * Read requests, pieces and moves of the record that lies below the top layer, whole ones from an
 * offset on; choose what slots hold, after clear or restore.
 */
ssize_t flash_records_requests(struct flash_records *records, unsigned int top, char *buffer,
			       loff_t offset, size_t length);
ssize_t flash_records_pieces(struct flash_records *records, unsigned int top, char *buffer,
			     loff_t offset, size_t length);
ssize_t flash_records_moves(struct flash_records *records, unsigned int top, char *buffer,
			    loff_t offset, size_t length);
ssize_t flash_records_choose(struct flash_records *records, unsigned int top, const char *buffer,
			     size_t length);

#endif
