// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disks /dev/flash0, /dev/flash1 ...: multi-queue block devices in memory that take as long as
 * the timing model in model/ says. Reads their parameters from the module's command line, block
 * requests from the kernel; produces their completions, and statistics of each in
 * /sys/block/flashN/flash_statistics.
 *
 * A command (command.c) begins when its request is issued, and the request completes when a
 * high-resolution timer says so; the time in between is the device's, and costs the processor
 * nothing. Instead, a thread can hand commands over and wait for them: dispatch.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "attributes.h"
#include "command.h"
#include "compat.h"
#include "disk.h"
#include "dispatch.h"
#include "parameters.h"
#include "record.h"
#include "room.h"

/*
 * What the device takes at once; larger requests are split by the block layer. An assumption: an
 * MMC host's limit is of this order, and no profile names it.
 */
#define FLASH_REQUEST_BYTES_MAX (512 * 1024)

static struct flash disks[FLASH_DISKS_MAX];
static unsigned int disk_count;

/* 32-bit kernels have no 64-bit division of their own; the model asks for it by this name. */
flash_u64 flash_divide(flash_u64 dividend, flash_u64 divisor)
{
	return div64_u64(dividend, divisor);
}

static blk_status_t flash_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct flash_command *command = blk_mq_rq_to_pdu(data->rq);
	struct flash *flash = data->rq->q->queuedata;

	if (!flash_describe(data->rq, command))
		return BLK_STS_NOTSUPP;
	blk_mq_start_request(data->rq);
	if (flash->course && flash_do_apart(command))
		return BLK_STS_OK;
	flash_count_begin(flash);
	if (flash->dispatch.thread)
		flash_dispatch(flash, command);
	else
		hrtimer_start(&command->timer, ns_to_ktime(flash_begin(command)), HRTIMER_MODE_ABS);
	return BLK_STS_OK;
}

static enum hrtimer_restart flash_timer_fired(struct hrtimer *timer)
{
	struct flash_command *command = container_of(timer, struct flash_command, timer);

	flash_count_end(command, true);
	blk_mq_complete_request(blk_mq_rq_from_pdu(command));
	return HRTIMER_NORESTART;
}

static void flash_complete_rq(struct request *rq)
{
	struct flash_command *command = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, command->status);
}

static int flash_init_request(struct blk_mq_tag_set *set, struct request *rq,
			      unsigned int hctx_index, flash_memory_node numa_node)
{
	struct flash_command *command = blk_mq_rq_to_pdu(rq);

	flash_timer_init(&command->timer, flash_timer_fired);
	return 0;
}

static const struct blk_mq_ops flash_mq_ops = {
	.queue_rq = flash_queue_rq,
	.complete = flash_complete_rq,
	.init_request = flash_init_request,
};

static const struct block_device_operations flash_disk_ops = {
	.owner = THIS_MODULE,
};

/*
 * Without high-resolution timers the kernel looks at its timers once a tick, and every request
 * would take whole ticks. They come on about a second after the boot, when the kernel has
 * calibrated its clock, if the local APIC timer never stops (under QEMU: -cpu ...,+arat).
 */
static int flash_wait_for_timers(void)
{
	int i;

	for (i = 0; i < 50 && hrtimer_resolution > NSEC_PER_USEC; i++)
		msleep(100);
	if (hrtimer_resolution <= NSEC_PER_USEC)
		return 0;
	pr_err("no high-resolution timers: service times would be multiples of %u ns\n",
	       hrtimer_resolution);
	return -EOPNOTSUPP;
}

static int flash_tell_limits(struct request_queue *queue, const struct flash_config *config)
{
	const struct flash_limits limits = {
		.physical_block_bytes = FLASH_SLOT_BYTES,
		.request_bytes_max = FLASH_REQUEST_BYTES_MAX,
		/* Else every write is durable when it completes: nothing to flush or force. */
		.is_volatile = flash_config_is_volatile(config),
		.has_fua = flash_config_is_volatile(config) && config->fua,
		.atomic_write_bytes = config->atomic_write_bytes,
	};

	return flash_set_limits(queue, &limits);
}

/* Memory for the model's tables: what most limits the capacity. */
static int flash_init_model(struct flash *flash)
{
	u64 bytes = flash_model_memory_bytes(&flash->config);

	if (bytes <= (u64)totalram_pages() << PAGE_SHIFT >> 1)
		flash->tables = vmalloc(bytes);
	if (!flash->tables) {
		pr_err("parameter capacity_bytes is %llu: its mapping tables take %llu MiB, "
		       "more than half of the memory\n", flash->config.capacity_bytes, bytes >> 20);
		return -ENOMEM;
	}
	flash_model_init(&flash->model, &flash->config, flash->tables);
	if (flash->config.early_erase)
		flash_record_observe(flash);
	return 0;
}

static int flash_add(struct flash *flash, unsigned int index)
{
	struct blk_mq_tag_set *tag_set = &flash->tag_set;
	struct gendisk *disk;
	int error;

	spin_lock_init(&flash->order);
	spin_lock_init(&flash->lock);
	flash_store_init(&flash->store);
	flash_records_init(&flash->records, &flash_disk_versions);
	flash_unreadable_init(flash);
	error = flash_init_model(flash);
	if (error)
		return error;

	tag_set->ops = &flash_mq_ops;
	tag_set->nr_hw_queues = 1;
	/* The host packs writes that wait for a command of depth one; model/flash_model.c. */
	tag_set->queue_depth = max(flash->config.queue_depth, flash->config.packed_writes);
	tag_set->numa_node = NUMA_NO_NODE;
	tag_set->cmd_size = sizeof(struct flash_command);
	tag_set->flags = BLK_MQ_F_SHOULD_MERGE;
	error = blk_mq_alloc_tag_set(tag_set);
	if (error)
		goto free_tables;
	disk = flash_alloc_disk(tag_set, flash);
	if (IS_ERR(disk)) {
		error = PTR_ERR(disk);
		goto free_tag_set;
	}
	error = flash_dispatch_start(flash, index);
	if (error)
		goto put_disk;
	flash->disk = disk;
	disk->private_data = flash;
	disk->fops = &flash_disk_ops;
	snprintf(disk->disk_name, DISK_NAME_LEN, "flash%u", index);
	error = flash_tell_limits(disk->queue, &flash->config);
	if (error)
		goto stop_dispatch;
	set_capacity(disk, flash->config.capacity_bytes >> SECTOR_SHIFT);
	error = flash_room_init(flash);
	if (error)
		goto stop_dispatch;
	error = flash_add_disk(disk, flash_groups);
	if (error)
		goto free_room;
	return 0;

free_room:
	flash_room_free(flash);
stop_dispatch:
	flash_dispatch_stop(flash);
put_disk:
	flash_put_disk(disk);
free_tag_set:
	blk_mq_free_tag_set(tag_set);
free_tables:
	vfree(flash->tables);
	return error;
}

static void flash_remove(struct flash *flash)
{
	del_gendisk(flash->disk);
	flash_room_free(flash);
	flash_dispatch_stop(flash);
	flash_put_disk(flash->disk);
	blk_mq_free_tag_set(&flash->tag_set);
	flash_records_drop(&flash->records, 0);
	flash_store_free(&flash->store);
	flash_unreadable_free(flash);
	vfree(flash->tables);
}

static void flash_exit(void)
{
	while (disk_count)
		flash_remove(&disks[--disk_count]);
}

static int __init flash_init(void)
{
	unsigned int i, count = flash_parameters_disks();
	int error = 0;

	for (i = 0; i < count && !error; i++)
		error = flash_parameters_take(&disks[i].config, i);
	if (!error)
		error = flash_wait_for_timers();
	for (; disk_count < count && !error; disk_count += !error)
		error = flash_add(&disks[disk_count], disk_count);
	if (error)
		flash_exit();
	return error;
}

module_init(flash_init);
module_exit(flash_exit);
MODULE_DESCRIPTION("Flash device in memory that takes as long as a model says");
MODULE_LICENSE("GPL");
