// SPDX-License-Identifier: Apache-2.0
/*
 * The commit in SQLite's own way, of databases that cannot have a record in a log: journals, then
 * the databases, then the end of the super-journal or of the one journal. A power cut or a death
 * before that is rolled back by any SQLite.
 */
#include "redo_file.h"

SQLITE_EXTENSION_INIT3

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

int play_as_sqlite(struct redo_file **files, int count, struct super_journal *super)
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
