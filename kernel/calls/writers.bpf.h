/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts who writes which file: the bytes that a process handed to write calls, how often it made a
 * clean page dirty, by whatever call or mapping. Kernel threads write those pages to the disk
 * later.
 *
 * There are two maps: one is counted in while user space reads and empties the other. Comes after
 * sqlite_files.bpf.h.
 */
#ifndef JOJ_WRITERS_BPF_H
#define JOJ_WRITERS_BPF_H

struct writer_key {
	struct file_life life;
	__u32 process;
	__u32 padding;
};

struct writer {
	__u64 write_calls;
	__u64 write_bytes;
	__u64 dirtied;			/* pages, or folios of several */
	char name[16];			/* command name of the thread that was first */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct writer_key);
	__type(value, struct writer);
} writers_a SEC(".maps"), writers_b SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct address_space {
	struct inode *host;
};
#pragma clang attribute pop

static __always_inline bool is_write(__u64 number)
{
	switch (number) {
	case CALL_WRITE:
	case CALL_PWRITE64:
	case CALL_WRITEV:
	case CALL_PWRITEV:
	case CALL_PWRITEV2:
		return true;
	default:
		return false;
	}
}

/* A write call of so many bytes; of none: a page that became dirty. */
static __always_inline void count_writer(struct file_life life, __u64 bytes)
{
	struct writer_key key = { .life = life, .process = bpf_get_current_pid_tgid() >> 32 };
	void *writers = watch.writers_half == 1 ? (void *)&writers_a : (void *)&writers_b;
	struct writer *writer, fresh = {
		.write_calls = !!bytes,
		.write_bytes = bytes,
		.dirtied = !bytes,
	};

	if (!watch.writers_half)
		return;
	writer = bpf_map_lookup_elem(writers, &key);
	if (writer) {
		/* To add 0 would be compiled to an operation that older kernels lack. */
		if (bytes) {
			__sync_fetch_and_add(&writer->write_calls, 1);
			__sync_fetch_and_add(&writer->write_bytes, bytes);
		} else {
			__sync_fetch_and_add(&writer->dirtied, 1);
		}
		return;
	}
	bpf_get_current_comm(fresh.name, sizeof(fresh.name));
	if (bpf_map_update_elem(writers, &key, &fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&watch.uncounted, 1);
}

static __always_inline void count_dirty(const struct address_space *mapping)
{
	struct file_life life = {};
	__u64 inode, superblock;

	if (!watch.writers_half || !mapping)
		return;
	inode = READ(address_space, mapping, host);
	if (!inode)
		return;
	superblock = READ(inode, inode, i_sb);
	if (!is_on_disk(READ(super_block, superblock, s_magic)))
		return;
	life.inode = READ(inode, inode, i_ino);
	life.generation = READ(inode, inode, i_generation);
	life.filesystem = READ(super_block, superblock, s_dev);
	life.subvolume = subvolume_of(inode, superblock);
	count_writer(life, 0);
}

struct folio;
struct page;

/* A clean folio became dirty (mm/page-writeback.c); the task is who did it. */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(folio_dirtied, struct folio *folio, struct address_space *mapping)
{
	count_dirty(mapping);
	return 0;
}

/* Likewise before Linux 5.18. */
SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(page_dirtied, struct page *page, struct address_space *mapping)
{
	count_dirty(mapping);
	return 0;
}

#endif
