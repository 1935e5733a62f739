/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of a disk in /sys/block. */
#ifndef FLASH_ATTRIBUTES_H
#define FLASH_ATTRIBUTES_H

#include <linux/sysfs.h>

extern const struct attribute_group *flash_groups[];

#endif
