/* SPDX-License-Identifier: GPL-2.0-only */
/* The fields of the kernel's structures that the recorder reads, wherever this kernel has them. */
#ifndef JOJ_RECORDER_KERNEL_TYPES_H
#define JOJ_RECORDER_KERNEL_TYPES_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned short i_mode;
	unsigned int i_nlink;
	unsigned long i_ino;
	long long i_size;
	struct super_block *i_sb;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	unsigned int f_mode;
};

struct fs_struct {
	int umask;
	struct path root, pwd;
};

struct mm_struct {
	struct file *exe_file;
};

struct task_struct {
	struct thread_info thread_info;
	struct mm_struct *mm;
	int exit_code;
	int pid, tgid;
	struct fs_struct *fs;
	struct files_struct *files;
};

struct linux_binprm {
	const char *filename;
};
#pragma clang attribute pop

#endif
