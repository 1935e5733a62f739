// SPDX-License-Identifier: Apache-2.0
/* A database as one connection has it open. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "redo_changes.h"
#include "redo_file.h"
#include "redo_member.h"
#include "redo_place.h"

SQLITE_EXTENSION_INIT3

/* How long a lock waits for the log, which others hold for a write and a flush. SQLite asks the
 * connection's busy handler then, whether to wait longer.
 */
#define LOG_WAIT_MS 1000

static struct redo_file *files;
static pthread_mutex_t files_mutex = PTHREAD_MUTEX_INITIALIZER;

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

int collect_files(int (*test)(const struct redo_file *file, const void *argument),
		  const void *argument, struct redo_file **found, int max)
{
	struct redo_file *file;
	int count = 0;

	pthread_mutex_lock(&files_mutex);
	for (file = files; file != NULL; file = file->next) {
		if (!test(file, argument))
			continue;
		if (count < max)
			found[count] = file;
		count++;
	}
	pthread_mutex_unlock(&files_mutex);
	return count;
}

/* One connection of all to a database writes at a time. */
static int writes_journal(const struct redo_file *file, const void *journal_path)
{
	return __atomic_load_n(&file->level, __ATOMIC_RELAXED) >= SQLITE_LOCK_RESERVED &&
	       has_suffix(journal_path, file->path, "-journal");
}

struct redo_file *find_writer(const char *journal_path)
{
	struct redo_file *file;

	return collect_files(writes_journal, journal_path, &file, 1) > 0 ? file : NULL;
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
	default:
		return strerror(error);
	}
}

/* Become a member of the log, if the database has a mark after a recovery. */
static int join_log_now(struct redo_file *file)
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

static int join_log(struct redo_file *file)
{
	unsigned char header[HEADER_BYTES];
	int has_mark, rc = read_file_header(file, header, &has_mark);

	return rc == SQLITE_OK && has_mark ? join_log_now(file) : rc;
}

/* At first a header can be torn too, which the log mends. */
static int join_at_open(struct redo_file *file)
{
	unsigned char header[HEADER_BYTES];
	sqlite3_int64 size_bytes;
	int has_mark, rc = read_file_header(file, header, &has_mark);

	if (rc == SQLITE_OK)
		rc = pass_file_size(&file->upper.base, &size_bytes);
	if (rc != SQLITE_OK || size_bytes == 0 || (is_sqlite_header(header) && !has_mark))
		return rc;
	return join_log_now(file);
}

int leave_log(struct redo_file *file)
{
	unsigned char header[HEADER_BYTES];
	int error, has_mark, rc = read_file_header(file, header, &has_mark);

	if (rc == SQLITE_OK && has_mark && file->log == NULL)
		rc = join_log(file);
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
	if (rc == SQLITE_OK)
		file->is_direct = 1;
	return rc;
}

static int file_close(sqlite3_file *base)
{
	struct redo_file *file = (struct redo_file *)base, **at;

	pthread_mutex_lock(&files_mutex);
	for (at = &files; *at != NULL; at = &(*at)->next) {
		if (*at == file) {
			*at = file->next;
			break;
		}
	}
	pthread_mutex_unlock(&files_mutex);
	discard_transaction(file);
	name_super(&file->super, NULL);
	if (file->log != NULL)
		detach_log(file->log);
	free(file->slots);
	free(file->touched);
	free(file->whole);
	sqlite3_free(file->folder);
	return pass_close(base);
}

/* Hide the mark in what was read of the header. */
static int hide_in(struct redo_file *file, unsigned char *bytes, int length_bytes,
		   sqlite3_int64 offset)
{
	unsigned char header[HEADER_BYTES];
	int has_mark, rc = read_file_header(file, header, &has_mark);
	sqlite3_int64 at, size_bytes;

	if (rc != SQLITE_OK || !has_mark)
		return rc;
	rc = read_size(file, &size_bytes);
	if (rc == SQLITE_OK && size_bytes == 0) {
		memset(bytes, 0, (size_t)length_bytes);
		return SQLITE_IOERR_SHORT_READ;
	}
	clear_mark(header, VERSION_ROLLBACK);
	for (at = offset; at < offset + length_bytes && at < HEADER_BYTES; at++)
		bytes[at - offset] = header[at];
	return rc;
}

/* Whether these bytes have a part of the mark. */
static int has_mark_bytes(int length_bytes, sqlite3_int64 offset)
{
	return offset < MARK_END && offset + length_bytes > MARK_VERSIONS_OFFSET &&
	       !(offset >= MARK_VERSIONS_OFFSET + 2 && offset + length_bytes <= MARK_IDS_OFFSET);
}

static int file_read(sqlite3_file *base, void *bytes, int length_bytes, sqlite3_int64 offset)
{
	struct redo_file *file = (struct redo_file *)base;
	int rc, hidden = SQLITE_OK;

	if (file->is_failed)
		return SQLITE_IOERR_READ;
	/* Where a commit of ours could not be applied, it is before anything is read. */
	if (file->is_unapplied) {
		if (lock_log(file->log, -1) != 0)
			return SQLITE_IOERR_READ;
		unlock_log(file->log);
		file->is_unapplied = 0;
	}
	rc = pass_read(base, bytes, length_bytes, offset);
	if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
		return rc;
	if (has_mark_bytes(length_bytes, offset))
		hidden = hide_in(file, bytes, length_bytes, offset);
	if (hidden != SQLITE_OK)
		rc = hidden;
	if (!file->is_dirty || (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ))
		return rc;
	return lay_changes_over(file, bytes, length_bytes, offset);
}

static int file_write(sqlite3_file *base, const void *bytes, int length_bytes, sqlite3_int64 offset)
{
	struct redo_file *file = (struct redo_file *)base;
	int rc;

	if (file->is_failed)
		return SQLITE_IOERR_WRITE;
	if (!file->is_in_transaction) {
		rc = begin_direct(file);
		return rc == SQLITE_OK ? pass_write(base, bytes, length_bytes, offset) : rc;
	}
	return add_changes(file, bytes, length_bytes, offset);
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size_bytes)
{
	struct redo_file *file = (struct redo_file *)base;
	int rc;

	if (file->is_failed)
		return SQLITE_IOERR_TRUNCATE;
	if (!file->is_in_transaction) {
		rc = begin_direct(file);
		return rc == SQLITE_OK ? pass_truncate(base, size_bytes) : rc;
	}
	return cut_changes(file, size_bytes);
}

static int file_sync(sqlite3_file *base, int flags)
{
	struct redo_file *file = (struct redo_file *)base;

	if (file->is_failed)
		return SQLITE_IOERR_FSYNC;
	if (!file->is_in_transaction)
		return pass_sync(base, flags);
	file->must_sync = 1;
	return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size_bytes)
{
	struct redo_file *file = (struct redo_file *)base;

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
		has_mark = 0;
		if (file->log == NULL)
			rc = join_log(file);
		if (rc == SQLITE_OK)
			rc = pass_lock(&file->upper.base, level);
		if (rc == SQLITE_OK && file->log == NULL) {
			/* Between the two another process may have set a mark. */
			rc = read_file_header(file, header, &has_mark);
			if (rc != SQLITE_OK || has_mark)
				pass_unlock(&file->upper.base, SQLITE_LOCK_NONE);
		}
	}
	return rc;
}

static int file_lock(sqlite3_file *base, int level)
{
	struct redo_file *file = (struct redo_file *)base;
	int rc;

	if (file->level >= level)
		return SQLITE_OK;
	if (level == SQLITE_LOCK_EXCLUSIVE) {
		rc = wait_for_log(file, level);
		if (rc != SQLITE_OK)
			return rc;
	}
	rc = file->level == SQLITE_LOCK_NONE ? lock_shared(file, level) : pass_lock(base, level);
	if (rc != SQLITE_OK)
		return rc;
	if (file->level == SQLITE_LOCK_NONE) {
		rc = wait_for_log(file, SQLITE_LOCK_SHARED);
		if (rc != SQLITE_OK) {
			pass_unlock(base, SQLITE_LOCK_NONE);
			return rc;
		}
	}
	__atomic_store_n(&file->level, level, __ATOMIC_RELAXED);
	return SQLITE_OK;
}

static int file_unlock(sqlite3_file *base, int level)
{
	struct redo_file *file = (struct redo_file *)base;

	if (level <= SQLITE_LOCK_SHARED && (file->is_dirty || file->is_in_transaction))
		discard_transaction(file);
	if (level == SQLITE_LOCK_NONE) {
		/* Not before: SQLite reads it when it has rolled back, and holds SHARED. */
		name_super(&file->super, NULL);
		file->is_direct = 0;
		file->is_failed = 0;
	}
	if (level < file->level)
		__atomic_store_n(&file->level, level, __ATOMIC_RELAXED);
	return pass_unlock(base, level);
}

/* PRAGMA joj_redo, with "off" or "on" or without a value. */
static int run_pragma(struct redo_file *file, char **arguments)
{
	const char *value = arguments[2];
	int rc = SQLITE_OK;

	if (value != NULL && file->is_in_transaction) {
		arguments[0] = sqlite3_mprintf("joj_redo changes between transactions only");
		return SQLITE_ERROR;
	}
	if (value != NULL && sqlite3_stricmp(value, "off") == 0) {
		rc = leave_log(file);
		file->is_off = rc == SQLITE_OK;
	} else if (value != NULL && sqlite3_stricmp(value, "on") == 0) {
		file->is_off = 0;
	} else if (value != NULL) {
		arguments[0] = sqlite3_mprintf("joj_redo is on or off");
		return SQLITE_ERROR;
	}
	if (rc == SQLITE_OK)
		arguments[0] = sqlite3_mprintf("%s", file->is_off ? "off" : "on");
	return rc;
}

static int file_control(sqlite3_file *base, int operation, void *argument)
{
	struct redo_file *file = (struct redo_file *)base;

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
	return pass_file_control(base, operation, argument);
}

/* Batch atomic writes make no journal, by whose end a commit is seen here. */
static int file_device_characteristics(sqlite3_file *base)
{
	return pass_device_characteristics(base) & ~SQLITE_IOCAP_BATCH_ATOMIC;
}

static int file_fetch(sqlite3_file *base, sqlite3_int64 offset, int length_bytes, void **memory)
{
	struct redo_file *file = (struct redo_file *)base;

	*memory = NULL;
	if (offset < BLOCK_BYTES || file->is_dirty || file->is_failed)
		return SQLITE_OK;
	return pass_fetch(base, offset, length_bytes, memory);
}

DEFINE_METHODS(file_methods, file_fetch, .xClose = file_close, .xRead = file_read,
	       .xWrite = file_write, .xTruncate = file_truncate, .xSync = file_sync,
	       .xFileSize = file_size, .xLock = file_lock, .xUnlock = file_unlock,
	       .xFileControl = file_control,
	       .xDeviceCharacteristics = file_device_characteristics);

int begin_file(struct redo_file *file, sqlite3_vfs *lower, const char *path, char *folder)
{
	unsigned int names;
	int rc;

	file->lower = lower;
	file->path = path;
	file->name = strrchr(path, '/') + 1;
	file->folder = folder;
	/* A file without a name, or of another kind, can have no mark. */
	read_file_id(AT_FDCWD, path, &file->file, &names);
	rc = join_at_open(file);
	if (rc != SQLITE_OK) {
		sqlite3_free(folder);
		pass_close(&file->upper.base);
		return rc;
	}
	file->upper.base.pMethods = upper_methods(&file->upper, file_methods);
	pthread_mutex_lock(&files_mutex);
	file->next = files;
	files = file;
	pthread_mutex_unlock(&files_mutex);
	return SQLITE_OK;
}
