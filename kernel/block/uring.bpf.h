/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names that are changed through io_uring, which is no system call of their own, and below which no
 * tracepoint is shared with those. io_uring tells when it has taken a request, by when its names
 * are in the kernel's memory, and when the request is complete, by when they are freed: user space
 * puts the two together by the request's address. So it does with the syncs of io_uring, which a
 * thread of its own makes while the caller does what it likes.
 *
 * Two tracepoints for the first, as it was renamed in 6.4 (io_uring_submit_sqe before); user space
 * loads the one that there is. In 5.17 to 5.19 the names are in other structures: not followed.
 * Before, they are where they are today; but the end of a request is told by the word that its
 * asker gave it, and not by its address.
 */
#ifndef JOJ_URING_BPF_H
#define JOJ_URING_BPF_H

#ifdef BEFORE_5_17
#include "uring_before_5_17.bpf.h"
#endif

#define REQ_F_FIXED_FILE 1	/* its file is one of those that the ring has, by a number */
#define REQ_F_CQE_SKIP 64	/* no word of it if it goes well */

/* include/uapi/linux/io_uring.h */
#define IORING_FSYNC_DATASYNC 1
enum {
	IORING_OP_WRITEV = 2,
	IORING_OP_FSYNC = 3,
	IORING_OP_WRITE_FIXED = 5,
	IORING_OP_SYNC_FILE_RANGE = 8,
	IORING_OP_WRITE = 23,
	IORING_OP_RENAMEAT = 35,
	IORING_OP_UNLINKAT = 36,
	IORING_OP_MKDIRAT = 37,
	IORING_OP_SYMLINKAT = 38,
	IORING_OP_LINKAT = 39,
};

/* The requests of this kernel are known to us. */
static __always_inline bool knows_requests(void)
{
#ifdef BEFORE_5_17
	return bpf_core_type_exists(btf_trace_io_uring_submit_sqe___of_request);
#else
	return bpf_core_type_exists(struct io_cmd_data);
#endif
}

/* What REQUEST asks for: enum of IORING_OP_..., or a number that none of them has. */
static __always_inline __u8 opcode_of(__u64 request)
{
	if (!request || !knows_requests())
		return 255;
	return READ(io_kiocb, request, opcode);
}

/* The system call that does what OPCODE does; 0 for what changes no name. */
static __always_inline __u32 same_call(__u8 opcode)
{
	switch (opcode) {
	case IORING_OP_RENAMEAT:
		return CALL_RENAMEAT2;
	case IORING_OP_UNLINKAT:
		return CALL_UNLINKAT;
	case IORING_OP_MKDIRAT:
		return CALL_MKDIRAT;
	case IORING_OP_SYMLINKAT:
		return CALL_SYMLINKAT;
	case IORING_OP_LINKAT:
		return CALL_LINKAT;
	default:
		return 0;
	}
}

/* Likewise what REQUEST does, whose OPCODE this is, where it waits for the device. */
static __always_inline __u32 same_sync(__u64 request, __u8 opcode)
{
	switch (opcode) {
	case IORING_OP_FSYNC:
		return READ(io_sync, request, flags) & IORING_FSYNC_DATASYNC ? CALL_FDATASYNC :
									       CALL_FSYNC;
	case IORING_OP_SYNC_FILE_RANGE:
		return CALL_SYNC_FILE_RANGE;
	default:
		return 0;
	}
}

#ifdef BEFORE_5_17
/* A sync was asked for; its file is not looked up yet. */
static __always_inline void begin_uring_sync(__u32 call, __u64 request)
{
	__u64 inode = traced_inode(READ(io_kiocb___of_file, request, file));

	if (inode)
		send_sync(RECORD_SYNC_BEGIN, call, inode, 0, request);
}
#else
/* The file of a request that was taken: it is not looked up yet. */
static __always_inline __u64 file_of_request(__u64 request)
{
	__u32 number = READ(io_kiocb, request, cqe.fd);

	if (READ(io_kiocb, request, flags) & REQ_F_FIXED_FILE)
		return file_of_ring(READ(io_kiocb, request, ctx), number);
	return file_of_descriptor(number);
}

static __always_inline bool is_uring_write(__u8 opcode)
{
	return opcode == IORING_OP_WRITE || opcode == IORING_OP_WRITEV ||
	       opcode == IORING_OP_WRITE_FIXED;
}

/* Which sync a write to FILE ends with: enum call_flag. */
static __always_inline __u32 flags_of_write(__u64 request, __u64 file)
{
	return file ? sync_flags(file, READ(io_rw, request, flags)) : 0;
}

/* Some request was told of, whose end must be too: until then none is looked at. */
bool has_begun SEC(".data.uring") = false;

/* A sync was asked for. Without a word at its end: no asker. */
static __always_inline void begin_uring_sync(__u32 call, __u64 request, __u64 file, __u32 flags)
{
	__u64 inode;

	if (READ(io_kiocb, request, flags) & REQ_F_CQE_SKIP)
		return;
	inode = traced_inode(file);
	if (!inode)
		return;
	has_begun = true;
	send_sync(RECORD_SYNC_BEGIN, call, inode, flags, request);
}
#endif

/*
 * The name in FIELD of a request, which has a struct filename (6.1) or what will be one when the
 * request is done (7.0 on).
 */
#define NAME_OF(type, request, field)                                                           \
	READ(filename,                                                                          \
	     bpf_core_type_exists(struct delayed_filename) ?                                    \
		     READ(type##___delayed, request, field.__incomplete_filename) :             \
		     READ(type##___ready, request, field),                                      \
	     name)

/* REQUEST begins with the structure of its operation (io_kiocb_to_cmd()). */
static __always_inline void send_uring_names(__u32 call, __u64 request)
{
	__u32 exchange;

	switch (call) {
	case CALL_RENAMEAT2:
		exchange = READ(io_rename, request, flags) & RENAME_EXCHANGE ? NAME_EXCHANGE : 0;
		send_name(call, READ(io_rename, request, old_dfd),
			  NAME_OF(io_rename, request, oldpath), 0, request);
		send_name(call, READ(io_rename, request, new_dfd),
			  NAME_OF(io_rename, request, newpath), NAME_SECOND | exchange, request);
		break;
#ifdef BEFORE_5_17
	case CALL_LINKAT:
	case CALL_SYMLINKAT:
		send_link_names(call, request);
		break;
#else
	case CALL_LINKAT:
		send_name(call, READ(io_link, request, old_dfd),
			  NAME_OF(io_link, request, oldpath), 0, request);
		send_name(call, READ(io_link, request, new_dfd),
			  NAME_OF(io_link, request, newpath), NAME_SECOND, request);
		break;
	case CALL_SYMLINKAT:
		send_name(call, READ(io_link, request, new_dfd),
			  NAME_OF(io_link, request, newpath), 0, request);
		break;
#endif
	case CALL_UNLINKAT:
		send_name(call, READ(io_unlink, request, dfd),
			  NAME_OF(io_unlink, request, filename), 0, request);
		break;
	default:
		send_name(call, READ(io_mkdir, request, dfd),
			  NAME_OF(io_mkdir, request, filename), 0, request);
	}
}

/* REQUEST, which does what CALL does, will change names. */
static __always_inline void begin_uring_change(__u32 call, __u64 request)
{
#ifndef BEFORE_5_17
	/* Whether it went well will not be known. */
	if (READ(io_kiocb, request, flags) & REQ_F_CQE_SKIP) {
		__sync_fetch_and_add(&control.lost_changes, 1);
		return;
	}
	has_begun = true;
#endif
	send_uring_names(call, request);
}

/* A request is complete; RESULT is asked for where a name was to be changed. */
static __always_inline void end_uring_request(__u64 request, __u32 sync, __u32 call, __s32 result)
{
	struct name_record record = { .kind = RECORD_NAME, .flags = NAME_OVER };

	if (sync) {
		send_sync(RECORD_SYNC_END, sync, 0, 0, request);
		return;
	}
	record.call = call;
	record.request = request;
	record.time_ns = bpf_ktime_get_boot_ns();
	if (result)
		record.flags |= NAME_FAILED;
	else if (record.call == CALL_RENAMEAT2)
		__sync_fetch_and_add(&control.renames, 1);
	send(&record, sizeof(record), &control.lost_changes);
}

#ifdef BEFORE_5_17

SEC("tp_btf/io_uring_submit_sqe")
int uring_submitted_before(unsigned long long *arguments)
{
	struct pending_request pending = {};
	struct asked_word asked = {};
	__u8 opcode;

	if (!control.enabled || control.totals_alone || !knows_requests())
		return 0;
	bpf_probe_read_kernel(&asked.ring, 8, arguments);
	bpf_probe_read_kernel(&pending.request, 8, arguments + 1);
	opcode = opcode_of(pending.request);
	pending.sync = same_sync(pending.request, opcode);
	pending.call = same_call(opcode);
	if (!pending.sync && !pending.call)
		return 0;
	asked.word = READ(io_kiocb___of_file, pending.request, user_data);
	/* Which of two with one word is complete will not be told; or there are too many. */
	if (bpf_map_update_elem(&pending_requests, &asked, &pending, BPF_NOEXIST)) {
		__sync_fetch_and_add(&control.lost_changes, 1);
		return 0;
	}
	if (pending.sync)
		begin_uring_sync(pending.sync, pending.request);
	else
		begin_uring_change(pending.call, pending.request);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int uring_completed(unsigned long long *arguments)
{
	struct pending_request *found, pending;
	struct asked_word asked = {};
	__s32 result = 0;

	if (!control.enabled || control.totals_alone || !knows_requests())
		return 0;
	bpf_probe_read_kernel(&asked, sizeof(asked), arguments);
	bpf_probe_read_kernel(&result, sizeof(result), arguments + 2);
	found = bpf_map_lookup_elem(&pending_requests, &asked);
	if (!found)
		return 0;
	pending = *found;
	bpf_map_delete_elem(&pending_requests, &asked);
	end_uring_request(pending.request, pending.sync, pending.call, result);
	return 0;
}

#else

/* ARGUMENTS are the tracepoint's, of which the request is the first. */
static __always_inline void take_uring_argument(const unsigned long long *arguments)
{
	__u64 request = arguments[0], file = 0;
	__u32 sync, call, flags = 0;
	__u8 opcode;

	if (!control.enabled || control.totals_alone)
		return;
	opcode = opcode_of(request);
	sync = same_sync(request, opcode);
	call = same_call(opcode);
	if (is_uring_write(opcode)) {
		file = file_of_request(request);
		flags = flags_of_write(request, file);
		if (flags)
			sync = CALL_PWRITEV2;
	} else if (sync) {
		file = file_of_request(request);
	}
	if (!sync && !call)
		return;
	/* Read, not taken: a pointer that the verifier knows the type of is no argument of ours. */
	bpf_probe_read_kernel(&request, sizeof(request), arguments);
	if (sync)
		begin_uring_sync(sync, request, file, flags);
	else
		begin_uring_change(call, request);
}

SEC("tp_btf/io_uring_submit_req")
int uring_submitted(unsigned long long *arguments)
{
	take_uring_argument(arguments);
	return 0;
}

SEC("tp_btf/io_uring_submit_sqe")
int uring_submitted_before(unsigned long long *arguments)
{
	take_uring_argument(arguments);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(uring_completed, void *ring, void *request)
{
	__u32 sync, call;
	__u8 opcode;

	if (!has_begun || !control.enabled || control.totals_alone)
		return 0;
	opcode = opcode_of((__u64)request);
	if (is_uring_write(opcode)) {
		if (flags_of_write((__u64)request, READ(io_kiocb, request, file)))
			send_sync(RECORD_SYNC_END, CALL_PWRITEV2, 0, 0, (__u64)request);
		return 0;
	}
	sync = same_sync((__u64)request, opcode);
	call = same_call(opcode);
	if (sync || call)
		end_uring_request((__u64)request, sync, call,
				  sync ? 0 : READ(io_kiocb, request, cqe.res));
	return 0;
}

#endif

#endif
