/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the transaction of ext4 that a call waits for. An inode has the number of the last that has
 * changes of it (i_sync_tid; i_datasync_tid of those that its data need), and fsync waits for that
 * one alone (ext4_fsync_journal()). jbd2 writes a transaction's number at the begin of the blocks
 * that it makes. Once such a block is sent, no change can join its transaction, so that the two are
 * compared then: every call in progress whose number is new is told, and the commit's own number.
 *
 * Before Linux 5.17 a program cannot go through a map, and nothing is told. Nor is it of what waits
 * for the running transaction, whichever that is: a directory, data=journal, sync and syncfs.
 */
#ifndef JOJ_TRANSACTIONS_BPF_H
#define JOJ_TRANSACTIONS_BPF_H

#define EXT4_MAGIC 0xef53
#define EXT4_DATA_MODE 0xc00	/* EXT4_MOUNT_DATA_FLAGS (fs/ext4/ext4.h) */
#define EXT4_DATA_JOURNAL 0x400	/* EXT4_MOUNT_JOURNAL_DATA */

struct bpf_map;

struct waiting_call {
	__u64 inode;
	__u32 told;		/* the number that user space knows, if it does */
	__u8 is_told;
	__u8 needs_data_alone;
	__u16 padding;
};

/* Of more calls at once nothing is known. A commit looks at every place, used or not. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, struct waiting_call);
} waiting_calls SEC(".maps");

#ifdef BEFORE_5_17
#define begin_waiting(caller, call, inode, flags)
#define end_waiting(caller)
#define send_commit(device, number)
#else
/* Begins where a call or a request waits; CALLER is the thread or, of a request, its address. */
static __noinline void begin_waiting(__u64 caller, __u32 call, __u64 inode, __u32 flags)
{
	__u64 superblock = READ(inode, inode, i_sb), filesystem;
	struct waiting_call waiting = { .inode = inode };

	if (READ(super_block, superblock, s_magic) != EXT4_MAGIC ||
	    !bpf_core_field_exists(((struct ext4_inode_info *)0)->i_datasync_tid))
		return;
	if ((READ(inode, inode, i_mode) & S_IFMT) != S_IFREG ||
	    READ(super_block, superblock, s_flags) & SB_SYNCHRONOUS)
		return;
	filesystem = READ(super_block, superblock, s_fs_info);
	if ((READ(ext4_sb_info, filesystem, s_mount_opt) & EXT4_DATA_MODE) == EXT4_DATA_JOURNAL)
		return;
	if (call == CALL_FDATASYNC || (call != CALL_FSYNC && !(flags & CALL_SYNC_ALL)))
		waiting.needs_data_alone = 1;
	bpf_map_update_elem(&waiting_calls, &caller, &waiting, BPF_ANY);
}

static __always_inline void end_waiting(__u64 caller)
{
	bpf_map_delete_elem(&waiting_calls, &caller);
}

static long tell_waiting(struct bpf_map *map, const __u64 *caller, struct waiting_call *waiting,
			 void *context)
{
	struct transaction_record record = { .kind = RECORD_WAITS };
	__u64 inode = waiting->inode - bpf_core_field_offset(struct ext4_inode_info, vfs_inode);

	if (waiting->needs_data_alone)
		record.number = READ(ext4_inode_info, inode, i_datasync_tid);
	else
		record.number = READ(ext4_inode_info, inode, i_sync_tid);
	if (waiting->is_told && waiting->told == record.number)
		return 0;
	waiting->told = record.number;
	waiting->is_told = 1;
	record.time_ns = bpf_ktime_get_boot_ns();
	record.caller = *caller;
	send(&record, sizeof(record), &control.lost_syncs);
	return 0;
}

/* A block of the commit of transaction NUMBER is sent to the journal on DEVICE. */
static __noinline void send_commit(__u32 device, __u32 number)
{
	struct transaction_record record = { .kind = RECORD_COMMIT };

	if (bpf_core_field_exists(((struct ext4_inode_info *)0)->i_datasync_tid))
		bpf_for_each_map_elem(&waiting_calls, tell_waiting, NULL, 0);
	record.number = number;
	record.device = device;
	record.time_ns = bpf_ktime_get_boot_ns();
	send(&record, sizeof(record), &control.lost_syncs);
}
#endif

#endif
