/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts a disk into the state that a power cut leaves: tells what a run wrote, and lets a state be
 * chosen of it (power_cut.c). What a cut may leave is for the agent to say
 * (agent/src/lab/power_cut).
 */
#ifndef FLASH_POWER_CUT_H
#define FLASH_POWER_CUT_H

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>

#include "model/geometry.h"

struct flash;

#define FLASH_SLOT_SECTORS (FLASH_SLOT_BYTES / 512)

/* A record of a run, and one of a recovery after a cut of that run. */
#define FLASH_RECORDS 2

/* A piece as it is read: hashes of its sectors, and of what was there before the record began. */
struct flash_told_piece {
	u64 slot;
	u64 sectors;
	u64 after[FLASH_SLOT_SECTORS];
	u64 before[FLASH_SLOT_SECTORS];
};

/* What a slot shall hold: of each sector the number of a piece plus one; 0: what was before. */
struct flash_chosen_slot {
	u64 slot;
	u32 pieces[FLASH_SLOT_SECTORS];
};

/* Hashes a sector, from FLASH_HASH_SEED on. Two of a million are equal once in 10^7 records. */
#define FLASH_HASH_SEED 0x9e3779b97f4a7c15ULL

static inline u64 flash_hash_word(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xbf58476d1ce4e5b9ULL;
	return hash ^ hash >> 29;
}

/* Which record a command names, after its word. */
static inline int flash_record_of(const char *text, const char *word, unsigned int *number)
{
	size_t length = strlen(word);

	if (strncmp(text, word, length))
		return -ENOENT;
	if (kstrtouint(text + length, 10, number) || *number >= FLASH_RECORDS)
		return -EINVAL;
	return 0;
}

/*
 * "begin N": record N begins, 0 of a run or 1 of a recovery, and what is above it is dropped;
 * "end": it ends. "clear N": the disk is as before record N began; "restore N": as it was chosen
 * last, without what was written since. After these two, requests take no time until a record
 * begins: nobody measures what looks at a state, and whose recovery is cut again, is recorded.
 * "follow": from now on the disk notes which slots change.
 */
int flash_power_cut_command(struct flash *flash, const char *text);

/* Requests and pieces of the record that lies below the top layer; whole ones from an offset on. */
ssize_t flash_power_cut_requests(struct flash *flash, char *buffer, loff_t offset, size_t length);
ssize_t flash_power_cut_pieces(struct flash *flash, char *buffer, loff_t offset, size_t length);

/* Chooses what slots hold, after clear or restore. */
ssize_t flash_power_cut_choose(struct flash *flash, const char *buffer, size_t length);

/* Numbers of slots whose contents may have changed since they were told, each once. */
ssize_t flash_power_cut_changes(struct flash *flash, char *buffer, size_t length);

/* What slots hold now; whole ones from an offset on. */
ssize_t flash_power_cut_contents(struct flash *flash, char *buffer, loff_t offset, size_t length);

#endif
