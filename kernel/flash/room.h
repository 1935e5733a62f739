/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory for what a disk keeps: its contents, and the record of a run; and what happens without. */
#ifndef FLASH_ROOM_H
#define FLASH_ROOM_H

#include <linux/notifier.h>

struct flash;

struct flash_room {
	struct notifier_block out_of_memory;
	unsigned long pages_of_others;	/* of programs and of files in memory, at the beginning */
};

/* From now on the disk hears of it when the kernel finds no page for anybody. */
int flash_room_init(struct flash *flash);
void flash_room_free(struct flash *flash);

/* The store has no page left: gives up the running record; without one, ends the machine. */
void flash_make_room(struct flash *flash);

#endif
