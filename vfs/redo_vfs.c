// SPDX-License-Identifier: Apache-2.0
/*
 * A VFS for SQLite that commits by one write and one flush, over one database or several.
 *
 * A rollback journal costs four to eight flushes a commit, since journal and database are synced in
 * turn, for each database. Here the journal stays in memory (redo_journal.c, spool.c), what a
 * transaction writes stays with its connection (redo_file.c, redo_changes.c), and where SQLite ends
 * its journal one record with all changes is appended to the redo log of the folder and synced
 * (redo_commit.c, redo_log.c).
 *
 * A database that may have commits in the log has a mark (redo_format.h): SQLite without this VFS
 * refuses it. The last connection that closes takes the mark away; who dies leaves it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <linux/magic.h>

#include "redo_file.h"

SQLITE_EXTENSION_INIT1

#define MAX_REPORT_BYTES 512

void report(const char *format, ...)
{
	char text[MAX_REPORT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	sqlite3_log(SQLITE_WARNING, "joj_redo: %s", text);
}

/* Whether the locks, the map and the order of writes that a log needs are known to hold: on the
 * filesystems of this machine whose power cuts were tried, and in memory.
 */
static int is_sound(const char *path)
{
	struct statfs filesystem;

	if (statfs(path, &filesystem) != 0)
		return 0;
	switch ((unsigned int)filesystem.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return 1;
	default:
		return 0;
	}
}

static int open_database(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags,
			 int *out)
{
	int rc = open_lower(vfs, path, base, flags, out);

	if (rc != SQLITE_OK)
		return rc;
	if (!is_sound(path)) {
		report("%s stays as without this VFS: its filesystem is none of ext4, XFS, F2FS, "
		       "Btrfs and tmpfs", path);
		return SQLITE_OK;
	}
	rc = begin_file(upper_of(vfs, base), path);
	if (rc != SQLITE_OK) {
		/* SQLite would close it, a VFS above this one, as SQLite's quota, does not. */
		base->pMethods->xClose(base);
		base->pMethods = NULL;
	}
	return rc;
}

/* A journal of ours is in memory where its database can have a mark, as far as is known now. */
static int find_journal_owner(const char *path, struct redo_file **owner)
{
	struct redo_file *database = find_writer(path);
	unsigned char header[HEADER_BYTES];
	sqlite3_int64 size_bytes;
	int has_mark, rc;

	*owner = NULL;
	if (database == NULL)
		return SQLITE_OK;
	database->has_journal = 0;
	if (database->is_off)
		return SQLITE_OK;
	rc = read_size(database, &size_bytes);
	if (rc == SQLITE_OK)
		rc = read_file_header(database, header, &has_mark);
	if (rc == SQLITE_OK && size_bytes <= MAX_DATABASE_BYTES &&
	    (size_bytes == 0 || is_sqlite_header(header)))
		*owner = database;
	return rc;
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
	struct redo_file *database = NULL;
	int rc = SQLITE_NOTFOUND;

	if (path != NULL && (flags & SQLITE_OPEN_MAIN_DB) && strrchr(path, '/') != NULL)
		return open_database(vfs, path, file, flags, out);
	if (path != NULL && (flags & SQLITE_OPEN_MAIN_JOURNAL) && (flags & SQLITE_OPEN_CREATE)) {
		rc = find_journal_owner(path, &database);
		if (database != NULL)
			begin_journal(file, database, path);
		else if (rc == SQLITE_OK)
			rc = SQLITE_NOTFOUND;
	} else if (path != NULL && (flags & SQLITE_OPEN_SUPER_JOURNAL)) {
		rc = flags & SQLITE_OPEN_CREATE ? begin_super(file, path)
						: open_super(file, path);
	}
	if (rc == SQLITE_NOTFOUND)
		return lower_vfs(vfs)->xOpen(lower_vfs(vfs), path, file, flags, out);
	if (rc == SQLITE_OK && out != NULL)
		*out = flags;
	return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_directory)
{
	int is_ours, rc = delete_journal(path, &is_ours);

	if (is_ours)
		return rc;
	return lower_vfs(vfs)->xDelete(lower_vfs(vfs), path, sync_directory);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *result)
{
	if (flags == SQLITE_ACCESS_EXISTS && find_super(path, strlen(path)) != NULL) {
		*result = 1;
		return SQLITE_OK;
	}
	return lower_vfs(vfs)->xAccess(lower_vfs(vfs), path, flags, result);
}

sqlite3_vfs redo_vfs = {
	.zName = JOJ_REDO_VFS,
	.xOpen = vfs_open,
	.xDelete = vfs_delete,
	.xAccess = vfs_access,
};

int joj_redo_register(int make_default)
{
	return register_over_default(&redo_vfs, sizeof(struct redo_file), make_default);
}

#ifndef SQLITE_CORE
DEFINE_EXTENSION(sqlite3_jojredo_init, joj_redo_register, "joj_redo")
#endif
