/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Follows bios below the filesystem: the request that the driver gets, its completion, and
 * the end of a bio that no request carried. Produces request_records.
 */
#ifndef JOJ_REQUESTS_BPF_H
#define JOJ_REQUESTS_BPF_H

#define MERGED_BIOS_LIMIT 1024

/* One range of the request: what one bio of it discards. */
static __noinline int send_range(__u32 device, __u64 request, __u64 origin, __u64 bio)
{
	struct request_record record = { .kind = RECORD_RANGE };

	record.device = device;
	record.time_ns = bpf_ktime_get_boot_ns();
	record.request = request;
	record.origin = origin;
	record.sector = READ(bio, bio, bi_iter.bi_sector);
	record.length_bytes = READ(bio, bio, bi_iter.bi_size);
	send(&record, sizeof(record), &control.lost_requests);
	return 0;
}

/*
 * The bios of a request, from BIO on. A disk that takes several ranges at once (NVMe) gets bios
 * from anywhere in one request (bio_attempt_discard_merge()), of which only the first is at the
 * request's sector: each is told.
 */
struct bios_walk {
	__u64 bio, request, origin;
	__u32 device, count;
	bool has_ranges;
};

STEP bios_step(__u32 place, void *context)
{
	struct bios_walk *walk = context;

	if (walk->has_ranges)
		send_range(walk->device, walk->request, walk->origin, walk->bio);
	walk->count++;
	walk->bio = READ(bio, walk->bio, bi_next);
	return !walk->bio;
}

/* How many bios a request of DEVICE carries. */
static __always_inline __u32 follow_bios(struct request *request, __u32 device)
{
	struct bios_walk walk = {
		.bio = (__u64)UNTRUSTED(request, request)->bio,
		.request = (__u64)request,
		.device = device,
	};

	if (!walk.bio)
		return 0;
	if ((request->cmd_flags & REQ_OP_MASK) == REQ_OP_DISCARD) {
		walk.origin = request->start_time_ns;
		walk.has_ranges = READ(bio, walk.bio, bi_next);
	}
	REPEAT(MERGED_BIOS_LIMIT, bios_step, &walk);
	return walk.count;
}

static __always_inline void send_request(struct request *request, __u32 kind, __u32 bytes,
					 __u32 error)
{
	struct gendisk *disk = disk_of_request(request);
	struct request_record *record;
	__u32 number, bio_count = 0;
	__u64 time_ns, origin = 0;

	if (!control.enabled || control.totals_alone || !disk)
		return;
	number = disk_number(disk);
	if (!is_traced(number))
		return;
	time_ns = bpf_ktime_get_boot_ns();
	if (kind == RECORD_ISSUE) {
		bio_count = follow_bios(request, number);
		if ((request->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH)
			origin = bio_of_flush(request);
		else
			origin = request->start_time_ns;
	}
	record = reserve(sizeof(*record), settings.kept_bytes, &control.lost_requests);
	if (!record)
		return;
	record->kind = kind;
	record->device = number;
	record->time_ns = time_ns;
	record->request = (__u64)request;
	record->sector = request->__sector;
	record->length_bytes = bytes;
	record->flags = request->cmd_flags;
	record->bio_count = bio_count;
	record->error = error;
	record->origin = origin;
	publish(record, sizeof(*record));
}

struct question {
	__u64 request;
};

#ifdef BEFORE_5_17
#define ASKED "raw_tp"
#else
#define ASKED "syscall"
#endif

/*
 * Asked by user space of a request that was issued long ago: nobody holds it, so that the device
 * was done with it, though no program ran then. A kernel may refuse to run programs while a
 * certain process runs (docs/live-tracing.md).
 */
SEC(ASKED)
int request_is_free(struct question *question)
{
	return !READ(request, question->request, ref);
}

#ifdef BEFORE_5_17
SEC("tp_btf/block_rq_issue")
int request_issued(unsigned long long *arguments)
{
	struct request *request = ARGUMENT_OF(block_rq_issue, arguments);

	send_request(request, RECORD_ISSUE, request->__data_len, 0);
	return 0;
}
#else
SEC("tp_btf/block_rq_issue")
int BPF_PROG(request_issued, struct request *request)
{
	if (takes(EVENT_REQUEST_ISSUED, 0, request))
		send_request(request, RECORD_ISSUE, request->__data_len, 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(request_issued_within, struct request *request)
{
	if (takes(EVENT_REQUEST_ISSUED, 1, request))
		send_request(request, RECORD_ISSUE, request->__data_len, 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(request_issued_twice_within, struct request *request)
{
	if (takes(EVENT_REQUEST_ISSUED, 2, request))
		send_request(request, RECORD_ISSUE, request->__data_len, 0);
	return 0;
}
#endif

SEC("tp_btf/block_rq_complete")
int BPF_PROG(request_completed, struct request *request, int error, unsigned int bytes)
{
	if (takes(EVENT_REQUEST_COMPLETED, 0, request))
		send_request(request, RECORD_COMPLETE, bytes, error);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(request_completed_within, struct request *request, int error, unsigned int bytes)
{
	if (takes(EVENT_REQUEST_COMPLETED, 1, request))
		send_request(request, RECORD_COMPLETE, bytes, error);
	return 0;
}

#ifndef BEFORE_5_17
SEC("tp_btf/block_rq_complete")
int BPF_PROG(request_completed_twice_within, struct request *request, int error,
	     unsigned int bytes)
{
	if (takes(EVENT_REQUEST_COMPLETED, 2, request))
		send_request(request, RECORD_COMPLETE, bytes, error);
	return 0;
}
#endif

/*
 * The end of a bio on a disk that has no requests (device mapper, md, zram), or of one that failed
 * before it got into a request. Of others blk_update_request() clears BIO_TRACE_COMPLETION.
 */
static __always_inline void send_bio_end(struct bio *bio)
{
	struct request_record record = { .kind = RECORD_BIO_END };

	if (!control.enabled || control.totals_alone)
		return;
	record.device = disk_number(disk_of_bio(bio));
	if (!is_traced(record.device))
		return;
	record.time_ns = bpf_ktime_get_boot_ns();
	record.request = (__u64)bio;
	record.sector = bio->bi_iter.bi_sector;
	record.flags = bio->bi_opf;
	record.error = bio->bi_status;
	send(&record, sizeof(record), &control.lost_requests);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(bio_ended, struct request_queue *queue, struct bio *bio)
{
	if (takes(EVENT_BIO_ENDED, 0, bio))
		send_bio_end(bio);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(bio_ended_within, struct request_queue *queue, struct bio *bio)
{
	if (takes(EVENT_BIO_ENDED, 1, bio))
		send_bio_end(bio);
	return 0;
}

#ifndef BEFORE_5_17
SEC("tp_btf/block_bio_complete")
int BPF_PROG(bio_ended_twice_within, struct request_queue *queue, struct bio *bio)
{
	if (takes(EVENT_BIO_ENDED, 2, bio))
		send_bio_end(bio);
	return 0;
}
#endif

#endif
