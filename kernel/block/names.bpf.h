/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls that change names of files, as the calls were given them: the kernel resolves a path on
 * its stack, where no tracepoint shows it, so user space matches it with the files it knows. Read
 * when the call is over: the kernel has just read the same bytes, so that they are in memory.
 */
#ifndef JOJ_NAMES_BPF_H
#define JOJ_NAMES_BPF_H

#define RENAME_EXCHANGE 2	/* include/uapi/linux/fs.h */

struct name_scratch {
	__u32 busy;
	__u32 padding;
	struct name_record record;
	char name[PATH_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name_scratch);
} name_scratches SEC(".maps");

static __always_inline __u64 inode_of_directory(int descriptor)
{
	__u64 file, dentry;

	if (descriptor == AT_FDCWD) {
		dentry = READ(fs_struct, current_task()->fs, pwd.dentry);
		return dentry ? READ(dentry, dentry, d_inode) : 0;
	}
	file = file_of_descriptor(descriptor);
	return file ? READ(file, file, f_inode) : 0;
}

/*
 * One name: PATH is the address the call was given, relative to the directory of DESCRIPTOR; or, of
 * a REQUEST of io_uring, the kernel's own copy.
 */
__noinline int send_name(__u32 call, int descriptor, __u64 path, __u32 flags, __u64 request)
{
	struct name_scratch *scratch;
	struct name_record *record;
	__u64 ids = bpf_get_current_pid_tgid(), inode;
	__u32 zero = 0;
	long size;

	scratch = bpf_map_lookup_elem(&name_scratches, &zero);
	if (!scratch || scratch->busy) {
		__sync_fetch_and_add(&control.lost_changes, 1);
		return 0;
	}
	scratch->busy = 1;
	record = &scratch->record;
	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_NAME;
	record->call = call;
	record->time_ns = bpf_ktime_get_ns();
	record->pid = ids >> 32;
	record->tid = ids;
	record->flags = flags;
	record->request = request;
	if (request)
		size = bpf_probe_read_kernel_str(scratch->name, PATH_BYTES, (void *)path);
	else
		size = bpf_probe_read_user_str(scratch->name, PATH_BYTES, (void *)path);
	if (size <= 0 || size >= PATH_BYTES) {
		record->flags |= NAME_TRUNCATED;
		size = 0;
	} else if (scratch->name[0] != '/') {
		inode = inode_of_directory(descriptor);
		if (inode) {
			record->inode = READ(inode, inode, i_ino);
			record->generation = READ(inode, inode, i_generation);
			record->filesystem = READ(super_block, READ(inode, inode, i_sb), s_dev);
			note_file(inode, record->time_ns, NOTE_NAME);
		}
	}
	record->name_bytes = size;
	send_long(record, sizeof(*record) + (size & (PATH_BYTES - 1)), &control.lost_changes);
	scratch->busy = 0;
	return 0;
}

static __always_inline void send_names(long call, const struct pt_regs *registers)
{
	__u32 exchange = 0;

	if (call == CALL_RENAMEAT2 && registers->r8 & RENAME_EXCHANGE)
		exchange = NAME_EXCHANGE;
	switch (call) {
	case CALL_RENAME:
	case CALL_LINK:
		send_name(call, AT_FDCWD, registers->di, 0, 0);
		send_name(call, AT_FDCWD, registers->si, NAME_SECOND, 0);
		break;
	case CALL_RENAMEAT:
	case CALL_RENAMEAT2:
	case CALL_LINKAT:
		send_name(call, registers->di, registers->si, 0, 0);
		send_name(call, registers->dx, registers->r10, NAME_SECOND | exchange, 0);
		break;
	case CALL_SYMLINK:
		send_name(call, AT_FDCWD, registers->si, 0, 0);
		break;
	case CALL_SYMLINKAT:
		send_name(call, registers->si, registers->dx, 0, 0);
		break;
	default:
		/* The calls named ...at, which take a directory, came late to the table. */
		if (call < CALL_OPENAT)
			send_name(call, AT_FDCWD, registers->di, 0, 0);
		else
			send_name(call, registers->di, registers->si, 0, 0);
	}
}

#endif
