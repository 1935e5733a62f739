// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives memory back where a disk has none for what it keeps. It learns that from its store, which
 * may take three quarters of the memory, or from the kernel, when others want pages and none are
 * left. Then the record of a run is given up. Without one the machine ends: its disk cannot go on.
 *
 * Where it is the kernel that finds none, the contents need not be why: programs may have taken it.
 * Reads how many pages either has; where programs have more, the kernel goes on as it does without
 * memory (panic_on_oom).
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/vmstat.h>

#include "disk.h"
#include "room.h"

/* Contents that are less than this share of the memory are not what fills it. */
#define FLASH_LEAST_SHARE 4

/*
 * The machine is there for this disk alone, and what would follow is a device that has failed: a
 * filesystem that aborts its journal, and programs that try for ever.
 */
static void __noreturn flash_store_is_full(const struct flash *flash)
{
	panic("flash: the contents of %s need more than the %lu MiB of memory they may take\n",
	      flash->disk->disk_name, flash->store.page_count >> (20 - PAGE_SHIFT));
}

void flash_make_room(struct flash *flash)
{
	struct flash_record *record = flash_records_running(&flash->records);

	if (!record)
		flash_store_is_full(flash);
	flash_records_give_up(&flash->records, record);
}

/* The pages of programs, and of files that are in memory alone. */
static unsigned long pages_of_others(void)
{
	return global_node_page_state(NR_ANON_MAPPED) + global_node_page_state(NR_SHMEM);
}

static bool contents_fill_memory(const struct flash *flash)
{
	unsigned long contents = flash->store.page_count, others = pages_of_others();

	return contents >= totalram_pages() / FLASH_LEAST_SHARE &&
	       flash->room.pages_of_others + contents >= others;
}

/* Called where the kernel may sleep: not within a request, which holds the order. */
static int flash_out_of_memory(struct notifier_block *notifier, unsigned long unused, void *data)
{
	struct flash *flash = container_of(notifier, struct flash, room.out_of_memory);
	struct flash_record *record;
	unsigned long *freed = data;

	spin_lock(&flash->order);
	record = flash_records_running(&flash->records);
	if (record) {
		unsigned long before = flash->store.page_count;

		flash_records_give_up(&flash->records, record);
		/* Its lists' pages as well: one at least. */
		*freed += before - flash->store.page_count + 1;
	} else if (contents_fill_memory(flash)) {
		flash_store_is_full(flash);
	}
	spin_unlock(&flash->order);
	return NOTIFY_OK;
}

int flash_room_init(struct flash *flash)
{
	flash->room.pages_of_others = pages_of_others();
	flash->room.out_of_memory.notifier_call = flash_out_of_memory;
	return register_oom_notifier(&flash->room.out_of_memory);
}

void flash_room_free(struct flash *flash)
{
	unregister_oom_notifier(&flash->room.out_of_memory);
}
