/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring of ring.bpf.h on kernels whose atomic operations return nothing, so that no place can be
 * claimed: the kernel's own ring buffer (Linux 5.8), which user space reads by
 * agent/src/bpf/kernel_ring.rs. It costs more, and keeps one order of all processors too.
 */
#ifndef JOJ_RING_BEFORE_5_17_BPF_H
#define JOJ_RING_BEFORE_5_17_BPF_H

#define CHUNK_BITS 16

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << CHUNK_BITS);	/* user space sets another */
} records SEC(".maps");

/* Room for SIZE bytes, and KEPT more. */
static __always_inline bool has_room(__u32 size, __u64 kept)
{
	return bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) + size + kept <=
	       (__u64)settings.ring_chunks << CHUNK_BITS;
}

/* A record of several parts may begin. */
static __always_inline bool has_room_for_parts(void)
{
	return has_room(0, settings.kept_bytes);
}

/*
 * Room for a record of SIZE bytes, a constant, with KEPT more left; it must be published. Counts in
 * LOST that there is none.
 */
static __always_inline void *reserve(__u32 size, __u64 kept, __u64 *lost)
{
	void *record = NULL;

	if (has_room(BPF_RINGBUF_HDR_SZ + size, kept))
		record = bpf_ringbuf_reserve(&records, size, 0);
	if (!record)
		__sync_fetch_and_add(lost, 1);
	return record;
}

/* The record is whole: user space may have it. Nobody sleeps until one comes. */
static __always_inline void publish(void *record, __u32 size)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline bool send_keeping(const void *record, __u32 size, __u64 kept, __u64 *lost)
{
	if (has_room(BPF_RINGBUF_HDR_SZ + size, kept) &&
	    !bpf_ringbuf_output(&records, (void *)record, size, BPF_RB_NO_WAKEUP))
		return true;
	__sync_fetch_and_add(lost, 1);
	return false;
}

/* Sends a record of any size up to that of the longest. */
static __always_inline bool send_long(const void *record, __u32 size, __u64 *lost)
{
	return send_keeping(record, size, settings.kept_bytes, lost);
}

#endif
