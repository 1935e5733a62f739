/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records that calls.bpf.c's program gives user space: one for each call of a program that is
 * watched, in the order of their ends. agent/src/commits/call.rs decodes the same layout, and
 * both sides check the sizes. Times are CLOCK_BOOTTIME in ns.
 */
#ifndef JOJ_CALL_RECORD_H
#define JOJ_CALL_RECORD_H

#define CALL_HEAD_BYTES 32	/* a WAL frame's header has 24, what PERSIST zeroes 28 */
#define CALL_PATH_BYTES 256

struct call_record {
	__u32 call;			/* system call number of x86_64 */
	__u32 file_flags;		/* as of open(2) */
	__u64 begin_ns;
	__u64 end_ns;
	__u32 pid;
	__u32 tid;
	__u64 inode;			/* 0 where the call names no file by a descriptor */
	__u32 generation;
	__u32 filesystem;		/* s_dev */
	__s64 result;
	__u64 offset_bytes;		/* where it read, wrote or locked */
	__u64 length_bytes;		/* asked for; of a truncation, the size */
	__u8 head[CALL_HEAD_BYTES];	/* the first bytes written; of a lock, its type */
	__u32 head_bytes;
	__u32 path_bytes;		/* with the NUL */
	__u32 uid;
	__u16 is_created;		/* the open made the file */
	__u16 is_directory;		/* the file is one */
	char process[16];		/* its command name; only where everyone is watched */
	__u64 subvolume;		/* of the file: its tree's number in Btrfs, or 0 */
	/* Of a call with a path: what that means to the caller; else 0. */
	__u64 root_inode;		/* number of its root directory */
	__u32 root_mount;		/* mnt_id of the mount that this is in */
	__u32 mount_namespace;		/* as in /proc/PID/ns/mnt */
	char path[CALL_PATH_BYTES];	/* as given; only where path_bytes is not 0 */
};

#define CALL_RECORD_BYTES 160	/* without the path */

struct watch {
	__u32 uid;			/* whose calls are told; 0: nobody's */
	__u32 is_everyone;		/* everybody's, of SQLite's files and syncs alone */
	__u32 is_family;		/* of these, those of the processes in `family` alone */
	__u32 writers_half;		/* which writers_* counts: a, b; 0: none */
	__u64 lost;			/* records without room in the ring */
	__u64 others;			/* calls of 32-bit and x32 programs; of everyone, syncs */
	__u64 uncounted;		/* times that a writer found no room */
};

_Static_assert(sizeof(struct call_record) == CALL_RECORD_BYTES + CALL_PATH_BYTES,
	       "call_record is decoded as 160 bytes and the path");
_Static_assert(sizeof(struct watch) == 40, "watch is written as 40 bytes");

#endif
