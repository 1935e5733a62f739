// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells of the calls of one user by which files are opened, read at a place, written, locked, cut,
 * unlinked and synced: what commits of a program that is not ours are found from
 * (agent/src/commits). Nothing is told of files that lie on no disk.
 *
 * Where everyone is watched, as by `joj-agent collect`, or a program with its children, as by
 * `joj-agent trace -- COMMAND`, all syncs and unlinks are told, of other
 * calls those on files of SQLite (sqlite_files.bpf.h), and opens that make a file or may write to
 * it.
 *
 * Numbers are x86_64's (arch/x86/entry/syscalls/syscall_64.tbl). Calls of 32-bit and x32 programs
 * are counted, and not told.
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
#include "../bpf/natives.bpf.h"
#include "../bpf/ring.bpf.h"
#include "call_record.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct inode;

struct dentry {
	struct inode *d_inode;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	__u32 i_generation;
};

struct file {
	struct inode *f_inode;
	unsigned int f_flags;
	unsigned int f_mode;
	long long f_pos;
};

struct task_struct {
	struct thread_info thread_info;
	struct files_struct *files;
	struct fs_struct *fs;
	struct nsproxy *nsproxy;
	int pid;
	int tgid;
};
#pragma clang attribute pop

#include "../bpf/files.bpf.h"
#include "../bpf/inodes.bpf.h"
#include "../bpf/roots.bpf.h"

struct watch watch SEC(".data.watch") = {};

/* Of 32-bit programs, both of x86 and of arm. */
#define FSYNC_OF_32_BITS 118
#define FDATASYNC_OF_32_BITS 148

#define MS_SYNC 4			/* include/uapi/asm-generic/mman-common.h */
#define F2FS_COMMIT_ATOMIC_WRITE 0xf502	/* F2FS_IOC_COMMIT_ATOMIC_WRITE */
#define F_SETLK 6			/* include/uapi/asm-generic/fcntl.h */
#define F_SETLKW 7
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38

#define O_ACCMODE 3
#define O_DSYNC 010000			/* O_SYNC has it too */
#define AT_REMOVEDIR 0x200
#define FMODE_CREATED 0x100000		/* include/linux/fs.h: this open made the file */
#define S_IFMT 0170000
#define S_IFDIR 0040000

/* struct flock of include/uapi/asm-generic/fcntl.h */
struct flock {
	__s16 type, whence;
	__u32 padding;
	__s64 start, length;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);		/* thread */
	__type(value, __u64);		/* when it entered its call */
} begun SEC(".maps");

/* Processes of a program that is watched, and what was made by fork by one of them. */
enum kinship {
	STRANGER,
	MEMBER,
	STARTER,			/* is none itself: what it starts is */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);		/* process */
	__type(value, __u64);		/* enum kinship */
} family SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call_record);
} scratch SEC(".maps");

static __always_inline bool is_watched_call(__u64 number)
{
	switch (number) {
	CASES_OF_WATCHED_CALLS
		return true;
	default:
		return false;
	}
}

static __always_inline __u64 kinship_of(__u32 process)
{
	__u64 *kinship = bpf_map_lookup_elem(&family, &process);

	return kinship ? *kinship : STRANGER;
}

static __always_inline bool is_watched(void)
{
	if (watch.is_everyone)
		return !watch.is_family || kinship_of(bpf_get_current_pid_tgid() >> 32) == MEMBER;
	return watch.uid && (__u32)bpf_get_current_uid_gid() == watch.uid;
}

/* The filesystems that jojlab knows (include/uapi/linux/magic.h, fs/f2fs, fs/nilfs2, fs/ubifs). */
static __always_inline bool is_on_disk(__u64 magic)
{
	return magic == 0xef53 || magic == 0x58465342 || magic == BTRFS_MAGIC || magic == 0x3434 ||
	       magic == 0xf2f52010 || magic == 0x24051905;
}

/* False where the file lies on no disk. */
static __always_inline bool describe_file(struct call_record *record, __u64 file)
{
	__u64 inode = file ? real_inode(READ(file, file, f_inode)) : 0, superblock;

	if (!inode)
		return false;
	superblock = READ(inode, inode, i_sb);
	if (!is_on_disk(READ(super_block, superblock, s_magic)))
		return false;
	record->inode = READ(inode, inode, i_ino);
	record->generation = READ(inode, inode, i_generation);
	record->filesystem = READ(super_block, superblock, s_dev);
	record->subvolume = subvolume_of(inode, superblock);
	record->file_flags = READ(file, file, f_flags);
	record->is_created = !!(READ(file, file, f_mode) & FMODE_CREATED);
	record->is_directory = (READ(inode, inode, i_mode) & S_IFMT) == S_IFDIR;
	return true;
}

static __always_inline void read_head(struct call_record *record, __u64 from)
{
	long result = -1;

	if (record->length_bytes >= 32) {
		record->head_bytes = 32;
		result = bpf_probe_read_user(record->head, 32, (void *)from);
	} else if (record->length_bytes >= 28) {
		record->head_bytes = 28;
		result = bpf_probe_read_user(record->head, 28, (void *)from);
	} else if (record->length_bytes >= 24) {
		record->head_bytes = 24;
		result = bpf_probe_read_user(record->head, 24, (void *)from);
	}
	if (result)
		record->head_bytes = 0;
}

static __always_inline void read_path(struct call_record *record, __u64 from)
{
	long size = bpf_probe_read_user_str(record->path, CALL_PATH_BYTES, (void *)from);
	struct task_root root;

	record->path_bytes = size > 0 ? size : 0;
	read_root(&root);
	if (!root.inode)
		return;
	record->root_inode = root.inode_number;
	record->root_mount = root.mount;
	record->mount_namespace = root.mount_namespace;
}

#include "sqlite_files.bpf.h"
#include "writers.bpf.h"

/* Fills in what is peculiar to a call; false where it is not to be told. */
static __always_inline bool describe(struct call_record *record, const struct pt_regs *registers,
				     __u64 number, __s64 result)
{
	struct flock lock = {};
	__u64 file;

	switch (number) {
	case CALL_SYNC:
		return true;
	case CALL_MSYNC:
		return REGISTER_3(registers) & MS_SYNC;
	case CALL_UNLINK:
	case CALL_TRUNCATE:
		read_path(record, REGISTER_1(registers));
		record->length_bytes = REGISTER_2(registers);
		return true;
	case CALL_UNLINKAT:
		read_path(record, REGISTER_2(registers));
		return true;
	case CALL_OPEN:
	case CALL_CREAT:
		read_path(record, REGISTER_1(registers));
		return result >= 0 && describe_file(record, file_of_descriptor(result));
	case CALL_OPENAT:
	case CALL_OPENAT2:
		read_path(record, REGISTER_2(registers));
		return result >= 0 && describe_file(record, file_of_descriptor(result));
	default:
		break;
	}
	file = file_of_descriptor(REGISTER_1(registers));
	if (!describe_file(record, file))
		return false;
	switch (number) {
	case CALL_WRITE:
		record->length_bytes = REGISTER_3(registers);
		record->offset_bytes = READ(file, file, f_pos) - (result > 0 ? result : 0);
		read_head(record, REGISTER_2(registers));
		return true;
	case CALL_PWRITE64:
		record->length_bytes = REGISTER_3(registers);
		record->offset_bytes = REGISTER_4(registers);
		read_head(record, REGISTER_2(registers));
		return true;
	case CALL_PREAD64:
		record->length_bytes = REGISTER_3(registers);
		record->offset_bytes = REGISTER_4(registers);
		return true;
	case CALL_WRITEV:
		record->length_bytes = result;
		record->offset_bytes = READ(file, file, f_pos) - (result > 0 ? result : 0);
		return true;
	case CALL_PWRITEV:
	case CALL_PWRITEV2:
		record->length_bytes = result;
		record->offset_bytes = REGISTER_4(registers);
		return true;
	case CALL_FTRUNCATE:
		record->length_bytes = REGISTER_2(registers);
		return true;
	case CALL_IOCTL:
		return REGISTER_2(registers) == F2FS_COMMIT_ATOMIC_WRITE;
	case CALL_FCNTL:
		if (REGISTER_2(registers) != F_SETLK && REGISTER_2(registers) != F_SETLKW &&
		    REGISTER_2(registers) != F_OFD_SETLK && REGISTER_2(registers) != F_OFD_SETLKW)
			return false;
		if (bpf_probe_read_user(&lock, sizeof(lock), (void *)REGISTER_3(registers)))
			return false;
		record->head[0] = lock.type;
		record->head_bytes = 1;
		record->offset_bytes = lock.start;
		record->length_bytes = lock.length;
		return true;
	default:
		return true;
	}
}

/*
 * The call is one of a 32-bit or x32 program, whose numbers mean others. Where everyone is watched
 * those count that make a commit durable: they have two numbers in all of these.
 */
static __always_inline bool is_of_others(__u64 number)
{
	struct task_struct *task = current_task();

	if (IS_32_BIT(task)) {
		if (!watch.is_everyone || number == FSYNC_OF_32_BITS ||
		    number == FDATASYNC_OF_32_BITS)
			__sync_fetch_and_add(&watch.others, 1);
		return true;
	}
#ifndef __TARGET_ARCH_arm64
	if (IS_X32(number)) {
		__u32 plain = number & ~X32_CALL;

		if (!watch.is_everyone || plain == CALL_FSYNC || plain == CALL_FDATASYNC)
			__sync_fetch_and_add(&watch.others, 1);
		return true;
	}
#endif
	return false;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(file_call_entered, struct pt_regs *registers, long given)
{
	__u64 number = number_on_x86_64(given), now;
	bool has_watched_number = is_watched_call(number);
	__u32 thread;

	/* Before who makes it is looked up in a map: most calls end here. */
	if (!has_watched_number && !IS_32_BIT(current_task()) && !IS_X32(given))
		return 0;
	if (!is_watched() || is_of_others(given) || !has_watched_number)
		return 0;
	thread = bpf_get_current_pid_tgid();
	if (watch.is_everyone && !may_wait(registers, number))
		return 0;
	now = bpf_ktime_get_boot_ns();
	if (bpf_map_update_elem(&begun, &thread, &now, BPF_ANY))
		__sync_fetch_and_add(&watch.lost, 1);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(file_call_left, struct pt_regs *registers, long result)
{
	__u64 number = number_on_x86_64(CALL_NUMBER(registers)), ids, *begin;
	__u32 thread, zero = 0;
	struct call_record *record;

	/* No number of x32 is that of a call which is watched. */
	if (!is_watched_call(number) || IS_32_BIT(current_task()) || !is_watched())
		return 0;
	ids = bpf_get_current_pid_tgid();
	thread = ids;
	record = bpf_map_lookup_elem(&scratch, &zero);
	if (!record)
		return 0;
	__builtin_memset(record, 0, CALL_RECORD_BYTES);
	if (!watch.is_everyone || may_wait(registers, number)) {
		begin = bpf_map_lookup_elem(&begun, &thread);
		if (!begin)
			return 0;
		record->begin_ns = *begin;
		bpf_map_delete_elem(&begun, &thread);
	}
	record->call = number;
	record->pid = ids >> 32;
	record->tid = thread;
	record->result = result;
	if (!describe(record, registers, number, result))
		return 0;
	record->end_ns = bpf_ktime_get_boot_ns();
	record->uid = bpf_get_current_uid_gid();
	if (is_write(number) && result > 0)
		count_writer(life_of(record), result);
	if (watch.is_everyone) {
		if (result < 0 || !is_wanted(record, REGISTER_3(registers)))
			return 0;
		if (!record->begin_ns)
			record->begin_ns = record->end_ns;
		bpf_get_current_comm(record->process, sizeof(record->process));
	}
	if (record->path_bytes)
		send(record, sizeof(*record), &watch.lost);
	else
		send(record, CALL_RECORD_BYTES, &watch.lost);
	return 0;
}

/* A number that was a member's, and is used anew by a stranger's child, is one no more. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(family_grown, struct task_struct *parent, struct task_struct *child)
{
	__u32 process = OF_TASK(child, tgid);
	__u64 kinship = MEMBER;

	if (!watch.is_family || process != OF_TASK(child, pid))
		return 0;
	if (kinship_of(bpf_get_current_pid_tgid() >> 32) == STRANGER)
		bpf_map_delete_elem(&family, &process);
	else if (bpf_map_update_elem(&family, &process, &kinship, BPF_ANY))
		__sync_fetch_and_add(&watch.lost, 1);
	return 0;
}
