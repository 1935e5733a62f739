/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the disk that a bio or a request is for, its partition, and the filesystem that holds it.
 * Fills in the fields of a bio_record.
 *
 * A bio names its block_device, and a request's queue its disk. Before Linux 5.17 a request names
 * the disk itself; before 5.12 a bio names disk and number of the partition, which is 0 again where
 * we see it (blk_partition_remap()); before 5.11 a partition is a struct hd_struct, which knows no
 * block_device.
 */
#ifndef JOJ_DEVICES_BPF_H
#define JOJ_DEVICES_BPF_H

#ifdef BEFORE_5_17

#define PARTITIONS_LIMIT 256	/* DISK_MAX_PARTS of include/linux/genhd.h */
#define DEVICES_LIMIT 1024

struct bio___of_disk {
	struct gendisk *bi_disk;
} __attribute__((preserve_access_index));

struct request___of_disk {
	struct gendisk *rq_disk;
} __attribute__((preserve_access_index));

struct device {
	__u32 devt;
} __attribute__((preserve_access_index));

struct hd_struct {
	__u64 start_sect, nr_sects;
	struct device __dev;
} __attribute__((preserve_access_index));

struct disk_part_tbl {
	int len;
	struct hd_struct *part[1];
} __attribute__((preserve_access_index));

struct gendisk___partitioned {
	struct disk_part_tbl *part_tbl;
} __attribute__((preserve_access_index));

struct super_block___listed {
	struct list_head s_inodes;
} __attribute__((preserve_access_index));

struct inode___listed {
	struct list_head i_sb_list;
} __attribute__((preserve_access_index));

struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
} __attribute__((preserve_access_index));

struct request_queue;

/* How the tracepoints were before 5.11, the second no more in 5.10.223: with the queue in front. */
typedef void (*btf_trace_block_bio_queue___behind)(void *, struct request_queue *, struct bio *);
typedef void (*btf_trace_block_rq_issue___behind)(void *, struct request_queue *,
						  struct request *);

/*
 * The bio or request of a tracepoint, which may have the queue before it. The queue is named once
 * more, for its structure to be in our BTF: a mere name is like no structure. In assembly, as the
 * compiler would compute one address for both, and the verifier wants a constant.
 */
#define ARGUMENT_OF(tracepoint, arguments)                                                      \
	({                                                                                      \
		void *argument;                                                                 \
		if (bpf_core_type_exists(struct request_queue) &&                               \
		    bpf_core_type_exists(btf_trace_##tracepoint##___behind))                    \
			asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(argument) : "r"(arguments));\
		else                                                                            \
			asm volatile("%0 = *(u64 *)(%1 + 0)" : "=r"(argument) : "r"(arguments));\
		argument;                                                                       \
	})

static __always_inline bool bio_names_device(void)
{
	return bpf_core_field_exists(((struct bio *)0)->bi_bdev);
}

static __always_inline struct gendisk *disk_of_bio(struct bio *bio)
{
	if (bio_names_device())
		return bio->bi_bdev->bd_disk;
	return ((struct bio___of_disk *)bio)->bi_disk;
}

static __always_inline struct gendisk *disk_of_request(struct request *request)
{
	return ((struct request___of_disk *)request)->rq_disk;
}

/* The hd_struct that a sector of a disk is in, but for that of the whole disk; 0: none. */
__noinline __u64 partition_of_sector(__u64 disk, __u64 sector)
{
	__u64 table, place, partition, first, count;

	if (!bpf_core_type_exists(struct hd_struct))
		return 0;
	table = READ(gendisk___partitioned, disk, part_tbl);
	count = READ(disk_part_tbl, table, len);
	place = table + bpf_core_field_offset(struct disk_part_tbl, part);
	for (__u32 number = 1; number < PARTITIONS_LIMIT && number < count; number++) {
		partition = read_memory(place + 8 * number, 8);
		if (!partition)
			continue;
		first = READ(hd_struct, partition, start_sect);
		if (sector >= first && sector - first < READ(hd_struct, partition, nr_sects))
			return partition;
	}
	return 0;
}

/* The block_device of a number, looked for among the inodes of all that there are; 0: none. */
__noinline __u64 device_of_number(__u32 number)
{
	__u64 list, entry, device;

	if (!control.devices)
		return 0;
	list = read_memory(control.devices, 8);
	list += bpf_core_field_offset(struct super_block___listed, s_inodes);
	entry = READ(list_head, list, next);
	for (__u32 count = 0; count < DEVICES_LIMIT; count++) {
		if (!entry || entry == list)
			return 0;
		device = entry - bpf_core_field_offset(struct inode___listed, i_sb_list) -
			 bpf_core_field_offset(struct bdev_inode, vfs_inode);
		if (READ(block_device, device, bd_dev) == number)
			return device;
		entry = READ(list_head, entry, next);
	}
	return 0;
}

static __always_inline void describe_partition(struct bio_record *record, struct bio *bio)
{
	__u64 partition = 0;

	if (bio_names_device()) {
		record->partition_sector = bio->bi_bdev->bd_start_sect;
		record->partition_device = bio->bi_bdev->bd_dev;
		return;
	}
	record->partition_device = record->device;
	/* A flush alone has no sector: nothing tells its partition any more. */
	if (record->length_bytes)
		partition = partition_of_sector(READ(bio___of_disk, bio, bi_disk),
						record->sector);
	if (partition) {
		record->partition_sector = READ(hd_struct, partition, start_sect);
		record->partition_device = READ(hd_struct, partition, __dev.devt);
	}
}

/* The verifier takes it for a number. */
static __always_inline struct block_device *device_of_bio(const struct bio_record *record,
							  struct bio *bio)
{
	if (bio_names_device())
		return (void *)READ(bio, bio, bi_bdev);
	return (void *)device_of_number(record->partition_device);
}

#define HOLDER_OF(device) ((device) ? READ(block_device, device, bd_holder) : 0)

#else

static __always_inline struct gendisk *disk_of_bio(struct bio *bio)
{
	return UNTRUSTED(bio, bio)->bi_bdev->bd_disk;
}

static __always_inline struct gendisk *disk_of_request(struct request *request)
{
	return UNTRUSTED(request, request)->q->disk;
}

static __always_inline void describe_partition(struct bio_record *record, struct bio *bio)
{
	struct block_device *device = UNTRUSTED(bio, bio)->bi_bdev;

	record->partition_sector = device->bd_start_sect;
	record->partition_device = device->bd_dev;
}

static __always_inline struct block_device *device_of_bio(const struct bio_record *record,
							  struct bio *bio)
{
	return UNTRUSTED(bio, bio)->bi_bdev;
}

#define HOLDER_OF(device) ((__u64)(device)->bd_holder)

#endif

/*
 * The type of the filesystem that holds a device: the holder is its file_system_type (6.1) or its
 * super_block (6.18).
 */
static __always_inline void describe_holder(struct bio_record *record,
					    struct block_device *device)
{
	__u64 holder = HOLDER_OF(device), name;

	if (!holder)
		return;
	if (READ(super_block, holder, s_bdev) == (__u64)device)
		holder = READ(super_block, holder, s_type);
	name = READ(file_system_type, holder, name);
	if (name)
		READ_WORDS(record->holder, 8, name);
}

#endif
