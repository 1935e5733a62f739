/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The names that differ between the kernels that this module serves: 5.10 to 7.3, by the version
 * where each name came. The rest of the module has the names of 6.1; to 6.1 this file adds nothing.
 */
#ifndef FLASH_COMPAT_H
#define FLASH_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/hrtimer.h>
#include <linux/sysfs.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
#define kmap_local_page(page) kmap_atomic(page)
#define kunmap_local(address) kunmap_atomic((void *)(address))

static inline void memcpy_page(struct page *to, size_t to_offset, struct page *from,
			       size_t from_offset, size_t length)
{
	char *source = kmap_atomic(from), *target = kmap_atomic(to);

	memcpy(target + to_offset, source + from_offset, length);
	kunmap_atomic(target);
	kunmap_atomic(source);
}

static inline void memset_page(struct page *page, size_t offset, int value, size_t length)
{
	char *address = kmap_atomic(page);

	memset(address + offset, value, length);
	kunmap_atomic(address);
}

#define memzero_page(page, offset, length) memset_page(page, offset, 0, length)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 14, 0)
static inline struct gendisk *flash_alloc_disk(struct blk_mq_tag_set *tag_set, void *data)
{
	struct request_queue *queue = blk_mq_init_queue_data(tag_set, data);
	struct gendisk *disk;

	if (IS_ERR(queue))
		return ERR_CAST(queue);
	disk = alloc_disk(0);
	if (!disk) {
		blk_cleanup_queue(queue);
		return ERR_PTR(-ENOMEM);
	}
	disk->queue = queue;
	/* Its numbers are drawn, as later kernels do where a driver gives none. */
	disk->flags |= GENHD_FL_EXT_DEVT;
	return disk;
}

static inline void flash_put_disk(struct gendisk *disk)
{
	blk_cleanup_queue(disk->queue);
	put_disk(disk);
}
#else
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define flash_alloc_disk(tag_set, data) blk_mq_alloc_disk(tag_set, data)
#else
#define flash_alloc_disk(tag_set, data) blk_mq_alloc_disk(tag_set, NULL, data)
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
#define flash_put_disk(disk) blk_cleanup_disk(disk)
#else
#define flash_put_disk(disk) put_disk(disk)
#endif
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 15, 0)
/* It returned nothing, and warned of what failed. */
#define flash_add_disk(disk, groups) (device_add_disk(NULL, disk, groups), 0)
#else
#define flash_add_disk(disk, groups) device_add_disk(NULL, disk, groups)
#endif

/* What a disk tells the block layer of itself: in bytes; `is_volatile`: a flush does something. */
struct flash_limits {
	unsigned int physical_block_bytes;
	unsigned int request_bytes_max;
	unsigned int atomic_write_bytes;
	bool is_volatile;
	bool has_fua;
};

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
/* A write of which a power cut leaves all or nothing: nobody asks for one yet. */
#define REQ_ATOMIC 0

static inline int flash_set_limits(struct request_queue *queue, const struct flash_limits *asked)
{
	blk_queue_logical_block_size(queue, SECTOR_SIZE);
	blk_queue_physical_block_size(queue, asked->physical_block_bytes);
	blk_queue_max_hw_sectors(queue, asked->request_bytes_max >> SECTOR_SHIFT);
	blk_queue_max_discard_sectors(queue, UINT_MAX >> SECTOR_SHIFT);
	blk_queue_max_write_zeroes_sectors(queue, UINT_MAX >> SECTOR_SHIFT);
	queue->limits.discard_granularity = asked->physical_block_bytes;
	blk_queue_write_cache(queue, asked->is_volatile, asked->has_fua);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, queue);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, queue);
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
	blk_queue_flag_set(QUEUE_FLAG_DISCARD, queue);
#endif
	return 0;
}
#else
static inline int flash_set_limits(struct request_queue *queue, const struct flash_limits *asked)
{
	struct queue_limits limits = queue_limits_start_update(queue);

	limits.logical_block_size = SECTOR_SIZE;
	limits.physical_block_size = asked->physical_block_bytes;
	limits.max_hw_sectors = asked->request_bytes_max >> SECTOR_SHIFT;
	limits.max_hw_discard_sectors = UINT_MAX >> SECTOR_SHIFT;
	limits.max_write_zeroes_sectors = UINT_MAX >> SECTOR_SHIFT;
	limits.discard_granularity = asked->physical_block_bytes;
	if (asked->atomic_write_bytes) {
		limits.atomic_write_hw_max = asked->atomic_write_bytes;
		limits.atomic_write_hw_unit_min = SECTOR_SIZE;
		limits.atomic_write_hw_unit_max = asked->atomic_write_bytes;
#ifdef BLK_FEAT_ATOMIC_WRITES
		limits.features |= BLK_FEAT_ATOMIC_WRITES;
#endif
	}
	limits.features &= ~(BLK_FEAT_ROTATIONAL | BLK_FEAT_ADD_RANDOM);
	if (asked->is_volatile)
		limits.features |= BLK_FEAT_WRITE_CACHE | (asked->has_fua ? BLK_FEAT_FUA : 0);
	return queue_limits_commit_update(queue, &limits);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
static inline unsigned int flash_freeze(struct request_queue *queue)
{
	blk_mq_freeze_queue(queue);
	return 0;
}

static inline void flash_unfreeze(struct request_queue *queue, unsigned int flags)
{
	blk_mq_unfreeze_queue(queue);
}
#else
#define flash_freeze(queue) blk_mq_freeze_queue(queue)
#define flash_unfreeze(queue, flags) blk_mq_unfreeze_queue(queue, flags)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
static inline unsigned int disk_openers(struct gendisk *disk)
{
	struct block_device *whole = bdget_disk(disk, 0);
	unsigned int openers = whole ? whole->bd_openers : 0;

	if (whole)
		bdput(whole);
	return openers;
}
#elif LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
#define disk_openers(disk) ((disk)->part0->bd_openers)
#endif

/* The number of a memory node is signed in 7.2, and not in 6.12; between them it is not tried. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
typedef unsigned int flash_memory_node;
#else
typedef int flash_memory_node;
#endif

/* A binary file of sysfs, as the function that reads it gets it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
typedef struct bin_attribute flash_bin_attribute;
#else
typedef const struct bin_attribute flash_bin_attribute;
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
/* Requests are merged unless a driver says no. */
#define BLK_MQ_F_SHOULD_MERGE 0
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define flash_timer_init(timer, fired)                                                          \
	hrtimer_setup(timer, fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS)
#else
#define flash_timer_init(timer, fired)                                                          \
	do {                                                                                    \
		hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);                         \
		(timer)->function = fired;                                                      \
	} while (0)
#endif

#endif
