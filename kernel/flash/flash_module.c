// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disks /dev/flash0, /dev/flash1 ...: multi-queue block devices in memory that take as long as
 * the timing model in model/ says. Reads their parameters from the module's command line, block
 * requests from the kernel; produces their completions, and statistics of each in
 * /sys/block/flashN/flash_statistics.
 *
 * The data are copied when a request is issued, the request completes when a high-resolution timer
 * says so; the time in between is the device's, and costs the processor nothing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sysfs.h>
#include <linux/vmalloc.h>

#include "model/flash_model.h"
#include "parameters.h"
#include "store.h"

/*
 * What the device takes at once; larger requests are split by the block layer. An assumption: an
 * MMC host's limit is of this order, and no profile names it.
 */
#define FLASH_REQUEST_BYTES_MAX (512 * 1024)

struct flash_command {
	struct hrtimer timer;
	blk_status_t status;
};

/* One disk. */
struct flash {
	struct flash_config config;
	struct blk_mq_tag_set tag_set;
	struct gendisk *disk;
	struct flash_store store;
	spinlock_t lock;		/* the fields below; taken in the timer's interrupt too */
	struct flash_model model;
	u64 in_flight;
	u64 failed_requests;
	void *tables;			/* the model's */
};

static struct flash disks[FLASH_DISKS_MAX];
static unsigned int disk_count;

/* Ageing holds the lock for so many slots at a time. */
#define FLASH_AGEING_SLOTS 4096

/* 32-bit kernels have no 64-bit division of their own; the model asks for it by this name. */
flash_u64 flash_divide(flash_u64 dividend, flash_u64 divisor)
{
	return div64_u64(dividend, divisor);
}

static bool flash_request(struct request *rq, struct flash_request *request)
{
	request->fua = !!(rq->cmd_flags & REQ_FUA);
	request->length_bytes = blk_rq_bytes(rq);
	request->offset_bytes = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	switch (req_op(rq)) {
	case REQ_OP_READ:
		request->operation = FLASH_READ;
		return true;
	case REQ_OP_WRITE:
		request->operation = FLASH_WRITE;
		return true;
	case REQ_OP_FLUSH:
		request->operation = FLASH_FLUSH;
		request->offset_bytes = 0;
		return true;
	case REQ_OP_DISCARD:
		request->operation = FLASH_DISCARD;
		return true;
	case REQ_OP_WRITE_ZEROES:
		request->operation = FLASH_ZEROES;
		return true;
	default:
		return false;
	}
}

static blk_status_t flash_copy(struct request *rq, bool write)
{
	struct flash *flash = rq->q->queuedata;
	loff_t offset_bytes = (loff_t)blk_rq_pos(rq) << SECTOR_SHIFT;
	struct req_iterator iterator;
	struct bio_vec segment;

	rq_for_each_segment(segment, rq, iterator) {
		if (flash_store_copy(&flash->store, &segment, offset_bytes, write))
			return BLK_STS_IOERR;
		offset_bytes += segment.bv_len;
	}
	return BLK_STS_OK;
}

static blk_status_t flash_move_data(struct request *rq, enum flash_operation operation)
{
	struct flash *flash = rq->q->queuedata;

	switch (operation) {
	case FLASH_READ:
	case FLASH_WRITE:
		return flash_copy(rq, operation == FLASH_WRITE);
	case FLASH_DISCARD:
	case FLASH_ZEROES:
		flash_store_zero(&flash->store, (loff_t)blk_rq_pos(rq) << SECTOR_SHIFT,
				 blk_rq_bytes(rq));
		return BLK_STS_OK;
	default:
		return BLK_STS_OK;
	}
}

static blk_status_t flash_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct flash_command *command = blk_mq_rq_to_pdu(data->rq);
	struct flash *flash = data->rq->q->queuedata;
	struct flash_request request;
	unsigned long flags;
	u64 completion_ns;

	if (!flash_request(data->rq, &request))
		return BLK_STS_NOTSUPP;
	blk_mq_start_request(data->rq);

	/* The service begins now: what the copy costs the processor runs beside it. */
	spin_lock_irqsave(&flash->lock, flags);
	completion_ns = flash_model_submit(&flash->model, &request, ktime_get_ns());
	flash->in_flight++;
	spin_unlock_irqrestore(&flash->lock, flags);

	command->status = flash_move_data(data->rq, request.operation);
	hrtimer_start(&command->timer, ns_to_ktime(completion_ns), HRTIMER_MODE_ABS);
	return BLK_STS_OK;
}

static enum hrtimer_restart flash_timer_fired(struct hrtimer *timer)
{
	struct flash_command *command = container_of(timer, struct flash_command, timer);
	struct flash *flash = blk_mq_rq_from_pdu(command)->q->queuedata;
	unsigned long flags;

	spin_lock_irqsave(&flash->lock, flags);
	flash->in_flight--;
	flash->failed_requests += command->status != BLK_STS_OK;
	spin_unlock_irqrestore(&flash->lock, flags);
	blk_mq_complete_request(blk_mq_rq_from_pdu(command));
	return HRTIMER_NORESTART;
}

static void flash_complete_rq(struct request *rq)
{
	struct flash_command *command = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, command->status);
}

static int flash_init_request(struct blk_mq_tag_set *set, struct request *rq,
			      unsigned int hctx_index, unsigned int numa_node)
{
	struct flash_command *command = blk_mq_rq_to_pdu(rq);

	hrtimer_init(&command->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	command->timer.function = flash_timer_fired;
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

/* One line "name value" each, all of one instant. */
static ssize_t flash_statistics_show(struct device *device, struct device_attribute *attribute,
				     char *buffer)
{
	struct flash *flash = dev_to_disk(device)->private_data;
	struct flash_statistics *statistics;
	u64 in_flight, failed_requests, stored_bytes;
	unsigned int wear_spread;
	unsigned long flags;
	int length = 0;

	statistics = kmalloc(sizeof(*statistics), GFP_KERNEL);
	if (!statistics)
		return -ENOMEM;

	spin_lock_irqsave(&flash->lock, flags);
	flash_model_advance(&flash->model, ktime_get_ns());
	*statistics = flash->model.statistics;
	wear_spread = flash_rows_wear_spread(&flash->model);
	in_flight = flash->in_flight;
	failed_requests = flash->failed_requests;
	spin_unlock_irqrestore(&flash->lock, flags);
	stored_bytes = (u64)READ_ONCE(flash->store.page_count) << PAGE_SHIFT;

#define FLASH_SHOW(name) \
	length += sysfs_emit_at(buffer, length, #name " %llu\n", statistics->name);
	FLASH_COMMAND_STATISTICS(FLASH_SHOW)
#define FLASH_SHOW_NAND(name, field) \
	length += sysfs_emit_at(buffer, length, #name " %llu\n", statistics->field);
	FLASH_NAND_STATISTICS(FLASH_SHOW_NAND)
	length += sysfs_emit_at(buffer, length, "erase_count_spread %u\n", wear_spread);
	length += sysfs_emit_at(buffer, length, "in_flight %llu\n", in_flight);
	length += sysfs_emit_at(buffer, length, "failed_requests %llu\n", failed_requests);
	length += sysfs_emit_at(buffer, length, "stored_bytes %llu\n", stored_bytes);
	kfree(statistics);
	return length;
}
static DEVICE_ATTR_RO(flash_statistics);

/*
 * Writing anything gives the device the past that its parameters ask for (model/ageing.h): not when
 * the module is inserted, as mkfs discards the disk. The disk must be at rest.
 */
static ssize_t flash_age_store(struct device *device, struct device_attribute *attribute,
			       const char *buffer, size_t length)
{
	struct flash *flash = dev_to_disk(device)->private_data;
	unsigned long flags;
	int more;

	spin_lock_irqsave(&flash->lock, flags);
	more = !flash->in_flight;
	if (more)
		flash_ageing_begin(&flash->model);
	spin_unlock_irqrestore(&flash->lock, flags);
	if (!more)
		return -EBUSY;
	while (more) {
		spin_lock_irqsave(&flash->lock, flags);
		more = flash_ageing_continue(&flash->model, FLASH_AGEING_SLOTS);
		if (!more)
			flash_ageing_end(&flash->model, ktime_get_ns());
		spin_unlock_irqrestore(&flash->lock, flags);
		cond_resched();
	}
	return length;
}
static DEVICE_ATTR_WO(flash_age);

static struct attribute *flash_attrs[] = {
	&dev_attr_flash_statistics.attr,
	&dev_attr_flash_age.attr,
	NULL,
};
ATTRIBUTE_GROUPS(flash);

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

static void flash_set_limits(struct request_queue *queue, const struct flash_config *config)
{
	blk_queue_logical_block_size(queue, SECTOR_SIZE);
	blk_queue_physical_block_size(queue, FLASH_SLOT_BYTES);
	blk_queue_max_hw_sectors(queue, FLASH_REQUEST_BYTES_MAX >> SECTOR_SHIFT);
	blk_queue_max_discard_sectors(queue, UINT_MAX >> SECTOR_SHIFT);
	blk_queue_max_write_zeroes_sectors(queue, UINT_MAX >> SECTOR_SHIFT);
	queue->limits.discard_granularity = FLASH_SLOT_BYTES;
	/* Every write is durable when it completes: nothing to flush or force. */
	if (!config->cache_bytes || config->power_loss_protection)
		blk_queue_write_cache(queue, false, false);
	else
		blk_queue_write_cache(queue, true, config->fua);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, queue);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, queue);
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
	return 0;
}

static int flash_add(struct flash *flash, unsigned int index)
{
	struct blk_mq_tag_set *tag_set = &flash->tag_set;
	struct gendisk *disk;
	int error;

	spin_lock_init(&flash->lock);
	flash_store_init(&flash->store);
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
	disk = blk_mq_alloc_disk(tag_set, flash);
	if (IS_ERR(disk)) {
		error = PTR_ERR(disk);
		goto free_tag_set;
	}
	flash->disk = disk;
	disk->private_data = flash;
	disk->fops = &flash_disk_ops;
	snprintf(disk->disk_name, DISK_NAME_LEN, "flash%u", index);
	flash_set_limits(disk->queue, &flash->config);
	set_capacity(disk, flash->config.capacity_bytes >> SECTOR_SHIFT);
	error = device_add_disk(NULL, disk, flash_groups);
	if (error)
		goto put_disk;
	return 0;

put_disk:
	put_disk(disk);
free_tag_set:
	blk_mq_free_tag_set(tag_set);
free_tables:
	vfree(flash->tables);
	return error;
}

static void flash_remove(struct flash *flash)
{
	del_gendisk(flash->disk);
	put_disk(flash->disk);
	blk_mq_free_tag_set(&flash->tag_set);
	flash_store_free(&flash->store);
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
