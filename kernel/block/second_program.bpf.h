/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that come while the program for them is at work on the same CPU: an interrupt completes a
 * request within the completion of another. The kernel does not run a program within itself, and
 * counts that (recursion_misses). A second program, attached after the first, takes them: it has
 * nothing to do unless the first is busy, which was then skipped for this event. What is left to be
 * lost is what comes before the first has said that it is busy.
 */
#ifndef JOJ_SECOND_PROGRAM_BPF_H
#define JOJ_SECOND_PROGRAM_BPF_H

enum event {
	EVENT_REQUEST_COMPLETED,
	EVENT_BIO_ENDED,
	EVENTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENTS);
	__type(key, __u32);
	__type(value, __u32);
} busy_programs SEC(".maps");

/* Where the first program for an event says that it is busy. */
static __always_inline volatile __u32 *busy_mark(__u32 event)
{
	return bpf_map_lookup_elem(&busy_programs, &event);
}

/* For the second: the first was skipped, and this event is ours. */
static __always_inline bool takes_over(__u32 event)
{
	volatile __u32 *busy = busy_mark(event);

	if (!busy || !*busy)
		return false;
	__sync_fetch_and_add(&control.caught_runs, 1);
	return true;
}

#endif
