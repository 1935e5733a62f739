// SPDX-License-Identifier: GPL-2.0-only
/*
 * Follows every bio of some disks from its submission, where it is still known whose pages it
 * carries and who sends it, through the request that the driver gets, to its completion; the calls
 * that wait for it (fsync and its kin), and the changes to files that make it necessary. Produces
 * the records of event.h.
 *
 * Only BTF tracepoints: they are on every kernel with BTF. fentry was refused with EPERM by a 6.18
 * kernel we met, for a cause not found, and on 6.1 missed fdatasync, which does not go through
 * vfs_fsync_range there.
 *
 * block_bio_queue is where ownership is read. At block_rq_issue it would be too late: for a flush
 * or FUA request the current task is a kworker.
 */
#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "../bpf/ring.h"
#include "../bpf/read.bpf.h"
#include "../bpf/kernel_age.bpf.h"
#include "../bpf/processor.bpf.h"
#include "../bpf/natives.bpf.h"
#include "../bpf/ring.bpf.h"
#include "event.h"
#include "kernel_types.bpf.h"
#include "../bpf/files.bpf.h"
#include "../bpf/inodes.bpf.h"
#include "../bpf/roots.bpf.h"
#include "compat.bpf.h"
#include "control.bpf.h"
#include "devices.bpf.h"
#include "file_state.bpf.h"
#include "paths.bpf.h"
#include "totals.bpf.h"
#include "page_runs.bpf.h"
#include "btrfs.bpf.h"
#include "abi.bpf.h"
#include "calls.bpf.h"
#include "buffers.bpf.h"
#include "aio.bpf.h"
#include "names.bpf.h"
#include "uring.bpf.h"
#include "further_programs.bpf.h"
#include "flushes.bpf.h"
#include "requests.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#ifdef BEFORE_5_17
/* The first bytes of a bio, which say what block it is, where modules have no BTF (before 5.11). */
static __always_inline void describe_contents(struct bio_record *record, struct bio *bio)
{
	__u64 vector = READ(bio, bio, bi_io_vec), memory;

	vector += (__u64)bio->bi_iter.bi_idx * bpf_core_type_size(struct bio_vec);
	memory = memory_of_page(READ(bio_vec, vector, bv_page));
	if (!memory)
		return;
	memory += READ(bio_vec, vector, bv_offset);
	READ_WORDS(record->buffer_type, 16, memory);
	record->has_contents = 1;
}
#endif

static __always_inline void describe_xfs_buffer(struct bio_record *record, struct bio *bio,
						__u64 buffer)
{
	__u64 operations = bpf_core_type_exists(struct xfs_buf) ?
			   READ(xfs_buf, buffer, b_ops) : 0;
	__u64 name = operations ? READ(xfs_buf_ops, operations, name) : 0;

	if (name)
		READ_WORDS(record->buffer_type, 16, name);
#ifdef BEFORE_5_17
	if (!bpf_core_type_exists(struct xfs_buf))
		describe_contents(record, bio);
#endif
}

#define NO_OFFSET (1ULL << 63)

/*
 * A bio of the call that a kiocb stands for, OFFSET bytes behind where that call begins, or at a
 * place that is not known.
 */
static __always_inline void describe_asked(struct walk *walk, __u64 iocb, __u64 offset)
{
	__u64 file = READ(kiocb, iocb, ki_filp);

	if (offset == NO_OFFSET) {
		describe_whole(walk, READ(file, file, f_inode), RUN_DIRECT);
		return;
	}
	describe_whole(walk, READ(file, file, f_inode), RUN_DIRECT | RUN_OFFSET);
	walk->run.file_offset_bytes = READ(kiocb, iocb, ki_pos) + offset;
}

/*
 * Whether a bio of direct I/O may be of zeroes that pad a block of the filesystem: BYTES before the
 * place FROM, or behind UNTIL. Their page is the kernel's own and in no mapping; so is that of a
 * program that writes what it never touched.
 */
static __always_inline bool may_be_padding(struct walk *walk, struct bio *bio, __u64 inode,
					   __u64 from, __u64 until)
{
	__u64 vector = READ(bio, bio, bi_io_vec), folio;
	__u32 inside = (1U << (READ(inode, inode, i_blkbits) & 31)) - 1;
	__u32 bytes = walk->left_bytes;

	if ((walk->bio.flags & REQ_OP_MASK) != REQ_OP_WRITE)
		return false;
	if (!(from & inside && bytes == (from & inside)) &&
	    !(until & inside && bytes == inside + 1 - (until & inside)))
		return false;
	vector += (__u64)bio->bi_iter.bi_idx * bpf_core_type_size(struct bio_vec);
	folio = folio_of_page(READ(bio_vec, vector, bv_page));
	return is_slab(folio) || !READ(OWNED_PAGE, folio, mapping);
}

/*
 * A kernel thread queues a bio of direct I/O that somebody waits for: the bio was held back, as the
 * task's cgroup may send no more (io.max). It is that task's.
 */
static __always_inline void describe_waiter(struct bio_record *record, __u64 iocb, __u64 waiter)
{
	if (!record->kernel_thread || !iocb || READ(kiocb, iocb, ki_complete))
		return;
	if (!waiter || READ(task_struct, waiter, flags) & PF_KTHREAD)
		return;
	record->kernel_thread = 0;
	record->pid = READ(task_struct, waiter, tgid);
	record->tid = READ(task_struct, waiter, pid);
	READ_WORDS(record->comm, 16, waiter + bpf_core_field_offset(struct task_struct, comm));
}

/*
 * Direct I/O through iomap. Its pages may be anonymous, or the page cache of another file (a
 * mapped file as the buffer), so the kiocb tells the file. dio->size already counts this bio, until
 * Linux 7.0 gave a bio a function of its own (iomap_dio_bio_iter_one()). Of a bio that was held
 * back (describe_waiter()) and is queued now, by another task, it counts what was submitted
 * meanwhile too: the place of this one is known if it is all.
 *
 * A write that is not of whole blocks may have zeroes written around it, which are not counted
 * (iomap_dio_zero()). Where they cannot be told from what the program wrote, their place in the
 * file is not known.
 */
static __always_inline void describe_direct(struct walk *walk, struct bio *bio, __u64 dio)
{
	__u64 iocb = READ(iomap_dio, dio, iocb), done = READ(iomap_dio, dio, size);
	__u64 inode = READ(file, READ(kiocb, iocb, ki_filp), f_inode), offset = done;
	__u64 position = READ(kiocb, iocb, ki_pos);
	bool is_late = READ(iomap_dio, dio, submit.waiter) != bpf_get_current_task();
	bool is_counted = is_late || !control.direct_counts_later;

	describe_waiter(&walk->bio, iocb, READ(iomap_dio, dio, submit.waiter));
	remember_submitter(&walk->bio, dio, iocb);
	if (is_counted)
		offset -= walk->left_bytes;
	if (is_late && offset)
		offset = NO_OFFSET;
	else if (is_counted && done < walk->left_bytes)
		/* No more than zeroes can be larger than all that was written. */
		offset = done ? done : -(__u64)walk->left_bytes;
	else if (may_be_padding(walk, bio, inode, done && !is_late ? 0 : position,
				is_counted ? position + done : 0))
		offset = NO_OFFSET;
	describe_asked(walk, iocb, offset);
}

/*
 * A direct read that is one bio, which an iomap_dio_simple has inside; its kiocb still has the
 * place where the read begins. Linux 7.3 of Debian has it, 6.12 has not.
 */
static __always_inline bool describe_simple_direct(struct walk *walk, __u64 bio)
{
	__u64 simple;

	if (!bpf_core_type_exists(struct iomap_dio_simple) || !control.direct_simple_end_io)
		return false;
	if (walk->bio.end_io != control.direct_simple_end_io)
		return false;
	simple = bio - bpf_core_field_offset(struct iomap_dio_simple, bio);
	describe_asked(walk, READ(iomap_dio_simple, simple, iocb), 0);
	return true;
}

#ifdef BEFORE_5_17
#define F2FS_PRIVATE_DIO 8	/* orig_private of struct f2fs_private_dio in fs/f2fs/f2fs.h */

/*
 * Direct I/O of F2FS through fs/direct-io.c that is queued in no call on its file: it was held
 * back, or came by Linux AIO or io_uring. F2FS has put a struct of its own before the dio: the
 * inode, and where the dio is. A bio that is all of the dio begins where that does.
 */
static __always_inline bool describe_f2fs_direct(struct walk *walk, __u64 private)
{
	__u64 dio, inode, iocb;

	if (!control.f2fs_direct_end_io || walk->bio.end_io != control.f2fs_direct_end_io)
		return false;
	dio = read_memory(private + F2FS_PRIVATE_DIO, 8);
	inode = READ(dio, dio, inode);
	if (inode != read_memory(private, 8))
		return false;
	iocb = READ(dio, dio, iocb);
	describe_waiter(&walk->bio, iocb, READ(dio, dio, waiter));
	describe_whole(walk, inode, RUN_DIRECT);
	if (READ(dio, dio, result) == walk->left_bytes) {
		walk->run.flags |= RUN_OFFSET;
		walk->run.file_offset_bytes = READ(kiocb, iocb, ki_pos);
	}
	return true;
}
#endif

/*
 * Direct I/O on a device's node (block/fops.c). Its pages are the caller's memory, which may be the
 * page cache of a file, or shared memory; whose bytes they are that file does not say.
 */
static __always_inline bool is_on_node(const struct walk *walk, bool is_in_node_call)
{
	__u64 end_io = walk->bio.end_io;

	for (int place = 0; place < NODE_ENDS; place++)
		if (control.node_ends[place] && end_io == control.node_ends[place])
			return true;
	if (!is_in_node_call || !(walk->bio.call_flags & CALL_DIRECT))
		return false;
	for (int place = 0; place < WAITING_ENDS; place++)
		if (control.waiting_ends[place] && end_io == control.waiting_ends[place])
			return true;
	return false;
}

static __always_inline void describe_runs(struct walk *walk, struct bio *bio, __u64 call_inode)
{
	__u64 end_io = walk->bio.end_io, private = (__u64)bio->bi_private, whole;
	bool is_in_node_call;

	if (control.direct_end_io && end_io == control.direct_end_io) {
		describe_direct(walk, bio, private);
		return;
	}
	if (describe_simple_direct(walk, (__u64)bio))
		return;
#ifdef BEFORE_5_17
	if (!call_inode && describe_f2fs_direct(walk, private))
		return;
#endif
	is_in_node_call = call_inode && (READ(inode, call_inode, i_mode) & S_IFMT) == S_IFBLK;
	if (is_on_node(walk, is_in_node_call)) {
		describe_whole(walk, is_in_node_call ? call_inode : 0,
			       RUN_UNMAPPED | RUN_FROM_CALL);
		return;
	}
	if ((control.xfs_buffer_end_io && end_io == control.xfs_buffer_end_io) ||
	    (control.xfs_log_end_io && end_io == control.xfs_log_end_io)) {
		if (end_io == control.xfs_buffer_end_io)
			describe_xfs_buffer(&walk->bio, bio, private);
		describe_whole(walk, 0, 0);
		return;
	}
	if (is_of_buffer(end_io))
		describe_buffer(walk, private);
	/* Not bio->bi_io_vec: the verifier of 6.1 allows no arithmetic on a pointer it knows. */
	walk->vectors = READ(bio, bio, bi_io_vec);
	walk->index = bio->bi_iter.bi_idx;
	walk->done_bytes = done_of_vector(bio);
	whole = btrfs_whole((__u64)bio, end_io);
	if (whole && control.btrfs_direct && btrfs_end(whole) == control.btrfs_direct) {
		describe_btrfs_direct(walk, whole);
		private = btrfs_dio(whole);
		if (private)
			describe_waiter(&walk->bio, READ(iomap_dio, private, iocb),
					READ(iomap_dio, private, submit.waiter));
		return;
	}
	walk->fallback_inode = whole ? btrfs_packed_owner(whole) : 0;
	walk->fallback_flag = RUN_COMPRESSED;
	if (!walk->fallback_inode) {
		walk->fallback_inode = call_inode;
		walk->fallback_flag = RUN_FROM_CALL;
	}
	walk_pages(walk);
}

static __always_inline void describe_bio(struct walk *walk, struct bio *bio, __u32 disk,
					 struct task_struct *task)
{
	struct bio_record *record = &walk->bio;

	__builtin_memset(record, 0, sizeof(*record));
	record->kind = RECORD_BIO;
	record->device = disk;
	record->time_ns = bpf_ktime_get_boot_ns();
	record->serial = next_serial(walk);
	record->sector = bio->bi_iter.bi_sector;
	record->length_bytes = bio->bi_iter.bi_size;
	record->flags = bio->bi_opf;
	record->address = (__u64)bio;
	record->end_io = (__u64)bio->bi_end_io;
	describe_partition(record, bio);
	record->pid = OF_TASK(task, tgid);
	record->tid = OF_TASK(task, pid);
	record->kernel_thread = in_kernel_thread(task);
	copy_comm(record->comm, task);
}

/*
 * Direct I/O whose bios do not say where in the file they are: see calls_have_place(). A bio that
 * is all of its call begins where that does.
 */
static __always_inline void place_in_call(struct walk *walk)
{
	struct run_record *run = &walk->run;
	__u32 flags = RUN_FROM_CALL | RUN_ANONYMOUS;

	if (!walk->open || (run->flags & flags) != flags || !(walk->bio.call_flags & CALL_DIRECT))
		return;
	if (run->length_bytes != walk->bio.length_bytes || run->length_bytes != walk->call_bytes)
		return;
	run->flags |= RUN_OFFSET;
	run->file_offset_bytes = walk->call_offset;
}

static __always_inline int queue_bio(struct bio *bio, __u32 place)
{
	__u32 operation, disk;
	struct task_struct *task;
	struct walk *walk;
	__u64 call_inode;

	if (control.enabled != ENABLED)
		return 0;
	disk = disk_number(disk_of_bio(bio));
	if (!is_traced(disk))
		return 0;
	walk = bpf_map_lookup_elem(&walks, &place);
	/* Busy: an interrupt sent a bio while we were at another one. */
	if (!walk || walk->busy) {
		__sync_fetch_and_add(&control.lost_bios, 1);
		return 0;
	}
	walk->busy = 1;
	task = current_task();
	describe_bio(walk, bio, disk, task);
	call_inode = describe_call(walk, task);
	walk->counted = control.totals_alone || !has_room_for_parts();
	if (walk->counted)
		describe_holder(&walk->bio, device_of_bio(&walk->bio, bio));
	walk->left_bytes = walk->bio.length_bytes;
	walk->offset_bytes = 0;
	walk->open = walk->ownerless = false;
	operation = walk->bio.flags & REQ_OP_MASK;
	if (walk->left_bytes && operation <= REQ_OP_WRITE) {
		describe_runs(walk, bio, call_inode);
		if (calls_have_place())
			place_in_call(walk);
	}
	else if (walk->left_bytes)
		describe_whole(walk, call_inode, RUN_UNMAPPED | RUN_FROM_CALL);
	if (walk->counted) {
		__sync_fetch_and_add(&control.counted_bios, 1);
		if (walk->open)
			count_run(walk);
		walk->busy = 0;
		return 0;
	}
	if (walk->ownerless || operation > REQ_OP_WRITE ||
	    (walk->open && walk->run.magic == BLOCK_DEVICE_MAGIC))
		describe_holder(&walk->bio, device_of_bio(&walk->bio, bio));
	walk->bio.has_run = walk->open;
	if (walk->open)
		send_part(&walk->bio, sizeof(walk->bio) + sizeof(walk->run), &control.lost_bios);
	else
		send_part(&walk->bio, sizeof(walk->bio), &control.lost_bios);
	walk->busy = 0;
	return 0;
}

#ifdef BEFORE_5_17
SEC("tp_btf/block_bio_queue")
int bio_queued(unsigned long long *arguments)
{
	return queue_bio(ARGUMENT_OF(block_bio_queue, arguments), 0);
}
#else
SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queued, struct bio *bio)
{
	return takes(EVENT_BIO_QUEUED, 0, bio) ? queue_bio(bio, 0) : 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queued_within, struct bio *bio)
{
	return takes(EVENT_BIO_QUEUED, 1, bio) ? queue_bio(bio, 1) : 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queued_twice_within, struct bio *bio)
{
	return takes(EVENT_BIO_QUEUED, 2, bio) ? queue_bio(bio, 2) : 0;
}
#endif

/* What umount writes it writes after the end of its call, before the thread's next. */
static __always_inline void end_unmounting(void)
{
	if (!control.unmounting || control.unmounting != (__u32)bpf_get_current_pid_tgid())
		return;
	control.unmounting = 0;
	send_sync(RECORD_SYNC_END, CALL_UMOUNT2, 0, 0, 0);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_entered, struct pt_regs *registers, long number)
{
	__u64 file = 0, inode = 0;
	__u32 role, flags = 0;
	struct call call;

	if (!control.enabled || control.totals_alone)
		return 0;
	end_unmounting();
	if (!may_have_role(number))
		return 0;
	call = call_of(current_task(), number);
	role = role_of(call, registers);
	if (role & ROLE_SUBMITS && !call.is_32_bit) {
		file = submitted_sync(ARGUMENT_3(call, registers), ARGUMENT_2(call, registers),
				      &flags);
		if (file)
			send_sync(RECORD_SYNC_BEGIN, call.number, traced_inode(file), flags,
				  0);
		return 0;
	}
	if (!(role & (ROLE_WAITS | ROLE_WRITES | ROLE_CHANGES)))
		return 0;
	if (role & ROLE_FILE) {
		file = file_of_descriptor(ARGUMENT_1(call, registers));
		inode = traced_inode(file);
		if (!inode)
			return 0;
	}
	if (role & (ROLE_WRITES | ROLE_CHANGES))
		know_file(inode);
	if (role & ROLE_WRITES) {
		flags = call_flags(call, registers, file);
		if (!(flags & (CALL_DSYNC | CALL_SYNC_ALL)))
			return 0;
	} else if (!(role & ROLE_WAITS)) {
		return 0;
	}
	if (call.number == CALL_UMOUNT2)
		control.unmounting = bpf_get_current_pid_tgid();
	send_sync(RECORD_SYNC_BEGIN, call.number, inode, flags, 0);
	return 0;
}

/* The file that a call has just opened, and may have made or emptied. */
static __always_inline void note_opened(struct call call, const struct pt_regs *registers,
					__u64 file)
{
	__u64 inode = traced_inode(file);
	__u32 flags = 0, changes = 0;

	if (!inode)
		return;
	if (READ(file, file, f_mode) & FMODE_CREATED)
		changes |= CHANGE_CREATED;
	else if (call.number == CALL_CREAT)
		changes |= CHANGE_SHRANK;
	else if (call.number == CALL_OPEN)
		flags = ARGUMENT_2(call, registers);
	else if (call.number == CALL_OPENAT)
		flags = ARGUMENT_3(call, registers);
	if (flags & O_TRUNC)
		changes |= CHANGE_SHRANK;
	if (changes)
		note_file(inode, 0, changes | NOTE_NAME);
	else
		know_file(inode);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_left, struct pt_regs *registers, long result)
{
	__u64 file = 0, inode = 0;
	__u32 role, flags = 0;
	struct call call;

	if (!control.enabled || control.totals_alone || !may_have_role(CALL_NUMBER(registers)))
		return 0;
	call = call_of(current_task(), CALL_NUMBER(registers));
	role = role_of(call, registers);
	/* First: the verifier follows it anew for each way that leads to it. */
	if (role & ROLE_SUBMITS) {
		if (!call.is_32_bit &&
		    submitted_sync(ARGUMENT_3(call, registers), ARGUMENT_2(call, registers),
				   &flags))
			send_sync(RECORD_SYNC_END, call.number, 0, 0, 0);
		return 0;
	}
	if (role & ROLE_OPENS && result >= 0)
		note_opened(call, registers, file_of_descriptor(result));
	if (role & ROLE_NAMES && !result) {
		if (call.number == CALL_RENAME || call.number == CALL_RENAMEAT ||
		    call.number == CALL_RENAMEAT2)
			__sync_fetch_and_add(&control.renames, 1);
		send_names(call, registers);
	}
	if (!(role & (ROLE_WAITS | ROLE_WRITES | ROLE_CHANGES)) || call.number == CALL_UMOUNT2)
		return 0;
	if (role & ROLE_FILE) {
		file = file_of_descriptor(ARGUMENT_1(call, registers));
		inode = traced_inode(file);
		if (!inode)
			return 0;
	}
	if (role & (ROLE_WRITES | ROLE_CHANGES))
		note_file(inode, 0, 0);
	if (role & ROLE_WAITS ||
	    (role & ROLE_WRITES &&
	     call_flags(call, registers, file) & (CALL_DSYNC | CALL_SYNC_ALL)))
		send_sync(RECORD_SYNC_END, call.number, 0, 0, 0);
	return 0;
}
