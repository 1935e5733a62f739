/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The timing model of a flash device: (model, request, now_ns) -> completion_ns.
 *
 * It has no clock, no allocation and no randomness of its own, and knows nothing of the data: the
 * same configuration and the same requests at the same times give the same completions.
 *
 * The device has two parts that take time. The controller serves one command at a time, in the
 * order of arrival, whatever the queue depth (eMMC: one outstanding command, half duplex). The
 * NAND array does one thing at a time: it reads, or it programs up to program_unit_bytes.
 *
 * A cached write is complete when its data are in the volatile cache. The cache is drained in the
 * background: a full program unit as soon as the array is free, what is less than a unit once no
 * command has been in service for drain_delay_ns. A program that has begun is not interrupted, so
 * a command that needs the array may wait for it; a command goes before the programs not begun.
 */
#ifndef FLASH_MODEL_H
#define FLASH_MODEL_H

#include "flash_config.h"

enum flash_operation {
	FLASH_READ,
	FLASH_WRITE,
	FLASH_FLUSH,
	FLASH_DISCARD,
	FLASH_ZEROES,
};

struct flash_request {
	enum flash_operation operation;
	unsigned int fua;		/* 1: durable before it completes; writes and zeroes only */
	unsigned int length_bytes;
};

/* Requests and bytes the host asked for; programs are what the array was made to do for writes. */
#define FLASH_STATISTICS(S) \
	S(read_requests) \
	S(write_requests) \
	S(fua_requests) \
	S(flush_requests) \
	S(discard_requests) \
	S(zeroes_requests) \
	S(read_bytes) \
	S(write_bytes) \
	S(discard_bytes) \
	S(zeroes_bytes) \
	S(programs) \
	S(mapping_programs) \
	S(programmed_bytes) \
	S(dirty_bytes) \
	S(busy_ns)

/*
 * fua_requests are among write_requests and zeroes_requests. programmed_bytes + dirty_bytes is
 * always write_bytes. busy_ns is the time with a command in service; draining is not in it.
 */
struct flash_statistics {
#define FLASH_FIELD(name) flash_u64 name;
	FLASH_STATISTICS(FLASH_FIELD)
#undef FLASH_FIELD
};

struct flash_model {
	struct flash_config config;
	struct flash_statistics statistics;
	flash_u64 free_ns;		/* when the controller is done with what it was given */
	flash_u64 nand_free_ns;		/* when the array is done with what it has begun */
	flash_u64 cached_ns;		/* when data last entered the cache */
	flash_u64 programming_bytes;	/* leave the cache at nand_free_ns; 0: no program runs */
	unsigned int mapping_dirty;	/* the mapping table changed since it was last programmed */
};

/* `config` must have passed flash_model_check(). The device is idle and its cache empty. */
void flash_model_init(struct flash_model *model, const struct flash_config *config);

/* Hands a request in at now_ns; answers when it completes. Times are in nanoseconds, below 2^62. */
flash_u64 flash_model_submit(struct flash_model *model, const struct flash_request *request,
			     flash_u64 now_ns);

/* Lets the background work go on until now_ns, so that the statistics are of that instant. */
void flash_model_advance(struct flash_model *model, flash_u64 now_ns);

#endif
