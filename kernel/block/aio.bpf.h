/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Syncs that a worker of the kernel makes for a task that is no longer in a call: fsync and
 * fdatasync of Linux AIO (aio_fsync()), and the sync at the end of its asynchronous direct writes
 * to a file that asks for it (iomap_dio_complete_work()). Such work is known by its function, from
 * when it is queued until it is done; so the asker is the task that submitted it. io_uring tells of
 * its requests itself.
 *
 * The submitter may see the end of a sync, and queue the next one, before workqueue_execute_end on
 * another processor: which worker makes which sync says whose a bio is.
 *
 * workqueue_queue_work comes with interrupts off and the other two from workers alone, so that no
 * program of these interrupts itself. Before Linux 5.17 such syncs have no asker.
 */
#ifndef JOJ_AIO_BPF_H
#define JOJ_AIO_BPF_H

/* include/uapi/linux/aio_abi.h: the begin of what io_submit is given for each operation. */
struct aio_request {
	__u64 data;
	__u32 key, flags;
	__u16 opcode;
	__s16 priority;
	__u32 descriptor;
};

#define IOCB_CMD_PWRITE 1
#define IOCB_CMD_PWRITEV 8
#define SUBMITTED_LIMIT 32	/* of more operations at once the others are not looked at */

/* Who submitted direct I/O that ends with a sync, by the address of its iomap_dio. */
struct submitter {
	__u32 pid, tid;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct submitter);
} direct_submitters SEC(".maps");

/* A bio of asynchronous direct I/O: its task is remembered where a sync comes at the end. */
static __always_inline void remember_submitter(const struct bio_record *record, __u64 dio,
					       __u64 iocb)
{
	struct submitter submitter = { .pid = record->pid, .tid = record->tid };

	/* IOCB_DSYNC is RWF_DSYNC (include/linux/fs.h). */
	if (record->kernel_thread || !control.aio_complete ||
	    READ(kiocb, iocb, ki_complete) != control.aio_complete ||
	    !(READ(kiocb, iocb, ki_flags) & RWF_DSYNC))
		return;
	__builtin_memcpy(submitter.comm, record->comm, sizeof(submitter.comm));
	bpf_map_update_elem(&direct_submitters, &dio, &submitter, BPF_ANY);
}

#ifndef BEFORE_5_17
/* The sync of FILE by WORK begins, for a task. */
static __noinline void begin_work_sync(__u64 work, __u32 call, __u64 file, __u32 flags,
				       const struct submitter *submitter)
{
	struct sync_record record = {
		.kind = RECORD_SYNC_BEGIN,
		.call = call,
		.flags = flags,
		.request = work,
		.pid = submitter->pid,
		.tid = submitter->tid,
	};
	__u64 inode = traced_inode(file);

	if (!inode)
		return;
	__builtin_memcpy(record.comm, submitter->comm, sizeof(record.comm));
	record.time_ns = bpf_ktime_get_boot_ns();
	send_sync_on(&record, inode);
}

static __always_inline void begin_aio_sync(__u64 work)
{
	__u64 operation = work - bpf_core_field_offset(struct fsync_iocb, work);
	__u64 ids = bpf_get_current_pid_tgid();
	struct submitter submitter = { .pid = ids >> 32, .tid = ids };

	copy_comm(submitter.comm, current_task());
	begin_work_sync(work,
			READ(fsync_iocb, operation, datasync) ? CALL_FDATASYNC : CALL_FSYNC,
			READ(fsync_iocb, operation, file), 0, &submitter);
}

static __always_inline void begin_direct_sync(__u64 work)
{
	__u64 dio = work - bpf_core_field_offset(struct iomap_dio, aio.work), iocb;
	struct submitter *found = bpf_map_lookup_elem(&direct_submitters, &dio), submitter;

	if (!found)
		return;
	submitter = *found;
	bpf_map_delete_elem(&direct_submitters, &dio);
	iocb = READ(iomap_dio, dio, iocb);
	begin_work_sync(work, CALL_IO_SUBMIT, READ(kiocb, iocb, ki_filp),
			READ(kiocb, iocb, ki_flags) & RWF_SYNC ? CALL_SYNC_ALL : CALL_DSYNC,
			&submitter);
}

static __always_inline bool is_told_of_work(__u64 function)
{
	return control.enabled && !control.totals_alone && function &&
	       (function == control.aio_sync_work || function == control.direct_end_work);
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(work_queued, int processor, void *queue, struct work_struct *work)
{
	__u64 function = (__u64)work->func;

	if (!is_told_of_work(function))
		return 0;
	if (function == control.direct_end_work)
		begin_direct_sync((__u64)work);
	else if (bpf_core_type_exists(struct fsync_iocb))
		begin_aio_sync((__u64)work);
	return 0;
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(work_started, struct work_struct *work)
{
	if (is_told_of_work((__u64)work->func))
		send_sync(RECORD_SYNC_WORKER, CALL_IO_SUBMIT, 0, 0, (__u64)work);
	return 0;
}

/* The arguments are read, not taken: the verifier knows no function's address. */
SEC("tp_btf/workqueue_execute_end")
int work_done(unsigned long long *arguments)
{
	__u64 work = 0, function = 0;

	if (!control.enabled || control.totals_alone)
		return 0;
	bpf_probe_read_kernel(&function, sizeof(function), arguments + 1);
	if (!is_told_of_work(function))
		return 0;
	bpf_probe_read_kernel(&work, sizeof(work), arguments);
	send_sync(RECORD_SYNC_END, CALL_IO_SUBMIT, 0, 0, work);
	return 0;
}
#endif

/*
 * The file of the first operation of an io_submit that may wait within the call: a write to a file
 * that asks for a sync, which not every filesystem makes later. FLAGS get what it asks for.
 */
static __noinline __u64 submitted_sync(__u64 requests, __u64 count, __u32 *flags)
{
	for (__u32 place = 0; place < SUBMITTED_LIMIT; place++) {
		struct aio_request request = {};
		__u64 address = 0, file;

		if (place >= count ||
		    bpf_probe_read_user(&address, 8, (void *)(requests + 8 * place)))
			return 0;
		if (bpf_probe_read_user(&request, sizeof(request), (void *)address))
			return 0;
		if (request.opcode != IOCB_CMD_PWRITE && request.opcode != IOCB_CMD_PWRITEV)
			continue;
		file = file_of_descriptor(request.descriptor);
		if (!traced_inode(file))
			continue;
		*flags = sync_flags(file, request.flags);
		if (!*flags)
			continue;
		return file;
	}
	return 0;
}

#endif
