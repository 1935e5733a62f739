// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of the MTD layer: reads what is asked of pages and blocks; produces operations of the
 * model, page by page, moves their bytes, and answers as the layer expects (mtd_read_oob() and its
 * kin in drivers/mtd/mtdcore.c).
 *
 * An operation sleeps until its time is nearly over, by a high-resolution timer, so that it costs
 * the processor next to nothing. A die takes one at a time: its lock is held for as long, as
 * nand_base holds that of its chip. What the module itself has to do, its copies among it, is done
 * before: they stand for the transfer over the bus, which the model's time has already.
 */
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "raw_nand_device.h"

/* Free out-of-band bytes begin after the marker of bad blocks. */
#define MARKER_BYTES 2

/*
 * The interrupt of a timer, the wake-up and the switch to who sleeps take some 4,200 instructions,
 * which is 8 us where one takes 2 ns (tests/guest/test_raw_nand_times.py, with 0 here). They are
 * within the part's time: who waits polls at last, as nand_wait() of nand_base does all the time.
 */
#define WAKE_UP_NS 10000

static void wait_until(u64 completion_ns)
{
	ktime_t end = ns_to_ktime(completion_ns), early = ktime_sub_ns(end, WAKE_UP_NS);

	while (ktime_before(ktime_get(), early)) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule_hrtimeout(&early, HRTIMER_MODE_ABS);
	}
	while (ktime_before(ktime_get(), end))
		cpu_relax();
}

/*
 * An operation on a page, or on a whole block: asked for and recorded when its die is free. Its
 * caller moves what it reads or changes, and then calls end_operation(), which waits until its time
 * is over. The lock of the model is held from here to there, so that the contents change in the
 * order of the record. While what power cuts leave is looked at, operations take no time and are in
 * no record.
 */
static struct raw_nand_result begin_operation(struct raw_nand_device *nand,
					      struct operation *operation, const u8 *data)
{
	u32 page = operation->block * nand->model.config.pages_per_block +
		   operation->offset_bytes / (u32)nand->model.config.page_bytes;
	struct raw_nand_result result;

	atomic_inc(&nand->in_flight);
	operation->queue_ns = ktime_get_ns();
	mutex_lock(&nand->die_locks[operation->block % nand->model.nand.dies]);
	mutex_lock(&nand->model_lock);
	operation->issue_ns = ktime_get_ns();
	switch (operation->kind) {
	case OPERATION_READ:
		result = raw_nand_read(&nand->model, page, operation->length_bytes,
				       operation->issue_ns);
		break;
	case OPERATION_PROGRAM:
		result = raw_nand_program(&nand->model, page, operation->length_bytes,
					  operation->issue_ns);
		break;
	default:
		result = raw_nand_erase(&nand->model, operation->block, operation->issue_ns);
		break;
	}
	operation->complete_ns = result.completion_ns;
	operation->outcome = result.outcome;
	operation->flipped_bits = result.flipped_bits;
	if (!nand->cut.untimed && result.outcome != RAW_NAND_OFF &&
	    result.outcome != RAW_NAND_REFUSED)
		operation_log_add(&nand->log, *operation, data);
	return result;
}

static void end_operation(struct raw_nand_device *nand, const struct operation *operation)
{
	bool untimed = nand->cut.untimed;

	mutex_unlock(&nand->model_lock);
	if (!untimed)
		wait_until(operation->complete_ns);
	mutex_unlock(&nand->die_locks[operation->block % nand->model.nand.dies]);
	atomic_dec(&nand->in_flight);
}

static int error_of(struct raw_nand_result result)
{
	switch (result.outcome) {
	case RAW_NAND_DONE:
		return 0;
	case RAW_NAND_UNCORRECTABLE:
		return -EBADMSG;
	default:
		return -EIO;
	}
}

/* Under the lock of the model. */
static void read_contents(struct raw_nand_device *nand, u32 page, u32 offset, u32 wrong_bits,
			  u8 *to, u32 length)
{
	contents_read(&nand->contents, page, offset, to, length);
	raw_nand_spoil(&nand->model, page, wrong_bits, to, length);
	if (!virt_addr_valid(to))
		nand->bounced_read_bytes += length;
}

/* A piece of a call within one page: of its bytes, or of its out-of-band bytes. */
struct piece {
	u32 block;
	u32 page;
	u32 offset;		/* in the page */
	u32 length;
};

static struct piece piece_at(struct raw_nand_device *nand, u64 at, size_t left)
{
	struct piece piece;
	u32 in_block;

	piece.block = div_u64_rem(at, nand->mtd.erasesize, &in_block);
	piece.page = piece.block * (u32)nand->model.config.pages_per_block +
		     in_block / nand->mtd.writesize;
	piece.offset = in_block % nand->mtd.writesize;
	piece.length = min_t(size_t, left, nand->mtd.writesize - piece.offset);
	return piece;
}

static struct operation operation_of(const struct raw_nand_device *nand, u32 kind,
				     const struct piece *piece, u32 data_bytes)
{
	u32 page = piece->page % (u32)nand->model.config.pages_per_block;
	u32 offset = page * nand->mtd.writesize + piece->offset;

	return (struct operation) {
		.address_bytes = (u64)piece->block * nand->mtd.erasesize + offset,
		.kind = kind,
		.block = piece->block,
		.offset_bytes = offset,
		.length_bytes = piece->length,
		.data_bytes = data_bytes,
	};
}

/* What is read to correct a piece: whole steps of the code. */
static struct piece corrected(const struct raw_nand_device *nand, struct piece piece)
{
	u32 step = nand->mtd.ecc_step_size, end = round_up(piece.offset + piece.length, step);

	piece.offset = round_down(piece.offset, step);
	piece.length = end - piece.offset;
	return piece;
}

static u32 spare_offset(const struct mtd_oob_ops *ops)
{
	return ops->ooboffs + (ops->mode == MTD_OPS_AUTO_OOB ? MARKER_BYTES : 0);
}

/* No code protects these bytes, so that none fails. Under the lock of the model. */
static void read_spare(struct raw_nand_device *nand, u32 page, struct mtd_oob_ops *ops)
{
	read_contents(nand, page, nand->mtd.writesize + spare_offset(ops), 0, ops->oobbuf,
		      ops->ooblen);
	ops->oobretlen = ops->ooblen;
}

/* Answers with the most bits that were corrected in a page, as the MTD layer expects. */
static int nand_read_oob(struct mtd_info *mtd, loff_t from, struct mtd_oob_ops *ops)
{
	struct raw_nand_device *nand = mtd->priv;
	int worst = 0, error = 0;

	ops->retlen = ops->oobretlen = 0;
	while (ops->retlen < ops->len) {
		struct piece piece = piece_at(nand, from + ops->retlen, ops->len - ops->retlen);
		struct piece whole = corrected(nand, piece);
		struct operation operation = operation_of(nand, OPERATION_READ, &whole, 0);
		struct raw_nand_result result = begin_operation(nand, &operation, NULL);

		error = error ?: error_of(result);
		if (result.outcome == RAW_NAND_UNCORRECTABLE)
			nand->mtd.ecc_stats.failed++;
		nand->mtd.ecc_stats.corrected += result.flipped_bits;
		worst = max_t(int, worst, result.flipped_bits);
		read_contents(nand, piece.page, piece.offset, result.wrong_bits,
			      ops->datbuf + ops->retlen, piece.length);
		end_operation(nand, &operation);
		if (error && error != -EBADMSG)
			return error;
		ops->retlen += piece.length;
	}
	if (ops->oobbuf) {
		struct piece piece = piece_at(nand, from, 1);

		if (!ops->len) {
			struct operation operation;

			piece.offset = 0;
			piece = corrected(nand, piece);
			operation = operation_of(nand, OPERATION_READ, &piece, 0);
			error = error_of(begin_operation(nand, &operation, NULL));
			read_spare(nand, piece.page, ops);
			end_operation(nand, &operation);
		} else {
			mutex_lock(&nand->model_lock);
			read_spare(nand, piece.page, ops);
			mutex_unlock(&nand->model_lock);
		}
	}
	return error ?: worst;
}

/* Puts what was programmed into the contents. Under the lock of the model. */
static int put_contents(struct raw_nand_device *nand, const struct piece *piece, const u8 *data,
			u32 length)
{
	return contents_program(&nand->contents, piece->page, piece->offset, data, length,
				nand->model.programs[piece->page]);
}

static int program(struct raw_nand_device *nand, const struct piece *piece, const u8 *data)
{
	struct operation operation = operation_of(nand, OPERATION_PROGRAM, piece, piece->length);
	struct raw_nand_result result = begin_operation(nand, &operation, data);
	int error = error_of(result);

	/* Of what a cut tore, the first half has reached its cells. */
	if (!error || result.outcome == RAW_NAND_CUT) {
		u32 length = error ? piece->length / 2 : piece->length;
		int failed;

		power_cut_begin_request(nand, operation.issue_ns, operation.complete_ns);
		if (!virt_addr_valid(data))
			nand->bounced_write_bytes += length;
		failed = put_contents(nand, piece, data, length);
		if (!failed)
			power_cut_note_page(nand, piece->page, piece->offset, length);
		error = error ?: failed;
	}
	end_operation(nand, &operation);
	return error;
}

static int nand_write_oob(struct mtd_info *mtd, loff_t to, struct mtd_oob_ops *ops)
{
	struct raw_nand_device *nand = mtd->priv;
	int error;

	ops->retlen = ops->oobretlen = 0;
	while (ops->retlen < ops->len) {
		struct piece piece = piece_at(nand, to + ops->retlen, ops->len - ops->retlen);

		error = program(nand, &piece, ops->datbuf + ops->retlen);
		if (error)
			return error;
		ops->retlen += piece.length;
	}
	if (ops->oobbuf) {
		struct piece piece = piece_at(nand, to, 1);

		piece.offset = nand->mtd.writesize + spare_offset(ops);
		piece.length = ops->ooblen;
		if (ops->len) {
			mutex_lock(&nand->model_lock);
			error = put_contents(nand, &piece, ops->oobbuf, ops->ooblen);
			mutex_unlock(&nand->model_lock);
		} else {
			error = program(nand, &piece, ops->oobbuf);
		}
		if (error)
			return error;
		ops->oobretlen = ops->ooblen;
	}
	return 0;
}

/* Under the lock of the model. */
static int erase_contents(struct raw_nand_device *nand, const struct operation *operation)
{
	u32 pages = nand->model.config.pages_per_block;
	u32 page = operation->block * pages, end = page + pages;
	int error = 0;

	power_cut_begin_request(nand, operation->issue_ns, operation->complete_ns);
	for (; page < end && !error; page++) {
		if (!contents_find(&nand->contents, nand->contents.top, page))
			continue;
		error = contents_erase(&nand->contents, page);
		if (!error)
			power_cut_note_page(nand, page, 0, nand->mtd.writesize);
	}
	return error;
}

static int nand_erase(struct mtd_info *mtd, struct erase_info *instruction)
{
	struct raw_nand_device *nand = mtd->priv;
	u64 done;

	for (done = 0; done < instruction->len; done += nand->mtd.erasesize) {
		struct piece piece = piece_at(nand, instruction->addr + done, 1);
		struct operation operation;
		int error;

		piece.length = nand->mtd.erasesize;
		operation = operation_of(nand, OPERATION_ERASE, &piece, 0);
		error = error_of(begin_operation(nand, &operation, NULL));
		if (!error)
			error = erase_contents(nand, &operation);
		end_operation(nand, &operation);
		if (error) {
			instruction->fail_addr = instruction->addr + done;
			return -EIO;
		}
	}
	return 0;
}

static int nand_block_isbad(struct mtd_info *mtd, loff_t at)
{
	struct raw_nand_device *nand = mtd->priv;

	return raw_nand_is_bad(&nand->model, piece_at(nand, at, 1).block);
}

static int nand_block_markbad(struct mtd_info *mtd, loff_t at)
{
	struct raw_nand_device *nand = mtd->priv;

	mutex_lock(&nand->model_lock);
	raw_nand_mark_bad(&nand->model, piece_at(nand, at, 1).block);
	nand->mtd.ecc_stats.badblocks++;
	mutex_unlock(&nand->model_lock);
	return 0;
}

static int spare_ecc(struct mtd_info *mtd, int section, struct mtd_oob_region *region)
{
	return -ERANGE;		/* the model corrects without bytes of its own */
}

static int spare_free(struct mtd_info *mtd, int section, struct mtd_oob_region *region)
{
	if (section)
		return -ERANGE;
	region->offset = MARKER_BYTES;
	region->length = mtd->oobsize - MARKER_BYTES;
	return 0;
}

static const struct mtd_ooblayout_ops spare_layout = { .ecc = spare_ecc, .free = spare_free };

static int nand_get_device(struct mtd_info *mtd)
{
	atomic_inc(&((struct raw_nand_device *)mtd->priv)->users);
	return 0;
}

static void nand_put_device(struct mtd_info *mtd)
{
	atomic_dec(&((struct raw_nand_device *)mtd->priv)->users);
}

void raw_nand_describe(struct raw_nand_device *nand)
{
	const struct raw_nand_config *config = &nand->model.config;
	struct mtd_info *mtd = &nand->mtd;

	mtd->priv = nand;
	mtd->name = "nand0";
	mtd->owner = THIS_MODULE;
	mtd->type = MTD_NANDFLASH;
	mtd->flags = MTD_CAP_NANDFLASH;
	mtd->size = config->capacity_bytes;
	mtd->writesize = mtd->writebufsize = config->page_bytes;
	mtd->erasesize = config->page_bytes * config->pages_per_block;
	mtd->oobsize = config->spare_bytes;
	mtd->subpage_sft = ilog2(config->programs_per_page);
	mtd->ecc_strength = config->ecc_strength_bits;
	mtd->ecc_step_size = mtd->writesize >> mtd->subpage_sft;
	mtd->ecc_stats.badblocks = nand->model.statistics.bad_blocks;
	mtd->_read_oob = nand_read_oob;
	mtd->_write_oob = nand_write_oob;
	mtd->_erase = nand_erase;
	mtd->_block_isbad = nand_block_isbad;
	mtd->_block_markbad = nand_block_markbad;
	mtd->_get_device = nand_get_device;
	mtd->_put_device = nand_put_device;
	mtd_set_ooblayout(mtd, &spare_layout);
}
