/* SPDX-License-Identifier: GPL-2.0-only */
/* The sectors of a disk that cannot be read, because the power went while they were programmed. */
#ifndef FLASH_UNREADABLE_SECTORS_H
#define FLASH_UNREADABLE_SECTORS_H

#include <linux/types.h>

struct flash;
struct flash_request;

void flash_unreadable_init(struct flash *flash);
void flash_unreadable_free(struct flash *flash);

/* A slot is chosen of a record: these sectors cannot be read, and those below are as before it. */
int flash_unreadable_choose_slot(struct flash *flash, unsigned int record, u64 slot, u8 sectors,
				 u8 below);

/* The disk is as it was chosen of a record last; it is as before that record. */
void flash_unreadable_restore_all(struct flash *flash, unsigned int record);
void flash_unreadable_clear_all(struct flash *flash, unsigned int record);

/* True for a read of what cannot be read. What is written can be read from then on. */
bool flash_unreadable_meets(struct flash *flash, const struct flash_request *request);

#endif
