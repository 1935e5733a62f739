// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disks' parameters: reads the module's command line, NAME=VALUE,VALUE... with a value for each
 * disk; produces a checked configuration of each. devices/README.md says what each one means.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/minmax.h>
#include <linux/module.h>

#include "model/flash_model.h"
#include "parameters.h"

#define FLASH_MODULE_PARAMETER(name, minimum, maximum)				\
	static flash_u64 given_##name[FLASH_DISKS_MAX];				\
	static unsigned int count_##name;					\
	module_param_array_named(name, given_##name, ullong, &count_##name, 0444);
FLASH_PARAMETERS(FLASH_MODULE_PARAMETER)

unsigned int flash_parameters_disks(void)
{
	unsigned int count = 1;

#define FLASH_COUNT(name, minimum, maximum) count = max(count, count_##name);
	FLASH_PARAMETERS(FLASH_COUNT)
	return count;
}

int flash_parameters_take(struct flash_config *config, unsigned int index)
{
	struct flash_complaint complaint;

#define FLASH_TAKE(name, minimum, maximum) \
	config->name = index < count_##name ? given_##name[index] : FLASH_NOT_GIVEN;
	FLASH_PARAMETERS(FLASH_TAKE)
	complaint = flash_model_check(config);
	if (!complaint.name)
		return 0;
	if (complaint.value == FLASH_NOT_GIVEN)
		pr_err("disk %u: parameter %s is missing: must be %llu to %llu\n", index,
		       complaint.name, complaint.minimum, complaint.maximum);
	else if (complaint.rule)
		pr_err("disk %u: parameter %s is %llu: must be %s\n", index, complaint.name,
		       complaint.value, complaint.rule);
	else
		pr_err("disk %u: parameter %s is %llu: must be %llu to %llu\n", index,
		       complaint.name, complaint.value, complaint.minimum, complaint.maximum);
	return -EINVAL;
}
