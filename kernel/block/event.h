/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The attribution program's words to user space: the records of its ring, and the memory through
 * which it is steered. agent/src/tracer/records decodes the same layout, and both sides check the
 * sizes.
 *
 * The program hands over facts (which completion function, whose page cache, which tree), not
 * conclusions: the rules that make a block type of them are in agent/src/tracer/classify, where
 * they can be tested without a kernel. Times are CLOCK_BOOTTIME in ns. Devices are dev_t as the
 * kernel keeps it: major << 20 | minor.
 */
#ifndef JOJ_EVENT_H
#define JOJ_EVENT_H

enum record_kind {
	RECORD_BIO = 1,		/* a bio entered the block layer; its last run is with it */
	RECORD_RUN = 2,		/* a stretch of one bio with one owner; those before the last */
	RECORD_PATH = 3,	/* a file was seen first, or renamed, linked or unlinked */
	RECORD_SYNC_BEGIN = 4,	/* a task entered fsync, or another call that waits */
	RECORD_SYNC_END = 5,	/* and left it */
	RECORD_ISSUE = 6,	/* the driver got a request */
	RECORD_COMPLETE = 7,	/* the device was done with it, or with a part of it */
	RECORD_CHANGE = 8,	/* a file's inode is no longer as it was told before */
	RECORD_NAME = 9,	/* a call changed a name: unlink, rename and their kin */
	RECORD_BIO_END = 10,	/* a bio is done without a request of its disk: a request_record */
	RECORD_RANGE = 11,	/* a range of a discard of several, before its RECORD_ISSUE */
	RECORD_COMMIT = 12,	/* a block of a transaction of jbd2 is sent: a transaction_record */
	RECORD_WAITS = 13,	/* a call waits for a transaction, before its RECORD_COMMIT */
	RECORD_SYNC_WORKER = 14, /* a kernel thread, whose tid it has, begins a queued sync */
};

/* How the call that a task is in treats the device. */
enum call_flag {
	CALL_DIRECT = 1,	/* the file is open with O_DIRECT */
	CALL_DSYNC = 2,		/* O_DSYNC, or RWF_DSYNC of pwritev2 */
	CALL_SYNC_ALL = 4,	/* O_SYNC, RWF_SYNC, or a filesystem mounted with sync */
};

#define NO_CALL 0xffffffffU	/* the submitter is a kernel thread */
#define OF_32_BITS 0x40000000U	/* a call's number is that of 32-bit programs: see abi.bpf.h */

struct bio_record {
	__u32 kind;
	__u32 device;			/* the whole disk */
	__u64 time_ns;
	__u64 serial;			/* counts bios; ties runs to it */
	__u64 sector;			/* on the whole disk */
	__u32 length_bytes;
	__u32 flags;			/* bi_opf: operation and REQ_ flags */
	__u64 end_io;			/* address of bi_end_io */
	__u64 buffer_end_io;		/* address of b_end_io where a buffer_head is behind it */
	__u64 partition_sector;		/* where the partition begins on the disk */
	__u32 partition_device;		/* the disk itself where there is no partition */
	__u8 journal_block_type;	/* h_blocktype of a jbd2 block, or 0 */
	__u8 kernel_thread;
	__u8 has_run;			/* a run_record follows this struct */
	__u8 has_contents;		/* buffer_type is the first bytes of the block itself */
	__u32 pid;
	__u32 tid;
	char comm[16];
	char buffer_type[16];		/* b_ops->name of an XFS buffer */
	__u32 call;			/* system call of the submitter, or NO_CALL */
	__u32 call_flags;		/* enum call_flag */
	char holder[8];			/* filesystem type; not for bios of files' pages */
	__u64 address;			/* of the bio: an identity until it is done */
};

enum run_flag {
	RUN_UNMAPPED = 1,	/* its pages are in no page cache */
	RUN_ANONYMOUS = 2,	/* its pages are a process's memory */
	RUN_DIRECT = 4,		/* inode from the iomap direct I/O it is part of */
	RUN_FROM_CALL = 8,	/* inode from the system call its submitter is in */
	RUN_OFFSET = 16,	/* file_offset_bytes is known */
	RUN_LOG_TREE = 32,	/* an extent buffer of a Btrfs log tree */
	RUN_COMPRESSED = 64,	/* inode from the btrfs_bio: its pages are compressed extents */
	RUN_NODES = 128,	/* NILFS2's cache of an inode's B-tree nodes, by its operations */
};

struct run_record {
	__u32 kind;
	__u32 flags;
	__u64 serial;
	__u32 offset_bytes;		/* in the bio */
	__u32 length_bytes;
	__u64 file_offset_bytes;	/* in the owner, a device's page cache too */
	__u64 inode;			/* 0 where no inode is known */
	__u32 generation;
	__u32 filesystem;		/* s_dev; or the device itself */
	__u32 magic;			/* s_magic */
	__u32 mode;
	__u32 links;
	__u32 content;			/* bytes 8 to 11 of a block in a device's page cache */
	__u64 operations;		/* address of a_ops */
	__u64 size_bytes;
	__u64 detail;			/* F2FS: inode << 32 | node; Btrfs: owner of the tree */
	__u64 subvolume;		/* of the inode: see path_record */
};

#define PATH_BYTES 4096

enum path_flag {
	PATH_NAMELESS = 1,	/* no dentry is left (or there never was one) */
	PATH_TRUNCATED = 2,	/* the names did not fit */
	PATH_FIRST = 4,		/* nothing was known of the file, or not any more */
};

struct path_record {
	__u32 kind;
	__u32 filesystem;
	__u64 time_ns;
	__u64 inode;
	__u32 generation;
	__u32 mode;
	__u32 links;
	__u32 flags;
	__u64 size_bytes;
	__u32 names_bytes;
	__u32 disk;			/* of the filesystem; 0 where it has no single device */
	__u64 subvolume;		/* of Btrfs: its tree's number; 0 elsewhere */
	/* names from the file up to the root's child, each ended by NUL, follow */
};

struct sync_record {
	__u32 kind;
	__u32 call;			/* system call number */
	__u64 time_ns;
	__u64 inode;			/* 0 for sync and msync, which name no file */
	__u32 generation;
	__u32 filesystem;		/* s_dev; 0 where the call is about all of them */
	__u32 disk;			/* 0 where the filesystem has no single device (Btrfs) */
	__u32 pid;
	__u32 tid;
	char comm[16];
	__u32 flags;			/* enum call_flag */
	__u64 request;			/* of io_uring; 0 of a call, one of which a thread is in */
	__u64 subvolume;
};

struct transaction_record {
	__u32 kind;
	__u32 number;			/* tid_t of jbd2 */
	__u64 time_ns;
	__u64 caller;			/* of RECORD_WAITS: the thread; of io_uring the request */
	__u32 device;			/* of RECORD_COMMIT: that the journal is on */
	__u32 padding;
};

/* What is different about an inode since user space was told last. */
enum change {
	CHANGE_CREATED = 1,
	CHANGE_GREW = 2,
	CHANGE_SHRANK = 4,		/* or was truncated to the size it had */
	CHANGE_ALLOCATED = 8,		/* its blocks; XFS keeps them elsewhere */
	CHANGE_LINKS = 16,
	CHANGE_MODE = 32,
	CHANGE_TIMES = 64,
};

struct change_record {
	__u32 kind;
	__u32 changes;			/* enum change */
	__u64 time_ns;
	__u64 inode;
	__u32 generation;
	__u32 filesystem;
	__u32 disk;			/* 0 where the filesystem has no single device */
	__u32 pid;			/* who it was noticed in */
	__u32 tid;
	__u32 padding;
	__u64 subvolume;
};

enum name_flag {
	NAME_TRUNCATED = 1,
	NAME_SECOND = 2,		/* the new name of a rename or link */
	NAME_EXCHANGE = 4,		/* RENAME_EXCHANGE of renameat2 */
	NAME_OVER = 8,			/* no name: io_uring is done with the request */
	NAME_FAILED = 16,		/* likewise, and it was refused */
	NAME_ELSEWHERE = 32,		/* the directory is on no disk that is traced */
	NAME_MOUNT_ROOT = 64,		/* the caller's root is that of its mount */
};

struct name_record {
	__u32 kind;
	__u32 call;
	__u64 time_ns;
	__u64 inode;			/* of the directory it is relative to, or the root */
	__u32 generation;
	__u32 filesystem;
	__u32 pid;
	__u32 tid;
	__u32 flags;			/* enum name_flag */
	__u32 name_bytes;
	__u64 request;			/* of io_uring: NAME_OVER is to come; 0 of a call, over */
	/* What an absolute path means to the caller: user space compares it with its own. */
	__u64 root_inode;
	__u32 root_mount;		/* mnt_id of the mount that its root is in */
	__u32 mount_namespace;		/* as in /proc/PID/ns/mnt */
	__u64 subvolume;		/* of the directory */
	/* the path as the call was given it follows, ended by NUL */
};

struct request_record {
	__u32 kind;
	__u32 device;
	__u64 time_ns;
	__u64 request;			/* its address, or the bio's: an identity while in flight */
	__u64 sector;
	__u32 length_bytes;
	__u32 flags;
	__u32 bio_count;
	__u32 error;			/* blk_status_t of a completion */
	/*
	 * Of a flush issued: the first bio that it serves. Of another request issued, and of its
	 * ranges: when it was allocated, which tells it from the next one at its address; 0 where
	 * nobody counts.
	 */
	__u64 origin;
};

/*
 * What the bytes of a bio are counted under that gets no record: the facts by which user space
 * tells the block type of a run, as it does of a run_record's, and the file. The totals are so
 * exact where rows are missing.
 */
struct total_key {
	__u64 end_io;
	__u64 buffer_end_io;
	__u64 operations;		/* as in run_record */
	__u64 inode;			/* ANY_FILE where there were too many */
	__u64 detail;			/* the tree of Btrfs, or the area of F2FS' meta inode */
	__u64 subvolume;
	char holder[8];
	char comm[16];			/* of ext4's thread that zeroes inode tables alone */
	__u32 device;
	__u32 partition_device;
	__u32 operation;
	__u32 run_flags;
	__u32 magic;
	__u32 filesystem;
	__u32 generation;
	__u32 mode;
	__u8 journal_block_type;
	__u8 kernel_thread;
	__u8 padding[6];
};

#define ANY_FILE (~0ULL)
#define F2FS_AREA_BITS 21	/* segments of 2 MiB: its areas begin at one */

struct total {
	__u64 runs;
	__u64 bytes;
};

enum enabled {
	DISABLED = 0,
	ENABLED = 1,
	ENDING = 2,		/* no new bio is told of, but the requests of those before */
};

#define DISKS_LIMIT 8
#define BUFFER_ENDS 3
#define NODE_ENDS 2
#define WAITING_ENDS 3

/*
 * Shared memory, written by user space while the programs are attached. Addresses come from
 * /proc/kallsyms; 0 is "this kernel has no such function (yet)": modules may be loaded later.
 */
struct control {
	__u32 enabled;			/* enum enabled */
	__u32 unmounting;		/* thread whose umount outlasts its call */
	__u32 disks[DISKS_LIMIT];	/* the disks that are traced; 0 where there are fewer */
	__u64 buffer_end_io;		/* end_bio_bh_io_sync: bi_private is a buffer_head */
	__u64 buffer_ends[BUFFER_ENDS];	/* likewise, from Linux 7.2 on, of writes */
	__u64 direct_end_io;		/* iomap_dio_bio_end_io: bi_private is an iomap_dio */
	__u64 direct_counts_later;	/* __iomap_dio_bio_end_io: see describe_direct */
	__u64 direct_simple_end_io;	/* iomap_dio_simple_end_io: of an iomap_dio_simple */
	__u64 f2fs_direct_end_io;	/* f2fs_dio_end_io: see describe_f2fs_direct */
	__u64 xfs_buffer_end_io;	/* xfs_buf_bio_end_io: bi_private is an xfs_buf */
	__u64 xfs_log_end_io;		/* xlog_bio_end_io: pages are the log's own memory */
	__u64 btrfs_simple_end_io;	/* btrfs_simple_end_io: the bio is in a btrfs_bio */
	__u64 btrfs_first_end_io;	/* btrfs_orig_write_end_io: likewise */
	__u64 btrfs_copy_end_io;	/* btrfs_clone_write_end_io: a copy of such a bio */
	__u64 btrfs_packed_write;	/* end_compressed_bio_write: of a btrfs_bio */
	__u64 btrfs_packed_read;	/* end_compressed_bio_read: likewise */
	__u64 btrfs_direct;		/* btrfs_end_dio_bio: likewise, of direct I/O */
	__u64 chain_end_io;		/* bio_chain_endio: bi_private is what it was split off */
	__u64 vmemmap_base;		/* the variables that turn a struct page into the */
	__u64 page_offset_base;		/* address of its bytes; on arm64 their values */
	/* Written by the programs. */
	__u64 bios;
	__u64 lost_bios;
	__u64 lost_runs;
	__u64 lost_paths;
	__u64 lost_syncs;
	__u64 lost_requests;
	__u64 lost_changes;
	/* Written by user space: a new session is told every name anew. */
	__u64 session;
	/* Written by the programs: calls that renamed something, a directory maybe. */
	__u64 renames;
	/* Likewise: runs that the kernel skipped, and another program took over. */
	__u64 caught_runs;
	/* Likewise: bios in the totals that have no record; runs that got no place there. */
	__u64 counted_bios;
	__u64 lost_totals;
	/* Written by user space: no records but names of files, only totals. */
	__u64 totals_alone;
	__u64 btrfs_stripe_end_io;	/* btrfs_end_bio: a copy of any bio (before Linux 5.17) */
	__u64 devices;			/* blockdev_superblock, which has all block devices */
	__u64 aio_sync_work;		/* aio_fsync_work: the work is in a fsync_iocb */
	__u64 direct_end_work;		/* iomap_dio_complete_work: likewise in an iomap_dio */
	__u64 aio_complete;		/* aio_complete_rw: of a kiocb of Linux AIO */
	__u64 node_ends[NODE_ENDS];	/* blkdev_bio_end_io ..: direct I/O on a device's node */
	__u64 waiting_ends[WAITING_ENDS];/* submit_bio_wait_endio ..: likewise, and many others */
};

_Static_assert(sizeof(struct bio_record) == 136, "bio_record is decoded as 136 bytes");
_Static_assert(sizeof(struct run_record) == 96, "run_record is decoded as 96 bytes");
_Static_assert(sizeof(struct path_record) == 64, "path_record is decoded as 64 bytes");
_Static_assert(sizeof(struct sync_record) == 80, "sync_record is decoded as 80 bytes");
_Static_assert(sizeof(struct transaction_record) == 32,
	       "transaction_record is decoded as 32 bytes");
_Static_assert(sizeof(struct request_record) == 56, "request_record is decoded as 56 bytes");
_Static_assert(sizeof(struct change_record) == 56, "change_record is decoded as 56 bytes");
_Static_assert(sizeof(struct name_record) == 80, "name_record is decoded as 80 bytes");
_Static_assert(sizeof(struct control) == 376, "control is written as 376 bytes");
_Static_assert(sizeof(struct total_key) == 112, "total_key is decoded as 112 bytes");
_Static_assert(sizeof(struct path_record) + PATH_BYTES <= CHUNK_SLACK_BYTES - 8,
	       "the longest record fits a chunk's slack");

#endif
