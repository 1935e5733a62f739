/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An operation of raw NAND as it is recorded: this header, then the bytes that were programmed. The
 * agent reads it (agent/src/raw_nand/operation.rs).
 */
#ifndef RAW_NAND_OPERATION_H
#define RAW_NAND_OPERATION_H

#include <linux/types.h>

enum operation_kind {
	OPERATION_READ,
	OPERATION_PROGRAM,
	OPERATION_ERASE,
	OPERATION_MARK_BAD,
};

struct operation {
	__u64 queue_ns;		/* when the caller asked for it */
	__u64 issue_ns;		/* when the die was free for it */
	__u64 complete_ns;
	__u64 address_bytes;	/* of the first byte, through all blocks */
	__u32 kind;		/* enum operation_kind */
	__u32 outcome;		/* enum raw_nand_outcome */
	__u32 block;
	__u32 offset_bytes;	/* in the block */
	__u32 length_bytes;
	__u32 flipped_bits;
	__u32 data_bytes;	/* that follow this header */
	__u32 pid;
	__u32 tid;
	__u32 call;		/* number of the system call; ~0 in a kernel thread */
	char comm[16];
};

#endif
