// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of a disk in /sys/block/flashN: flash_statistics, flash_record_requests,
 * flash_record_pieces, flash_record_moves, flash_changes and flash_contents, to be read; flash_age,
 * flash_record and flash_power_cut, to be written; flash_fault, both.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "attributes.h"
#include "command.h"
#include "compat.h"
#include "disk.h"
#include "power_cut.h"

/* Ageing holds the lock for so many slots at a time. */
#define FLASH_AGEING_SLOTS 4096

/* One line "name value" each, all of one instant. */
static ssize_t flash_statistics_show(struct device *device, struct device_attribute *attribute,
				     char *buffer)
{
	struct flash *flash = dev_to_disk(device)->private_data;
	struct flash_statistics *statistics;
	struct task_struct *thread = flash->dispatch.thread;
	u64 in_flight, failed_requests, interrupts, stored_bytes;
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
	interrupts = flash->completion_interrupts;
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
	length += sysfs_emit_at(buffer, length, "completion_interrupts %llu\n", interrupts);
	length += sysfs_emit_at(buffer, length, "dispatch_voluntary_switches %lu\n",
				thread ? thread->nvcsw : 0);
	length += sysfs_emit_at(buffer, length, "dispatch_involuntary_switches %lu\n",
				thread ? thread->nivcsw : 0);
	length += sysfs_emit_at(buffer, length, "dispatch_cpu_ns %llu\n",
				thread ? thread->se.sum_exec_runtime : 0);
	kfree(statistics);
	return length;
}
static DEVICE_ATTR_RO(flash_statistics);

/*
 * Writing anything gives the device the past that its parameters ask for (model/ageing.h): not when
 * the module is inserted, as mkfs discards the disk. Requests wait until it has it: the past is
 * made without a clock, and one that came in its middle would be told to end an age from now.
 */
static ssize_t flash_age_store(struct device *device, struct device_attribute *attribute,
			       const char *buffer, size_t length)
{
	struct gendisk *disk = dev_to_disk(device);
	struct flash *flash = disk->private_data;
	unsigned long flags;
	unsigned int frozen;
	int more = 1;

	frozen = flash_freeze(disk->queue);
	spin_lock_irqsave(&flash->lock, flags);
	flash_ageing_begin(&flash->model);
	spin_unlock_irqrestore(&flash->lock, flags);
	while (more) {
		spin_lock_irqsave(&flash->lock, flags);
		more = flash_ageing_continue(&flash->model, FLASH_AGEING_SLOTS);
		if (!more)
			flash_ageing_end(&flash->model, ktime_get_ns());
		spin_unlock_irqrestore(&flash->lock, flags);
		cond_resched();
	}
	flash_unfreeze(disk->queue, frozen);
	return length;
}
static DEVICE_ATTR_WO(flash_age);

/* Whether the next write or flush fails. */
static ssize_t flash_fault_show(struct device *device, struct device_attribute *attribute,
				char *buffer)
{
	struct flash *flash = dev_to_disk(device)->private_data;

	return sysfs_emit(buffer, "%d\n", !!(READ_ONCE(flash->course) & FLASH_FAILS));
}

static ssize_t flash_fault_store(struct device *device, struct device_attribute *attribute,
				 const char *buffer, size_t length)
{
	struct flash *flash = dev_to_disk(device)->private_data;
	unsigned long flags;
	bool fails;
	int error = kstrtobool(buffer, &fails);

	if (error)
		return error;
	spin_lock_irqsave(&flash->lock, flags);
	flash->course = (flash->course & ~FLASH_FAILS) | (fails ? FLASH_FAILS : 0);
	spin_unlock_irqrestore(&flash->lock, flags);
	return length;
}
static DEVICE_ATTR_RW(flash_fault);

/* A command to record or to restore; see power_cut.h. */
static ssize_t flash_record_store(struct device *device, struct device_attribute *attribute,
				  const char *buffer, size_t length)
{
	int error = flash_power_cut_command(dev_to_disk(device)->private_data, buffer);

	return error ? error : length;
}
static DEVICE_ATTR_WO(flash_record);

static struct flash *flash_of(struct kobject *kobject)
{
	return dev_to_disk(kobj_to_dev(kobject))->private_data;
}

static ssize_t flash_record_requests_read(struct file *file, struct kobject *kobject,
					  flash_bin_attribute *attribute, char *buffer,
					  loff_t offset, size_t length)
{
	return flash_power_cut_requests(flash_of(kobject), buffer, offset, length);
}
static BIN_ATTR_RO(flash_record_requests, 0);

static ssize_t flash_record_pieces_read(struct file *file, struct kobject *kobject,
					flash_bin_attribute *attribute, char *buffer,
					loff_t offset, size_t length)
{
	return flash_power_cut_pieces(flash_of(kobject), buffer, offset, length);
}
static BIN_ATTR_RO(flash_record_pieces, 0);

static ssize_t flash_record_moves_read(struct file *file, struct kobject *kobject,
				       flash_bin_attribute *attribute, char *buffer,
				       loff_t offset, size_t length)
{
	return flash_power_cut_moves(flash_of(kobject), buffer, offset, length);
}
static BIN_ATTR_RO(flash_record_moves, 0);

static ssize_t flash_power_cut_write(struct file *file, struct kobject *kobject,
				     flash_bin_attribute *attribute, char *buffer,
				     loff_t offset, size_t length)
{
	return flash_power_cut_choose(flash_of(kobject), buffer, length);
}
static BIN_ATTR_WO(flash_power_cut, 0);

static ssize_t flash_changes_read(struct file *file, struct kobject *kobject,
				  flash_bin_attribute *attribute, char *buffer,
				  loff_t offset, size_t length)
{
	return flash_power_cut_changes(flash_of(kobject), buffer, length);
}
static BIN_ATTR_RO(flash_changes, 0);

static ssize_t flash_contents_read(struct file *file, struct kobject *kobject,
				   flash_bin_attribute *attribute, char *buffer,
				   loff_t offset, size_t length)
{
	return flash_power_cut_contents(flash_of(kobject), buffer, offset, length);
}
static BIN_ATTR_RO(flash_contents, 0);

static struct attribute *flash_attrs[] = {
	&dev_attr_flash_statistics.attr,
	&dev_attr_flash_age.attr,
	&dev_attr_flash_record.attr,
	&dev_attr_flash_fault.attr,
	NULL,
};

static flash_bin_attribute *flash_bin_attrs[] = {
	&bin_attr_flash_record_requests,
	&bin_attr_flash_record_pieces,
	&bin_attr_flash_record_moves,
	&bin_attr_flash_power_cut,
	&bin_attr_flash_changes,
	&bin_attr_flash_contents,
	NULL,
};

static const struct attribute_group flash_group = {
	.attrs = flash_attrs,
	.bin_attrs = flash_bin_attrs,
};

const struct attribute_group *flash_groups[] = { &flash_group, NULL };
