/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VFS over SQLite's default one. Its files are those of the VFS below: what is ours of a file
 * lies behind what is the lower VFS's, and SQLite calls our methods in place of some of the file's.
 */
#ifndef JOJ_LOWER_VFS_H
#define JOJ_LOWER_VFS_H

#include <stddef.h>
#include <string.h>

#ifdef SQLITE_CORE
#include <sqlite3.h>
#define SQLITE_EXTENSION_INIT1
#define SQLITE_EXTENSION_INIT3
#else
#include <sqlite3ext.h>
#endif

/* What that which is ours of a file begins with. */
struct upper_file {
	sqlite3_file *base;
	const sqlite3_io_methods *lower;
	/* Those of the file below, but for ours. */
	sqlite3_io_methods methods;
};

/* Call a method of the file below: LOWER(file, xSync, flags). */
#define LOWER(file, method, ...) ((file)->upper.lower->method((file)->upper.base, ##__VA_ARGS__))

static inline sqlite3_vfs *lower_vfs(const sqlite3_vfs *vfs)
{
	return vfs->pAppData;
}

static inline size_t lower_bytes(const sqlite3_vfs *vfs)
{
	return ((size_t)lower_vfs(vfs)->szOsFile + 7) / 8 * 8;
}

/* What is ours of a file. */
static inline void *upper_of(const sqlite3_vfs *vfs, sqlite3_file *base)
{
	return (char *)base + lower_bytes(vfs);
}

/*
 * Open the file of the VFS below. What is ours begins as zeros with an upper_file, whose methods
 * SQLite calls once base->pMethods points to them.
 */
int open_lower(const sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out);

/*
 * Register a VFS of this name, with upper_bytes of ours for each file, and make it the default of
 * later connections unless make_default is 0. Methods that are not set pass calls on. Return
 * SQLITE_OK, or SQLITE_ERROR where SQLite has no VFS.
 */
int register_over_default(sqlite3_vfs *vfs, size_t upper_bytes, int make_default);

/* What SQLite calls of a library that it loads, by a name of letters alone (loadext.html, section
 * 3): it registers the VFS for good.
 */
#define DEFINE_EXTENSION(init, register_vfs, name)                                                 \
	__attribute__((visibility("default"))) int init(sqlite3 *db, char **message,               \
							const sqlite3_api_routines *routines);     \
	int init(sqlite3 *db, char **message, const sqlite3_api_routines *routines)                \
	{                                                                                          \
		(void)db;                                                                          \
		SQLITE_EXTENSION_INIT2(routines);                                                  \
		if (register_vfs(1) == SQLITE_OK)                                                  \
			return SQLITE_OK_LOAD_PERMANENTLY;                                         \
		*message = sqlite3_mprintf(name ": this SQLite has no VFS to stand on");           \
		return SQLITE_ERROR;                                                               \
	}

/* Whether a path is that of a database with this suffix. */
static inline int has_suffix(const char *path, const char *database_path, const char *suffix)
{
	size_t length = strlen(database_path);

	return strncmp(path, database_path, length) == 0 && strcmp(path + length, suffix) == 0;
}

#endif
