/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls that change names of files, as the calls were given them: the kernel resolves a path on
 * its stack, where no tracepoint shows it, so user space matches it with the files it knows. Read
 * when the call is over: the kernel has just read the same bytes, so that they are in memory.
 *
 * A path means what it does under the caller's root and mounts, which may be others than those of
 * user space (chroot(2), unshare(2)): what tells is sent with it.
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
		dentry = READ(fs_struct, POINTER_OF_TASK(current_task(), fs), pwd.dentry);
		return dentry ? READ(dentry, dentry, d_inode) : 0;
	}
	file = file_of_descriptor(descriptor);
	return file ? READ(file, file, f_inode) : 0;
}

/* Says in RECORD what root and which mounts the caller has; gives the inode of the root. */
static __always_inline __u64 describe_root(struct name_record *record)
{
	struct task_root root;

	read_root(&root);
	if (!root.inode)
		return 0;
	record->root_inode = root.inode_number;
	record->root_mount = root.mount;
	record->mount_namespace = root.mount_namespace;
	if (root.is_of_mount)
		record->flags |= NAME_MOUNT_ROOT;
	return root.inode;
}

/* The directory that a path begins in; of an overlay that of its upper layer, which is changed. */
static __always_inline void describe_directory(struct name_record *record, __u64 given)
{
	__u64 inode = real_inode(given), superblock = inode ? READ(inode, inode, i_sb) : 0;

	if (!superblock) {
		record->flags |= NAME_ELSEWHERE;
		return;
	}
	record->inode = READ(inode, inode, i_ino);
	record->generation = READ(inode, inode, i_generation);
	record->subvolume = subvolume_of(inode, superblock);
	record->filesystem = READ(super_block, superblock, s_dev);
	if (!may_be_traced(superblock))
		record->flags |= NAME_ELSEWHERE;
	note_file(inode, record->time_ns, NOTE_NAME);
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
	record->time_ns = bpf_ktime_get_boot_ns();
	record->pid = ids >> 32;
	record->tid = ids;
	record->flags = flags;
	record->request = request;
	if (request)
		size = bpf_probe_read_kernel_str(scratch->name, PATH_BYTES, (void *)path);
	else
		size = bpf_probe_read_user_str(scratch->name, PATH_BYTES, (void *)path);
	inode = describe_root(record);
	if (size <= 0 || size >= PATH_BYTES) {
		record->flags |= NAME_TRUNCATED;
		inode = size = 0;
	} else if (scratch->name[0] != '/') {
		inode = inode_of_directory(descriptor);
	}
	if (inode)
		describe_directory(record, inode);
	record->name_bytes = size;
	send_long(record, sizeof(*record) + (size & (PATH_BYTES - 1)), &control.lost_changes);
	scratch->busy = 0;
	return 0;
}

static __always_inline void send_names(struct call call, const struct pt_regs *registers)
{
	__u64 first = ARGUMENT_1(call, registers), second = ARGUMENT_2(call, registers);
	__u64 third = ARGUMENT_3(call, registers), fourth = ARGUMENT_4(call, registers);
	__u32 number = call.number, exchange = 0;

	if (number == CALL_RENAMEAT2 && ARGUMENT_5(call, registers) & RENAME_EXCHANGE)
		exchange = NAME_EXCHANGE;
	switch (number) {
	case CALL_RENAME:
	case CALL_LINK:
		send_name(number, AT_FDCWD, first, 0, 0);
		send_name(number, AT_FDCWD, second, NAME_SECOND, 0);
		break;
	case CALL_RENAMEAT:
	case CALL_RENAMEAT2:
	case CALL_LINKAT:
		send_name(number, first, second, 0, 0);
		send_name(number, third, fourth, NAME_SECOND | exchange, 0);
		break;
	case CALL_SYMLINK:
		send_name(number, AT_FDCWD, second, 0, 0);
		break;
	case CALL_SYMLINKAT:
		send_name(number, second, third, 0, 0);
		break;
	default:
		/* The calls named ...at, which take a directory, came late to the table. */
		if (number < CALL_OPENAT)
			send_name(number, AT_FDCWD, first, 0, 0);
		else
			send_name(number, first, second, 0, 0);
	}
}

#endif
