/* SPDX-License-Identifier: Apache-2.0 */
/* A file over that of the VFS below, and the methods that only pass a call on. */
#ifndef JOJ_LOWER_FILE_H
#define JOJ_LOWER_FILE_H

#ifdef SQLITE_CORE
#include <sqlite3.h>
#define SQLITE_EXTENSION_INIT1
#define SQLITE_EXTENSION_INIT3
#else
#include <sqlite3ext.h>
#endif

/* What every file of ours begins with; SQLite knows base alone. */
struct upper_file {
	sqlite3_file base;
	sqlite3_file *lower;
};

static inline sqlite3_file *lower_file(sqlite3_file *file)
{
	return ((struct upper_file *)file)->lower;
}

int pass_close(sqlite3_file *file);
int pass_read(sqlite3_file *file, void *bytes, int length_bytes, sqlite3_int64 offset_bytes);
int pass_write(sqlite3_file *file, const void *bytes, int length_bytes, sqlite3_int64 offset_bytes);
int pass_truncate(sqlite3_file *file, sqlite3_int64 size_bytes);
int pass_sync(sqlite3_file *file, int flags);
int pass_file_size(sqlite3_file *file, sqlite3_int64 *size_bytes);
int pass_lock(sqlite3_file *file, int level);
int pass_unlock(sqlite3_file *file, int level);
int pass_check_reserved_lock(sqlite3_file *file, int *is_reserved);
int pass_file_control(sqlite3_file *file, int operation, void *argument);
int pass_sector_size(sqlite3_file *file);
int pass_device_characteristics(sqlite3_file *file);
int pass_shm_map(sqlite3_file *file, int region, int length_bytes, int extend,
		 void volatile **memory);
int pass_shm_lock(sqlite3_file *file, int offset, int count, int flags);
void pass_shm_barrier(sqlite3_file *file);
int pass_shm_unmap(sqlite3_file *file, int delete);
int pass_fetch(sqlite3_file *file, sqlite3_int64 offset_bytes, int length_bytes, void **memory);
int pass_unfetch(sqlite3_file *file, sqlite3_int64 offset_bytes, void *memory);

#endif
