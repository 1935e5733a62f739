// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw NAND as a device of the MTD layer, mtd0, in memory, that takes as long as the model in model/
 * says. Reads its parameters from the module's command line and MTD calls from the kernel; produces
 * their results; statistics in /sys/class/misc/nand0/flash_statistics, beside the files of
 * power_cut.h, and a log of its operations in /dev/nand0.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/vmalloc.h>

#include "../flash/compat.h"
#include "raw_nand_device.h"

#define RAW_NAND_MODULE_PARAMETER(name, minimum, maximum) \
	static flash_u64 given_##name = FLASH_NOT_GIVEN; \
	module_param_named(name, given_##name, ullong, 0444);
RAW_NAND_PARAMETERS(RAW_NAND_MODULE_PARAMETER)

static struct raw_nand_device nand;

flash_u64 flash_divide(flash_u64 dividend, flash_u64 divisor)
{
	return div64_u64(dividend, divisor);
}

static ssize_t flash_statistics_show(struct device *device, struct device_attribute *attribute,
				     char *page)
{
	ssize_t length = 0;

	mutex_lock(&nand.model_lock);
#define RAW_NAND_SHOW(name) \
	length += sysfs_emit_at(page, length, #name " %llu\n", nand.model.statistics.name);
	RAW_NAND_STATISTICS(RAW_NAND_SHOW)
	length += sysfs_emit_at(page, length, "bounced_read_bytes %llu\n",
				nand.bounced_read_bytes);
	length += sysfs_emit_at(page, length, "bounced_write_bytes %llu\n",
				nand.bounced_write_bytes);
	length += sysfs_emit_at(page, length, "lost_operations %llu\n", nand.log.lost);
	length += sysfs_emit_at(page, length, "in_flight %d\n", atomic_read(&nand.in_flight));
	mutex_unlock(&nand.model_lock);
	return length;
}
static DEVICE_ATTR_RO(flash_statistics);

/* The power comes back; a number says after how many programs and erases it goes again. */
static ssize_t flash_power_store(struct device *device, struct device_attribute *attribute,
				 const char *text, size_t length)
{
	u64 after;
	int error = kstrtou64(text, 0, &after);

	if (error)
		return error;
	mutex_lock(&nand.model_lock);
	raw_nand_power_on(&nand.model, after);
	mutex_unlock(&nand.model_lock);
	return length;
}
static DEVICE_ATTR_WO(flash_power);

static ssize_t flash_record_store(struct device *device, struct device_attribute *attribute,
				  const char *text, size_t length)
{
	return power_cut_command(&nand, text) ?: length;
}
static DEVICE_ATTR_WO(flash_record);

static ssize_t flash_record_requests_read(struct file *file, struct kobject *kobject,
					  flash_bin_attribute *attribute, char *buffer,
					  loff_t offset, size_t length)
{
	return power_cut_requests(&nand, buffer, offset, length);
}
static BIN_ATTR_RO(flash_record_requests, 0);

static ssize_t flash_record_pieces_read(struct file *file, struct kobject *kobject,
					flash_bin_attribute *attribute, char *buffer,
					loff_t offset, size_t length)
{
	return power_cut_pieces(&nand, buffer, offset, length);
}
static BIN_ATTR_RO(flash_record_pieces, 0);

static ssize_t flash_power_cut_write(struct file *file, struct kobject *kobject,
				     flash_bin_attribute *attribute, char *buffer,
				     loff_t offset, size_t length)
{
	return power_cut_choose(&nand, buffer, length);
}
static BIN_ATTR_WO(flash_power_cut, 0);

static struct attribute *nand_attrs[] = {
	&dev_attr_flash_statistics.attr,
	&dev_attr_flash_power.attr,
	&dev_attr_flash_record.attr,
	NULL,
};

static flash_bin_attribute *nand_bin_attrs[] = {
	&bin_attr_flash_record_requests,
	&bin_attr_flash_record_pieces,
	&bin_attr_flash_power_cut,
	NULL,
};

static const struct attribute_group nand_group = {
	.attrs = nand_attrs,
	.bin_attrs = nand_bin_attrs,
};
static const struct attribute_group *nand_groups[] = { &nand_group, NULL };

static ssize_t nand_read_log(struct file *file, char __user *to, size_t length, loff_t *at)
{
	return operation_log_read(&nand.log, to, length);
}

static const struct file_operations log_file_operations = {
	.owner = THIS_MODULE,
	.read = nand_read_log,
};

static struct miscdevice log_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nand0",
	.fops = &log_file_operations,
	.groups = nand_groups,
	.mode = 0600,
};

/* As kernel/flash/flash_module.c: they come on about a second after the boot. */
static int wait_for_timers(void)
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

static int take_parameters(struct raw_nand_config *config)
{
	struct flash_complaint complaint;

#define RAW_NAND_TAKE(name, minimum, maximum) config->name = given_##name;
	RAW_NAND_PARAMETERS(RAW_NAND_TAKE)
	complaint = raw_nand_check(config);
	if (!complaint.name)
		return 0;
	if (complaint.rule)
		pr_err("parameter %s is %llu: must be %s\n", complaint.name, complaint.value,
		       complaint.rule);
	else
		pr_err("parameter %s is %lld: must be %llu to %llu\n", complaint.name,
		       complaint.value, complaint.minimum, complaint.maximum);
	return -EINVAL;
}

static void free_all(void)
{
	operation_log_free(&nand.log);
	power_cut_free(&nand);
	contents_free(&nand.contents);
	kfree(nand.die_locks);
	vfree(nand.tables);
}

static int allocate(const struct raw_nand_config *config)
{
	u32 i;

	nand.tables = vmalloc(raw_nand_memory_bytes(config));
	if (!nand.tables)
		return -ENOMEM;
	raw_nand_init(&nand.model, config, nand.tables);
	nand.die_locks = kcalloc(nand.model.nand.dies, sizeof(*nand.die_locks), GFP_KERNEL);
	if (!nand.die_locks)
		return -ENOMEM;
	for (i = 0; i < nand.model.nand.dies; i++)
		mutex_init(&nand.die_locks[i]);
	return power_cut_init(&nand.cut, nand.model.blocks) ?:
	       contents_init(&nand.contents, config->page_bytes, config->spare_bytes);
}

static int __init nand_init(void)
{
	struct raw_nand_config config;
	int error = take_parameters(&config) ?: wait_for_timers();

	if (error)
		return error;
	mutex_init(&nand.model_lock);
	operation_log_init(&nand.log);
	error = allocate(&config);
	if (error)
		goto free;
	raw_nand_describe(&nand);
	error = misc_register(&log_device);
	if (error)
		goto free;
	error = mtd_device_register(&nand.mtd, NULL, 0);
	if (error)
		goto deregister;
	return 0;

deregister:
	misc_deregister(&log_device);
free:
	free_all();
	return error;
}

static void __exit nand_exit(void)
{
	WARN_ON(mtd_device_unregister(&nand.mtd));
	misc_deregister(&log_device);
	free_all();
}

module_init(nand_init);
module_exit(nand_exit);
MODULE_DESCRIPTION("Raw NAND in memory that takes as long as a model says");
MODULE_LICENSE("GPL");
