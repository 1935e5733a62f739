/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios of Btrfs whose pages do not tell the file: those of compressed extents are Btrfs' own, those
 * of direct I/O a process's. The btrfs_bio around the bio does.
 */
#ifndef JOJ_BTRFS_BPF_H
#define JOJ_BTRFS_BPF_H

#ifdef BEFORE_5_17
#include "btrfs_before_5_17.bpf.h"
#else

/*
 * The btrfs_bio that a bio is in; 0 where it is in none. Btrfs may be a module that is not loaded:
 * then its types are not there.
 */
static __always_inline __u64 btrfs_whole(__u64 bio, __u64 end_io)
{
	if (!bpf_core_type_exists(struct btrfs_bio) || !control.btrfs_simple_end_io)
		return 0;
	if (end_io == control.btrfs_copy_end_io) {
		/* Of several copies (DUP, RAID1) all but one are clones that know the original. */
		__u64 context = READ(btrfs_io_stripe, READ(bio, bio, bi_private), bioc);

		bio = READ(btrfs_io_context, context, orig_bio);
	} else if (end_io != control.btrfs_simple_end_io && end_io != control.btrfs_first_end_io) {
		return 0;
	}
	return bio - bpf_core_field_offset(struct btrfs_bio, bio);
}

/* The file of a btrfs_bio that names it itself; 0 in kernels where none does. */
static __always_inline __u64 btrfs_named_owner(__u64 whole)
{
	__u64 inode;

	if (!bpf_core_field_exists(((struct btrfs_bio___owned *)0)->inode))
		return 0;
	inode = READ(btrfs_bio___owned, whole, inode);
	return inode ? inode + bpf_core_field_offset(struct btrfs_inode, vfs_inode) : 0;
}

/* The file whose compressed extent a btrfs_bio carries, or 0. */
static __always_inline __u64 btrfs_packed_owner(__u64 whole)
{
	__u64 end_io;

	if (bpf_core_field_exists(((struct btrfs_bio___owned *)0)->inode))
		return btrfs_named_owner(whole);
	end_io = READ(btrfs_bio, whole, end_io);
	if (!end_io)
		return 0;
	if (end_io != control.btrfs_packed_write && end_io != control.btrfs_packed_read)
		return 0;
	return READ(compressed_bio___owned, READ(btrfs_bio, whole, private), inode);
}

/* The file of a btrfs_bio that is direct I/O. */
static __always_inline __u64 btrfs_direct_owner(__u64 whole)
{
	if (bpf_core_field_exists(((struct btrfs_bio___owned *)0)->inode))
		return btrfs_named_owner(whole);
	return READ(btrfs_dio_private___owned, READ(btrfs_bio, whole, private), inode);
}

/* The iomap_dio of a btrfs_bio that is direct I/O; 0 where the kernel does not say. */
static __always_inline __u64 btrfs_dio(__u64 whole)
{
	__u64 private = READ(btrfs_bio, whole, private);

	if (bpf_core_field_exists(((struct btrfs_bio___owned *)0)->inode))
		return private;
	if (!bpf_core_field_exists(((struct btrfs_dio_private___owned *)0)->bio))
		return 0;
	return READ(btrfs_dio_private___owned, private, bio.bi_private);
}

static __always_inline __u64 btrfs_end(__u64 whole)
{
	return READ(btrfs_bio, whole, end_io);
}

static __always_inline void describe_btrfs_direct(struct walk *walk, __u64 whole)
{
	describe_whole(walk, btrfs_direct_owner(whole), RUN_DIRECT | RUN_OFFSET);
	walk->run.file_offset_bytes = READ(btrfs_bio, whole, file_offset);
}

#endif

#endif
