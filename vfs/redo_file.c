// SPDX-License-Identifier: Apache-2.0
/* A database as one connection has it open, and all those of this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "redo_file.h"

SQLITE_EXTENSION_INIT3

/* How long a lock waits for the log, which others hold for a write and a flush. SQLite asks the
 * connection's busy handler then, whether to wait longer.
 */
#define LOG_WAIT_MS 1000

/* What this process has open. */
static struct redo_file *files;
static struct super_journal *supers;
static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;

int result_of(int error)
{
	switch (error) {
	case 0:
		return SQLITE_OK;
	case ENOSPC:
	case EDQUOT:
		return SQLITE_FULL;
	case ENOMEM:
		return SQLITE_IOERR_NOMEM;
	default:
		return SQLITE_IOERR_WRITE;
	}
}

struct redo_file *find_writer(const char *journal_path)
{
	struct redo_file *file;

	pthread_mutex_lock(&open_mutex);
	/* One connection of all to a database writes at a time. */
	for (file = files; file != NULL; file = file->next)
		if (__atomic_load_n(&file->level, __ATOMIC_RELAXED) >= SQLITE_LOCK_RESERVED &&
		    has_suffix(journal_path, file->path, "-journal"))
			break;
	pthread_mutex_unlock(&open_mutex);
	return file;
}

int find_members(const struct super_journal *super, struct redo_file **found)
{
	struct redo_file *file;
	int count = 0;

	pthread_mutex_lock(&open_mutex);
	for (file = files; file != NULL; file = file->next) {
		if (__atomic_load_n(&file->super, __ATOMIC_RELAXED) != super ||
		    !file->is_in_transaction)
			continue;
		if (count < MAX_FILES)
			found[count] = file;
		count++;
	}
	pthread_mutex_unlock(&open_mutex);
	return count;
}

struct super_journal *add_super(const char *path)
{
	struct super_journal *super = sqlite3_malloc(sizeof(*super));

	if (super == NULL)
		return NULL;
	*super = (struct super_journal){.users = 1, .path = sqlite3_mprintf("%s", path)};
	if (super->path == NULL) {
		sqlite3_free(super);
		return NULL;
	}
	pthread_mutex_lock(&open_mutex);
	super->next = supers;
	supers = super;
	pthread_mutex_unlock(&open_mutex);
	return super;
}

struct super_journal *find_super(const char *path, size_t length)
{
	struct super_journal *super;

	pthread_mutex_lock(&open_mutex);
	for (super = supers; super != NULL; super = super->next)
		if (strlen(super->path) == length && memcmp(super->path, path, length) == 0)
			break;
	pthread_mutex_unlock(&open_mutex);
	return super;
}

void unlist_super(const struct super_journal *super)
{
	struct super_journal **at;

	pthread_mutex_lock(&open_mutex);
	for (at = &supers; *at != NULL && *at != super; at = &(*at)->next)
		;
	if (*at != NULL)
		*at = super->next;
	pthread_mutex_unlock(&open_mutex);
}

void drop_super(struct super_journal *super)
{
	if (--super->users > 0)
		return;
	unlist_super(super);
	spool_free(&super->names);
	sqlite3_free(super->path);
	sqlite3_free(super);
}

void name_super(struct redo_file *file, struct super_journal *super)
{
	struct super_journal *old = file->super;

	if (super != NULL)
		super->users++;
	__atomic_store_n(&file->super, super, __ATOMIC_RELAXED);
	if (old != NULL)
		drop_super(old);
}

/* Why a database with a mark is refused. */
static const char *reason_of(int error)
{
	switch (error) {
	case ENOENT:
	case EMEDIUMTYPE:
		return "its redo log is not in its folder: it was moved or copied without it";
	case EEXIST:
		return "it is a copy of a database that was open";
	case EKEYEXPIRED:
		return "it was not there, or is a copy of before, when its log was replayed";
	case EROFS:
	case EACCES:
		return "its redo log cannot be written to";
	case ENOLINK:
		return "its last transaction is of another folder too, whose redo log is not there";
	default:
		return strerror(error);
	}
}

/* Become a member of the log, if the database has a mark after a recovery. */
static int join_log(struct redo_file *file)
{
	unsigned char header[HEADER_BYTES];
	struct redo_log *log;
	int has_mark, error = attach_log(file->folder, NULL, &log);
	int rc = read_file_header(file, header, &has_mark);

	if (rc == SQLITE_OK && has_mark && error == 0) {
		error = lock_log(log, LOG_WAIT_MS);
		if (error == 0) {
			error = join_database(log, file->name, file->file, header, &file->number);
			unlock_log(log);
		}
		if (error == 0) {
			file->log = log;
			return SQLITE_OK;
		}
	}
	if (log != NULL)
		detach_log(log);
	if (rc != SQLITE_OK || (!has_mark && (error == 0 || error == ENOENT)))
		return rc;
	if (error == EBUSY)
		return SQLITE_BUSY;
	report("%s cannot be opened: %s", file->path, reason_of(error));
	return SQLITE_CANTOPEN;
}

/* The same where it has a mark now; tell whether it has one. */
static int join_if_marked(struct redo_file *file, int *has_mark)
{
	unsigned char header[HEADER_BYTES];
	int rc = read_file_header(file, header, has_mark);

	return rc == SQLITE_OK && *has_mark && file->log == NULL ? join_log(file) : rc;
}

/* At first a header can be torn too, which the log mends. */
static int join_at_open(struct redo_file *file)
{
	unsigned char header[HEADER_BYTES];
	sqlite3_int64 size_bytes;
	int has_mark, rc = read_file_header(file, header, &has_mark);

	if (rc == SQLITE_OK)
		rc = LOWER(file, xFileSize, &size_bytes);
	if (rc != SQLITE_OK || size_bytes == 0 || (is_sqlite_header(header) && !has_mark))
		return rc;
	return join_log(file);
}

int leave_log(struct redo_file *file)
{
	int error, has_mark, rc = join_if_marked(file, &has_mark);

	if (rc != SQLITE_OK || !has_mark || file->log == NULL)
		return rc;
	error = lock_log(file->log, -1);
	if (error != 0)
		return result_of(error);
	error = leave_database(file->log, file->number, VERSION_ROLLBACK);
	unlock_log(file->log);
	return result_of(error);
}

/* A write that is of no transaction of ours: a WAL's checkpoint, a hot journal, no journal. */
static int begin_direct(struct redo_file *file)
{
	int rc;

	if (file->is_direct)
		return SQLITE_OK;
	if (file->level == SQLITE_LOCK_NONE && !file->is_whole) {
		report("%s is written to by a VFS above joj_redo that splits databases, which are "
		       "not whole after a power cut then: load joj_redo for others", file->path);
		return SQLITE_IOERR_WRITE;
	}
	rc = leave_log(file);
	file->is_direct = rc == SQLITE_OK;
	return rc;
}

static int file_close(sqlite3_file *base)
{
	struct redo_file *file = upper_of(&redo_vfs, base), **at;

	pthread_mutex_lock(&open_mutex);
	for (at = &files; *at != file; at = &(*at)->next)
		;
	*at = file->next;
	pthread_mutex_unlock(&open_mutex);
	discard_transaction(file);
	name_super(file, NULL);
	if (file->log != NULL)
		detach_log(file->log);
	free(file->states);
	free(file->touched);
	sqlite3_free(file->folder);
	return LOWER(file, xClose);
}

static int file_read(sqlite3_file *base, void *bytes, int length_bytes, sqlite3_int64 offset)
{
	struct redo_file *file = upper_of(&redo_vfs, base);

	if (file->is_failed)
		return SQLITE_IOERR_READ;
	/* Where a commit of ours could not be applied, it is before anything is read. */
	if (file->is_unapplied) {
		if (lock_log(file->log, -1) != 0)
			return SQLITE_IOERR_READ;
		unlock_log(file->log);
		file->is_unapplied = 0;
	}
	return read_changed(file, bytes, length_bytes, offset);
}

static int file_write(sqlite3_file *base, const void *bytes, int length_bytes, sqlite3_int64 offset)
{
	struct redo_file *file = upper_of(&redo_vfs, base);
	int rc;

	if (file->is_failed)
		return SQLITE_IOERR_WRITE;
	if (file->is_in_transaction)
		return add_changes(file, bytes, length_bytes, offset);
	rc = begin_direct(file);
	return rc == SQLITE_OK ? LOWER(file, xWrite, bytes, length_bytes, offset) : rc;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size_bytes)
{
	struct redo_file *file = upper_of(&redo_vfs, base);
	int rc;

	if (file->is_failed)
		return SQLITE_IOERR_TRUNCATE;
	if (file->is_in_transaction)
		return cut_changes(file, size_bytes);
	rc = begin_direct(file);
	return rc == SQLITE_OK ? LOWER(file, xTruncate, size_bytes) : rc;
}

static int file_sync(sqlite3_file *base, int flags)
{
	struct redo_file *file = upper_of(&redo_vfs, base);

	if (file->is_failed)
		return SQLITE_IOERR_FSYNC;
	if (!file->is_in_transaction)
		return LOWER(file, xSync, flags);
	file->must_sync = 1;
	return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size_bytes)
{
	struct redo_file *file = upper_of(&redo_vfs, base);

	if (!file->is_dirty)
		return read_size(file, size_bytes);
	*size_bytes = file->size_bytes;
	return SQLITE_OK;
}

/* Who takes SHARED sees all commits, also that of a process which died before it was applied; who
 * takes EXCLUSIVE is going to need the log.
 */
static int wait_for_log(struct redo_file *file, int level)
{
	int error;

	if (file->log == NULL || (level == SQLITE_LOCK_SHARED && !log_is_busy(file->log)))
		return SQLITE_OK;
	error = lock_log(file->log, LOG_WAIT_MS);
	if (error == EBUSY)
		return SQLITE_BUSY;
	if (error != 0)
		return level == SQLITE_LOCK_SHARED ? SQLITE_IOERR_LOCK : SQLITE_OK;
	unlock_log(file->log);
	return SQLITE_OK;
}

/*
 * Become a member before the lock is taken: who leaves a log, or cannot join it, closes descriptors
 * of databases, which drops the locks of this process.
 */
static int lock_shared(struct redo_file *file, int level)
{
	unsigned char header[HEADER_BYTES];
	int has_mark = 1, rc = SQLITE_OK;

	while (rc == SQLITE_OK && has_mark) {
		if (file->log == NULL)
			rc = join_if_marked(file, &has_mark);
		has_mark = 0;
		if (rc == SQLITE_OK)
			rc = LOWER(file, xLock, level);
		if (rc == SQLITE_OK && file->log == NULL) {
			/* Between the two another process may have set a mark. */
			rc = read_file_header(file, header, &has_mark);
			if (rc != SQLITE_OK || has_mark)
				LOWER(file, xUnlock, SQLITE_LOCK_NONE);
		}
	}
	if (rc == SQLITE_OK) {
		rc = wait_for_log(file, SQLITE_LOCK_SHARED);
		if (rc != SQLITE_OK)
			LOWER(file, xUnlock, SQLITE_LOCK_NONE);
	}
	return rc;
}

static int file_lock(sqlite3_file *base, int level)
{
	struct redo_file *file = upper_of(&redo_vfs, base);
	int rc = SQLITE_OK;

	if (file->level >= level)
		return SQLITE_OK;
	if (level == SQLITE_LOCK_EXCLUSIVE)
		rc = wait_for_log(file, level);
	if (rc == SQLITE_OK)
		rc = file->level == SQLITE_LOCK_NONE ? lock_shared(file, level)
						     : LOWER(file, xLock, level);
	if (rc == SQLITE_OK)
		__atomic_store_n(&file->level, level, __ATOMIC_RELAXED);
	return rc;
}

static int file_unlock(sqlite3_file *base, int level)
{
	struct redo_file *file = upper_of(&redo_vfs, base);

	if (level <= SQLITE_LOCK_SHARED && (file->is_dirty || file->is_in_transaction))
		discard_transaction(file);
	if (level == SQLITE_LOCK_NONE) {
		/* Not before: SQLite reads it when it has rolled back, and holds SHARED. */
		name_super(file, NULL);
		file->is_direct = 0;
		file->is_failed = 0;
	}
	if (level < file->level)
		__atomic_store_n(&file->level, level, __ATOMIC_RELAXED);
	return LOWER(file, xUnlock, level);
}

/* PRAGMA joj_redo, with "off" or "on" or without a value. */
static int run_pragma(struct redo_file *file, char **arguments)
{
	const char *value = arguments[2], *answer = NULL;
	int is_off = value != NULL && sqlite3_stricmp(value, "off") == 0, rc = SQLITE_ERROR;

	if (value != NULL && file->is_in_transaction)
		answer = "joj_redo changes between transactions only";
	else if (value != NULL && !is_off && sqlite3_stricmp(value, "on") != 0)
		answer = "joj_redo is on or off";
	else
		rc = is_off ? leave_log(file) : SQLITE_OK;
	if (rc == SQLITE_OK) {
		file->is_off = value != NULL ? is_off : file->is_off;
		answer = file->is_off ? "off" : "on";
	}
	if (answer != NULL)
		arguments[0] = sqlite3_mprintf("%s", answer);
	return rc;
}

static int file_control(sqlite3_file *base, int operation, void *argument)
{
	struct redo_file *file = upper_of(&redo_vfs, base);

	switch (operation) {
	case SQLITE_FCNTL_PDB:
		file->is_whole = 1;
		break;
	case SQLITE_FCNTL_PRAGMA:
		if (sqlite3_stricmp(((char **)argument)[1], "joj_redo") == 0)
			return run_pragma(file, argument);
		break;
	/* A file has the size that its log says. */
	case SQLITE_FCNTL_SIZE_HINT:
	case SQLITE_FCNTL_CHUNK_SIZE:
		return SQLITE_OK;
	default:
		break;
	}
	return LOWER(file, xFileControl, operation, argument);
}

/* Batch atomic writes make no journal, by whose end a commit is seen here. */
static int file_device_characteristics(sqlite3_file *base)
{
	struct redo_file *file = upper_of(&redo_vfs, base);

	return LOWER(file, xDeviceCharacteristics) & ~SQLITE_IOCAP_BATCH_ATOMIC;
}

static int file_fetch(sqlite3_file *base, sqlite3_int64 offset, int length_bytes, void **memory)
{
	struct redo_file *file = upper_of(&redo_vfs, base);

	*memory = NULL;
	if (offset < BLOCK_BYTES || file->is_dirty || file->is_failed)
		return SQLITE_OK;
	return LOWER(file, xFetch, offset, length_bytes, memory);
}

int begin_file(struct redo_file *file, const char *path)
{
	sqlite3_io_methods *methods = &file->upper.methods;
	int folder_bytes = (int)(strrchr(path, '/') - path), rc;
	unsigned int names;

	file->path = path;
	file->name = strrchr(path, '/') + 1;
	file->folder = sqlite3_mprintf("%.*s", folder_bytes > 0 ? folder_bytes : 1, path);
	/* A file without a name, or of another kind, can have no mark. */
	read_file_id(AT_FDCWD, path, &file->file, &names);
	rc = file->folder != NULL ? join_at_open(file) : SQLITE_NOMEM;
	if (rc != SQLITE_OK) {
		sqlite3_free(file->folder);
		return rc;
	}
	methods->xClose = file_close;
	methods->xRead = file_read;
	methods->xWrite = file_write;
	methods->xTruncate = file_truncate;
	methods->xSync = file_sync;
	methods->xFileSize = file_size;
	methods->xLock = file_lock;
	methods->xUnlock = file_unlock;
	methods->xFileControl = file_control;
	methods->xDeviceCharacteristics = file_device_characteristics;
	methods->xFetch = file_fetch;
	file->upper.base->pMethods = methods;
	pthread_mutex_lock(&open_mutex);
	file->next = files;
	files = file;
	pthread_mutex_unlock(&open_mutex);
	return SQLITE_OK;
}
