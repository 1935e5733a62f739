/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of a bio on a disk that has no requests (device mapper, md, zram), or of one that failed
 * before it got into a request. Of others blk_update_request() clears BIO_TRACE_COMPLETION.
 */
#ifndef JOJ_BIO_END_BPF_H
#define JOJ_BIO_END_BPF_H

static __always_inline void send_bio_end(struct bio *bio)
{
	struct request_record record = { .kind = RECORD_BIO_END };

	if (!control.enabled)
		return;
	record.device = disk_number(bio->bi_bdev->bd_disk);
	if (!is_traced(record.device))
		return;
	record.time_ns = bpf_ktime_get_ns();
	record.request = (__u64)bio;
	record.sector = bio->bi_iter.bi_sector;
	record.flags = bio->bi_opf;
	record.error = bio->bi_status;
	send(&record, sizeof(record), &control.lost_requests);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(bio_ended, struct request_queue *queue, struct bio *bio)
{
	volatile __u32 *busy = busy_mark(EVENT_BIO_ENDED);

	if (!busy)
		return 0;
	*busy = 1;
	send_bio_end(bio);
	*busy = 0;
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(bio_ended_within, struct request_queue *queue, struct bio *bio)
{
	if (takes_over(EVENT_BIO_ENDED))
		send_bio_end(bio);
	return 0;
}

#endif
