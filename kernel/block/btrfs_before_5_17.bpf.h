/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers what btrfs.bpf.h does, before Linux 5.17. There every bio of Btrfs ends by
 * btrfs_end_bio(), and knows a struct btrfs_bio (fs/btrfs/volumes.h; a btrfs_io_context in 5.16)
 * that is about all of its copies: that one has the function and the memory the bio had before.
 *
 * Modules have no BTF before 5.11, so offsets are those of 5.10's source, where none depends on how
 * the kernel is configured. Each is checked by what lies there: a function that we know, a file of
 * Btrfs.
 */
#ifndef JOJ_BTRFS_BEFORE_5_17_BPF_H
#define JOJ_BTRFS_BEFORE_5_17_BPF_H

/* struct btrfs_bio: end_io, orig_bio, private. */
#define ALL_COPIES_END_IO 24
#define ALL_COPIES_BIO 32
#define ALL_COPIES_PRIVATE 40

#define COMPRESSED_INODE 16	/* struct compressed_bio of fs/btrfs/compression.h */
#define DIRECT_INODE 0		/* struct btrfs_dio_private of fs/btrfs/inode.c */
#define DIRECT_OFFSET 8
#define DIRECT_BYTES 24
#define DIRECT_BIO 40
#define BIO_OFFSET -104		/* struct btrfs_io_bio: logical, before the bio that ends it */

static __always_inline __u64 btrfs_whole(__u64 bio, __u64 end_io)
{
	if (!control.btrfs_stripe_end_io || end_io != control.btrfs_stripe_end_io)
		return 0;
	return READ(bio, bio, bi_private);
}

/* The iomap_dio of the bio that direct I/O was before Btrfs made bios of its own of it. */
static __always_inline __u64 btrfs_dio(__u64 whole)
{
	__u64 bio = read_memory(read_memory(whole + ALL_COPIES_PRIVATE, 8) + DIRECT_BIO, 8);

	if (!bio || (__u64)READ(bio, bio, bi_end_io) != control.direct_end_io)
		return 0;
	return READ(bio, bio, bi_private);
}

static __always_inline __u64 btrfs_end(__u64 whole)
{
	return read_memory(whole + ALL_COPIES_END_IO, 8);
}

/* The file of which the memory behind a bio has the inode at an offset; 0 where that is none. */
static __always_inline __u64 btrfs_owner_at(__u64 whole, __u32 offset)
{
	__u64 private = read_memory(whole + ALL_COPIES_PRIVATE, 8);
	__u64 inode = private ? read_memory(private + offset, 8) : 0;
	__u64 superblock = inode ? READ(inode, inode, i_sb) : 0;

	return superblock && READ(super_block, superblock, s_magic) == BTRFS_MAGIC ? inode : 0;
}

static __always_inline __u64 btrfs_packed_owner(__u64 whole)
{
	__u64 end_io = btrfs_end(whole);

	if (!end_io)
		return 0;
	if (end_io != control.btrfs_packed_write && end_io != control.btrfs_packed_read)
		return 0;
	return btrfs_owner_at(whole, COMPRESSED_INODE);
}

/* A bio says where in the file it begins, and its private memory which part of that is written. */
static __always_inline void describe_btrfs_direct(struct walk *walk, __u64 whole)
{
	__u64 private = read_memory(whole + ALL_COPIES_PRIVATE, 8);
	__u64 begin = read_memory(private + DIRECT_OFFSET, 8);
	__u64 offset = read_memory(read_memory(whole + ALL_COPIES_BIO, 8) + BIO_OFFSET, 8);

	describe_whole(walk, btrfs_owner_at(whole, DIRECT_INODE), RUN_DIRECT);
	if (offset < begin || offset - begin >= read_memory(private + DIRECT_BYTES, 8))
		return;
	walk->run.flags |= RUN_OFFSET;
	walk->run.file_offset_bytes = offset;
}

#endif
