/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts a disk into the state that a power cut leaves: tells what a run wrote, and lets a state be
 * chosen of it (power_cut.c). What a cut may leave is for the agent to say
 * (agent/src/lab/power_cut).
 */
#ifndef FLASH_POWER_CUT_H
#define FLASH_POWER_CUT_H

#include <linux/types.h>

#include "records.h"

struct flash;

/* The store's pages as versions of slots. */
extern const struct flash_versions flash_disk_versions;

/*
 * "begin N": record N begins, 0 of a run or 1 of a recovery, and what is above it is dropped;
 * "end": it ends. "clear N": the disk is as before record N began; "restore N": as it was chosen
 * last, without what was written since. After these two, requests take no time until a record
 * begins: nobody measures what looks at a state, and whose recovery is cut again, is recorded.
 * "follow": from now on the disk notes which slots change.
 */
int flash_power_cut_command(struct flash *flash, const char *text);

/* What the record that lies below the top layer holds; whole items from an offset on. */
ssize_t flash_power_cut_requests(struct flash *flash, char *buffer, loff_t offset, size_t length);
ssize_t flash_power_cut_pieces(struct flash *flash, char *buffer, loff_t offset, size_t length);
ssize_t flash_power_cut_moves(struct flash *flash, char *buffer, loff_t offset, size_t length);

/* Chooses what slots hold, after clear or restore. */
ssize_t flash_power_cut_choose(struct flash *flash, const char *buffer, size_t length);

/* Numbers of slots whose contents may have changed since they were told, each once. */
ssize_t flash_power_cut_changes(struct flash *flash, char *buffer, size_t length);

/* What slots hold now; whole ones from an offset on. */
ssize_t flash_power_cut_contents(struct flash *flash, char *buffer, loff_t offset, size_t length);

#endif
