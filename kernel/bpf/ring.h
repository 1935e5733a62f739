/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What user space and every BPF program share, whatever its records are: how the ring of ring.bpf.h
 * is laid out, and what the programs are given before they are loaded. agent/src/bpf has the same
 * layout, and both sides check the sizes.
 */
#ifndef JOJ_RING_H
#define JOJ_RING_H

/* Written by user space before the programs are loaded: the verifier knows them. */
struct settings {
	__u32 has_rdonly_cast;		/* what read.bpf.h may use */
	__u32 ring_chunks;		/* a power of two */
	__u64 kept_bytes;		/* of the ring, for records of several parts */
	__u32 page_shift;		/* log2 of the bytes of a page, where it is not always 12 */
	__u32 last_place;		/* of programs for one event: further_programs.bpf.h */
};

/* The ends of the ring; each has a cache line of its own, and its neighbour. */
struct ring {
	__u64 head;			/* written by the programs: where the next record begins */
	__u64 padding[15];
	__u64 tail;			/* written by user space: what it has not read begins */
	__u64 more_padding[15];
};

#define CHUNK_SLACK_BYTES 4352		/* the longest record, and its length */

_Static_assert(sizeof(struct settings) == 24, "the settings are written as 24 bytes");
_Static_assert(sizeof(struct ring) == 256, "the ring is steered by 256 bytes");

#endif
