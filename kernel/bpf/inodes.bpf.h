/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the file that an inode really is: below an overlay, and in a subvolume of Btrfs. Comes
 * after the structures inode, super_block and dentry of the program that includes it.
 */
#ifndef JOJ_INODES_BPF_H
#define JOJ_INODES_BPF_H

/* include/uapi/linux/magic.h */
#define BTRFS_MAGIC 0x9123683e
#define OVERLAYFS_MAGIC 0x794c7630

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct btrfs_key {
	__u64 objectid;
};

struct btrfs_root {
	struct btrfs_key root_key;
};

struct btrfs_inode {
	struct btrfs_root *root;
	struct inode vfs_inode;
};
#pragma clang attribute pop

/*
 * The inode of the filesystem that has a file's bytes. That of an overlay (a container's root) has
 * none: fsync and what changes the file do it to the file in the upper layer. 0 where that has no
 * such file: one that is only read is in a lower layer, and nobody changes it there.
 *
 * The upper dentry comes right behind the inode within struct ovl_inode (fs/overlayfs/ovl_entry.h),
 * since Linux 4.15 and in 7.x; overlay may be a module that comes later than this program, so that
 * its BTF cannot be asked.
 */
static __always_inline __u64 real_inode(__u64 inode)
{
	__u64 superblock = inode ? READ(inode, inode, i_sb) : 0, upper;

	if (!superblock || READ(super_block, superblock, s_magic) != OVERLAYFS_MAGIC)
		return inode;
	upper = read_memory(inode + bpf_core_type_size(struct inode), 8);
	return upper ? READ(dentry, upper, d_inode) : 0;
}

#ifdef BEFORE_5_17
/*
 * Where modules have no BTF (before 5.11): how far before an inode its struct btrfs_inode begins; 0
 * until one was met. It begins with the root, and then the key of the inode's item, which has the
 * inode's number, the type 1 (BTRFS_INODE_ITEM_KEY) and the offset 0 (fs/btrfs/btrfs_inode.h of
 * 5.10). Both structures of keys are packed.
 */
__u64 inode_in_btrfs SEC(".data.btrfs_inode") = 0;

#define BTRFS_INODE_WORDS 256
#define ROOT_KEY 479		/* in struct btrfs_root: five words and a packed root item of 439 */
#define ROOT_ITEM 132		/* BTRFS_ROOT_ITEM_KEY, the type in that key */

static __always_inline bool begins_btrfs_inode(__u64 address, __u64 number)
{
	return read_memory(address + 8, 8) == number && read_memory(address + 16, 8) == 1 &&
	       read_memory(address + 24, 1) == 0;
}

__noinline __u64 learnt_subvolume(__u64 inode)
{
	__u64 number = READ(inode, inode, i_ino), root;

	for (__u32 word = 4; word < BTRFS_INODE_WORDS && !inode_in_btrfs; word++)
		if (begins_btrfs_inode(inode - 8 * word, number))
			inode_in_btrfs = 8 * word;
	if (!inode_in_btrfs || !begins_btrfs_inode(inode - inode_in_btrfs, number))
		return 0;
	root = read_memory(inode - inode_in_btrfs, 8);
	if (!root || read_memory(root + ROOT_KEY + 8, 1) != ROOT_ITEM)
		return 0;
	return read_memory(root + ROOT_KEY, 8);
}
#endif

/*
 * The number of the tree of Btrfs that an inode is in: all subvolumes have one superblock, and a
 * snapshot has inodes of the same numbers and generations. 0 in other filesystems.
 */
static __always_inline __u64 subvolume_of(__u64 inode, __u64 superblock)
{
	__u64 root;

	if (READ(super_block, superblock, s_magic) != BTRFS_MAGIC)
		return 0;
#ifdef BEFORE_5_17
	if (!bpf_core_type_exists(struct btrfs_inode))
		return learnt_subvolume(inode);
#endif
	/* Btrfs may be a module that came later than this program. */
	if (!bpf_core_type_exists(struct btrfs_inode))
		return 0;
	inode -= bpf_core_field_offset(struct btrfs_inode, vfs_inode);
	root = READ(btrfs_inode, inode, root);
	return root ? READ(btrfs_root, root, root_key.objectid) : 0;
}

#endif
