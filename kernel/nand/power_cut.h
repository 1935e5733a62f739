/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts raw NAND into the state that a power cut leaves: records what a run programmed and erased,
 * tells it, and lets a state be chosen of it. Commands are those of a disk (../flash/power_cut.h),
 * and so are records (../flash/records.h): a slot is a page here, and a part an eighth of it.
 *
 * A page whose eighths are of one moment is whole. Any other is torn: it cannot be read (-EBADMSG).
 * Of a block whose erase was cut, each page is as it was, erased, or torn.
 */
#ifndef RAW_NAND_POWER_CUT_H
#define RAW_NAND_POWER_CUT_H

#include <linux/types.h>

#include "../flash/records.h"
#include "model/raw_nand.h"

struct raw_nand_device;

struct power_cut {
	struct flash_records records;
	bool untimed;			/* operations take no time, nor wear anything */
	struct raw_nand_block *blocks;	/* as they were when the run ended */
	bool has_ended;			/* a run has, and `blocks` is of it */
};

/* `blocks` of the model. */
int power_cut_init(struct power_cut *cut, u32 blocks);
void power_cut_free(struct raw_nand_device *nand);

/*
 * Pages were changed by an operation: begins, then notes each of them, with the bytes it wrote,
 * once it is in the contents. Under the lock of the model.
 */
void power_cut_begin_request(struct raw_nand_device *nand, u64 issue_ns, u64 completion_ns);
void power_cut_note_page(struct raw_nand_device *nand, u32 page, u32 offset, u32 length);

/* The files of power_cut.h of a disk: flash_record, flash_record_requests and so on. Before a run
 * has ended, there is no state to go back to: -ENODATA.
 */
int power_cut_command(struct raw_nand_device *nand, const char *text);
ssize_t power_cut_requests(struct raw_nand_device *nand, char *buffer, loff_t offset,
			   size_t length);
ssize_t power_cut_pieces(struct raw_nand_device *nand, char *buffer, loff_t offset, size_t length);
ssize_t power_cut_choose(struct raw_nand_device *nand, const char *buffer, size_t length);

#endif
