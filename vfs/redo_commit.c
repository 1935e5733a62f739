// SPDX-License-Identifier: Apache-2.0
/*
 * The commit of a transaction over one database or several.
 *
 * SQLite holds each of the databases exclusively. One record says what changed in all of them; when
 * it is on the disk the transaction is committed. Then the databases are written to, and not
 * synced: a power cut before the next checkpoint replays the record.
 */
#include <errno.h>
#include <stdlib.h>
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

/* Bytes of a block that the file has, as the transaction leaves it. */
static size_t block_bytes(const struct redo_file *file, uint32_t block)
{
	sqlite3_int64 left = file->size_bytes - (sqlite3_int64)block * BLOCK_BYTES;

	return left < 0 ? 0 : left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
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
	struct redo_log *log;
	struct redo_file *files[MAX_FILES];
	int count;
	/* The sizes of the files before. */
	uint64_t old_size_bytes[MAX_FILES];
	/* The transaction changes it to WAL mode, which comes after the commit. */
	char is_wal[MAX_FILES];
};

/*
 * Copy a record to its databases. What makes them longer goes first: without room for it nothing
 * else has been changed yet, and the record is revoked.
 */
static int apply(const struct commit *commit, const struct record_writer *writer)
{
	int number, error = 0, fd, is_revoked = 1;

	for (number = 0; number < commit->count && error == 0; number++)
		error = write_blocks(commit->files[number], commit->old_size_bytes[number],
				     UINT64_MAX);
	for (number = 0; number < commit->count && error != 0; number++)
		if (database_fd(commit->log, commit->files[number]->number, &fd) != 0 ||
		    ftruncate(fd, (off_t)commit->old_size_bytes[number]) != 0)
			is_revoked = 0;
	if (error != 0 && is_revoked) {
		revoke_record(commit->log);
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
		end_append(commit->log, writer->length_bytes);
		return 0;
	}
	/* It is durable: whoever locks one of the databases applies it, or sees an error. */
	report("a commit of %s is in its log alone: %s", commit->log->folder, strerror(error));
	for (number = 0; number < commit->count; number++)
		commit->files[number]->is_unapplied = 1;
	return 0;
}

static int log_files(struct commit *commit)
{
	int number, changed = 0, must_sync = 0, is_changed = 0, error = 0;
	struct record_writer writer;

	begin_log_record(commit->log, &writer);
	for (number = 0; number < commit->count && error == 0; number++) {
		error = log_file(commit->files[number], &writer, &commit->old_size_bytes[number],
				 &is_changed);
		changed += is_changed;
		must_sync |= commit->files[number]->must_sync;
	}
	/* A rollback leaves the files as they are. */
	if (error == 0 && changed == 0)
		return 0;
	if (error == 0)
		error = append_record(commit->log, &writer, RECORD_COMMIT, must_sync);
	for (number = 0; number < commit->count && error == 0; number++)
		commit->log->shared->entries[commit->files[number]->number].is_logged = 1;
	if (error == 0)
		error = apply(commit, &writer);
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
		error = mark_database(commit->log, file->name, file->file, first, &file->number);
		if (error == 0)
			file->is_direct = 0;
	}
	return error;
}

static int commit_marked(struct commit *commit)
{
	int number, error = log_files(commit);

	/* No room beside the records that are there. */
	if (error == ENOBUFS) {
		error = checkpoint_log(commit->log);
		if (error == 0)
			error = log_files(commit);
	}
	for (number = 0; number < commit->count && error == 0; number++)
		if (commit->is_wal[number] &&
		    leave_database(commit->log, commit->files[number]->number, VERSION_WAL) != 0)
			report("%s does not change to WAL mode", commit->files[number]->path);
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

/* Become members of the log of all these files. EXDEV where they have several. */
static int attach_files(struct redo_file **files, int count)
{
	int number, error = 0;

	for (number = 0; number < count && error == 0; number++) {
		struct stat status;

		if (strcmp(files[number]->folder, files[0]->folder) != 0)
			return EXDEV;
		if (files[number]->log != NULL)
			continue;
		if (stat(files[number]->path, &status) != 0)
			return errno;
		error = attach_log(files[number]->folder, &status, &files[number]->log);
	}
	return error;
}

static int delete_lower(const char *path)
{
	int rc = lower_vfs(&redo_vfs)->xDelete(lower_vfs(&redo_vfs), path, 1);

	return rc == SQLITE_IOERR_DELETE_NOENT ? SQLITE_OK : rc;
}

/* Delete what a failed commit has left, or do not use the database before it is played. */
static void delete_journals(struct redo_file **files, int count)
{
	int number;

	for (number = 0; number < count; number++)
		if (delete_lower(files[number]->journal_path) != SQLITE_OK)
			files[number]->is_failed = 1;
}

static int write_journals(struct redo_file **files, int count, struct super_journal *super)
{
	int number, rc = SQLITE_OK;

	for (number = 0; number < count && rc == SQLITE_OK; number++)
		rc = leave_log(files[number]);
	if (rc == SQLITE_OK && super != NULL && !super->is_file) {
		rc = spool_copy(&super->names, super->path, SQLITE_OPEN_SUPER_JOURNAL);
		super->is_file = 1;
	}
	for (number = 0; number < count && rc == SQLITE_OK; number++)
		rc = spool_copy(&files[number]->journal, files[number]->journal_path,
				SQLITE_OPEN_MAIN_JOURNAL);
	return rc;
}

static int write_database(struct redo_file *file)
{
	unsigned char bytes[BLOCK_BYTES];
	int rc = SQLITE_OK;
	uint32_t at;

	for (at = 0; at < file->touched_count && rc == SQLITE_OK; at++) {
		uint32_t block = file->touched[at];
		int length_bytes = (int)block_bytes(file, block);

		rc = read_block(file, block, bytes);
		if (rc == SQLITE_OK && length_bytes > 0)
			rc = LOWER(file, xWrite, bytes, length_bytes,
				   (sqlite3_int64)block * BLOCK_BYTES);
	}
	if (rc == SQLITE_OK)
		rc = LOWER(file, xTruncate, file->size_bytes);
	return rc == SQLITE_OK ? LOWER(file, xSync, SQLITE_SYNC_NORMAL) : rc;
}

/*
 * What SQLite does without this VFS, at its commit: journals, then the databases, then the end of
 * the super-journal or of the one journal. A power cut or a death before that is rolled back by any
 * SQLite.
 */
static int play_as_sqlite(struct redo_file **files, int count, struct super_journal *super)
{
	int number, rc = write_journals(files, count, super);

	if (rc != SQLITE_OK) {
		delete_journals(files, count);
		return rc;
	}
	for (number = 0; number < count && rc == SQLITE_OK; number++)
		rc = write_database(files[number]);
	if (rc == SQLITE_OK)
		rc = delete_lower(super != NULL ? super->path : files[0]->journal_path);
	for (number = 0; number < count && rc != SQLITE_OK; number++)
		files[number]->is_failed = 1;
	if (rc == SQLITE_OK && super != NULL) {
		super->is_file = 0;
		delete_journals(files, count);
	}
	return rc == SQLITE_OK || rc == SQLITE_FULL ? rc : SQLITE_IOERR_WRITE;
}

static int commit_changed(struct commit *commit, struct super_journal *super)
{
	int is_marked = 0, error = EXDEV;

	if (super == NULL || !super->is_file)
		error = attach_files(commit->files, commit->count);
	if (error == 0) {
		commit->log = commit->files[0]->log;
		error = lock_log(commit->log, -1);
	}
	if (error == 0) {
		error = mark_files(commit);
		is_marked = error == 0;
		if (is_marked)
			error = commit_marked(commit);
		unlock_log(commit->log);
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
