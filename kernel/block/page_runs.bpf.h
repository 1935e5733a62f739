/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cuts the pages of a bio into runs, each with one owner. Per bio would not do: NILFS2 puts up to
 * nine owners in one, and a log-structured filesystem lays blocks of one file side by side that
 * are far apart in it.
 */
#ifndef JOJ_PAGE_RUNS_BPF_H
#define JOJ_PAGE_RUNS_BPF_H

#define PAGE_SIZE_OF_STRUCT bpf_core_type_size(struct page)

#define BLOCK_DEVICE_MAGIC 0x62646576
#define NILFS_MAGIC 0x3434

#define BTRFS_BTREE_INODE 1	/* BTRFS_BTREE_INODE_OBJECTID */
#define F2FS_NODE_INODE 1	/* F2FS_NODE_INO() */

#define F2FS_FOOTER_BYTES 24	/* struct node_footer at the end of every node block: nid, ino */
#define BTRFS_ADDRESS_OFFSET 48	/* btrfs_header.bytenr */
#define BTRFS_OWNER_OFFSET 88	/* btrfs_header.owner */
#define LEAST_PAGE_BYTES 4096	/* no node of Btrfs is smaller */

#define STEPS_AT_ONCE 1024
#define WALK_LIMIT (1 << 16)	/* steps; a bio of 4 GiB in folios of 64 KiB */

/* What decides whether a step continues the open run. */
struct piece {
	__u64 mapping, host, detail, file_offset_bytes, private;
	__u32 flags, bytes;
	bool is_plain;
};

static __always_inline __u64 memory_of_page(__u64 page)
{
	if (!control.vmemmap_base || !control.page_offset_base)
		return 0;
#ifdef __TARGET_ARCH_arm64
	return control.page_offset_base +
	       ((page - control.vmemmap_base) / PAGE_SIZE_OF_STRUCT << PAGE_SHIFT);
#endif
	return read_memory(control.page_offset_base, 8) +
	       ((page - read_memory(control.vmemmap_base, 8)) / PAGE_SIZE_OF_STRUCT << PAGE_SHIFT);
}

static __always_inline void describe_inode(struct run_record *run, __u64 inode, __u64 time_ns)
{
	__u64 superblock = READ(inode, inode, i_sb);

	run->inode = READ(inode, inode, i_ino);
	run->generation = READ(inode, inode, i_generation);
	run->subvolume = subvolume_of(inode, superblock);
	run->magic = READ(super_block, superblock, s_magic);
	run->filesystem = READ(super_block, superblock, s_dev);
	run->mode = READ(inode, inode, i_mode);
	run->links = READ(inode, inode, i_nlink);
	run->size_bytes = READ(inode, inode, i_size);
	/* i_mode of Btrfs' btree inode is whatever its memory held before: never go by it. */
	if (run->magic == BLOCK_DEVICE_MAGIC)
		run->filesystem = READ(inode, inode, i_rdev);
	else if ((run->mode & S_IFMT) == S_IFREG || (run->mode & S_IFMT) == S_IFDIR ||
		 (run->mode & S_IFMT) == S_IFLNK)
		note_file(inode, time_ns, NOTE_NAME);
}

/* Begins a run where the walk is; the one before goes to user space by itself. */
static __always_inline struct run_record *begin_run(struct walk *walk, __u32 flags)
{
	struct run_record *run = &walk->run;

	if (walk->open && walk->counted)
		count_run(walk);
	else if (walk->open)
		send_part(run, sizeof(*run), &control.lost_runs);
	__builtin_memset(run, 0, sizeof(*run));
	run->kind = RECORD_RUN;
	run->serial = walk->bio.serial;
	run->flags = flags;
	run->offset_bytes = walk->offset_bytes;
	walk->open = true;
	return run;
}

#ifdef __TARGET_ARCH_arm64
/*
 * Whether a page of Btrfs' trees may hold several nodes, as then its private is none of them. The
 * piece is made to end with its node, whose tree is read where the node says that it is this one.
 */
static __always_inline bool is_of_small_node(struct piece *piece, __u64 page, __u64 superblock)
{
	__u32 in_page = piece->file_offset_bytes & (PAGE_BYTES - 1), in_node, bytes = 0;
	__u64 memory;

	if (PAGE_BYTES == LEAST_PAGE_BYTES)
		return false;
	if (bpf_core_field_exists(((struct btrfs_fs_info *)0)->nodesize))
		bytes = READ(btrfs_fs_info, READ(super_block, superblock, s_fs_info), nodesize);
	if (bytes >= PAGE_BYTES)
		return false;
	memory = memory_of_page(page);
	if (!memory || bytes < LEAST_PAGE_BYTES)
		return true;
	in_node = in_page & (bytes - 1);
	if (piece->bytes > bytes - in_node)
		piece->bytes = bytes - in_node;
	memory += in_page - in_node;
	if (read_memory(memory + BTRFS_ADDRESS_OFFSET, 8) == piece->file_offset_bytes - in_node)
		piece->detail = read_memory(memory + BTRFS_OWNER_OFFSET, 8);
	return true;
}
#else
#define is_of_small_node(piece, page, superblock) false
#endif

/*
 * Facts about an owner that are not in its inode: which node, which tree. All other pages of one
 * mapping are plain, and its inode is looked at once for all of them.
 */
static __always_inline void look_inside(struct piece *piece, __u64 page)
{
	__u64 superblock = READ(inode, piece->host, i_sb);
	__u32 magic = READ(super_block, superblock, s_magic);
	__u64 number = READ(inode, piece->host, i_ino), memory;

	piece->is_plain = !(magic == F2FS_MAGIC && number == F2FS_NODE_INODE) &&
			  !(magic == BTRFS_MAGIC && number == BTRFS_BTREE_INODE);
	if (piece->is_plain)
		return;
	if (magic == F2FS_MAGIC) {
		memory = memory_of_page(page);
		if (memory)
			piece->detail = read_memory(memory + PAGE_BYTES - F2FS_FOOTER_BYTES, 8);
	} else if (piece->private) {
		if (is_of_small_node(piece, page, superblock))
			return;
#ifdef BEFORE_5_17
		if (!bpf_core_type_exists(struct extent_buffer)) {
			__u64 address = piece->file_offset_bytes & ~(PAGE_BYTES - 1ULL);

			page = learnt_buffer_page(piece->private, page, address);
			memory = memory_of_page(page);
			if (memory && page)
				piece->detail = read_memory(memory + BTRFS_OWNER_OFFSET, 8);
			return;
		}
#else
		/* Btrfs's module is not loaded: no such page is there. */
		if (!bpf_core_type_exists(struct extent_buffer))
			return;
#endif
		memory = memory_of_page(extent_buffer_page(piece->private));
		if (memory)
			piece->detail = read_memory(memory + BTRFS_OWNER_OFFSET, 8);
		/* -1 in every buffer that is not of a log tree. */
		if ((__s8)READ(extent_buffer, piece->private, log_index) >= 0)
			piece->flags |= RUN_LOG_TREE;
	}
}

/*
 * Bytes 8 to 11 of a block: NILFS2 has a magic number there in its segment summaries. BUFFER is the
 * first of its page, and the block IN_PAGE bytes behind it.
 */
static __always_inline __u32 content_of_block(__u64 buffer, __u32 in_page)
{
	__u64 data = buffer ? READ(buffer_head, buffer, b_data) : 0;

	return data ? (__u32)(read_memory(data + in_page + 8, 8)) : 0;
}

/*
 * Of NILFS2, whether a mapping has the nodes of an inode's B-tree. Its operations do nothing but
 * forget pages (nilfs_buffer_cache_aops, Linux 5.19 on); kallsyms may hide their name, as it does
 * all variables where the kernel has no KALLSYMS_ALL.
 */
static __always_inline bool holds_nodes(__u64 operations)
{
	if (!bpf_core_field_exists(((struct address_space_operations *)0)->dirty_folio))
		return false;
	return !READ(address_space_operations, operations, dirty_folio) &&
	       READ(address_space_operations, operations, invalidate_folio);
}

static __always_inline void open_run(struct walk *walk, const struct piece *piece)
{
	struct run_record *run = begin_run(walk, piece->flags);
	__u64 inode = piece->host;

	run->file_offset_bytes = piece->file_offset_bytes;
	run->detail = piece->detail;
	walk->mapping = piece->mapping;
	walk->host = piece->host;
	walk->is_plain = piece->is_plain;
	if (!inode) {
		walk->ownerless = true;
		inode = walk->fallback_inode;
		if (inode)
			run->flags |= walk->fallback_flag;
	} else {
		run->operations = READ(address_space, piece->mapping, a_ops);
	}
	if (!inode)
		return;
	describe_inode(run, inode, walk->bio.time_ns);
	if (run->magic == BLOCK_DEVICE_MAGIC && piece->mapping)
		run->content = content_of_block(piece->private,
						piece->file_offset_bytes & (PAGE_BYTES - 1));
	if (run->magic == NILFS_MAGIC && run->operations && holds_nodes(run->operations))
		run->flags |= RUN_NODES;
}

/* The stretch from POSITION bytes into PAGE on that has one mapping: a page, or a large folio. */
static __always_inline void describe_piece(const struct walk *walk, struct piece *piece,
					   __u64 page, __u32 position)
{
	__u64 folio = folio_of_page(page);
	__u64 index = (page - folio) / PAGE_SIZE_OF_STRUCT, mapping = 0;
	__u32 order = folio_order(folio);

	piece->bytes = PAGE_BYTES - position;
	if (order && order < 20 && index < (1U << order))
		piece->bytes = (((1U << order) - (__u32)index) << PAGE_SHIFT) - position;
	if (!is_slab(folio))
		mapping = READ(OWNED_PAGE, folio, mapping);
	if (mapping & 3)	/* PAGE_MAPPING_FLAGS */
		piece->flags |= RUN_ANONYMOUS;
	else
		piece->mapping = mapping;
	piece->is_plain = walk->open && walk->is_plain && piece->mapping == walk->mapping;
	if (piece->is_plain)
		piece->host = walk->host;
	else if (piece->mapping)
		piece->host = READ(address_space, piece->mapping, host);
	if (!piece->host) {
		piece->mapping = 0;
		piece->flags |= RUN_UNMAPPED;
		return;
	}
	piece->flags |= RUN_OFFSET;
	piece->file_offset_bytes = ((READ(OWNED_PAGE, folio, index) + index) << PAGE_SHIFT) +
				   position;
	piece->private = READ(OWNED_PAGE, folio, private);
	if (!piece->is_plain)
		look_inside(piece, page);
}

static __always_inline bool continues(const struct walk *walk, const struct piece *piece)
{
	const struct run_record *run = &walk->run;

	if (!walk->open || walk->mapping != piece->mapping || run->detail != piece->detail)
		return false;
	if ((run->flags & ~(RUN_FROM_CALL | RUN_COMPRESSED | RUN_NODES)) != piece->flags)
		return false;
	return !piece->mapping ||
	       piece->file_offset_bytes == run->file_offset_bytes + run->length_bytes;
}

STEP step(__u32 count, void *context)
{
	struct walk *walk = *(struct walk **)context;
	struct piece piece = {};
	__u64 vector, page;
	__u32 length, position;

	vector = walk->vectors + (__u64)walk->index * bpf_core_type_size(struct bio_vec);
	length = READ(bio_vec, vector, bv_len);
	if (length <= walk->done_bytes) {
		walk->index++;
		walk->done_bytes = 0;
		return 0;
	}
	position = READ(bio_vec, vector, bv_offset) + walk->done_bytes;
	page = READ(bio_vec, vector, bv_page) +
	       (__u64)(position >> PAGE_SHIFT) * PAGE_SIZE_OF_STRUCT;
	describe_piece(walk, &piece, page, position & (PAGE_BYTES - 1));
	if (piece.bytes > length - walk->done_bytes)
		piece.bytes = length - walk->done_bytes;
	if (piece.bytes > walk->left_bytes)
		piece.bytes = walk->left_bytes;
	if (!continues(walk, &piece))
		open_run(walk, &piece);
	walk->run.length_bytes += piece.bytes;
	walk->offset_bytes += piece.bytes;
	walk->left_bytes -= piece.bytes;
	walk->done_bytes += piece.bytes;
	return !walk->left_bytes;
}

/* Walks over the pages of a bio, from the one on that WALK is at. */
#ifdef BEFORE_5_17
/*
 * Global functions, which the verifier looks at once each; they take no pointers before 5.12, and a
 * loop has fewer than 8192 ways out.
 */
__noinline int step_alone(__u32 count)
{
	__u32 zero = 0;
	struct walk *walk = bpf_map_lookup_elem(&walks, &zero);

	return walk ? step(count, &walk) : 1;
}

__noinline int steps(__u32 count)
{
	for (__u32 turn = 0; turn < STEPS_AT_ONCE; turn++)
		if (step_alone(turn))
			return 1;
	return 0;
}

static __always_inline void walk_pages(struct walk *walk)
{
	for (__u32 turn = 0; turn < WALK_LIMIT / STEPS_AT_ONCE; turn++)
		if (steps(turn))
			break;
}
#else
#define walk_pages(walk) bpf_loop(WALK_LIMIT, step, &walk, 0)
#endif

/* One run over the whole bio, for a bio whose pages tell less than its completion function. */
static __always_inline void describe_whole(struct walk *walk, __u64 inode, __u32 flags)
{
	struct run_record *run = begin_run(walk, flags);

	run->length_bytes = walk->left_bytes;
	if (inode)
		describe_inode(run, inode, walk->bio.time_ns);
}

#endif
