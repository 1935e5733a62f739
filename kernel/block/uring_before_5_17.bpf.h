/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests of io_uring before Linux 5.17, as uring.bpf.h needs them: their structures, and which of
 * them are under way. Their end is told by the ring and the word that the asker gave (user_data),
 * which need not be a request's own: of two with one word, the second is counted as lost.
 *
 * Tracepoints name no request before 5.12, but in stable kernels of 5.10, which have the io_uring
 * of 5.15 (from 5.10.162 on). Where they do not, nothing of io_uring is followed.
 */
#ifndef JOJ_URING_BEFORE_5_17_BPF_H
#define JOJ_URING_BEFORE_5_17_BPF_H

typedef void (*btf_trace_io_uring_submit_sqe___of_request)(void *, void *, void *, __u8, __u64,
							   __u32, bool, bool);

struct io_kiocb___of_file {
	struct file *file;
	__u64 user_data;
} __attribute__((preserve_access_index));

struct io_hardlink {
	int old_dfd, new_dfd;
	struct filename *oldpath, *newpath;
} __attribute__((preserve_access_index));

struct io_symlink {
	int new_dfd;
	struct filename *newpath;
} __attribute__((preserve_access_index));

struct asked_word {
	__u64 ring, word;
};

struct pending_request {
	__u64 request;
	__u32 sync, call;		/* the system call that does the same; one of them is 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct asked_word);
	__type(value, struct pending_request);
} pending_requests SEC(".maps");

static __always_inline void send_link_names(__u32 call, __u64 request)
{
	if (call == CALL_LINKAT && bpf_core_type_exists(struct io_hardlink)) {
		send_name(call, READ(io_hardlink, request, old_dfd),
			  READ(filename, READ(io_hardlink, request, oldpath), name), 0, request);
		send_name(call, READ(io_hardlink, request, new_dfd),
			  READ(filename, READ(io_hardlink, request, newpath), name), NAME_SECOND,
			  request);
	} else if (bpf_core_type_exists(struct io_symlink)) {
		send_name(call, READ(io_symlink, request, new_dfd),
			  READ(filename, READ(io_symlink, request, newpath), name), 0, request);
	}
}

#endif
