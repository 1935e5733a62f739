/* SPDX-License-Identifier: GPL-2.0-only */
/* The ring buffer that records leave by, and the memory user space steers the programs with. */
#ifndef JOJ_OUTPUT_BPF_H
#define JOJ_OUTPUT_BPF_H

#define BTRFS_MAGIC 0x9123683e

/* A section of its own: user space finds the struct by the section's name, mapped. */
struct control control SEC(".data.control") = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);	/* user space sets the size it wants before loading */
} records SEC(".maps");

/* User space drains the ring when it chooses to: waking it would disturb what is measured. */
static __always_inline bool send(void *record, __u32 size, __u64 *lost)
{
	if (!bpf_ringbuf_output(&records, record, size, BPF_RB_NO_WAKEUP))
		return true;
	__sync_fetch_and_add(lost, 1);
	return false;
}

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

/* The disk under a filesystem; 0 where it has none of its own (Btrfs) or several. */
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
	__u32 disk = disk_of_filesystem(superblock);

	return disk ? is_traced(disk) : READ(super_block, superblock, s_magic) == BTRFS_MAGIC;
}

#endif
