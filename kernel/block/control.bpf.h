/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory that user space steers the programs with, and which disks it says are traced. */
#ifndef JOJ_CONTROL_BPF_H
#define JOJ_CONTROL_BPF_H

#define UBIFS_MAGIC 0x24051905

/* A section of its own: user space finds the struct by the section's name, mapped. */
struct control control SEC(".data.control") = {};

#define PROGRAMS_OF_EVENT 3	/* further_programs.bpf.h */

static __always_inline __u32 disk_number(struct gendisk *disk)
{
	return (__u32)disk->major << 20 | (__u32)disk->first_minor;
}

static __always_inline bool is_traced(__u32 device)
{
	if (device == control.disks[0])
		return true;
	for (int place = 1; place < DISKS_LIMIT && control.disks[place]; place++)
		if (device == control.disks[place])
			return true;
	return false;
}

/* The disk under a filesystem; 0 where it has none of its own (Btrfs, UBIFS) or several. */
static __always_inline __u32 disk_of_filesystem(__u64 superblock)
{
	__u64 device = READ(super_block, superblock, s_bdev), disk;

	if (!device)
		return 0;
	disk = READ(block_device, device, bd_disk);
	return READ(gendisk, disk, major) << 20 | READ(gendisk, disk, first_minor);
}

/*
 * Whether what happens on a filesystem can be of interest. User space knows which of those without
 * a disk of their own are on one that is traced.
 */
static __always_inline bool may_be_traced(__u64 superblock)
{
	__u32 disk = disk_of_filesystem(superblock), magic;

	if (disk)
		return is_traced(disk);
	magic = READ(super_block, superblock, s_magic);
	return magic == BTRFS_MAGIC || magic == UBIFS_MAGIC;
}

#endif
