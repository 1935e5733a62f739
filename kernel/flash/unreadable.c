// SPDX-License-Identifier: GPL-2.0-only
/*
 * See the header. Words of model/unreadable.h by slot. There are none in a measured run: the disk's
 * course (command.h) says when to look.
 */
#include <linux/xarray.h>

#include "command.h"
#include "disk.h"
#include "model/unreadable.h"
#include "record.h"
#include "unreadable.h"

void flash_unreadable_init(struct flash *flash)
{
	xa_init(&flash->unreadable);
}

void flash_unreadable_free(struct flash *flash)
{
	xa_destroy(&flash->unreadable);
}

static unsigned long load(struct flash *flash, unsigned long slot)
{
	void *entry = xa_load(&flash->unreadable, slot);

	return entry ? xa_to_value(entry) : 0;
}

/* An entry that is there takes another value without memory. */
static int store(struct flash *flash, unsigned long slot, unsigned long word)
{
	if (word)
		return xa_err(xa_store(&flash->unreadable, slot, xa_mk_value(word),
				       GFP_ATOMIC | __GFP_NOWARN));
	xa_erase(&flash->unreadable, slot);
	return 0;
}

int flash_unreadable_choose_slot(struct flash *flash, unsigned int record, u64 slot, u8 sectors,
				 u8 below)
{
	unsigned long word = load(flash, slot);

	if (!word && !sectors)
		return 0;
	flash->course |= FLASH_UNREADABLE;
	return store(flash, slot, flash_unreadable_choose(word, record, sectors, below));
}

static void change_all(struct flash *flash, unsigned int record,
		       unsigned long (*change)(unsigned long word, unsigned int record))
{
	unsigned long slot;
	void *entry;

	xa_for_each(&flash->unreadable, slot, entry)
		store(flash, slot, change(xa_to_value(entry), record));
	if (xa_empty(&flash->unreadable))
		flash->course &= ~FLASH_UNREADABLE;
}

void flash_unreadable_restore_all(struct flash *flash, unsigned int record)
{
	change_all(flash, record, flash_unreadable_restore);
}

void flash_unreadable_clear_all(struct flash *flash, unsigned int record)
{
	change_all(flash, record, flash_unreadable_clear);
}

bool flash_unreadable_meets(struct flash *flash, const struct flash_request *request)
{
	u64 end_bytes = request->offset_bytes + request->length_bytes;
	unsigned long slot = request->offset_bytes / FLASH_SLOT_BYTES;
	unsigned long last = DIV_ROUND_UP_ULL(end_bytes, FLASH_SLOT_BYTES) - 1;
	void *entry;

	if (!request->length_bytes)
		return false;
	xa_for_each_range(&flash->unreadable, slot, entry, slot, last) {
		u8 sectors = flash_sectors_between(slot, request->offset_bytes, end_bytes);
		unsigned long word = xa_to_value(entry);

		if (request->operation != FLASH_READ)
			store(flash, slot, flash_unreadable_write(word, sectors));
		else if (flash_unreadable_now(word) & sectors)
			return true;
	}
	return false;
}
