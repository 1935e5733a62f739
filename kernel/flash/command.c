// SPDX-License-Identifier: GPL-2.0-only
/*
 * One command from begin to end: reads a block request; asks the model when the device is done with
 * it, moves its data to or from the store, and adds it to the record. Whoever waits for the device
 * (a timer in flash_module.c, a thread in dispatch.c) calls these, and is called by none of them.
 */
#include <linux/blk-mq.h>
#include <linux/kernel.h>
#include <linux/ktime.h>

#include "command.h"
#include "compat.h"
#include "disk.h"
#include "record.h"
#include "room.h"

bool flash_describe(struct request *rq, struct flash_command *command)
{
	struct flash_request *request = &command->request;

	command->is_atomic = !!(rq->cmd_flags & REQ_ATOMIC);
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
		while (flash_store_copy(&flash->store, &segment, offset_bytes, write))
			flash_make_room(flash);
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
		while (flash_store_zero(&flash->store, (loff_t)blk_rq_pos(rq) << SECTOR_SHIFT,
					blk_rq_bytes(rq)))
			flash_make_room(flash);
		return BLK_STS_OK;
	default:
		return BLK_STS_OK;
	}
}

u64 flash_begin(struct flash_command *command)
{
	struct request *rq = blk_mq_rq_from_pdu(command);
	struct flash *flash = rq->q->queuedata;
	unsigned long flags;
	u64 issue_ns, completion_ns;

	/* The record is in the order of issue, and so are the contents. */
	spin_lock(&flash->order);
	/* The service begins now: what the copy costs the processor runs beside it. */
	spin_lock_irqsave(&flash->lock, flags);
	issue_ns = ktime_get_ns();
	completion_ns = flash_model_submit(&flash->model, &command->request, issue_ns);
	spin_unlock_irqrestore(&flash->lock, flags);

	command->status = flash_move_data(rq, command->request.operation);
	flash_record_command(flash, command, issue_ns, completion_ns);
	spin_unlock(&flash->order);
	return completion_ns;
}

/* Nothing of it is on the disk, nor in the record: what a device refuses, it does not do. */
static bool flash_take_fault(struct flash *flash, enum flash_operation operation)
{
	unsigned long flags;
	bool fails = false;

	spin_lock_irqsave(&flash->lock, flags);
	if (flash->course & FLASH_FAILS && (operation == FLASH_WRITE || operation == FLASH_FLUSH)) {
		flash->course &= ~FLASH_FAILS;
		flash->failed_requests++;
		fails = true;
	}
	spin_unlock_irqrestore(&flash->lock, flags);
	return fails;
}

static bool flash_meets_unreadable(struct flash *flash, const struct flash_command *command)
{
	bool meets;

	spin_lock(&flash->order);
	meets = flash_unreadable_meets(flash, &command->request);
	spin_unlock(&flash->order);
	return meets;
}

bool flash_do_apart(struct flash_command *command)
{
	struct request *rq = blk_mq_rq_from_pdu(command);
	struct flash *flash = rq->q->queuedata;
	blk_status_t status;

	if (flash_take_fault(flash, command->request.operation)) {
		blk_mq_end_request(rq, BLK_STS_IOERR);
		return true;
	}
	if (flash->course & FLASH_UNREADABLE && flash_meets_unreadable(flash, command)) {
		blk_mq_end_request(rq, BLK_STS_MEDIUM);
		return true;
	}
	if (!(flash->course & FLASH_UNTIMED))
		return false;
	spin_lock(&flash->order);
	status = flash_move_data(rq, command->request.operation);
	spin_unlock(&flash->order);
	blk_mq_end_request(rq, status);
	return true;
}

void flash_count_begin(struct flash *flash)
{
	unsigned long flags;

	spin_lock_irqsave(&flash->lock, flags);
	flash->in_flight++;
	spin_unlock_irqrestore(&flash->lock, flags);
}

void flash_count_end(struct flash_command *command, bool interrupt)
{
	struct flash *flash = blk_mq_rq_from_pdu(command)->q->queuedata;
	unsigned long flags;

	spin_lock_irqsave(&flash->lock, flags);
	flash->in_flight--;
	flash->failed_requests += command->status != BLK_STS_OK;
	flash->completion_interrupts += interrupt;
	spin_unlock_irqrestore(&flash->lock, flags);
}

void flash_end(struct flash_command *command)
{
	flash_count_end(command, false);
	blk_mq_end_request(blk_mq_rq_from_pdu(command), command->status);
}
