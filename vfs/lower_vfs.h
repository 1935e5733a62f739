/* SPDX-License-Identifier: Apache-2.0 */
/* A VFS over SQLite's default one, and the methods that only pass a call on. */
#ifndef JOJ_LOWER_VFS_H
#define JOJ_LOWER_VFS_H

#include <stddef.h>

#include "lower_file.h"

static inline sqlite3_vfs *lower_vfs(sqlite3_vfs *vfs)
{
	return vfs->pAppData;
}

/*
 * Register a VFS of this name, whose files have file_bytes before those of the VFS below, and make
 * it the default of later connections unless make_default is 0. Methods that are not set pass
 * calls on. Return SQLITE_OK, or SQLITE_ERROR where SQLite has no VFS.
 */
int register_over_default(sqlite3_vfs *vfs, size_t file_bytes, int make_default);

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

/*
 * Open the file of the VFS below, which lies file_bytes behind the begin of ours. Both structures
 * begin as zeros. What a failed call left open is closed again.
 */
int open_lower(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, size_t file_bytes, int flags,
	       int *out);

#endif
