/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios of one buffer_head each: which function is called at its end, and what jbd2 wrote at its
 * begin, tell what the block is to the filesystem. Fills in two fields of a bio_record, and tells
 * which transaction the block is of.
 */
#ifndef JOJ_BUFFERS_BPF_H
#define JOJ_BUFFERS_BPF_H

#define JBD2_MAGIC 0xc03b3998	/* big-endian, at the start of every block jbd2 made */

#define JBD2_SUPERBLOCK_V1 3	/* h_blocktype of a journal's superblock, and of one of today */
#define JBD2_SUPERBLOCK_V2 4

/* A buffer names the function called at its end (6.1), or its bio's end is that function (7.2). */
struct buffer_head___with_end {
	void *b_end_io;
} __attribute__((preserve_access_index));

/* The private of a bio that ends so is a buffer_head. */
static __always_inline bool is_of_buffer(__u64 end_io)
{
	if (bpf_core_field_exists(((struct buffer_head___with_end *)0)->b_end_io))
		return control.buffer_end_io && end_io == control.buffer_end_io;
	for (int place = 0; place < BUFFER_ENDS; place++)
		if (control.buffer_ends[place] && end_io == control.buffer_ends[place])
			return true;
	return false;
}

/* The function that is called at the end of a buffer, whose bio ends by END_IO. */
static __always_inline __u64 end_of_buffer(__u64 buffer, __u64 end_io)
{
	if (bpf_core_field_exists(((struct buffer_head___with_end *)0)->b_end_io))
		return READ(buffer_head___with_end, buffer, b_end_io);
	return end_io;
}

static __always_inline void describe_buffer(struct walk *walk, __u64 buffer)
{
	struct bio_record *record = &walk->bio;
	__u64 data = READ(buffer_head, buffer, b_data);
	__u64 header = data ? read_memory(data, 8) : 0;

	record->buffer_end_io = end_of_buffer(buffer, record->end_io);
	if (__builtin_bswap32((__u32)header) != JBD2_MAGIC)
		return;
	record->journal_block_type = header >> 56;
	if (walk->counted || record->journal_block_type == JBD2_SUPERBLOCK_V1 ||
	    record->journal_block_type == JBD2_SUPERBLOCK_V2)
		return;
	/* h_sequence, the third word of a header; of a superblock it is no transaction's. */
	send_commit(record->partition_device, __builtin_bswap32((__u32)read_memory(data + 8, 4)));
}

#endif
