/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of files: one record when a file is seen first, and one whenever its name, the name of a
 * directory above it, or its number of links has changed since. An unlinked file that is still
 * open keeps its last dentry, and thus its name.
 */
#ifndef JOJ_PATHS_BPF_H
#define JOJ_PATHS_BPF_H

#define DEPTH_LIMIT 32
#define NAME_BYTES 256		/* NAME_MAX and its NUL */

#define S_IFMT 0170000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define S_IFLNK 0120000

struct path_scratch {
	__u32 busy;
	__u32 zero;		/* always, which the verifier cannot know: see bio_queued */
	struct file_key key;
	struct file_state now;
	struct change_record change;
	struct path_record record;
	char names[PATH_BYTES + NAME_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct path_scratch);
} path_scratches SEC(".maps");

static __always_inline __u64 dentry_of(__u64 inode)
{
	__u64 alias = READ(inode, inode, i_dentry.first);

	return alias ? alias - alias_in_dentry() : 0;
}

/* Changes whenever the file itself gets another name or directory. */
static __always_inline __u64 digest_of_dentry(__u64 dentry)
{
	if (!dentry)
		return 0;
	return (dentry * 31 + READ(dentry, dentry, d_parent)) * 31 +
	       READ(dentry, dentry, d_name.hash_len);
}

/*
 * The two walks from a dentry up to the root are bpf_loop callbacks: the verifier looks at their
 * body once, and not once for each depth.
 */
struct digest_walk {
	__u64 dentry, digest;
};

STEP digest_step(__u32 depth, void *context)
{
	struct digest_walk *walk = context;
	__u64 parent = READ(dentry, walk->dentry, d_parent);

	if (parent == walk->dentry || !parent)
		return 1;
	walk->digest = walk->digest * 31 + walk->dentry;
	walk->digest = walk->digest * 31 + READ(dentry, walk->dentry, d_name.hash_len);
	walk->dentry = parent;
	return 0;
}

struct names_walk {
	__u64 dentry;
	struct path_scratch *scratch;
	__u32 length;
	bool at_root;
};

STEP names_step(__u32 depth, void *context)
{
	struct names_walk *walk = context;
	__u64 parent = READ(dentry, walk->dentry, d_parent);
	__u32 length = walk->length;
	long size;

	if (parent == walk->dentry || !parent) {
		walk->at_root = true;
		return 1;
	}
	if (length > PATH_BYTES - NAME_BYTES)
		return 1;
	size = bpf_probe_read_kernel_str(&walk->scratch->names[length & (PATH_BYTES - 1)],
					 NAME_BYTES,
					 (void *)READ(dentry, walk->dentry, d_name.name));
	if (size > 0)
		walk->length += size;
	walk->dentry = parent;
	return 0;
}

static __always_inline bool send_path(struct path_scratch *scratch, __u64 dentry)
{
	struct path_record *record = &scratch->record;
	struct names_walk walk = {
		.dentry = dentry,
		.scratch = scratch,
		.length = scratch->zero,
		.at_root = scratch->zero,
	};

	if (dentry)
		REPEAT(DEPTH_LIMIT, names_step, &walk);
	if (dentry && !walk.at_root)
		record->flags |= PATH_TRUNCATED;
	record->names_bytes = walk.length & (PATH_BYTES - 1);
	return send_long(record, sizeof(*record) + (walk.length & (PATH_BYTES - 1)),
			 &control.lost_paths);
}

/* The name of the file, if user space does not know it yet. */
static __always_inline void note_name(struct path_scratch *scratch, struct file_state *state,
				      __u64 inode, __u64 time_ns)
{
	__u64 dentry = dentry_of(inode);
	struct digest_walk walk = { .dentry = dentry };
	struct path_record *record = &scratch->record;
	__u32 links = READ(inode, inode, i_nlink);
	__u64 own_digest = digest_of_dentry(dentry), renames = control.renames;

	/* Names of directories above it change by renames alone, seen when the calls end. */
	if (state->named && state->own_digest == own_digest && state->renames == renames &&
	    state->named_links == links)
		return;
	if (dentry)
		REPEAT(DEPTH_LIMIT, digest_step, &walk);
	if (state->named && state->digest == walk.digest && state->named_links == links) {
		state->own_digest = own_digest;
		state->renames = renames;
		return;
	}
	record->kind = RECORD_PATH;
	record->filesystem = scratch->key.filesystem;
	record->time_ns = time_ns;
	record->inode = scratch->key.inode;
	record->generation = scratch->key.generation;
	record->subvolume = scratch->key.subvolume;
	record->mode = READ(inode, inode, i_mode);
	record->links = links;
	record->flags = (dentry ? 0 : PATH_NAMELESS) | (state->named ? 0 : PATH_FIRST);
	record->size_bytes = READ(inode, inode, i_size);
	record->disk = disk_of_filesystem(READ(inode, inode, i_sb));
	if (!send_path(scratch, dentry))
		return;
	state->named = 1;
	state->digest = walk.digest;
	state->own_digest = own_digest;
	state->renames = renames;
	state->named_links = links;
}

/* What is known of the file in this session; a new entry holds its state of now. */
static __always_inline struct file_state *recall(struct path_scratch *scratch, __u64 inode)
{
	struct file_state *state;

	describe_key(&scratch->key, inode);
	state = bpf_map_lookup_elem(&known_files, &scratch->key);
	if (state && state->session == control.session)
		return state;
	__builtin_memset(&scratch->now, 0, sizeof(scratch->now));
	describe_state(&scratch->now, inode);
	scratch->now.session = control.session;
	bpf_map_update_elem(&known_files, &scratch->key, &scratch->now, BPF_ANY);
	return bpf_map_lookup_elem(&known_files, &scratch->key);
}

#define NOTE_NAME (1U << 31)	/* beside enum change */

/*
 * Tells what user space does not know yet of the file of INODE: how it changed, what is in WHAT,
 * and with NOTE_NAME its name. TIME_NS is 0 for now. A global function: the verifier looks at it
 * once, and not once for each caller. What can be is kept off the stack: all frames from a program
 * down to a callback have 512 bytes together.
 */
__noinline int note_file(__u64 inode, __u64 time_ns, __u32 what)
{
	struct path_scratch *scratch;
	struct file_state *state = NULL;
	__u32 zero = 0, changes = what & ~NOTE_NAME;

	scratch = bpf_map_lookup_elem(&path_scratches, &zero);
	/* Busy: we interrupted ourselves. What differs will still differ at the next sight. */
	if (!scratch || scratch->busy) {
		if (changes)
			__sync_fetch_and_add(&control.lost_changes, 1);
		return 0;
	}
	scratch->busy = 1;
	state = recall(scratch, inode);
	if (state) {
		bool told = false;

		/* An inode that never had a name is the filesystem's own. */
		if (state->digest || dentry_of(inode))
			told = note_changes(state, &scratch->now, &scratch->change, &scratch->key,
					    inode, time_ns, changes);

		if (what & NOTE_NAME || (told && !state->named))
			note_name(scratch, state, inode,
				  time_ns ? time_ns : bpf_ktime_get_boot_ns());
	} else {
		__sync_fetch_and_add(&control.lost_paths, 1);
	}
	scratch->busy = 0;
	return 0;
}

#endif
