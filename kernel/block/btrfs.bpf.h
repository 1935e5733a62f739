/* SPDX-License-Identifier: GPL-2.0-only */
/* Compressed extents of Btrfs: their pages are Btrfs' own, and the bio tells the file. */
#ifndef JOJ_BTRFS_BPF_H
#define JOJ_BTRFS_BPF_H

/*
 * The file whose compressed extent a bio carries; 0 where it is no such bio. Btrfs may be a module
 * that is not loaded: then its types are not there.
 */
static __always_inline __u64 btrfs_owner(__u64 bio, __u64 end_io)
{
	__u64 whole, inode;

	if (!bpf_core_type_exists(struct btrfs_bio) || !control.btrfs_simple_end_io)
		return 0;
	if (end_io == control.btrfs_copy_end_io) {
		/* Of several copies (DUP, RAID1) all but one are clones that know the original. */
		__u64 context = READ(btrfs_io_stripe, READ(bio, bio, bi_private), bioc);

		bio = READ(btrfs_io_context, context, orig_bio);
	} else if (end_io != control.btrfs_simple_end_io && end_io != control.btrfs_first_end_io) {
		return 0;
	}
	whole = bio - bpf_core_field_offset(struct btrfs_bio, bio);
	if (bpf_core_field_exists(((struct btrfs_bio___owned *)0)->inode)) {
		inode = READ(btrfs_bio___owned, whole, inode);
		return inode ? inode + bpf_core_field_offset(struct btrfs_inode, vfs_inode) : 0;
	}
	end_io = READ(btrfs_bio, whole, end_io);
	if (!end_io)
		return 0;
	if (end_io != control.btrfs_packed_write && end_io != control.btrfs_packed_read)
		return 0;
	return READ(compressed_bio___owned, READ(btrfs_bio, whole, private), inode);
}

#endif
