/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring that records leave by: memory shared with user space, written by plain stores. Produces
 * (length, record) one after the other; agent/src/bpf/ring.rs reads them.
 *
 * Not BPF_MAP_TYPE_RINGBUF, whose lock, copy and locked header cost a quarter of what the tracer
 * does (bench/README.md): each waits for memory that is in no cache, since the ring is larger. Here
 * one compare-and-swap claims a place, and nothing waits for what is then stored there. Both
 * keep one order of all processors.
 *
 * A position counts bytes for ever. It lies in chunk number position / CHUNK_BYTES, and a record
 * that begins there may run into the chunk's slack: none is ever in two pieces. A length of 0 is a
 * record that is not whole yet; user space leaves what it has read as zeros. The length is seen
 * after the record (store_last() of processor.bpf.h).
 *
 * A part of the ring is kept for records that come in several parts, as a bio and its runs: they
 * leave whole, or not at all. All else is lost before that part is.
 */
#ifndef JOJ_RING_BPF_H
#define JOJ_RING_BPF_H

#ifdef BEFORE_5_17
#include "ring_before_5_17.bpf.h"
#else

#define CHUNK_BITS 16
#define CHUNK_BYTES (1U << CHUNK_BITS)
#define NO_ROOM (~0ULL)
#define CLAIMS_LIMIT 256	/* by others, each in between our look and our claim */

typedef __u64 __attribute__((may_alias)) word;

struct ring ring SEC(".data.ring") = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);		/* user space sets settings.ring_chunks of them */
	__type(key, __u32);
	__type(value, char[CHUNK_BYTES + CHUNK_SLACK_BYTES]);
} records SEC(".maps");

_Static_assert(CHUNK_BYTES + CHUNK_SLACK_BYTES == 69888, "chunks are read every 69888 bytes");

/* Room for SIZE bytes, and KEPT more. */
static __always_inline bool has_room(__u64 head, __u32 size, __u64 kept)
{
	__u64 tail = *(volatile __u64 *)&ring.tail;

	return head + size + kept - tail <= (__u64)settings.ring_chunks << CHUNK_BITS;
}

/* A record of several parts may begin. */
static __always_inline bool has_room_for_parts(void)
{
	return has_room(*(volatile __u64 *)&ring.head, 0, settings.kept_bytes);
}

/* Somebody else got the place we had in mind. */
__noinline __u64 claim_again(__u32 size, __u64 kept)
{
	for (int count = 0; count < CLAIMS_LIMIT; count++) {
		__u64 head = *(volatile __u64 *)&ring.head;

		if (!has_room(head, size, kept))
			break;
		if (__sync_val_compare_and_swap(&ring.head, head, head + size) == head)
			return head;
	}
	return NO_ROOM;
}

/*
 * Room for a record of SIZE bytes, with KEPT more left; it must be published. Counts in LOST that
 * there is none.
 */
static __always_inline void *reserve(__u32 size, __u64 kept, __u64 *lost)
{
	__u32 need = sizeof(word) + ((size + 7) & ~7U), chunk;
	__u64 head = *(volatile __u64 *)&ring.head, claimed = head;
	char *begin = NULL;

	if (!has_room(head, need, kept))
		claimed = NO_ROOM;
	else if (__sync_val_compare_and_swap(&ring.head, head, head + need) != head)
		claimed = claim_again(need, kept);
	if (claimed != NO_ROOM) {
		chunk = claimed >> CHUNK_BITS & (settings.ring_chunks - 1);
		begin = bpf_map_lookup_elem(&records, &chunk);
	}
	if (!begin) {
		__sync_fetch_and_add(lost, 1);
		return NULL;
	}
	return begin + (claimed & (CHUNK_BYTES - 1) & ~7ULL) + sizeof(word);
}

/* The record of SIZE bytes is whole: user space may have it. */
static __always_inline void publish(void *record, __u32 size)
{
	store_last((word *)record - 1, size);
}

static __always_inline bool send_keeping(const void *record, __u32 size, __u64 kept, __u64 *lost)
{
	word *to = reserve(size, kept, lost);

	if (!to)
		return false;
#pragma unroll
	for (__u32 place = 0; place < size / sizeof(word); place++)
		to[place] = ((const word *)record)[place];
	publish(to, size);
	return true;
}

/* Sends a record of any size up to CHUNK_SLACK_BYTES less its length. */
static __always_inline bool send_long(const void *record, __u32 size, __u64 *lost)
{
	void *to = reserve(size, settings.kept_bytes, lost);

	if (!to)
		return false;
	bpf_probe_read_kernel(to, size, record);
	publish(to, size);
	return true;
}

#endif

/* Sends a record whose SIZE, a multiple of 8, is known when this is compiled. */
static __always_inline bool send(const void *record, __u32 size, __u64 *lost)
{
	return send_keeping(record, size, settings.kept_bytes, lost);
}

/* Likewise a part of what has_room_for_parts() was asked for: it may use what is kept. */
static __always_inline void send_part(const void *record, __u32 size, __u64 *lost)
{
	send_keeping(record, size, 0, lost);
}

#endif
