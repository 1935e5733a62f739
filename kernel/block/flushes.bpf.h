/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds whom a block layer's flush serves. Its request has no bio of its own: it is made for the
 * requests that wait in its hardware queue's struct blk_flush_queue when it is kicked. Those stay
 * in the running one of two lists, and no other joins them, until it is complete
 * (block/blk-flush.c), so the list can be read without its lock while the flush is issued.
 */
#ifndef JOJ_FLUSHES_BPF_H
#define JOJ_FLUSHES_BPF_H

/* A request waits for a flush in a list of its own (6.1), or in its queuelist (6.6 on). */
struct request___in_list {
	struct {
		struct list_head list;
	} flush;
} __attribute__((preserve_access_index));

static __always_inline __u32 offset_in_list(void)
{
	if (bpf_core_field_exists(((struct request___in_list *)0)->flush.list))
		return bpf_core_field_offset(struct request___in_list, flush.list);
	return bpf_core_field_offset(struct request, queuelist);
}

/* The number of the list whose requests the flush under way is for. */
static __always_inline __u32 running_list(__u64 queue)
{
	__u64 word = READ(blk_flush_queue, queue, flush_running_idx);
	struct blk_flush_queue *none = 0;

	word <<= __builtin_preserve_field_info(none->flush_running_idx, BPF_FIELD_LSHIFT_U64);
	return word >> __builtin_preserve_field_info(none->flush_running_idx,
						     BPF_FIELD_RSHIFT_U64);
}

/*
 * The bio that has waited longest of those that FLUSH is for; 0 if it is none of blk-flush.c. Of a
 * bio that was split (bio_split() chains the part to the rest) the one that was queued.
 */
static __always_inline __u64 bio_of_flush(struct request *flush)
{
	__u64 queue, list, first, bio;

	/* As blk_get_flush_queue() does: the queue for writes, HCTX_TYPE_DEFAULT. */
	queue = READ(blk_mq_ctx, UNTRUSTED(request, flush)->mq_ctx, hctxs[0]);
	queue = READ(blk_mq_hw_ctx, queue, fq);
	if (!queue || READ(blk_flush_queue, queue, flush_rq) != (__u64)flush)
		return 0;
	list = queue + bpf_core_field_offset(struct blk_flush_queue, flush_queue) +
	       running_list(queue) * bpf_core_type_size(struct list_head);
	first = READ(list_head, list, next);
	if (!first || first == list)
		return 0;
	/* Each that waits for a flush has one bio; .bio is 0 once its data are written. */
	bio = READ(request, first - offset_in_list(), biotail);
	if (control.chain_end_io && READ(bio, bio, bi_end_io) == control.chain_end_io)
		bio = READ(bio, bio, bi_private);
	return bio;
}

#endif
