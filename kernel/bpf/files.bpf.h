/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files that a thread has open, by their descriptors. Comes after the struct task_struct of the
 * program that includes it, which has the field `files`.
 */
#ifndef JOJ_FILES_BPF_H
#define JOJ_FILES_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};
#pragma clang attribute pop

/* The struct file of a descriptor of this thread; 0 where there is none. */
static __always_inline __u64 file_of_descriptor(__u64 descriptor)
{
	__u64 table = READ(files_struct, POINTER_OF_TASK(current_task(), files), fdt);

	if (!table || descriptor >= READ(fdtable, table, max_fds))
		return 0;
	return read_memory(READ(fdtable, table, fd) + 8 * descriptor, 8);
}

#endif
