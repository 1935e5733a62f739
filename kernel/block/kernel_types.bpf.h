/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few fields of the kernel's structures that attribution needs, under the kernel's own names.
 * preserve_access_index makes libbpf look every offset up in the running kernel's BTF, so order
 * and gaps do not matter here, and a vmlinux.h of one kernel (3 MB) is not needed.
 */
#ifndef JOJ_KERNEL_TYPES_BPF_H
#define JOJ_KERNEL_TYPES_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

struct inode;

struct dentry {
	struct dentry *d_parent;
	struct inode *d_inode;
	struct qstr d_name;
};

struct gendisk {
	int major, first_minor;
};

struct block_device {
	__u64 bd_start_sect;
	struct gendisk *bd_disk;
	__u32 bd_dev;
	void *bd_holder;
};

struct file_system_type {
	const char *name;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
	unsigned long s_flags;
	struct block_device *s_bdev;
	struct file_system_type *s_type;
	void *s_fs_info;
};

struct inode {
	__u16 i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	unsigned int i_nlink;
	__u32 i_generation;
	__s64 i_size;
	__u64 i_blocks;
	__u32 i_rdev;
	__u8 i_blkbits;
	struct hlist_head i_dentry;
};

struct address_space_operations {
	void *dirty_folio, *invalidate_folio;
};

struct address_space {
	struct inode *host;
	const struct address_space_operations *a_ops;
};

struct file {
	struct inode *f_inode;
	unsigned int f_flags;
	unsigned int f_mode;
};

struct fs_struct;
struct nsproxy;

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid, tgid;
	char comm[16];
	struct files_struct *files;
	struct fs_struct *fs;
	struct nsproxy *nsproxy;
	void *stack;
};

struct page {
	unsigned long flags;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
	void *private;
};

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size, bi_idx;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len, bv_offset;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	__u8 bi_status;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

struct request_queue {
	struct gendisk *disk;
};

struct blk_mq_hw_ctx;

struct blk_mq_ctx {
	struct blk_mq_hw_ctx *hctxs[3];
};

struct request {
	struct request_queue *q;
	struct blk_mq_ctx *mq_ctx;
	unsigned int cmd_flags, __data_len;
	__u64 __sector;
	struct bio *bio, *biotail;
	struct list_head queuelist;
	__u64 start_time_ns;
	struct reference {
		int counter;
	} ref;				/* atomic_t; refcount_t before Linux 5.16 */
};

struct blk_flush_queue {
	unsigned int flush_pending_idx : 1;
	unsigned int flush_running_idx : 1;
	struct list_head flush_queue[2];
	struct request *flush_rq;
};

struct blk_mq_hw_ctx {
	struct blk_flush_queue *fq;
};

struct buffer_head {
	char *b_data;
};

struct ext4_inode_info {
	struct inode vfs_inode;
	unsigned int i_sync_tid, i_datasync_tid;
};

struct ext4_sb_info {
	unsigned int s_mount_opt;
};

struct work_struct {
	void *func;
};

struct fsync_iocb {
	struct file *file;
	struct work_struct work;
	bool datasync;
};

struct kiocb {
	struct file *ki_filp;
	__s64 ki_pos;
	void *ki_complete;
	int ki_flags;
};

/* fs/direct-io.c */
struct dio {
	struct inode *inode;
	struct task_struct *waiter;
	struct kiocb *iocb;
	__s64 result;
};

struct iomap_dio {
	struct kiocb *iocb;
	__s64 size;
	union {
		struct {
			struct task_struct *waiter;
		} submit;
		struct {
			struct work_struct work;
		} aio;
	};
};

struct iomap_dio_simple {
	struct kiocb *iocb;
	struct bio bio;
};

struct xfs_buf_ops {
	char *name;
};

struct xfs_buf {
	const struct xfs_buf_ops *b_ops;
};

struct filename {
	const char *name;
};

struct io_cmd_data {
	struct file *file;
};

struct io_cqe {
	__s32 res;
	int fd;
};

struct io_kiocb {
	struct file *file;
	__u8 opcode;
	__u64 flags;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
};

struct io_sync {
	int flags;
};

struct io_rw {
	int flags;
};

struct io_rename {
	int old_dfd, new_dfd;
	int flags;
};

struct io_link {
	int old_dfd, new_dfd;
};

struct io_unlink {
	int dfd;
};

struct io_mkdir {
	int dfd;
};

struct extent_buffer {
	__s8 log_index;
};

struct btrfs_fs_info {
	__u32 nodesize;
};

struct btrfs_bio {
	__u64 file_offset;
	void *end_io;
	void *private;
	struct bio bio;
};

struct btrfs_io_context {
	struct bio *orig_bio;
};

struct btrfs_io_stripe {
	struct btrfs_io_context *bioc;
};

#pragma clang attribute pop

#endif
