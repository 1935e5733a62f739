/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chooses the calls that are told where everyone is watched: remembers SQLite's files, and so keeps
 * the calls on all other files out of the ring. A database is known by the first lock of its lock
 * bytes (sqlite.org/lockingv3.html), what lies beside it by the end of the path that it is opened
 * by. Comes after the structures and numbers of calls.bpf.c.
 */
#ifndef JOJ_SQLITE_FILES_BPF_H
#define JOJ_SQLITE_FILES_BPF_H

#define LOCKS_BEGIN 0x40000000ULL	/* PENDING_BYTE of os.h of SQLite */
#define LOCKS_END 0x40000200ULL

enum sqlite_role {
	NO_ROLE,
	DATABASE,
	COMPANION,			/* WAL, shared memory */
	JOURNAL,
	SUPER_JOURNAL,
};

struct file_life {
	__u64 inode, subvolume;
	__u32 filesystem;
	__u32 generation;
};

/*
 * What a process keeps open. Of more files than these the longest idle is forgotten, and nothing of
 * it is told until it is opened, or its database locked, once more.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_life);
	__type(value, __u32);		/* enum sqlite_role */
} lasting_files SEC(".maps");

/*
 * Journals, which each transaction makes or opens anew (pager_unlock() of src/pager.c closes them):
 * however many there are, they put nothing else out.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct file_life);
	__type(value, __u32);		/* enum sqlite_role */
} journals SEC(".maps");

static __always_inline struct file_life life_of(const struct call_record *record)
{
	struct file_life life = {
		.inode = record->inode,
		.subvolume = record->subvolume,
		.filesystem = record->filesystem,
		.generation = record->generation,
	};

	return life;
}

static __always_inline __u32 role_of_file(const struct call_record *record)
{
	struct file_life life = life_of(record);
	__u32 *role = bpf_map_lookup_elem(&lasting_files, &life);

	if (!role)
		role = bpf_map_lookup_elem(&journals, &life);
	return role ? *role : NO_ROLE;
}

static __always_inline void remember(const struct call_record *record, __u32 role)
{
	struct file_life life = life_of(record);

	if (role == DATABASE || role == COMPANION)
		bpf_map_update_elem(&lasting_files, &life, &role, BPF_ANY);
	else
		bpf_map_update_elem(&journals, &life, &role, BPF_ANY);
}

/* A character of the path, counted from its end, which has number 1. */
static __always_inline char last(const struct call_record *record, __u32 back)
{
	return record->path[(record->path_bytes - 1 - back) & (CALL_PATH_BYTES - 1)];
}

/* What the path is to SQLite by how it ends: src/pager.c, and vdbeCommit() of src/vdbeaux.c. */
static __always_inline __u32 role_of_path(const struct call_record *record)
{
	if (record->path_bytes < 6)
		return NO_ROLE;
	if (last(record, 4) == '-') {
		if (last(record, 3) == 'w' && last(record, 2) == 'a' && last(record, 1) == 'l')
			return COMPANION;
		if (last(record, 3) == 's' && last(record, 2) == 'h' && last(record, 1) == 'm')
			return COMPANION;
	}
	if (record->path_bytes > 9 && last(record, 8) == '-' && last(record, 7) == 'j' &&
	    last(record, 6) == 'o' && last(record, 5) == 'u' && last(record, 4) == 'r' &&
	    last(record, 3) == 'n' && last(record, 2) == 'a' && last(record, 1) == 'l')
		return JOURNAL;
	if (record->path_bytes > 13 && last(record, 12) == '-' && last(record, 11) == 'm' &&
	    last(record, 10) == 'j')
		return SUPER_JOURNAL;
	return NO_ROLE;
}

/* The call may wait for the device: it is timed. Others are told as of their end. */
static __always_inline bool may_wait(const struct pt_regs *registers, __u64 number)
{
	__u64 file;

	switch (number) {
	case CALL_FSYNC:
	case CALL_FDATASYNC:
	case CALL_SYNC:
	case CALL_SYNCFS:
	case CALL_MSYNC:
	case CALL_UNLINK:
	case CALL_UNLINKAT:
		return true;
	case CALL_WRITE:
	case CALL_PWRITE64:
	case CALL_WRITEV:
	case CALL_PWRITEV:
	case CALL_PWRITEV2:
		file = file_of_descriptor(REGISTER_1(registers));
		return file && READ(file, file, f_flags) & O_DSYNC;
	default:
		return false;
	}
}

/* A described call that succeeded is to be told; `third` is its third argument. */
static __always_inline bool is_wanted(const struct call_record *record, __u64 third)
{
	__u32 role;

	switch (record->call) {
	case CALL_OPEN:
	case CALL_CREAT:
	case CALL_OPENAT:
	case CALL_OPENAT2:
		role = role_of_path(record);
		if (role)
			remember(record, role);
		return role || record->is_created || record->file_flags & O_ACCMODE;
	case CALL_UNLINKAT:
		return !(third & AT_REMOVEDIR);
	case CALL_TRUNCATE:
		return role_of_path(record);
	case CALL_FCNTL:
		role = role_of_file(record);
		if (role)
			return true;
		if (record->offset_bytes < LOCKS_BEGIN || record->offset_bytes >= LOCKS_END)
			return false;
		remember(record, DATABASE);
		return true;
	case CALL_PREAD64:
		return role_of_file(record) == JOURNAL;
	case CALL_WRITE:
	case CALL_PWRITE64:
	case CALL_WRITEV:
	case CALL_PWRITEV:
	case CALL_PWRITEV2:
		return record->file_flags & O_DSYNC || role_of_file(record);
	case CALL_FTRUNCATE:
		return role_of_file(record);
	default:
		return true;
	}
}

#endif
