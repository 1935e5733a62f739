// SPDX-License-Identifier: Apache-2.0
/*
 * Rollback journals, and super-journals over several of them, that are no files.
 *
 * SQLite writes the pages that it changes to a journal, and commits when it deletes the journal,
 * truncates it or writes zeros over its header (pager.c); with several databases when it deletes
 * the super-journal, whose name is at the end of each journal. All of these calls come here.
 */
#include "redo_file.h"

SQLITE_EXTENSION_INIT3

/* What SQLite writes over the header of a journal that is kept (zeroJournalHdr(), pager.c). */
#define ENDED_HEADER_BYTES 28

static struct spool *spool_of(struct journal_file *journal)
{
	return journal->database != NULL ? &journal->database->journal : &journal->super->names;
}

/* The journal's pages have been committed or rolled back. */
static int end_journal(struct redo_file *database)
{
	int rc = SQLITE_OK;

	if (database->is_in_transaction)
		rc = commit_files(&database, 1, NULL);
	if (rc == SQLITE_OK)
		spool_cut(&database->journal, 0);
	return rc;
}

/* A database keeps its journal: in journal_mode = DELETE it is closed before it is deleted. */
static int journal_close(sqlite3_file *file)
{
	struct journal_file *journal = (struct journal_file *)file;
	struct redo_file *database = journal->database;

	if (database != NULL && !database->is_in_transaction)
		spool_free(&database->journal);
	if (journal->super != NULL)
		drop_super(journal->super);
	return SQLITE_OK;
}

static int journal_read(sqlite3_file *file, void *bytes, int length_bytes, sqlite3_int64 offset)
{
	struct spool *spool = spool_of((struct journal_file *)file);
	int rc = spool_read(spool, bytes, length_bytes, offset);

	if (rc == SQLITE_OK && offset + length_bytes > spool->size_bytes)
		rc = SQLITE_IOERR_SHORT_READ;
	return rc;
}

static int journal_write(sqlite3_file *file, const void *bytes, int length_bytes,
			 sqlite3_int64 offset)
{
	static const unsigned char ended[ENDED_HEADER_BYTES];
	struct journal_file *journal = (struct journal_file *)file;
	struct redo_file *database = journal->database;
	struct super_journal *super = NULL;
	int rc;

	if (database != NULL) {
		if (offset == 0 && length_bytes == ENDED_HEADER_BYTES &&
		    memcmp(bytes, ended, sizeof(ended)) == 0)
			return end_journal(database);
		database->is_in_transaction = 1;
		/* The name of its super-journal is the last thing that it gets (pager.c). */
		super = find_super(bytes, (size_t)length_bytes);
	}
	rc = spool_write(spool_of(journal), bytes, length_bytes, offset);
	if (rc == SQLITE_OK && super != NULL)
		name_super(database, super);
	return rc;
}

static int journal_truncate(sqlite3_file *file, sqlite3_int64 size_bytes)
{
	struct journal_file *journal = (struct journal_file *)file;

	if (size_bytes == 0 && journal->database != NULL)
		return end_journal(journal->database);
	spool_cut(spool_of(journal), size_bytes);
	return SQLITE_OK;
}

/* Whether each journal that a super-journal names is one of ours. */
static int has_only_ours(const struct super_journal *super)
{
	sqlite3_int64 offset = 0;
	struct redo_file *file;
	char path[4096];

	while (offset < super->names.size_bytes) {
		if (spool_read(&super->names, path, sizeof(path), offset) != SQLITE_OK)
			return 0;
		path[sizeof(path) - 1] = 0;
		file = find_writer(path);
		if (file == NULL || !file->has_journal)
			return 0;
		offset += (sqlite3_int64)strlen(path) + 1;
	}
	return 1;
}

/* SQLite syncs a super-journal once, when all names are in it and no database was written to. */
static int journal_sync(sqlite3_file *file, int flags)
{
	struct journal_file *journal = (struct journal_file *)file;
	struct super_journal *super = journal->super;
	int rc;

	(void)flags;
	if (super == NULL || super->is_file || has_only_ours(super))
		return SQLITE_OK;
	rc = spool_copy(&super->names, super->path, SQLITE_OPEN_SUPER_JOURNAL);
	super->is_file = rc == SQLITE_OK;
	return rc;
}

static int journal_size(sqlite3_file *file, sqlite3_int64 *size_bytes)
{
	*size_bytes = spool_of((struct journal_file *)file)->size_bytes;
	return SQLITE_OK;
}

static int journal_device_characteristics(sqlite3_file *file)
{
	(void)file;
	return 0;
}

/* Those that SQLite's own journals in memory have (memjournal.c), and that of a super-journal. */
static const sqlite3_io_methods journal_methods = {
	.iVersion = 1,
	.xClose = journal_close,
	.xRead = journal_read,
	.xWrite = journal_write,
	.xTruncate = journal_truncate,
	.xSync = journal_sync,
	.xFileSize = journal_size,
	.xDeviceCharacteristics = journal_device_characteristics,
};

static struct journal_file *begin_file_in_memory(sqlite3_file *file)
{
	struct journal_file *journal = (struct journal_file *)file;

	*journal = (struct journal_file){.base = {&journal_methods}};
	return journal;
}

void begin_journal(sqlite3_file *file, struct redo_file *database, const char *path)
{
	begin_file_in_memory(file)->database = database;
	database->has_journal = 1;
	database->journal_path = path;
}

int begin_super(sqlite3_file *file, const char *path)
{
	struct super_journal *super = add_super(path);

	begin_file_in_memory(file)->super = super;
	return super != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

int open_super(sqlite3_file *file, const char *path)
{
	struct super_journal *super = find_super(path, strlen(path));

	if (super == NULL)
		return SQLITE_NOTFOUND;
	/* SQLite reads a super-journal only when it has played one of its journals back, and
	 * deletes it then if it finds no other: these are no files (pager_delsuper(), pager.c).
	 */
	super->is_rolled_back = 1;
	super->users++;
	begin_file_in_memory(file)->super = super;
	return SQLITE_OK;
}

static int delete_super(struct super_journal *super)
{
	struct redo_file *found[MAX_FILES];
	sqlite3_vfs *lower = lower_vfs(&redo_vfs);
	int count = find_members(super, found), number, rc;

	if (super->is_rolled_back && count > 0)
		return SQLITE_OK;
	rc = count > MAX_FILES ? SQLITE_IOERR_DELETE : commit_files(found, count, super);
	/* Where none of ours has changed, nothing of ours has deleted it. */
	if (rc == SQLITE_OK && super->is_file)
		rc = lower->xDelete(lower, super->path, 1);
	if (rc != SQLITE_OK)
		return rc;
	unlist_super(super);
	for (number = 0; number < count; number++)
		name_super(found[number], NULL);
	return SQLITE_OK;
}

int delete_journal(const char *path, int *is_ours)
{
	struct super_journal *super = find_super(path, strlen(path));
	struct redo_file *database;
	int rc;

	*is_ours = 1;
	if (super != NULL)
		return delete_super(super);
	database = find_writer(path);
	*is_ours = database != NULL && database->has_journal;
	if (!*is_ours)
		return SQLITE_OK;
	rc = end_journal(database);
	if (rc == SQLITE_OK) {
		database->has_journal = 0;
		spool_free(&database->journal);
	}
	return rc;
}
