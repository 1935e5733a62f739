/* SPDX-License-Identifier: GPL-2.0-only */
/* Adds what is written to a disk to its running record (records.h). */
#ifndef FLASH_RECORD_H
#define FLASH_RECORD_H

#include <linux/types.h>

struct flash;
struct flash_command;

/* The sectors of a slot that lie between two offsets of the disk, a bit each. */
u8 flash_sectors_between(u64 slot, u64 offset_bytes, u64 end_bytes);

/*
 * Takes a command down, which is issued at issue_ns and whose data are in the store; in that order,
 * so under the disk's `order`.
 */
void flash_record_command(struct flash *flash, const struct flash_command *command, u64 issue_ns,
			  u64 completion_ns);

/* Has the model tell what it moves, of a disk of which a power cut may lose that. */
void flash_record_observe(struct flash *flash);

#endif
