// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells of every file system call of the threads that are recorded, and of the threads and programs
 * that they make (agent/src/recorder). Which calls those are, and what their arguments point to,
 * user space says in `plans`. Threads of others cost one look into a hash table a call.
 */
#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "../bpf/ring.h"
#include "../bpf/read.bpf.h"
#include "../bpf/kernel_age.bpf.h"
#include "../bpf/processor.bpf.h"
#include "../bpf/ring.bpf.h"
#include "kernel_types.bpf.h"
#include "../bpf/files.bpf.h"
#include "recorded.h"
#include "system_calls.h"	/* of agent/src/system_calls/table.txt */
#include "pieces.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct call_plan plans[CALLS_LIMIT] SEC(".data.plans") = {};
struct watch watch SEC(".data.watch") = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS_LIMIT);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

#define MAP_ANONYMOUS 0x20
#define O_TRUNC 01000
#define EEXIST 17
#define FMODE_CREATED 0x100000	/* include/linux/fs.h */
#define VECTORS_LIMIT 1024	/* UIO_MAXIOV */
#define VECTOR_BYTES 16

static __always_inline struct thread *this_thread(void)
{
	__u32 tid = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&threads, &tid);
}

/* Commands of fcntl with a struct flock: F_GETLK to F_SETLKW, F_OFD_GETLK to F_OFD_SETLKW. */
static __always_inline bool is_lock(__u32 command)
{
	return (command >= 5 && command <= 7) || (command >= 36 && command <= 38);
}

static __always_inline int tell_vectors(__u64 address, __u64 count, __u32 tid)
{
	int result = PIECE_TOLD;

	if (count > VECTORS_LIMIT)
		return PIECE_UNREAD;
	for (__u32 part = 0; part < VECTORS_LIMIT * VECTOR_BYTES / PIECE_BYTES; part++) {
		__u64 from = part * PIECE_BYTES, size = count * VECTOR_BYTES;

		if (from >= size)
			break;
		size -= from;
		result = tell_bytes(address + from, size > PIECE_BYTES ? PIECE_BYTES : size, tid);
		if (result != PIECE_TOLD)
			break;
	}
	return result;
}

static __always_inline int tell_named(__u64 address, __u64 place, int descriptor, __u32 tid)
{
	int result = tell_string(address, tid);

	/* A directory that cannot be told is no loss: the call fails, or its path has no number. */
	if (result != PIECE_ABSOLUTE && address &&
	    tell_directory(place, descriptor, tid) == PIECE_LOST)
		return PIECE_LOST;
	return result;
}

/* What the argument at PLACE, a constant, points to; NEXT is the one behind it. */
static __always_inline int tell_argument(__u32 kind, __u64 value, __u64 next, __u64 *directory,
					 __u32 tid)
{
	switch (kind) {
	case ARGUMENT_TEXT:
		return value ? tell_string(value, tid) : PIECE_TOLD;
	case ARGUMENT_PATH:
		return tell_named(value, PLACE_DIRECTORY, *directory, tid);
	case ARGUMENT_PATH2:
		return tell_named(value, PLACE_DIRECTORY2, *directory, tid);
	case ARGUMENT_DIRECTORY:
	case ARGUMENT_DIRECTORY2:
		*directory = value;
		return PIECE_TOLD;
	case ARGUMENT_4_BYTES_AT_8:
		return tell_bytes(value + 8, 4, tid);
	case ARGUMENT_8_BYTES:
		return value ? tell_bytes(value, 8, tid) : PIECE_TOLD;
	case ARGUMENT_24_BYTES:
		return tell_bytes(value, 24, tid);
	case ARGUMENT_VECTORS:
		return tell_vectors(value, next, tid);
	case ARGUMENT_COMMAND:
		return is_lock(value) ? tell_bytes(next, 32, tid) : PIECE_TOLD;
	default:
		return PIECE_TOLD;
	}
}

/*
 * The plan of a call whose number is below the limit. The compiler keeps the number on the stack,
 * and the verifier of Linux 6.1 knows of no bounds there that a copy of it was compared with; so it
 * is bounded again, where the compiler does not see that it was.
 */
static __always_inline struct call_plan *plan_of(__u32 number)
{
	barrier_var(number);
	return &plans[number & (CALLS_LIMIT - 1)];
}

static __always_inline void lose(__u32 number)
{
	__sync_fetch_and_add(&watch.lost_calls[number & (CALLS_LIMIT - 1)], 1);
}

static __always_inline void begin_call(struct thread *thread, struct pt_regs *registers,
				       long number)
{
	struct task_struct *task = current_task();
	__u64 directory = AT_FDCWD, lost = 0;
	struct begin_record record = {};
	bool has_lost = false;
	__u32 tid = bpf_get_current_pid_tgid(), *pieces;

	pieces = count_pieces();
	if (!pieces)
		return;
	*pieces = 0;
	record.kind = RECORD_BEGIN;
	record.tid = tid;
	record.number = number;
	if (IS_32_BIT(task) || IS_X32(number)) {
		record.is_other_abi = 1;
		send(&record, sizeof(record), &watch.lost_calls[CALLS_LIMIT - 1]);
		return;
	}
	if (number < 0 || number >= CALLS_LIMIT || !plan_of(number)->is_recorded)
		return;
	record.arguments[0] = REGISTER_1(registers);
	record.arguments[1] = REGISTER_2(registers);
	record.arguments[2] = REGISTER_3(registers);
	record.arguments[3] = REGISTER_4(registers);
	record.arguments[4] = REGISTER_5(registers);
	record.arguments[5] = REGISTER_6(registers);
	/* Anonymous memory is no file's. */
	if (number == OWN_CALL_MMAP && record.arguments[3] & MAP_ANONYMOUS)
		return;
	record.begin_ns = bpf_ktime_get_boot_ns();
#pragma unroll
	for (int place = 0; place < ARGUMENTS; place++) {
		__u32 kind = plan_of(number)->arguments[place];
		__u64 next = place + 1 < ARGUMENTS ? record.arguments[place + 1] : 0;
		int result;

		if (kind == ARGUMENT_NUMBER)
			continue;
		/* A path without a descriptor before it begins at the current directory. */
		result = tell_argument(kind, record.arguments[place], next, &directory, tid);
		if (result == PIECE_LOST)
			has_lost = true;
		else if (result == PIECE_UNREAD)
			thread->unread |= 1U << place;
		if (kind == ARGUMENT_PATH)
			directory = AT_FDCWD;
	}
	record.pieces = *pieces;
	if (has_lost || !send(&record, sizeof(record), &lost)) {
		lose(number);
		return;
	}
	thread->number = number;
	thread->is_in_call = 1;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_begins, struct pt_regs *registers, long number)
{
	struct thread *thread = this_thread();

	if (!thread)
		return 0;
	thread->has_joined = 0;
	thread->is_in_call = 0;
	thread->unread = 0;
	if (!begin_work()) {
		lose(number);
		return 0;
	}
	begin_call(thread, registers, number);
	end_work();
	return 0;
}

/* What an argument points to when the call has ended. */
static __always_inline int tell_result(__u32 kind, __u64 value, __u64 next, bool is_unread,
				       __s64 result, __u32 tid)
{
	__u64 nowhere = AT_FDCWD;

	switch (kind) {
	case ARGUMENT_PAIR:
		return result >= 0 ? tell_bytes(value, 8, tid) : PIECE_TOLD;
	case ARGUMENT_STAT:
		return result == 0 ? tell_bytes(value, STAT_BYTES, tid) : PIECE_TOLD;
	case ARGUMENT_STATX:
		return result == 0 ? tell_bytes(value, 152, tid) : PIECE_TOLD;
	case ARGUMENT_PATH:
	case ARGUMENT_PATH2:
		/* Its directory has been told. */
		return is_unread && value ? tell_string(value, tid) : PIECE_TOLD;
	default:
		return is_unread ? tell_argument(kind, value, next, &nowhere, tid) : PIECE_TOLD;
	}
}

static __always_inline void describe_opened(struct opened_file *opened, __u64 file, bool cuts)
{
	__u64 inode = file ? READ(file, file, f_inode) : 0;

	if (!inode)
		return;
	opened->inode = READ(inode, inode, i_ino);
	opened->size_bytes = READ(inode, inode, i_size);
	opened->filesystem = READ(super_block, READ(inode, inode, i_sb), s_dev);
	opened->links = READ(inode, inode, i_nlink);
	opened->mode = READ(inode, inode, i_mode);
	if (READ(file, file, f_mode) & FMODE_CREATED)
		opened->knowledge = FILE_WAS_MADE;
	else
		opened->knowledge = FILE_WAS_THERE | (cuts ? FILE_WAS_CUT : 0);
}

static __always_inline void end_call(struct thread *thread, struct pt_regs *registers, long result)
{
	__u64 arguments[ARGUMENTS + 1] = {};
	__u32 tid = bpf_get_current_pid_tgid(), number;
	struct end_record record = {};
	bool has_lost = false, is_gone;
	__u64 lost = 0;

	record.end_ns = bpf_ktime_get_boot_ns();
	record.kind = RECORD_END;
	record.tid = tid;
	record.result = result;
	number = thread->number & (CALLS_LIMIT - 1);
	thread->is_in_call = 0;
	arguments[0] = REGISTER_1(registers);
	arguments[1] = REGISTER_2(registers);
	arguments[2] = REGISTER_3(registers);
	arguments[3] = REGISTER_4(registers);
	arguments[4] = REGISTER_5(registers);
	arguments[5] = REGISTER_6(registers);
	/* After an execve the memory is another program's. */
	is_gone = (number == OWN_CALL_EXECVE || number == OWN_CALL_EXECVEAT) && !result;
#pragma unroll
	for (int place = 0; place < ARGUMENTS; place++) {
		__u32 kind = plan_of(number)->arguments[place];

		if (kind == ARGUMENT_NUMBER || is_gone)
			continue;
		if (tell_result(kind, arguments[place], arguments[place + 1],
				thread->unread & 1U << place, result, tid) == PIECE_LOST)
			has_lost = true;
	}
	if (plan_of(number)->opens && result >= 0) {
		/* Of openat2 the flags are in memory: it may have been cut. */
		bool cuts = (number == OWN_CALL_OPEN && arguments[1] & O_TRUNC) ||
			    (number == OWN_CALL_OPENAT && arguments[2] & O_TRUNC) ||
			    number == OWN_CALL_CREAT || number == OWN_CALL_OPENAT2;
		describe_opened(&record.file, file_of_descriptor(result), cuts);
	}
	if (record.file.knowledge) {
		if (has_lost || !send(&record, sizeof(record), &lost))
			lose(number);
	} else if (has_lost || !send(&record, END_HEAD_BYTES, &lost)) {
		lose(number);
	}
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs *registers, long result)
{
	struct thread *thread = this_thread();

	if (!thread)
		return 0;
	if (!thread->is_in_call) {
		if (thread->has_joined)
			__sync_fetch_and_add(&watch.begun_before, 1);
		thread->has_joined = 0;
		return 0;
	}
	if (!begin_work()) {
		lose(thread->number);
		return 0;
	}
	end_call(thread, registers, result);
	end_work();
	return 0;
}

static __always_inline int tell_executable(__u64 memory, __u32 tid)
{
	__u64 file = READ(mm_struct, memory, exe_file);

	if (!file)
		return PIECE_UNREAD;
	return tell_path(PLACE_EXECUTABLE, READ(file, file, f_path.dentry),
			 READ(file, file, f_path.mnt), tid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(thread_made, struct task_struct *parent, struct task_struct *child)
{
	struct thread fresh = {};
	__u64 fs = (__u64)child->fs;
	struct fork_record record = {
		.kind = RECORD_FORK,
		.tid = child->pid,
		.time_ns = bpf_ktime_get_boot_ns(),
		.creator = bpf_get_current_pid_tgid(),
		.pid = child->tgid,
		.umask = READ(fs_struct, fs, umask),
	};
	long refused;

	if (!this_thread())
		return 0;
	refused = bpf_map_update_elem(&threads, &record.tid, &fresh, BPF_NOEXIST);
	if (refused) {
		/* User space found it in /proc first, and joined it. */
		if (refused != -EEXIST)
			__sync_fetch_and_add(&watch.lost_threads, 1);
		return 0;
	}
	__sync_fetch_and_add(&watch.live_threads, 1);
	if (!begin_work()) {
		__sync_fetch_and_add(&watch.lost_threads, 1);
	} else {
		if (tell_path(PLACE_WORKING_DIRECTORY, READ(fs_struct, fs, pwd.dentry),
			      READ(fs_struct, fs, pwd.mnt), record.tid) == PIECE_LOST ||
		    tell_executable((__u64)child->mm, record.tid) == PIECE_LOST)
			__sync_fetch_and_add(&watch.lost_threads, 1);
		end_work();
	}
	send_part(&record, sizeof(record), &watch.lost_threads);
	return 0;
}

/* Whichever thread runs another program gets the number of its process. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(program_run, struct task_struct *task, int former_tid, struct linux_binprm *program)
{
	struct exec_record record = {
		.kind = RECORD_EXEC,
		.tid = task->pid,
		.time_ns = bpf_ktime_get_boot_ns(),
		.former_tid = former_tid,
	};
	struct thread *thread = bpf_map_lookup_elem(&threads, &record.former_tid);
	struct thread moved;

	if (!thread)
		return 0;
	moved = *thread;
	if (record.former_tid != record.tid) {
		bpf_map_delete_elem(&threads, &record.former_tid);
		if (bpf_map_update_elem(&threads, &record.tid, &moved, BPF_ANY)) {
			__sync_fetch_and_add(&watch.lost_threads, 1);
			__sync_fetch_and_add(&watch.live_threads, -1);
			return 0;
		}
	}
	if (!begin_work()) {
		__sync_fetch_and_add(&watch.lost_threads, 1);
	} else {
		/* The path that could not be read, at address 0. */
		if (moved.unread)
			tell_kernel_string(0, READ(linux_binprm, program, filename), record.tid);
		if (tell_executable((__u64)task->mm, record.tid) == PIECE_LOST)
			__sync_fetch_and_add(&watch.lost_threads, 1);
		end_work();
	}
	send_part(&record, sizeof(record), &watch.lost_threads);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_ended, struct task_struct *task)
{
	struct exit_record record = {
		.kind = RECORD_EXIT,
		.tid = task->pid,
		.time_ns = bpf_ktime_get_boot_ns(),
		.status = task->exit_code,
	};

	if (bpf_map_delete_elem(&threads, &record.tid))
		return 0;
	send_part(&record, sizeof(record), &watch.lost_threads);
	__sync_fetch_and_add(&watch.live_threads, -1);
	return 0;
}
