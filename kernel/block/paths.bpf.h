/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of files: one record when a file is seen first, and one whenever its name, the name of a
 * directory above it, or its number of links has changed since. An unlinked file that is still
 * open keeps its last dentry, and thus its name.
 *
 * The key is (s_dev, inode, generation): ext4 and F2FS use an inode number again at once.
 */
#ifndef JOJ_PATHS_BPF_H
#define JOJ_PATHS_BPF_H

#define DEPTH_LIMIT 32
#define NAME_BYTES 256		/* NAME_MAX and its NUL */

#define S_IFMT 0170000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define S_IFDIR 0040000

struct file_key {
	__u64 inode;
	__u32 filesystem, generation;
};

struct file_name {
	__u64 digest;		/* of the dentries up to the root and their names' hashes */
	__u64 session;
	__u32 links, padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, struct file_name);
} known_names SEC(".maps");

struct path_scratch {
	__u32 busy;
	__u32 zero;		/* always, which the verifier cannot know: see bio_queued */
	struct file_key key;
	struct file_name name;
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

	return alias ? alias - bpf_core_field_offset(struct dentry, d_u.d_alias) : 0;
}

/*
 * The two walks from a dentry up to the root are bpf_loop callbacks: the verifier looks at their
 * body once, and not once for each depth.
 */
struct digest_walk {
	__u64 dentry, digest;
};

static long digest_step(__u32 depth, void *context)
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

static long names_step(__u32 depth, void *context)
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
		bpf_loop(DEPTH_LIMIT, names_step, &walk, 0);
	if (dentry && !walk.at_root)
		record->flags |= PATH_TRUNCATED;
	record->names_bytes = walk.length & (PATH_BYTES - 1);
	return send(record, sizeof(*record) + (walk.length & (PATH_BYTES - 1)),
		    &control.lost_paths);
}

/* Whether user space was told this name of the file in this session. */
static __always_inline bool is_known(struct path_scratch *scratch)
{
	struct file_name *known = bpf_map_lookup_elem(&known_names, &scratch->key);
	struct file_name *name = &scratch->name;

	return known && known->session == name->session && known->digest == name->digest &&
	       known->links == name->links;
}

static __always_inline void describe_name(struct path_scratch *scratch, __u64 inode,
					  __u64 dentry)
{
	__u64 superblock = READ(inode, inode, i_sb);
	struct digest_walk walk = { .dentry = dentry };

	if (dentry)
		bpf_loop(DEPTH_LIMIT, digest_step, &walk, 0);
	scratch->key.inode = READ(inode, inode, i_ino);
	scratch->key.filesystem = READ(super_block, superblock, s_dev);
	scratch->key.generation = READ(inode, inode, i_generation);
	scratch->name.digest = walk.digest;
	scratch->name.session = control.session;
	scratch->name.links = READ(inode, inode, i_nlink);
}

/*
 * Sends the name of the file of INODE if user space does not know it yet. A global function: the
 * verifier looks at it once, and not once for each caller. What can be is kept off the stack: all
 * frames from a program down to a callback have 512 bytes together.
 */
__noinline int note_name(__u64 inode, __u64 time_ns)
{
	__u64 dentry = dentry_of(inode);
	struct path_scratch *scratch;
	struct path_record *record;
	__u32 zero = 0;

	scratch = bpf_map_lookup_elem(&path_scratches, &zero);
	/* Busy: we interrupted ourselves. The next sight of the file will send the name. */
	if (!scratch || scratch->busy)
		return 0;
	scratch->busy = 1;
	describe_name(scratch, inode, dentry);
	if (is_known(scratch))
		goto out;
	record = &scratch->record;
	record->kind = RECORD_PATH;
	record->filesystem = scratch->key.filesystem;
	record->time_ns = time_ns;
	record->inode = scratch->key.inode;
	record->generation = scratch->key.generation;
	record->mode = READ(inode, inode, i_mode);
	record->links = scratch->name.links;
	record->flags = dentry ? 0 : PATH_NAMELESS;
	record->size_bytes = READ(inode, inode, i_size);
	record->disk = disk_of_filesystem(READ(inode, inode, i_sb));
	if (send_path(scratch, dentry))
		bpf_map_update_elem(&known_names, &scratch->key, &scratch->name, BPF_ANY);
out:
	scratch->busy = 0;
	return 0;
}

#endif
