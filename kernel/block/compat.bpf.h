/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between the kernels that one object serves (6.1 to 7.3), told apart by what
 * the running kernel's BTF has and never by version number. Tried on 6.1, 6.12, 6.18 and 7.3; what
 * is said of versions between them is from reading, and not tried. Where several ways are known,
 * the last one is not asked for: a kernel that has none of them refuses the programs, and says the
 * field.
 */
#ifndef JOJ_COMPAT_BPF_H
#define JOJ_COMPAT_BPF_H

/* enum req_op (include/linux/blk_types.h): a read is 0, greater ones carry no pages of an owner. */
#define REQ_OP_MASK 0xff
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3

enum pageflags {
	PG_slab,
	PG_head,
};

enum pagetype {
	PGTY_slab,
};

enum pagetype___bits {
	PG_slab___bits,
	PAGE_TYPE_BASE___bits,
};

struct page___typed {
	unsigned int page_type;
} __attribute__((preserve_access_index));

/* The order of a large folio has a field of its own (6.1) ... */
struct folio___order_field {
	unsigned char _folio_order;
} __attribute__((preserve_access_index));

/* ... or is in the low byte of its first tail page's flags (6.6 on), which 6.1 has too. */
struct folio___order_in_flags {
	unsigned long _flags_1;
} __attribute__((preserve_access_index));

/* An extent buffer has pages[] (6.1) or folios[] (6.18). */
struct extent_buffer___pages {
	struct page *pages[16];
} __attribute__((preserve_access_index));

struct extent_buffer___folios {
	struct folio *folios[16];
} __attribute__((preserve_access_index));

/* A btrfs_bio names its inode (6.18) ... */
struct btrfs_bio___owned {
	struct btrfs_inode *inode;
} __attribute__((preserve_access_index));

/* ... or that of a compressed extent does so by way of a compressed_bio (6.1). */
struct compressed_bio___owned {
	struct inode *inode;
} __attribute__((preserve_access_index));

/* ... and that of direct I/O by way of a btrfs_dio_private (6.1). */
struct btrfs_dio_private___owned {
	struct inode *inode;
	struct bio bio;
} __attribute__((preserve_access_index));

struct io_fixed_file {
	unsigned long file_ptr;
} __attribute__((preserve_access_index));

struct io_rsrc_node___file {
	unsigned long file_ptr;
} __attribute__((preserve_access_index));

/* The files that a ring of io_uring has by numbers are in an array (6.1) ... */
struct io_ring_ctx___array {
	struct {
		struct io_fixed_file *files;
	} file_table;
	unsigned int nr_user_files;
} __attribute__((preserve_access_index));

/* ... or in one of nodes (6.13 on). */
struct io_ring_ctx___nodes {
	struct {
		struct {
			unsigned int nr;
			struct io_rsrc_node___file **nodes;
		} data;
	} file_table;
} __attribute__((preserve_access_index));

/* A page of a folio behind the first knows the first (6.1), or also by a mask (7.0 on). */
struct page___head {
	unsigned long compound_head;
} __attribute__((preserve_access_index));

struct page___info {
	unsigned long compound_info;
} __attribute__((preserve_access_index));

/* What is done of a bio's vector has had two names (6.1, 7.2). */
struct bio___done {
	struct {
		unsigned int bi_bvec_done;
	} bi_iter;
} __attribute__((preserve_access_index));

struct bio___offset {
	struct {
		unsigned int bi_offset;
	} bi_iter;
} __attribute__((preserve_access_index));

/* The entry of a dentry in the list of its inode is in a union with a name (6.1) or none (7.1). */
struct dentry___named_union {
	union {
		struct hlist_node d_alias;
	} d_u;
} __attribute__((preserve_access_index));

struct dentry___nameless_union {
	struct hlist_node d_alias;
} __attribute__((preserve_access_index));

/* The names of a request of io_uring: pointers (6.1), or each a struct of one (7.0 on). */
struct delayed_filename {
	struct filename *__incomplete_filename;
} __attribute__((preserve_access_index));

#define OF_ONE_NAME(type)                                                                       \
	struct type##___ready {                                                                 \
		struct filename *filename;                                                      \
	} __attribute__((preserve_access_index));                                               \
	struct type##___delayed {                                                               \
		struct delayed_filename filename;                                               \
	} __attribute__((preserve_access_index))

#define OF_TWO_NAMES(type)                                                                      \
	struct type##___ready {                                                                 \
		struct filename *oldpath, *newpath;                                             \
	} __attribute__((preserve_access_index));                                               \
	struct type##___delayed {                                                               \
		struct delayed_filename oldpath, newpath;                                       \
	} __attribute__((preserve_access_index))

OF_ONE_NAME(io_unlink);
OF_ONE_NAME(io_mkdir);
OF_TWO_NAMES(io_rename);
OF_TWO_NAMES(io_link);

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
} __attribute__((preserve_access_index));

/* The time of modification is a timespec64 (6.1), one of another name (6.7), two fields (6.11). */
struct inode___timespec {
	struct timespec64 i_mtime;
} __attribute__((preserve_access_index));

struct inode___renamed_timespec {
	struct timespec64 __i_mtime;
} __attribute__((preserve_access_index));

struct inode___split_time {
	__s64 i_mtime_sec;
	__u32 i_mtime_nsec;
} __attribute__((preserve_access_index));

/*
 * page.flags is an unsigned long (6.1) or a struct memdesc_flags_t (6.18), so a CO-RE access to
 * it relocates on one side only. It is the first member on both.
 */
static __always_inline __u64 page_flags(__u64 page)
{
	return read_memory(page, 8);
}

/*
 * The first page of the folio that a page is in. A mask, which is (__u64)-(1 << bits) | 1, is
 * greater than the address of any struct page.
 */
#define MASK_BITS_LIMIT 36

static __always_inline __u64 folio_of_page(__u64 page)
{
	__u64 head;

	if (bpf_core_field_exists(((struct page___info *)0)->compound_info)) {
		head = READ(page___info, page, compound_info);
		if (head & 1 && head >= -(1ULL << MASK_BITS_LIMIT))
			return page & head;
	} else {
		head = READ(page___head, page, compound_head);
	}
	return head & 1 ? head - 1 : page;
}

static __always_inline __u32 done_of_vector(struct bio *bio)
{
	if (bpf_core_field_exists(((struct bio___offset *)0)->bi_iter.bi_offset))
		return ((struct bio___offset *)bio)->bi_iter.bi_offset;
	return ((struct bio___done *)bio)->bi_iter.bi_bvec_done;
}

/*
 * Whether direct I/O may have bios of which only the call says where in the file they are: through
 * fs/direct-io.c, as that of F2FS before 5.17, and a read that its caller waits for, where it is
 * one bio in an iomap_dio_simple (bio_await() gives such a bio an end that many have).
 */
static __always_inline bool calls_have_place(void)
{
#ifdef BEFORE_5_17
	return true;
#else
	return bpf_core_type_exists(struct iomap_dio_simple);
#endif
}

/* Before folios (5.16) a page says itself whose it is. */
#ifdef BEFORE_5_17
struct page___owned {
	struct address_space *mapping;
	unsigned long index, private;
	unsigned char compound_order;
} __attribute__((preserve_access_index));

#define OWNED_PAGE page___owned
#else
#define OWNED_PAGE folio
#endif

/* log2 of the pages in the folio whose first page this is. */
static __always_inline __u32 folio_order(__u64 folio)
{
	if (!(page_flags(folio) >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 0;
#ifdef BEFORE_5_17
	return READ(page___owned, folio + bpf_core_type_size(struct page), compound_order);
#else
	if (bpf_core_field_exists(((struct folio___order_field *)0)->_folio_order))
		return READ(folio___order_field, folio, _folio_order);
	return READ(folio___order_in_flags, folio, _flags_1) & 0xff;
#endif
}

/*
 * Memory of the slab allocator keeps other things where a folio keeps its mapping. A page flag
 * tells it (6.1), a bit of the page type that is clear while its upper bits are set (6.10, 6.11),
 * or a value of the page type (6.12 on).
 */
static __always_inline bool is_slab(__u64 folio)
{
	if (bpf_core_enum_value_exists(enum pageflags, PG_slab))
		return page_flags(folio) >> bpf_core_enum_value(enum pageflags, PG_slab) & 1;
	if (bpf_core_enum_value_exists(enum pagetype, PGTY_slab))
		return READ(page___typed, folio, page_type) >> 24 ==
		       bpf_core_enum_value(enum pagetype, PGTY_slab);
	if (bpf_core_enum_value_exists(enum pagetype___bits, PG_slab___bits)) {
		__u32 base = bpf_core_enum_value(enum pagetype___bits, PAGE_TYPE_BASE___bits);
		__u32 slab = bpf_core_enum_value(enum pagetype___bits, PG_slab___bits);

		return (READ(page___typed, folio, page_type) & (base | slab)) == base;
	}
	return false;
}

#ifdef BEFORE_5_17
/* Where an extent buffer has its pages: 0 until the first page of one was met. */
__u64 pages_in_buffer SEC(".data.btrfs") = 0;

#define BUFFER_WORDS 64

/*
 * Likewise where modules have no BTF (before 5.11), of the buffer that has PAGE, which is at
 * ADDRESS. It begins with its own address; where its pages are is learnt from the first of them.
 */
static __always_inline __u64 learnt_buffer_page(__u64 buffer, __u64 page, __u64 address)
{
	if (read_memory(buffer, 8) != address)
		return pages_in_buffer ? read_memory(buffer + pages_in_buffer, 8) : 0;
	for (__u32 word = 0; word < BUFFER_WORDS && !pages_in_buffer; word++)
		if (read_memory(buffer + 8 * word, 8) == page)
			pages_in_buffer = 8 * word;
	return page;
}
#endif

/* The first page of a Btrfs extent buffer; 0 where Btrfs is a module that is not loaded. */
static __always_inline __u64 extent_buffer_page(__u64 buffer)
{
	if (bpf_core_field_exists(((struct extent_buffer___folios *)0)->folios))
		return READ(extent_buffer___folios, buffer, folios[0]);
	if (bpf_core_field_exists(((struct extent_buffer___pages *)0)->pages))
		return READ(extent_buffer___pages, buffer, pages[0]);
	return 0;
}

/*
 * The file that a ring has by a number; 0 where there is none. The lowest bits of the pointer say
 * what the file can do.
 */
static __always_inline __u64 file_of_ring(__u64 ring, __u32 number)
{
	__u64 pointer = 0, node;

	if (bpf_core_field_exists(((struct io_ring_ctx___nodes *)0)->file_table.data.nodes)) {
		if (number >= READ(io_ring_ctx___nodes, ring, file_table.data.nr))
			return 0;
		node = READ(io_ring_ctx___nodes, ring, file_table.data.nodes) + 8 * number;
		node = read_memory(node, 8);
		if (node)
			pointer = READ(io_rsrc_node___file, node, file_ptr);
	} else if (bpf_core_field_exists(((struct io_ring_ctx___array *)0)->file_table.files)) {
		if (number >= READ(io_ring_ctx___array, ring, nr_user_files))
			return 0;
		pointer = READ(io_ring_ctx___array, ring, file_table.files) +
			  (__u64)number * bpf_core_type_size(struct io_fixed_file);
		pointer = READ(io_fixed_file, pointer, file_ptr);
	}
	return pointer & ~7ULL;
}

static __always_inline __u32 alias_in_dentry(void)
{
	if (bpf_core_field_exists(((struct dentry___nameless_union *)0)->d_alias))
		return bpf_core_field_offset(struct dentry___nameless_union, d_alias);
	return bpf_core_field_offset(struct dentry___named_union, d_u.d_alias);
}

/* When the bytes of a file changed last: a value that differs whenever the time does. */
static __always_inline __u64 modification_time(__u64 inode)
{
	if (bpf_core_field_exists(((struct inode___split_time *)0)->i_mtime_nsec))
		return READ(inode___split_time, inode, i_mtime_sec) * 1000000000 +
		       READ(inode___split_time, inode, i_mtime_nsec);
	if (bpf_core_field_exists(((struct inode___renamed_timespec *)0)->__i_mtime))
		return READ(inode___renamed_timespec, inode, __i_mtime.tv_sec) * 1000000000 +
		       READ(inode___renamed_timespec, inode, __i_mtime.tv_nsec);
	return READ(inode___timespec, inode, i_mtime.tv_sec) * 1000000000 +
	       READ(inode___timespec, inode, i_mtime.tv_nsec);
}

#endif
