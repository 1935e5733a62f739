/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls: which ones wait for the device, which ones change an inode or a name, and which
 * file the current one is about. Numbers are x86_64's.
 */
#ifndef JOJ_CALLS_BPF_H
#define JOJ_CALLS_BPF_H

#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000

/* include/uapi/asm-generic/fcntl.h; a file made by this very open has FMODE_CREATED. */
#define O_CREAT 00000100
#define O_TRUNC 00001000
#define O_DSYNC 00010000
#define O_SYNC 04000000		/* __O_SYNC */
#define FMODE_CREATED 0x100000
#define AT_FDCWD -100

#define RWF_DSYNC 2		/* include/uapi/linux/fs.h */
#define RWF_SYNC 4
#define SB_SYNCHRONOUS 16

enum role {
	ROLE_FILE = 1,		/* its first argument is the file it is about */
	ROLE_WAITS = 2,		/* it waits for the device */
	ROLE_WRITES = 4,	/* it writes, and waits for the device if the file asks for it */
	ROLE_CHANGES = 8,	/* it changes the inode */
	ROLE_OPENS = 16,	/* it gives a file, which it may have made */
	ROLE_NAMES = 32,	/* it changes names of files */
	ROLE_SUBMITS = 64,	/* it has operations done: see aio.bpf.h */
};

static const __u8 roles[CALLS_LIMIT] = {
	TRACED_CALLS
};

/* F2FS_IOC_COMMIT_ATOMIC_WRITE: SQLite's batch atomic write, which ends like an fsync. */
#define F2FS_COMMIT_ATOMIC_WRITE 0xf502

/*
 * A call of this number waits, writes or changes something, to 64-bit programs or to others: most
 * do not to either.
 */
static __always_inline bool may_have_role(__u64 number)
{
	__u32 place = number, native;

	if (number >= CALLS_LIMIT)
		return IS_X32(number);
	asm volatile("" : "+r"(place));
	native = number_on_x86_64(place);
#ifdef __TARGET_ARCH_arm64
	if (native >= CALLS_LIMIT)
		return natives[place & (CALLS_LIMIT - 1)];
#endif
	return roles[native & (CALLS_LIMIT - 1)] & ~ROLE_FILE ||
	       natives[place & (CALLS_LIMIT - 1)];
}

static __always_inline __u32 role_of(struct call call, const struct pt_regs *registers)
{
	__u32 place = call.number, role;

	if (call.number >= CALLS_LIMIT)
		return 0;
	/* As in native_of(). */
	asm volatile("" : "+r"(place));
	role = roles[place & (CALLS_LIMIT - 1)];
	if (call.number == CALL_IOCTL && ARGUMENT_2(call, registers) != F2FS_COMMIT_ATOMIC_WRITE)
		role &= ~ROLE_WAITS;
	return role;
}

static __always_inline bool in_kernel_thread(const struct task_struct *task)
{
	return OF_TASK(task, flags) & PF_KTHREAD;
}

/* What bpf_get_current_comm() does, by loads: the call costs some ten times as much. */
static __always_inline void copy_comm(char *comm, const struct task_struct *task)
{
#ifdef BEFORE_5_17
	bpf_probe_read_kernel(comm, 16,
			      (void *)task + bpf_core_field_offset(struct task_struct, comm));
#else
	for (int word = 0; word < 4; word++)
		((__u32 *)comm)[word] = ((const __u32 *)task->comm)[word];
#endif
}

/* The registers that TASK, this one, had when it entered the kernel. */
static __always_inline struct pt_regs *registers_of(struct walk *walk, struct task_struct *task)
{
#ifdef BEFORE_5_17
	__u64 bytes = bpf_core_type_size(struct pt_regs), top = OF_TASK(task, stack);

	/* A copy: what the verifier knows no type of is read by helpers alone. */
	top += THREAD_BYTES - bytes;
	if (bytes > sizeof(walk->registers) ||
	    bpf_probe_read_kernel(walk->registers, bytes, (void *)top))
		__builtin_memset(walk->registers, 0, sizeof(walk->registers));
	return (void *)walk->registers;
#else
	return (void *)bpf_task_pt_regs((void *)task);
#endif
}

/*
 * Which sync a write to FILE ends with that is made with the flags RWF_...: enum call_flag.
 *
 * This function and traced_inode() are global: the verifier follows such a function once, and not
 * anew for each way that leads to it. Static, they took it 7 s of every start, and 976,069 of the
 * million instructions that it follows at most.
 */
__noinline __u32 sync_flags(__u64 file, __u32 of_write)
{
	__u32 open_flags = READ(file, file, f_flags), flags = 0;
	__u64 inode = real_inode(READ(file, file, f_inode));
	__u64 superblock = inode ? READ(inode, inode, i_sb) : 0;

	if (open_flags & O_DSYNC)
		flags |= open_flags & O_SYNC ? CALL_SYNC_ALL : CALL_DSYNC;
	if (of_write & RWF_DSYNC)
		flags |= CALL_DSYNC;
	if (of_write & RWF_SYNC)
		flags |= CALL_SYNC_ALL;
	if (superblock && READ(super_block, superblock, s_flags) & SB_SYNCHRONOUS)
		flags |= CALL_SYNC_ALL;
	return flags;
}

/* How a call on FILE treats the device: enum call_flag. */
static __always_inline __u32 call_flags(struct call call, const struct pt_regs *registers,
					__u64 file)
{
	__u32 of_write = call.number == CALL_PWRITEV2 ? ARGUMENT_6(call, registers) : 0;
	__u32 flags = sync_flags(file, of_write);

	if (READ(file, file, f_flags) & O_DIRECT)
		flags |= CALL_DIRECT;
	return flags;
}

/* Says in RECORD which call the submitter is in; gives the inode of the file that is about. */
static __always_inline __u64 describe_call(struct walk *walk, struct task_struct *task)
{
	struct bio_record *record = &walk->bio;
	struct pt_regs *registers;
	struct call call;
	__u64 file;

	if (calls_have_place())
		walk->call_bytes = 0;
	record->call = NO_CALL;
	if (record->kernel_thread)
		return 0;
	/*
	 * A thread that io_uring made was never in a call: its registers are all zero. The call
	 * that it works for stands in its place.
	 */
	record->call = CALL_IO_URING_ENTER;
	if (OF_TASK(task, flags) & PF_IO_WORKER)
		return 0;
	registers = registers_of(walk, task);
	call = call_of(task, CALL_NUMBER(registers));
	record->call = call.number;
	if (!(role_of(call, registers) & ROLE_FILE))
		return 0;
	file = file_of_descriptor(ARGUMENT_1(call, registers));
	if (!file)
		return 0;
	record->call_flags = call_flags(call, registers, file);
	if (calls_have_place() && !call.is_32_bit &&
	    (call.number == CALL_PREAD64 || call.number == CALL_PWRITE64)) {
		walk->call_bytes = ARGUMENT_3(call, registers);
		walk->call_offset = ARGUMENT_4(call, registers);
	}
	return real_inode(READ(file, file, f_inode));
}

#include "transactions.bpf.h"

/* What begins is about this file. */
static __noinline void send_sync_on(struct sync_record *record, __u64 inode)
{
	__u64 superblock = READ(inode, inode, i_sb);

	record->inode = READ(inode, inode, i_ino);
	record->generation = READ(inode, inode, i_generation);
	record->subvolume = subvolume_of(inode, superblock);
	record->filesystem = READ(super_block, superblock, s_dev);
	record->disk = disk_of_filesystem(superblock);
	note_file(inode, record->time_ns, NOTE_NAME);
	begin_waiting(record->request ? record->request : record->tid, record->call, inode,
		      record->flags);
	send(record, sizeof(*record), &control.lost_syncs);
}

/*
 * INODE is that of the file the call is about; 0 where it names none, or the call ends. REQUEST is
 * that of io_uring that does what CALL does.
 */
static __always_inline void send_sync(__u32 kind, __u32 call, __u64 inode, __u32 flags,
				      __u64 request)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct sync_record record = {
		.kind = kind,
		.call = call,
		.time_ns = bpf_ktime_get_boot_ns(),
		.pid = ids >> 32,
		.tid = ids,
		.flags = flags,
		.request = request,
	};

	copy_comm(record.comm, current_task());
	if (inode) {
		send_sync_on(&record, inode);
		return;
	}
	if (kind == RECORD_SYNC_END)
		end_waiting(request ? request : record.tid);
	send(&record, sizeof(record), &control.lost_syncs);
}

/* The inode of a descriptor, if it is on a filesystem of interest. */
__noinline __u64 traced_inode(__u64 file)
{
	__u64 inode = file ? real_inode(READ(file, file, f_inode)) : 0;
	__u64 superblock = inode ? READ(inode, inode, i_sb) : 0;

	return superblock && may_be_traced(superblock) ? inode : 0;
}

/* A file that is going to be changed: its state before must be known. */
static __always_inline void know_file(__u64 inode)
{
	struct file_state *state;
	struct file_key key = {};

	describe_key(&key, inode);
	state = bpf_map_lookup_elem(&known_files, &key);
	if (!state || state->session != control.session)
		note_file(inode, 0, 0);
}

#endif
