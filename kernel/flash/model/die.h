/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The times of one die: what it does now, and what it has been given to do.
 *
 * A die does one operation at a time. What it is given comes after all it has been given before,
 * but for reads of the host, which go before what has not begun. For those it must be known when
 * each operation ends, so a die keeps its operations in order, those that follow each other and
 * take equally long as one run. A die that can suspend what is under way does so for reads of the
 * host (Wu and He, FAST 2012, "Reducing SSD Read Latency via NAND Flash Program and Erase
 * Suspension"): it stops suspend_ns after it was asked to, and goes on when the reads are done.
 */
#ifndef FLASH_DIE_H
#define FLASH_DIE_H

#include "flash_config.h"

/*
 * Runs that a die remembers; where there are more, the last two are taken for one of operations
 * that take as long as the longer. A read then waits for at most one such operation all the same.
 */
#define FLASH_DIE_RUNS 16U

struct flash_run {
	flash_u64 begin_ns;
	flash_u64 end_ns;
	flash_u64 operation_ns;		/* each operation; the last may be shorter */
	flash_u32 host_reads;		/* 1: nothing goes before them */
};

struct flash_die {
	flash_u64 free_ns;		/* when it has done all it was given */
	flash_u64 program_end_ns;	/* of the last program out of the cache */
	flash_u32 program_slots;	/* which that program frees in the cache; 0: none runs */
	flash_u32 runs;
	struct flash_run run[FLASH_DIE_RUNS];
};

/* Forgets what it did and was to do: it rests from now_ns on. */
void flash_die_rest(struct flash_die *die, flash_u64 now_ns);

/* Forgets the runs that ended by past_ns; no host read may begin before that any more. */
void flash_die_forget(struct flash_die *die, flash_u64 past_ns);

/* Gives it an operation that may begin at now_ns; answers when it begins. */
flash_u64 flash_die_append(struct flash_die *die, flash_u64 duration_ns, flash_u64 now_ns);

/*
 * Gives it a read of the host; answers when it ends. What is put off by it ends later. Without
 * suspend_ns it waits for the end of the operation that is under way.
 */
flash_u64 flash_die_read(struct flash_die *die, flash_u64 duration_ns, flash_u64 suspend_ns,
			 flash_u64 now_ns);

#endif
