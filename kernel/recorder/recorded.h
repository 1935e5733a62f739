/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The words of recorder.bpf.c's program to user space about the threads it records, and what it
 * is told of calls. A call is a record of its begin and one of its end; before each come the pieces
 * of memory that belong to it. agent/src/recorder/ebpf has the same layout, and both sides check
 * the sizes. Times are CLOCK_BOOTTIME in ns, numbers of calls this processor's.
 */
#ifndef JOJ_RECORDED_H
#define JOJ_RECORDED_H

#define CALLS_LIMIT 512		/* larger than every number */
#define ARGUMENTS 6
#define THREADS_LIMIT 32768	/* of those recorded, at a time */
#define PIECE_BYTES 4096	/* PATH_MAX, with its NUL */

enum record_kind {
	RECORD_PIECE = 1,
	RECORD_BEGIN,
	RECORD_END,
	RECORD_FORK,
	RECORD_EXEC,
	RECORD_EXIT,
};

/* What is read for an argument: agent/src/recorder/ebpf/program.rs makes these of roles. */
enum argument_kind {
	ARGUMENT_NUMBER,
	ARGUMENT_TEXT,
	ARGUMENT_PATH,			/* and its directory, where it is relative */
	ARGUMENT_PATH2,
	ARGUMENT_DIRECTORY,		/* descriptor of the directory of the next argument */
	ARGUMENT_DIRECTORY2,
	ARGUMENT_4_BYTES_AT_8,
	ARGUMENT_8_BYTES,
	ARGUMENT_24_BYTES,
	ARGUMENT_VECTORS,		/* the next argument is their number */
	ARGUMENT_COMMAND,		/* of fcntl, on which the next argument depends */
	ARGUMENT_PAIR,			/* 8 bytes at the end of a call that succeeded */
	ARGUMENT_STAT,			/* a struct stat then: 144 bytes; 128 on arm64 */
	ARGUMENT_STATX,			/* 152 bytes then */
};

struct call_plan {
	__u8 is_recorded;
	__u8 opens;			/* its result is a descriptor of a file */
	__u8 arguments[ARGUMENTS];	/* enum argument_kind */
};

/* Addresses of pieces that are no memory of the program. */
enum piece_place {
	PLACE_DIRECTORY = 1,		/* names up to the root, each with its NUL */
	PLACE_DIRECTORY2 = 2,
	PLACE_WORKING_DIRECTORY = 3,
	PLACE_EXECUTABLE = 4,
};

struct piece_record {
	__u32 kind;
	__u32 tid;
	__u64 address;			/* or enum piece_place */
};

struct begin_record {
	__u32 kind;
	__u32 tid;
	__u64 begin_ns;
	__u32 number;
	__u16 is_other_abi;		/* of a 32-bit program: nothing else is told of it */
	__u16 pieces;			/* its own, the last before it: others' record was lost */
	__u64 arguments[ARGUMENTS];
};

/* The file that a call opened, as it was before. */
enum file_knowledge {
	FILE_WAS_THERE = 1,
	FILE_WAS_MADE = 2,		/* by the call */
	FILE_WAS_CUT = 4,		/* its size before is not known */
};

struct opened_file {
	__u64 inode;
	__u64 size_bytes;
	__u32 filesystem;		/* s_dev */
	__u32 links;
	__u32 mode;
	__u32 knowledge;		/* enum file_knowledge */
};

struct end_record {
	__u32 kind;
	__u32 tid;
	__u64 end_ns;
	__s64 result;
	struct opened_file file;	/* left out where none was opened */
};

struct fork_record {
	__u32 kind;
	__u32 tid;			/* of the new thread; its pieces came before */
	__u64 time_ns;
	__u32 creator;
	__u32 pid;
	__u32 umask;
	__u32 padding;
};

struct exec_record {
	__u32 kind;
	__u32 tid;
	__u64 time_ns;
	__u32 former_tid;
	__u32 padding;
};

struct exit_record {
	__u32 kind;
	__u32 tid;
	__u64 time_ns;
	__u32 status;			/* as wait(2) gives it */
	__u32 padding;
};

/* What is known of a thread that is recorded. */
struct thread {
	__u32 number;			/* of the call under way */
	__u32 is_in_call;
	__u32 has_joined;		/* it was there already, and has not begun a call since */
	__u32 unread;			/* bits of arguments to be read again at the end */
};

struct watch {
	__u64 live_threads;
	__u64 begun_before;		/* calls under way when their threads joined */
	__u64 lost_threads;		/* forks, execs and exits that could not be told */
	__u64 lost_calls[CALLS_LIMIT];	/* by number: no room for the begin or the end */
};

#define END_HEAD_BYTES 24

_Static_assert(sizeof(struct call_plan) == 8, "a plan is written as 8 bytes");
_Static_assert(sizeof(struct piece_record) == 16, "a piece is decoded behind 16 bytes");
_Static_assert(sizeof(struct begin_record) == 72, "a begin is decoded as 72 bytes");
_Static_assert(sizeof(struct end_record) == END_HEAD_BYTES + 32, "an end is decoded as 56 bytes");
_Static_assert(sizeof(struct fork_record) == 32, "a fork is decoded as 32 bytes");
_Static_assert(sizeof(struct exec_record) == 24, "an exec is decoded as 24 bytes");
_Static_assert(sizeof(struct exit_record) == 24, "an exit is decoded as 24 bytes");
_Static_assert(sizeof(struct thread) == 16, "a thread is written as 16 bytes");
_Static_assert(sizeof(struct watch) == 24 + 8 * CALLS_LIMIT, "watch is read as 4120 bytes");

#endif
