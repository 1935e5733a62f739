/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds what an absolute path means to the current task: its root directory and the mounts it sees.
 * Comes after the structures inode, dentry and task_struct of the program that includes it; the
 * last one has the fields `fs` and `nsproxy`.
 */
#ifndef JOJ_ROOTS_BPF_H
#define JOJ_ROOTS_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct vfsmount mnt;
	int mnt_id;
};

struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path root, pwd;
};
#pragma clang attribute pop

struct task_root {
	__u64 inode;		/* struct inode of the root directory; 0 where nothing is known */
	__u64 inode_number;
	__u32 mount;		/* mnt_id of the mount that it is in */
	__u32 mount_namespace;	/* as in /proc/PID/ns/mnt */
	bool is_of_mount;	/* it is the root of that mount */
};

static __always_inline void read_root(struct task_root *root)
{
	struct task_struct *task = current_task();
	__u64 mounts = READ(nsproxy, POINTER_OF_TASK(task, nsproxy), mnt_ns);
	__u64 dentry = READ(fs_struct, POINTER_OF_TASK(task, fs), root.dentry);
	__u64 mount = READ(fs_struct, POINTER_OF_TASK(task, fs), root.mnt);

	root->inode = 0;
	if (!dentry || !mount || !mounts)
		return;
	root->inode = READ(dentry, dentry, d_inode);
	root->inode_number = READ(inode, root->inode, i_ino);
	root->mount_namespace = READ(mnt_namespace, mounts, ns.inum);
	root->is_of_mount = READ(vfsmount, mount, mnt_root) == dentry;
	mount -= bpf_core_field_offset(struct mount, mnt);
	root->mount = READ(mount, mount, mnt_id);
}

#endif
