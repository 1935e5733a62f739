/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps what user space was told of each file: its name, and its inode's state. Whoever meets an
 * inode compares it with that, and a difference is told: what makes a filesystem commit necessary
 * is known without a look into any filesystem.
 *
 * The key is (s_dev, subvolume, inode, generation): ext4 and F2FS use an inode number again at
 * once, and a snapshot of Btrfs has the numbers and the generations of what it is of.
 */
#ifndef JOJ_FILE_STATE_BPF_H
#define JOJ_FILE_STATE_BPF_H

struct file_key {
	__u64 inode, subvolume;
	__u32 filesystem, generation;
};

struct file_state {
	__u64 session;
	__u64 digest;		/* of the name: of the dentries up to the root */
	__u64 own_digest;	/* of its own dentry alone */
	__u64 renames;		/* control.renames before the digest was made */
	__u64 size_bytes, blocks, modified_ns;
	__u64 told_at;		/* bios queued when changes were told last */
	__u32 told;		/* enum change: which ones */
	__u32 links, mode;
	__u32 named_links;	/* links when the name was told */
	__u32 named, padding;
};

/*
 * Of more files than these the ones that were not met for longest are forgotten. What changed about
 * such a file until it is met again is not told; user space sees by PATH_FIRST that it happened.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct file_key);
	__type(value, struct file_state);
} known_files SEC(".maps");

static __always_inline void describe_key(struct file_key *key, __u64 inode)
{
	__u64 superblock = READ(inode, inode, i_sb);

	key->inode = READ(inode, inode, i_ino);
	key->subvolume = subvolume_of(inode, superblock);
	key->filesystem = READ(super_block, superblock, s_dev);
	key->generation = READ(inode, inode, i_generation);
}

static __always_inline void describe_state(struct file_state *state, __u64 inode)
{
	state->size_bytes = READ(inode, inode, i_size);
	state->blocks = READ(inode, inode, i_blocks);
	state->modified_ns = modification_time(inode);
	state->links = READ(inode, inode, i_nlink);
	state->mode = READ(inode, inode, i_mode);
}

/* What differs between two states of one file: enum change. */
static __always_inline __u32 compare_states(const struct file_state *old,
					    const struct file_state *new)
{
	__u32 changes = 0;

	if (new->size_bytes > old->size_bytes)
		changes |= CHANGE_GREW;
	if (new->size_bytes < old->size_bytes)
		changes |= CHANGE_SHRANK;
	if (new->blocks > old->blocks)
		changes |= CHANGE_ALLOCATED;
	if (new->links != old->links)
		changes |= CHANGE_LINKS;
	if (new->mode != old->mode)
		changes |= CHANGE_MODE;
	if (new->modified_ns != old->modified_ns)
		changes |= CHANGE_TIMES;
	return changes;
}

static __always_inline void send_change(struct change_record *record, const struct file_key *key,
					__u64 inode, __u64 time_ns)
{
	__u64 ids = bpf_get_current_pid_tgid();

	record->kind = RECORD_CHANGE;
	record->time_ns = time_ns ? time_ns : bpf_ktime_get_boot_ns();
	record->inode = key->inode;
	record->generation = key->generation;
	record->filesystem = key->filesystem;
	record->subvolume = key->subvolume;
	record->disk = disk_of_filesystem(READ(inode, inode, i_sb));
	record->pid = ids >> 32;
	record->tid = ids;
	send(record, sizeof(*record), &control.lost_changes);
}

/*
 * Brings STATE up to date and tells what changed, and FORCED; says if it did. A change that was
 * told already since the last bio is not told again: user space has it, and no commit can have
 * taken it.
 */
static __always_inline bool note_changes(struct file_state *state, struct file_state *now,
					 struct change_record *record, const struct file_key *key,
					 __u64 inode, __u64 time_ns, __u32 forced)
{
	__u32 changes;

	describe_state(now, inode);
	changes = compare_states(state, now) | forced;
	if (!changes)
		return false;
	state->size_bytes = now->size_bytes;
	state->blocks = now->blocks;
	state->modified_ns = now->modified_ns;
	state->links = now->links;
	state->mode = now->mode;
	if (state->told_at != control.bios)
		state->told = 0;
	changes &= ~state->told;
	if (!changes)
		return false;
	record->changes = changes;
	send_change(record, key, inode, time_ns);
	state->told |= changes;
	state->told_at = control.bios;
	return true;
}

#endif
