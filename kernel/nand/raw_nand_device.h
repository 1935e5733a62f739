/* SPDX-License-Identifier: GPL-2.0-only */
/* The one device of the module: its model, what its pages hold, and the MTD layer's view of it. */
#ifndef RAW_NAND_DEVICE_H
#define RAW_NAND_DEVICE_H

#include <linux/atomic.h>
#include <linux/mtd/mtd.h>
#include <linux/mutex.h>

#include "contents.h"
#include "model/raw_nand.h"
#include "operation_log.h"
#include "power_cut.h"

struct raw_nand_device {
	struct raw_nand model;
	struct mutex model_lock;
	struct mutex *die_locks;
	void *tables;
	struct contents contents;	/* under model_lock */
	struct power_cut cut;
	struct operation_log log;
	struct mtd_info mtd;
	atomic_t in_flight;
	atomic_t users;		/* who has the MTD device open */
	/* Of the data of its callers, what lies in memory of vmalloc, stacks included. A controller
	 * whose DMA needs contiguous memory copies it through a buffer of its own (NAND_USES_DMA
	 * in drivers/mtd/nand/raw/nand_base.c). Under model_lock.
	 */
	u64 bounced_read_bytes;
	u64 bounced_write_bytes;
};

/* Fills in the MTD layer's view: sizes and calls. */
void raw_nand_describe(struct raw_nand_device *nand);

#endif
