/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that come while the program for them is at work on the same CPU: an interrupt completes a
 * request within the completion of another; or the program's task loses the CPU in the middle of a
 * tracepoint, as under Linux 7.3 (tracepoint_srcu, include/linux/tracepoint.h), and others run
 * there until it has it back. The kernel does not run a program within itself, and counts that
 * (recursion_misses). So there are further programs, attached after the first: each takes what all
 * before it were skipped for, which did not note it. What is left to be lost comes while all are at
 * work.
 */
#ifndef JOJ_FURTHER_PROGRAMS_BPF_H
#define JOJ_FURTHER_PROGRAMS_BPF_H

enum event {
	EVENT_BIO_QUEUED,
	EVENT_REQUEST_ISSUED,
	EVENT_REQUEST_COMPLETED,
	EVENT_BIO_ENDED,
	EVENTS,
};

#define THREADS_KNOWN 256	/* a power of two */

/*
 * The bio or request that a program has taken, by the last bits of the number of its thread; by
 * none where a thread keeps its CPU in a tracepoint.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENTS * PROGRAMS_OF_EVENT * THREADS_KNOWN);
	__type(key, __u32);
	__type(value, __u64);
} taken_objects SEC(".maps");

static __always_inline volatile __u64 *taken_by(__u32 event, __u32 place)
{
	__u32 key = (event * PROGRAMS_OF_EVENT + place) * THREADS_KNOWN;

	if (settings.last_place != 1)
		key += bpf_get_current_pid_tgid() & (THREADS_KNOWN - 1);
	return bpf_map_lookup_elem(&taken_objects, &key);
}

/*
 * Whether the program at PLACE among those for an event, the first at 0, takes the one of OBJECT.
 * The last program forgets who did: OBJECT will have such an event again.
 */
static __always_inline bool takes(__u32 event, __u32 place, const void *object)
{
	__u64 address = (__u64)object;
	volatile __u64 *taken;

	/* Nothing takes the CPU away in these. */
	if (event < EVENT_REQUEST_COMPLETED && settings.last_place == 1)
		return true;
#pragma unroll
	for (__u32 before = 0; before < place; before++) {
		taken = taken_by(event, before);
		if (!taken || *taken != address)
			continue;
		if (place == settings.last_place)
			*taken = 0;
		return false;
	}
	if (place)
		__sync_fetch_and_add(&control.caught_runs, 1);
	taken = taken_by(event, place);
	if (taken && place != settings.last_place)
		*taken = address;
	return true;
}

#endif
