// SPDX-License-Identifier: Apache-2.0
/*
 * The commit of a transaction over one database or several.
 *
 * SQLite holds each of the databases exclusively. One record says what changed in all of them; when
 * it is on the disk the transaction is committed. Then the databases are written to, and not
 * synced: a power cut before the next checkpoint replays the record.
 *
 * Databases of several folders have several logs. The one with the lowest id is the coordinator.
 * All logs are locked. Each of the others gets its record first, prepared: it names the coordinator
 * and the transaction, a number that was drawn for it. These are synced, each with one flush; then
 * the coordinator's record, which names the logs and the transaction. When that one is on the disk
 * the transaction is committed, and only then the databases are written to. Why no end of a power
 * or a process leaves a part of it:
 *
 * - A prepared record with another record behind it has committed: who wrote that one had the log's
 *   lock, and gets it only when the record at the tail is applied or revoked. So there is doubt of
 *   the last record of a log alone. Who finds it, in a recovery or because a committer died, asks
 *   the coordinator, before anybody reads the databases.
 * - The coordinator is locked while it is asked, and what a dead committer left there is recovered
 *   before. So its record is durable and applied, or there is none, and nobody is left who would
 *   write one. The answer stays the same.
 * - The coordinator knows the last transaction of each other log for good: begin_generation() keeps
 *   it when the log is emptied. That is enough, since a later one is prepared behind it in the
 *   other log, which is then in no doubt of it. MAX_OUTCOMES logs have a place.
 * - "Not committed" is said by the very file alone that the record names, and only where it still
 *   knows the transaction before: it may be a copy of then, and so may be the log that asks. Where
 *   the coordinator is not to be found, or cannot be read, the databases are refused.
 * - What fails before the coordinator's record revokes the prepared ones. What fails in it or later
 *   revokes it first, durably, and the others then. Where that fails too, all these logs are
 *   broken: they commit nothing, until all have left and the next one asks.
 *
 * Logs are locked by their ids, so that nobody waits in a circle; who has to ask holds no lock, and
 * asks a log of a lower id than its own. Folders of several filesystems, of which one can be there
 * without the other, and copies of a folder, whose logs have the same id, are for SQLite's own way.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "redo_file.h"

SQLITE_EXTENSION_INIT3

/* Bytes that are alike between two changes are logged too where an item of its own has more. */
#define GAP_BYTES 24

static int compare_blocks(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return (a > b) - (a < b);
}

static int has_changes(struct redo_file *file)
{
	sqlite3_int64 size_bytes;

	if (!file->is_in_transaction || !file->is_dirty)
		return 0;
	/* The first transaction of a new database was rolled back. */
	return file->size_bytes != 0 || read_size(file, &size_bytes) != SQLITE_OK ||
	       size_bytes != 0;
}

/* A block as it goes to the disk. */
static int read_new(struct redo_file *file, uint32_t block, unsigned char *bytes)
{
	int rc = read_block(file, block, bytes);

	if (block == 0)
		set_mark(bytes, file->log->id, file->log->shared->entries[file->number].id);
	return rc == SQLITE_OK ? 0 : rc == SQLITE_IOERR_NOMEM ? ENOMEM : EIO;
}

/* Bytes that are compared at once: most of a block is as it was. */
#define ALIKE_BYTES 64

/* Find the next run of bytes that differ, from *begin on: its begin and its end. */
static int find_change(const unsigned char *old, const unsigned char *new, size_t length_bytes,
		       size_t *begin, size_t *end)
{
	size_t at;

	while (*begin + ALIKE_BYTES <= length_bytes &&
	       memcmp(old + *begin, new + *begin, ALIKE_BYTES) == 0)
		*begin += ALIKE_BYTES;
	while (*begin < length_bytes && old[*begin] == new[*begin])
		(*begin)++;
	*end = *begin + 1;
	for (at = *end; at < length_bytes && at <= *end - 1 + GAP_BYTES; at++)
		if (old[at] != new[at])
			*end = at + 1;
	return *begin < length_bytes;
}

/* Log what has changed of a block; without a writer, return the bytes that it would take. */
static size_t log_changes(struct record_writer *writer, uint64_t offset, const unsigned char *old,
			  const unsigned char *new, size_t length_bytes)
{
	size_t begin, end, sum = 0;

	for (begin = 0; find_change(old, new, length_bytes, &begin, &end); begin = end) {
		sum += sizeof(struct item_header) + (end - begin + 7) / 8 * 8;
		if (writer != NULL)
			add_item(writer, ITEM_BYTES, offset + begin, new + begin, end - begin);
	}
	return sum;
}

/* Nothing is whole in the log behind a checkpoint. */
static void forget_older_generation(struct redo_file *file)
{
	uint32_t at;

	if (file->whole_generation == file->log->shared->generation)
		return;
	for (at = 0; at < file->state_count; at++)
		file->states[at].is_whole = 0;
	file->whole_generation = file->log->shared->generation;
}

/*
 * Log a block. Where it is logged for the first time since the last checkpoint it is logged whole:
 * a power cut may tear what is written to the database, which no change mends.
 */
static int log_block(struct redo_file *file, struct record_writer *writer, int fd, uint32_t block,
		     uint64_t old_size_bytes, int *is_changed)
{
	unsigned char old[BLOCK_BYTES] = {0}, new[BLOCK_BYTES];
	uint64_t offset = (uint64_t)block * BLOCK_BYTES;
	size_t length_bytes = block_bytes(file, block);
	int error;
	long got;

	*is_changed = 0;
	if (length_bytes == 0)
		return 0;
	got = read_most(fd, old, sizeof(old), offset);
	if (got < 0)
		return (int)-got;
	error = read_new(file, block, new);
	if (error != 0)
		return error;
	if (offset + length_bytes <= old_size_bytes && memcmp(old, new, length_bytes) == 0)
		return 0;
	*is_changed = 1;
	if (file->states[block].is_whole &&
	    log_changes(NULL, 0, old, new, length_bytes) < length_bytes) {
		log_changes(writer, offset, old, new, length_bytes);
		return 0;
	}
	add_item(writer, ITEM_BYTES, offset, new, length_bytes);
	file->states[block].is_whole = 1;
	return 0;
}

/* Log what changed of a database; blocks that did not are forgotten. */
static int log_file(struct redo_file *file, struct record_writer *writer, uint64_t *old_size_bytes,
		    int *is_changed)
{
	struct log_entry *entry = &file->log->shared->entries[file->number];
	int fd, error = database_fd(file->log, file->number, &fd), has_changed;
	uint32_t at, kept = 0;
	struct stat status;

	if (error == 0 && fstat(fd, &status) != 0)
		error = errno;
	if (error != 0)
		return error;
	*old_size_bytes = (uint64_t)status.st_size;
	forget_older_generation(file);
	add_database(writer, entry->id, entry->file, (uint64_t)file->size_bytes, entry->name);
	qsort(file->touched, file->touched_count, sizeof(*file->touched), compare_blocks);
	for (at = 0; at < file->touched_count; at++) {
		uint32_t block = file->touched[at];

		if (error == 0)
			error = log_block(file, writer, fd, block, *old_size_bytes, &has_changed);
		/* Behind an error none is forgotten. */
		if (error != 0 || has_changed)
			file->touched[kept++] = block;
		else
			file->states[block].slot = 0;
	}
	file->touched_count = kept;
	*is_changed = kept > 0 || (uint64_t)file->size_bytes != *old_size_bytes;
	return error;
}

/* Write the blocks that begin in [begin, end) of the file. */
static int write_blocks(struct redo_file *file, uint64_t begin, uint64_t end)
{
	unsigned char bytes[BLOCK_BYTES];
	int fd, error = database_fd(file->log, file->number, &fd);
	uint32_t at;

	for (at = 0; at < file->touched_count && error == 0; at++) {
		uint32_t block = file->touched[at];
		uint64_t offset = (uint64_t)block * BLOCK_BYTES;

		if (offset < begin || offset >= end)
			continue;
		error = read_new(file, block, bytes);
		if (error == 0)
			error = write_all(fd, bytes, block_bytes(file, block), offset);
	}
	return error;
}

struct commit {
	/* By their ids: the first one is the coordinator of the others. */
	struct redo_log *logs[MAX_FILES];
	int log_count;
	/* How long the record of each is; 0 where it has none. */
	uint64_t record_bytes[MAX_FILES];
	uint64_t transaction;
	struct redo_file *files[MAX_FILES];
	int count;
	/* The sizes of the files before. */
	uint64_t old_size_bytes[MAX_FILES];
	/* The transaction changes it to WAL mode, which comes after the commit. */
	char is_wal[MAX_FILES];
};

/* Revoke the records that there are, that of the coordinator first. */
static void revoke_records(const struct commit *commit)
{
	int at, error = commit->logs[0]->shared->is_broken ? EIO : 0;

	for (at = 0; at < commit->log_count; at++) {
		if (commit->record_bytes[at] == 0)
			continue;
		if (error != 0) {
			commit->logs[at]->shared->is_broken = 1;
			set_busy(commit->logs[at], 0);
		} else if (revoke_record(commit->logs[at]) != 0 && at == 0) {
			error = EIO;
		}
	}
}

/* The records have been applied. */
static void end_records(const struct commit *commit)
{
	int at;

	for (at = 1; at < commit->log_count; at++) {
		uint64_t key = log_key(commit->logs[at]);

		if (commit->record_bytes[at] > 0)
			find_place(commit->logs[0], key)->transaction = commit->transaction;
	}
	for (at = 0; at < commit->log_count; at++)
		if (commit->record_bytes[at] > 0)
			end_append(commit->logs[at], commit->record_bytes[at]);
}

/*
 * Copy the records to their databases. What makes them longer goes first: without room for it
 * nothing else has been changed yet, and the records are revoked.
 */
static int apply(const struct commit *commit)
{
	int number, error = 0, fd, is_revoked = 1;

	for (number = 0; number < commit->count && error == 0; number++)
		error = write_blocks(commit->files[number], commit->old_size_bytes[number],
				     UINT64_MAX);
	for (number = 0; number < commit->count && error != 0; number++) {
		const struct redo_file *file = commit->files[number];

		if (database_fd(file->log, file->number, &fd) != 0 ||
		    ftruncate(fd, (off_t)commit->old_size_bytes[number]) != 0)
			is_revoked = 0;
	}
	if (error != 0 && is_revoked) {
		revoke_records(commit);
		return error;
	}
	for (number = 0; number < commit->count && error == 0; number++) {
		struct redo_file *file = commit->files[number];
		uint64_t old_size_bytes = commit->old_size_bytes[number];

		error = write_blocks(file, 0, old_size_bytes);
		/* By the VFS below, which may have more of the file mapped. */
		if (error == 0 && (uint64_t)file->size_bytes < old_size_bytes &&
		    LOWER(file, xTruncate, file->size_bytes) != SQLITE_OK)
			error = EIO;
	}
	if (error == 0) {
		end_records(commit);
		return 0;
	}
	/* It is durable: whoever locks one of the databases applies it, or sees an error. */
	report("a commit of %s is in its log alone: %s", commit->logs[0]->folder, strerror(error));
	for (number = 0; number < commit->count; number++)
		commit->files[number]->is_unapplied = 1;
	return 0;
}

/* What the coordinator's record says of the others, if they have one; what theirs say of it. */
static int log_transaction(const struct commit *commit, int at, struct record_writer *writer,
			   int must_sync)
{
	struct redo_log *first = commit->logs[0];
	int number, count = 0;

	if (at > 0) {
		struct coordinator_item item = {
			.log_id = first->id,
			.log_file = first->file,
			.log_key = log_key(commit->logs[at]),
			.previous = commit->transaction,
		};

		if (must_sync)
			item.previous = find_place(first, item.log_key)->transaction;
		add_coordinator(writer, commit->transaction, &item, first->folder);
		return 0;
	}
	for (number = 1; number < commit->log_count; number++) {
		uint64_t key = log_key(commit->logs[number]);

		if (commit->record_bytes[number] == 0)
			continue;
		add_item(writer, ITEM_OUTCOME, commit->transaction, &key, sizeof(key));
		count++;
	}
	return count;
}

/* Append the record of one log. A rollback leaves the files as they are, and needs none. */
static int append_once(struct commit *commit, int at, int must_sync)
{
	enum record_kind kind = at > 0 ? RECORD_PREPARED : RECORD_COMMIT;
	struct redo_log *log = commit->logs[at];
	int number, changed, is_changed = 0, error = 0;
	struct record_writer writer;

	begin_log_record(log, &writer);
	changed = log_transaction(commit, at, &writer, must_sync);
	for (number = 0; number < commit->count && error == 0; number++) {
		if (commit->files[number]->log != log)
			continue;
		error = log_file(commit->files[number], &writer, &commit->old_size_bytes[number],
				 &is_changed);
		changed |= is_changed;
		if (is_changed)
			log->shared->entries[commit->files[number]->number].is_logged = 1;
	}
	if (error != 0 || changed == 0)
		return error;
	error = append_record(log, &writer, kind, must_sync);
	if (error == 0)
		commit->record_bytes[at] = writer.length_bytes;
	return error;
}

static int append(struct commit *commit, int at, int must_sync)
{
	int error = append_once(commit, at, must_sync);

	/* No room beside the records that are there. */
	if (error == ENOBUFS) {
		error = checkpoint_log(commit->logs[at]);
		if (error == 0)
			error = append_once(commit, at, must_sync);
	}
	return error;
}

static int log_files(struct commit *commit)
{
	int number, at, must_sync = 0, error = 0;

	for (number = 0; number < commit->count; number++)
		must_sync |= commit->files[number]->must_sync;
	for (at = commit->log_count; at > 0 && error == 0; at--)
		error = append(commit, at - 1, must_sync);
	if (error != 0)
		revoke_records(commit);
	else if (commit->record_bytes[0] > 0)
		error = apply(commit);
	/* Blocks of a record that there is not are not in the log. */
	for (number = 0; number < commit->count && error != 0; number++)
		commit->files[number]->whole_generation = 0;
	return error;
}

/* Set the marks. */
static int mark_files(struct commit *commit)
{
	unsigned char bytes[BLOCK_BYTES];
	int number, error = 0;

	for (number = 0; number < commit->count && error == 0; number++) {
		struct redo_file *file = commit->files[number];
		const unsigned char *first = NULL;

		if (file->state_count > 0 && file->states[0].slot != 0) {
			if (read_block(file, 0, bytes) != SQLITE_OK)
				return EIO;
			first = bytes;
			commit->is_wal[number] = bytes[MARK_VERSIONS_OFFSET] == VERSION_WAL;
		}
		error = mark_database(file->log, file->name, file->file, first, &file->number);
		if (error == 0)
			file->is_direct = 0;
	}
	return error;
}

static int commit_marked(struct commit *commit)
{
	int number, error = log_files(commit);

	for (number = 0; number < commit->count && error == 0; number++) {
		const struct redo_file *file = commit->files[number];

		if (commit->is_wal[number] &&
		    leave_database(file->log, file->number, VERSION_WAL) != 0)
			report("%s does not change to WAL mode", file->path);
	}
	return error;
}

/* Whether a database cannot have a mark, or its folder no log, so that SQLite's own way is left. */
static int is_unable(int error)
{
	switch (error) {
	case EMLINK:
	case EXDEV:
	case EMEDIUMTYPE:
	case ENFILE:
	case ENOSPC:
	case EDQUOT:
	case EROFS:
	case EACCES:
	case EPERM:
	case ELOOP:
	case ENOENT:
		return 1;
	default:
		return 0;
	}
}

/* Put a log into the order of their ids. EXDEV where the others can have no record with it. */
static int add_log(struct commit *commit, struct redo_log *log)
{
	int at;

	for (at = 0; at < commit->log_count; at++)
		if (commit->logs[at] == log)
			return 0;
	for (; at > 0 && commit->logs[at - 1]->id > log->id; at--)
		commit->logs[at] = commit->logs[at - 1];
	commit->logs[at] = log;
	if (at > 0 && commit->logs[at - 1]->id == log->id)
		return EXDEV;
	at = at == 0 ? commit->log_count : 0;
	commit->log_count++;
	return commit->logs[at]->device == log->device ? 0 : EXDEV;
}

/* Become members of the logs of all these files. */
static int attach_files(struct commit *commit)
{
	int number, error = 0;

	for (number = 0; number < commit->count && error == 0; number++) {
		struct redo_file *file = commit->files[number];
		struct stat status;

		if (file->log == NULL && stat(file->path, &status) != 0)
			return errno;
		if (file->log == NULL)
			error = attach_log(file->folder, &status, &file->log);
		if (error == 0)
			error = add_log(commit, file->log);
	}
	return error;
}

/* Whether the logs, which are locked, can have a transaction together. */
static int begin_transaction(struct commit *commit)
{
	struct redo_log *first = commit->logs[0];
	struct stat status;
	int at;

	for (at = 0; at < commit->log_count; at++)
		if (commit->logs[at]->shared->is_broken)
			return EIO;
	if (commit->log_count == 1)
		return 0;
	for (at = 1; at < commit->log_count; at++) {
		uint64_t key = log_key(commit->logs[at]);
		struct outcome *place = find_place(first, key);

		if (place == NULL)
			return ENFILE;
		place->log_key = key;
	}
	/* The folder may have been renamed, and is not to be found then. */
	if (stat(first->folder, &status) != 0 || status.st_ino != first->folder_inode)
		return EXDEV;
	while (commit->transaction == 0)
		if (getrandom(&commit->transaction, sizeof(commit->transaction), 0) !=
		    sizeof(commit->transaction))
			return EIO;
	return 0;
}

static int commit_changed(struct commit *commit, struct super_journal *super)
{
	int is_marked = 0, error = EXDEV;

	if (super == NULL || !super->is_file)
		error = attach_files(commit);
	if (error == 0)
		error = lock_logs(commit->logs, commit->log_count, -1);
	if (error == 0) {
		error = begin_transaction(commit);
		if (error == 0)
			error = mark_files(commit);
		is_marked = error == 0;
		if (is_marked)
			error = commit_marked(commit);
		unlock_logs(commit->logs, commit->log_count);
	}
	if (!is_marked && is_unable(error))
		return play_as_sqlite(commit->files, commit->count, super);
	return result_of(error);
}

int commit_files(struct redo_file **files, int count, struct super_journal *super)
{
	struct commit commit = {0};
	int number, rc = SQLITE_OK;

	for (number = 0; number < count; number++)
		if (has_changes(files[number]))
			commit.files[commit.count++] = files[number];
	if (commit.count > 0)
		rc = commit_changed(&commit, super);
	/* After an error SQLite rolls back from the journals, one database after the other, and
	 * ends each: none may commit then.
	 */
	for (number = 0; number < count; number++)
		if (rc == SQLITE_OK)
			discard_transaction(files[number]);
		else
			drop_changes(files[number]);
	return rc;
}
