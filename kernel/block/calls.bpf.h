/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls: which ones wait for the device, and which file the current one is about.
 * Numbers are x86_64's (arch/x86/entry/syscalls/syscall_64.tbl). Not seen: calls of 32-bit
 * programs, and what io_uring or O_SYNC do in place of fsync.
 */
#ifndef JOJ_CALLS_BPF_H
#define JOJ_CALLS_BPF_H

#define PF_KTHREAD 0x00200000

#ifndef NULL
#define NULL ((void *)0)
#endif

enum {
	CALL_READ = 0,
	CALL_WRITE = 1,
	CALL_IOCTL = 16,
	CALL_PREAD64 = 17,
	CALL_PWRITE64 = 18,
	CALL_READV = 19,
	CALL_WRITEV = 20,
	CALL_MSYNC = 26,
	CALL_FSYNC = 74,
	CALL_FDATASYNC = 75,
	CALL_FTRUNCATE = 77,
	CALL_SYNC = 162,
	CALL_SYNC_FILE_RANGE = 277,
	CALL_FALLOCATE = 285,
	CALL_PREADV = 295,
	CALL_PWRITEV = 296,
	CALL_SYNCFS = 306,
	CALL_PREADV2 = 327,
	CALL_PWRITEV2 = 328,
};

/* F2FS_IOC_COMMIT_ATOMIC_WRITE: SQLite's batch atomic write, which ends like an fsync. */
#define F2FS_COMMIT_ATOMIC_WRITE 0xf502

static __always_inline bool waits_for_device(long call, const struct pt_regs *registers)
{
	switch (call) {
	case CALL_FSYNC:
	case CALL_FDATASYNC:
	case CALL_MSYNC:
	case CALL_SYNC:
	case CALL_SYNCFS:
	case CALL_SYNC_FILE_RANGE:
		return true;
	case CALL_IOCTL:
		return registers->si == F2FS_COMMIT_ATOMIC_WRITE;
	}
	return false;
}

/* Calls whose first argument is the file that is read, written or changed. */
static __always_inline bool names_file(long call)
{
	switch (call) {
	case CALL_READ:
	case CALL_WRITE:
	case CALL_IOCTL:
	case CALL_PREAD64:
	case CALL_PWRITE64:
	case CALL_READV:
	case CALL_WRITEV:
	case CALL_FSYNC:
	case CALL_FDATASYNC:
	case CALL_FTRUNCATE:
	case CALL_SYNC_FILE_RANGE:
	case CALL_FALLOCATE:
	case CALL_PREADV:
	case CALL_PWRITEV:
	case CALL_PREADV2:
	case CALL_PWRITEV2:
		return true;
	}
	return false;
}

static __always_inline bool in_kernel_thread(void)
{
	return ((struct task_struct *)bpf_get_current_task_btf())->flags & PF_KTHREAD;
}

static __always_inline __u64 inode_of_descriptor(__u64 descriptor)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 table = READ(files_struct, task->files, fdt);
	__u64 file;

	if (!table || descriptor >= READ(fdtable, table, max_fds))
		return 0;
	file = read_memory(READ(fdtable, table, fd) + 8 * descriptor, 8);
	return file ? READ(file, file, f_inode) : 0;
}

static __always_inline __u64 inode_of_current_call(void)
{
	struct pt_regs *registers;

	if (in_kernel_thread())
		return 0;
	registers = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	if (!names_file(registers->orig_ax))
		return 0;
	return inode_of_descriptor(registers->di);
}

/* REGISTERS hold the arguments of a call that begins; NULL for one that ends. */
static __always_inline void send_sync(__u32 kind, long call, struct pt_regs *registers)
{
	__u64 ids = bpf_get_current_pid_tgid(), inode = 0;
	struct sync_record record = {
		.kind = kind,
		.call = call,
		.time_ns = bpf_ktime_get_ns(),
		.pid = ids >> 32,
		.tid = ids,
	};

	if (registers && call != CALL_SYNC && call != CALL_MSYNC)
		inode = inode_of_descriptor(registers->di);
	if (inode) {
		__u64 superblock = READ(inode, inode, i_sb);

		record.inode = READ(inode, inode, i_ino);
		record.generation = READ(inode, inode, i_generation);
		record.filesystem = READ(super_block, superblock, s_dev);
		record.disk = disk_of_filesystem(superblock);
		if (!is_traced(record.disk) && record.disk)
			return;
		note_name(inode, record.time_ns);
	}
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	send(&record, sizeof(record), &control.lost_syncs);
}

#endif
