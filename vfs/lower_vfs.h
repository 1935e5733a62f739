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

/*
 * Open the file of the VFS below, which lies file_bytes behind the begin of ours. Both structures
 * begin as zeros. What a failed call left open is closed again.
 */
int open_lower(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, size_t file_bytes, int flags,
	       int *out);

#endif
