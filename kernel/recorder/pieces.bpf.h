/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pieces of memory that belong to a call: strings and structures of the program, read where they
 * are in memory by now, and directories as the names up to the root. Every function gives a
 * PIECE_*; a page that is not there is read again when the call ends, which brought it in.
 */
#ifndef JOJ_PIECES_BPF_H
#define JOJ_PIECES_BPF_H

#define DEPTH_LIMIT 128		/* directories and mounts above a directory */
#define NAME_BYTES 256		/* NAME_MAX and its NUL */
#define AT_FDCWD -100

enum piece_result {
	PIECE_TOLD,
	PIECE_ABSOLUTE,		/* a path that needs no directory */
	PIECE_UNREAD,
	PIECE_LOST,
};

struct piece_scratch {
	struct piece_record head;
	char bytes[PIECE_BYTES + NAME_BYTES];
	__u32 zero;		/* always, which the verifier cannot know */
	__u32 told;		/* pieces since this was set to 0 */
	__u32 busy;		/* a program is at work on this CPU: see begin_work() */
	__u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct piece_scratch);
} piece_scratches SEC(".maps");

/* Pieces that found no room; their calls count. */
__u64 lost_pieces SEC(".data.pieces") = 0;

static __always_inline struct piece_scratch *begin_piece(__u64 address, __u32 tid)
{
	__u32 zero = 0;
	struct piece_scratch *scratch = bpf_map_lookup_elem(&piece_scratches, &zero);

	if (scratch) {
		scratch->head.kind = RECORD_PIECE;
		scratch->head.tid = tid;
		scratch->head.address = address;
	}
	return scratch;
}

/*
 * A program that sends pieces begins its work; false where another one was interrupted by it on
 * this CPU, as can be where programs of tracepoints may be preempted. What it tells is lost then.
 */
static __always_inline bool begin_work(void)
{
	__u32 zero = 0;
	struct piece_scratch *scratch = bpf_map_lookup_elem(&piece_scratches, &zero);

	if (!scratch || scratch->busy)
		return false;
	scratch->busy = 1;
	return true;
}

static __always_inline void end_work(void)
{
	__u32 zero = 0;
	struct piece_scratch *scratch = bpf_map_lookup_elem(&piece_scratches, &zero);

	if (scratch)
		scratch->busy = 0;
}

/* Counts pieces; NULL only where the kernel has no memory of its own. */
static __always_inline __u32 *count_pieces(void)
{
	__u32 zero = 0;
	struct piece_scratch *scratch = bpf_map_lookup_elem(&piece_scratches, &zero);

	return scratch ? &scratch->told : NULL;
}

static __always_inline int send_piece(struct piece_scratch *scratch, __u64 size)
{
	/* Else the compiler may join this test with one of the caller's, on a copy of the size. */
	barrier_var(size);
	if (size > PIECE_BYTES)
		return PIECE_UNREAD;
	if (!send_long(scratch, sizeof(scratch->head) + size, &lost_pieces))
		return PIECE_LOST;
	scratch->told++;
	return PIECE_TOLD;
}

/* The string at ADDRESS of the program, with its NUL. */
__noinline int tell_string(__u64 address, __u32 tid)
{
	struct piece_scratch *scratch = begin_piece(address, tid);
	long size;
	int result;

	if (!scratch)
		return PIECE_LOST;
	/* Longer ones than PATH_MAX the kernel refuses as well. */
	size = bpf_probe_read_user_str(scratch->bytes, PIECE_BYTES + 8, (void *)address);
	if (size < 0)
		return PIECE_UNREAD;
	/* Older kernels, such as 6.1, do not count the NUL of an empty one (mm/maccess.c). */
	if (!size) {
		scratch->bytes[0] = 0;
		size = 1;
	}
	result = send_piece(scratch, size);
	return result == PIECE_TOLD && scratch->bytes[0] == '/' ? PIECE_ABSOLUTE : result;
}

/* A string of the kernel's, in the place of one at ADDRESS. */
__noinline int tell_kernel_string(__u64 address, __u64 string, __u32 tid)
{
	struct piece_scratch *scratch = begin_piece(address, tid);
	long size;

	if (!scratch)
		return PIECE_LOST;
	size = bpf_probe_read_kernel_str(scratch->bytes, PIECE_BYTES, (void *)string);
	return size <= 0 ? PIECE_UNREAD : send_piece(scratch, size);
}

/* SIZE bytes at ADDRESS of the program. */
__noinline int tell_bytes(__u64 address, __u32 size, __u32 tid)
{
	struct piece_scratch *scratch = begin_piece(address, tid);

	if (!scratch)
		return PIECE_LOST;
	if (size > PIECE_BYTES)
		return PIECE_UNREAD;
	if (bpf_probe_read_user(scratch->bytes, size, (void *)address))
		return PIECE_UNREAD;
	return send_piece(scratch, size);
}

struct directory_walk {
	__u64 dentry, mount, root_dentry, root_mount;
	struct piece_scratch *scratch;
	__u32 length;
	bool at_root;
};

STEP directory_step(__u32 depth, void *context)
{
	struct directory_walk *walk = context;
	__u64 parent = READ(dentry, walk->dentry, d_parent), above, mount;
	__u32 length = walk->length;
	long size;

	if (walk->dentry == walk->root_dentry && walk->mount == walk->root_mount) {
		walk->at_root = true;
		return 1;
	}
	if (walk->dentry == READ(vfsmount, walk->mount, mnt_root) || parent == walk->dentry) {
		mount = walk->mount - bpf_core_field_offset(struct mount, mnt);
		above = READ(mount, mount, mnt_parent);
		if (!above || above == mount) {
			walk->at_root = true;
			return 1;
		}
		walk->dentry = READ(mount, mount, mnt_mountpoint);
		walk->mount = above + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	if (!parent || length > PIECE_BYTES - NAME_BYTES)
		return 1;
	/* Else the compiler leaves the mask out, and the verifier of 5.10 does not see why. */
	barrier_var(length);
	size = bpf_probe_read_kernel_str(&walk->scratch->bytes[length & (PIECE_BYTES - 1)],
					 NAME_BYTES,
					 (void *)READ(dentry, walk->dentry, d_name.name));
	if (size > 0)
		walk->length += size;
	walk->dentry = parent;
	return 0;
}

#ifdef BEFORE_5_17
/* A walk between two steps. */
struct walk_state {
	__u64 dentry, mount, root_dentry, root_mount;
	__u32 length;
	__u32 at_root;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk_state);
} walk_states SEC(".maps");

/* A step, which the verifier looks at once: a global function, which takes no pointers. */
__noinline int directory_step_alone(__u32 depth)
{
	__u32 zero = 0;
	struct walk_state *state = bpf_map_lookup_elem(&walk_states, &zero);
	struct directory_walk walk = {};
	long is_over;

	walk.scratch = bpf_map_lookup_elem(&piece_scratches, &zero);
	if (!state || !walk.scratch)
		return 1;
	walk.dentry = state->dentry;
	walk.mount = state->mount;
	walk.root_dentry = state->root_dentry;
	walk.root_mount = state->root_mount;
	walk.length = state->length;
	is_over = directory_step(depth, &walk);
	state->dentry = walk.dentry;
	state->mount = walk.mount;
	state->length = walk.length;
	state->at_root = walk.at_root;
	return is_over;
}

static __always_inline void walk_up(struct directory_walk *walk)
{
	__u32 zero = 0;
	struct walk_state *state = bpf_map_lookup_elem(&walk_states, &zero);

	if (!state)
		return;
	state->dentry = walk->dentry;
	state->mount = walk->mount;
	state->root_dentry = walk->root_dentry;
	state->root_mount = walk->root_mount;
	state->length = 0;
	state->at_root = 0;
	for (__u32 depth = 0; depth < DEPTH_LIMIT; depth++)
		if (directory_step_alone(depth))
			break;
	walk->length = state->length;
	walk->at_root = state->at_root;
}
#else
#define walk_up(walk) bpf_loop(DEPTH_LIMIT, directory_step, walk, 0)
#endif

/* The names from a dentry up to the root of the thread. */
__noinline int tell_path(__u64 place, __u64 dentry, __u64 mount, __u32 tid)
{
	__u64 fs = (__u64)POINTER_OF_TASK(current_task(), fs);
	struct piece_scratch *scratch = begin_piece(place, tid);

	if (!scratch)
		return PIECE_LOST;
	if (!dentry || !fs)
		return PIECE_UNREAD;
	struct directory_walk walk = {
		.dentry = dentry,
		.mount = mount,
		.root_dentry = READ(fs_struct, fs, root.dentry),
		.root_mount = READ(fs_struct, fs, root.mnt),
		.scratch = scratch,
		.length = scratch->zero,
		.at_root = scratch->zero,
	};
	walk_up(&walk);
	/* What is deeper has no absolute path there. */
	if (!walk.at_root)
		return PIECE_UNREAD;
	return send_piece(scratch, walk.length & (PIECE_BYTES - 1));
}

/* The directory of a descriptor, or the current one. */
__noinline int tell_directory(__u64 place, int descriptor, __u32 tid)
{
	__u64 fs = (__u64)POINTER_OF_TASK(current_task(), fs), file;

	if (descriptor == AT_FDCWD)
		return tell_path(place, READ(fs_struct, fs, pwd.dentry),
				 READ(fs_struct, fs, pwd.mnt), tid);
	file = descriptor < 0 ? 0 : file_of_descriptor(descriptor);
	if (!file)
		return PIECE_UNREAD;
	return tell_path(place, READ(file, file, f_path.dentry), READ(file, file, f_path.mnt),
			 tid);
}

#endif
