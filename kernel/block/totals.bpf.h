/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bio that is being looked at, and the sums of those that get no record: because the ring has
 * no room, or nobody wants records. Reads a struct walk; adds up in two maps what user space reads
 * at the end (agent/src/tracer/assembly/totals.rs).
 */
#ifndef JOJ_TOTALS_BPF_H
#define JOJ_TOTALS_BPF_H

#define F2FS_MAGIC 0xf2f52010
#define F2FS_META_INODE 2	/* F2FS_META_INO() */
#define EXT4LAZY 0x797a616c34747865ULL	/* the begin of "ext4lazyinit", as a word */
#define OWN_INODES 16		/* numbers up to this are a filesystem's own to the rules */

/*
 * A bio on its way to user space: its record, the run that is open or was the last, which is sent
 * with it, and where the walk over its pages is. Per CPU and in a map: a program and all it calls
 * have 512 bytes of stack. What is in a map the verifier takes for unknown, and rightly here: that
 * of 6.1 follows a callback of bpf_loop through its first call only, and removes as dead what only
 * later calls would reach.
 */
struct walk {
	struct bio_record bio;
	struct run_record run;
	__u64 vectors;
	__u32 index, done_bytes, left_bytes, offset_bytes;
	__u64 fallback_inode;	/* file of pages without one: see fallback_flag */
	__u32 fallback_flag;	/* RUN_FROM_CALL or RUN_COMPRESSED */
	__u32 busy;
	__u64 mapping, host;	/* of the open run */
	bool is_plain;		/* of its pages it is enough to know the inode: look_inside() */
	bool open, ownerless;
	bool counted;		/* in the totals, without records */
	struct total_key key;
	struct total none;	/* zeros */
	__u64 call_offset;	/* of its pread64 or pwrite64: calls_have_place() */
	__u64 call_bytes;	/* 0 where it is in another call */
#ifdef BEFORE_5_17
	__u64 serials;
	__u64 registers[REGISTERS_WORDS];/* a copy of the pt_regs of the submitter */
#endif
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROGRAMS_OF_EVENT);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* The number of a bio: one that no other has, and the greater the later, on one processor. */
static __always_inline __u64 next_serial(struct walk *walk)
{
#ifdef BEFORE_5_17
	__sync_fetch_and_add(&control.bios, 1);
	return ++walk->serials << 16 | (bpf_get_smp_processor_id() & 0xffff);
#else
	return __sync_fetch_and_add(&control.bios, 1);
#endif
}

#define TOTALS_LIMIT 8192
#define FURTHER_LIMIT 1024

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TOTALS_LIMIT);
	__type(key, struct total_key);
	__type(value, struct total);
} totals SEC(".maps");

/* Where those go that found the other full: without the number of the file. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FURTHER_LIMIT);
	__type(key, struct total_key);
	__type(value, struct total);
} further_totals SEC(".maps");

static __always_inline struct total *total_of(void *map, struct walk *walk)
{
	struct total *total = bpf_map_lookup_elem(map, &walk->key);

	if (total)
		return total;
	bpf_map_update_elem(map, &walk->key, &walk->none, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, &walk->key);
}

static __always_inline void describe_total(struct total_key *key, const struct bio_record *bio)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->end_io = bio->end_io;
	key->buffer_end_io = bio->buffer_end_io;
	key->device = bio->device;
	key->partition_device = bio->partition_device;
	key->operation = bio->flags & REQ_OP_MASK;
	key->journal_block_type = bio->journal_block_type;
	key->kernel_thread = bio->kernel_thread;
	__builtin_memcpy(key->holder, bio->holder, sizeof(key->holder));
	if (bio->kernel_thread && *(const __u64 *)bio->comm == EXT4LAZY)
		__builtin_memcpy(key->comm, bio->comm, sizeof(key->comm));
}

/* Counts the open run of a bio; one without bytes has none. */
static __noinline void count_run(struct walk *walk)
{
	const struct run_record *run = &walk->run;
	struct total_key *key = &walk->key;
	struct total *total;

	describe_total(key, &walk->bio);
	key->run_flags = run->flags;
	key->operations = run->operations;
	key->inode = run->inode;
	key->magic = run->magic;
	key->filesystem = run->filesystem;
	key->generation = run->generation;
	key->subvolume = run->subvolume;
	key->mode = run->mode;
	if (run->magic == BTRFS_MAGIC)
		key->detail = run->detail;
	else if (run->magic == F2FS_MAGIC && run->inode == F2FS_META_INODE)
		key->detail = run->file_offset_bytes >> F2FS_AREA_BITS;
	total = total_of(&totals, walk);
	if (!total) {
		if (key->inode > OWN_INODES) {
			key->inode = ANY_FILE;
			key->generation = 0;
			key->subvolume = 0;
		}
		total = total_of(&further_totals, walk);
	}
	if (!total) {
		__sync_fetch_and_add(&control.lost_totals, 1);
		return;
	}
	__sync_fetch_and_add(&total->runs, 1);
	__sync_fetch_and_add(&total->bytes, run->length_bytes);
}

#endif
