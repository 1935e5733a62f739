// SPDX-License-Identifier: Apache-2.0
/*
 * A VFS for SQLite that keeps write-ahead logs when a database is closed, and fills them.
 *
 * A WAL that grows makes the filesystem commit its own journal with every COMMIT, since a file's
 * size is metadata that fdatasync(2) has to write. A WAL that is there, with blocks that have been
 * written before, costs one write and one flush. wal_file.c fills it; here it is kept: SQLite
 * deletes a WAL when its last connection closes, after all its frames have been copied and synced,
 * and gets an empty WAL of the same size in place of that.
 *
 * SQLite deletes the WAL in the same way when a database leaves WAL mode; but then it asks next
 * whether there is a WAL, since one would put the database into WAL mode again
 * (pagerOpenWalIfPresent, pager.c), or, with locking_mode=EXCLUSIVE, writes to the database. A
 * connection that closes does neither. So the empty WAL is deleted where one of the two is seen.
 *
 * SQLITE_FCNTL_PERSIST_WAL is not used. It leaves all frames valid, so that each first connection
 * reads them again, and leaves them when the database leaves WAL mode.
 */
#include <string.h>

#include "lower_vfs.h"
#include "wal_file.h"
#include "wal_vfs.h"

SQLITE_EXTENSION_INIT1

struct database_file {
	struct upper_file upper;
	struct database_file *next, *previous;
	/* SQLite keeps a file's path until the file is closed. */
	const char *path;
	/* SQLite deleted the WAL of this connection, and an empty one was left. */
	int has_empty_wal;
};

/* Databases that this process has open, and how many of them have an empty WAL; both guarded by
 * lock_databases(). The number is 0 as a rule, and spares each transaction a walk through the list.
 */
static struct database_file *databases;
static unsigned int empty_wals;

static sqlite3_mutex *lock_databases(void)
{
	sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);

	sqlite3_mutex_enter(mutex);
	return mutex;
}

/* Note of every connection to the database whether an empty WAL was left. Return, of one that was
 * left, whether there is a connection, and by was_empty whether one had such a WAL before.
 */
static int note_empty_wal(const char *path, int has_empty_wal, int *was_empty)
{
	sqlite3_mutex *mutex = lock_databases();
	struct database_file *database;
	int is_open = 0;

	*was_empty = 0;
	if (!has_empty_wal && empty_wals == 0)
		goto out;
	for (database = databases; database != NULL; database = database->next) {
		if (!has_suffix(path, database->path, WAL_SUFFIX))
			continue;
		*was_empty |= database->has_empty_wal;
		empty_wals += has_empty_wal - database->has_empty_wal;
		database->has_empty_wal = has_empty_wal;
		is_open = 1;
	}
out:
	sqlite3_mutex_leave(mutex);
	return is_open;
}

/* Delete the WAL of this path if it was left empty: the database has left WAL mode. */
static int delete_empty_wal(sqlite3_vfs *lower, const char *path)
{
	int was_empty, rc;

	note_empty_wal(path, 0, &was_empty);
	if (!was_empty)
		return SQLITE_OK;
	rc = lower->xDelete(lower, path, 0);
	return rc == SQLITE_IOERR_DELETE_NOENT ? SQLITE_OK : rc;
}

static int leave_wal_mode(struct database_file *database)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(JOJ_WAL_VFS);
	char *path;
	int rc;

	if (!database->has_empty_wal)
		return SQLITE_OK;
	path = sqlite3_mprintf("%s" WAL_SUFFIX, database->path);
	if (path == NULL)
		return SQLITE_NOMEM;
	rc = delete_empty_wal(lower_vfs(vfs), path);
	sqlite3_free(path);
	return rc;
}

static int database_write(sqlite3_file *file, const void *bytes, int length_bytes,
			  sqlite3_int64 offset_bytes)
{
	int rc = leave_wal_mode((struct database_file *)file);

	return rc == SQLITE_OK ? pass_write(file, bytes, length_bytes, offset_bytes) : rc;
}

static int database_truncate(sqlite3_file *file, sqlite3_int64 size_bytes)
{
	int rc = leave_wal_mode((struct database_file *)file);

	return rc == SQLITE_OK ? pass_truncate(file, size_bytes) : rc;
}

static int database_close(sqlite3_file *file)
{
	sqlite3_mutex *mutex = lock_databases();
	struct database_file *database = (struct database_file *)file;

	empty_wals -= database->has_empty_wal;
	if (database->next != NULL)
		database->next->previous = database->previous;
	if (database->previous != NULL)
		database->previous->next = database->next;
	else
		databases = database->next;
	sqlite3_mutex_leave(mutex);
	return pass_close(file);
}

DEFINE_METHODS(database_methods, pass_fetch, .xClose = database_close, .xRead = pass_read,
	       .xWrite = database_write, .xTruncate = database_truncate, .xSync = pass_sync,
	       .xFileSize = pass_file_size, .xLock = pass_lock, .xUnlock = pass_unlock,
	       .xFileControl = pass_file_control,
	       .xDeviceCharacteristics = pass_device_characteristics);

static void begin_database(struct database_file *database, const char *path)
{
	sqlite3_mutex *mutex = lock_databases();

	database->path = path;
	database->next = databases;
	if (databases != NULL)
		databases->previous = database;
	databases = database;
	database->upper.base.pMethods = upper_methods(&database->upper, database_methods);
	sqlite3_mutex_leave(mutex);
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
	int is_wal = flags & SQLITE_OPEN_WAL;
	size_t file_bytes = is_wal ? sizeof(struct wal_file) : sizeof(struct database_file);
	int rc, was_empty;

	if (path == NULL || !(flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)))
		return lower_vfs(vfs)->xOpen(lower_vfs(vfs), path, file, flags, out);
	rc = open_lower(vfs, path, file, file_bytes, flags, out);
	if (rc != SQLITE_OK)
		return rc;
	if (is_wal) {
		note_empty_wal(path, 0, &was_empty);
		wal_file_begin((struct wal_file *)file, path);
		file->pMethods = &wal_file_methods;
	} else {
		begin_database((struct database_file *)file, path);
	}
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_directory)
{
	int was_empty;

	/* Its one connection holds the database exclusively: nobody asks for the WAL meanwhile. */
	if (note_empty_wal(path, 1, &was_empty)) {
		if (wal_file_empty(path) == SQLITE_OK)
			return SQLITE_OK;
		note_empty_wal(path, 0, &was_empty);
	}
	return lower_vfs(vfs)->xDelete(lower_vfs(vfs), path, sync_directory);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *result)
{
	int rc = flags == SQLITE_ACCESS_EXISTS ? delete_empty_wal(lower_vfs(vfs), path) : SQLITE_OK;

	if (rc != SQLITE_OK)
		return rc;
	return lower_vfs(vfs)->xAccess(lower_vfs(vfs), path, flags, result);
}

static sqlite3_vfs wal_vfs = {
	.zName = JOJ_WAL_VFS,
	.xOpen = vfs_open,
	.xDelete = vfs_delete,
	.xAccess = vfs_access,
};

int joj_wal_register(int make_default)
{
	union any_file {
		struct wal_file wal;
		struct database_file database;
	};

	return register_over_default(&wal_vfs, sizeof(union any_file), make_default);
}

#ifndef SQLITE_CORE
DEFINE_EXTENSION(sqlite3_jojwal_init, joj_wal_register, "joj_wal")
#endif
