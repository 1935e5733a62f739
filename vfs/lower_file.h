/* SPDX-License-Identifier: Apache-2.0 */
/* A file over that of the VFS below, and the methods that only pass a call on. */
#ifndef JOJ_LOWER_FILE_H
#define JOJ_LOWER_FILE_H

#include <string.h>

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

/* pass_read() and the others: what SQLite's xRead() does to the file below. */
#define PASS(result, name, method, parameters, arguments)                                          \
	static inline result pass_##name parameters                                                \
	{                                                                                          \
		return lower_file(file)->pMethods->method arguments;                               \
	}
#define LOWER lower_file(file)

PASS(int, close, xClose, (sqlite3_file *file), (LOWER))
PASS(int, read, xRead,
     (sqlite3_file *file, void *bytes, int length_bytes, sqlite3_int64 offset_bytes),
     (LOWER, bytes, length_bytes, offset_bytes))
PASS(int, write, xWrite,
     (sqlite3_file *file, const void *bytes, int length_bytes, sqlite3_int64 offset_bytes),
     (LOWER, bytes, length_bytes, offset_bytes))
PASS(int, truncate, xTruncate, (sqlite3_file *file, sqlite3_int64 size_bytes), (LOWER, size_bytes))
PASS(int, sync, xSync, (sqlite3_file *file, int flags), (LOWER, flags))
PASS(int, file_size, xFileSize, (sqlite3_file *file, sqlite3_int64 *size_bytes),
     (LOWER, size_bytes))
PASS(int, lock, xLock, (sqlite3_file *file, int level), (LOWER, level))
PASS(int, unlock, xUnlock, (sqlite3_file *file, int level), (LOWER, level))
PASS(int, check_reserved_lock, xCheckReservedLock, (sqlite3_file *file, int *is_reserved),
     (LOWER, is_reserved))
PASS(int, file_control, xFileControl, (sqlite3_file *file, int operation, void *argument),
     (LOWER, operation, argument))
PASS(int, sector_size, xSectorSize, (sqlite3_file *file), (LOWER))
PASS(int, device_characteristics, xDeviceCharacteristics, (sqlite3_file *file), (LOWER))
PASS(int, shm_map, xShmMap,
     (sqlite3_file *file, int region, int length_bytes, int extend, void volatile **memory),
     (LOWER, region, length_bytes, extend, memory))
PASS(int, shm_lock, xShmLock, (sqlite3_file *file, int offset, int count, int flags),
     (LOWER, offset, count, flags))
PASS(void, shm_barrier, xShmBarrier, (sqlite3_file *file), (LOWER))
PASS(int, shm_unmap, xShmUnmap, (sqlite3_file *file, int delete), (LOWER, delete))
PASS(int, fetch, xFetch,
     (sqlite3_file *file, sqlite3_int64 offset_bytes, int length_bytes, void **memory),
     (LOWER, offset_bytes, length_bytes, memory))
PASS(int, unfetch, xUnfetch, (sqlite3_file *file, sqlite3_int64 offset_bytes, void *memory),
     (LOWER, offset_bytes, memory))

#undef LOWER
#undef PASS

/*
 * The methods of a database, of which a VFS names those that it changes: over a file without shared
 * memory, as of unix-none, which has a WAL by locking_mode=EXCLUSIVE alone, and over one with it.
 */
#define PASS_METHODS(...)                                                                          \
	.xCheckReservedLock = pass_check_reserved_lock, .xSectorSize = pass_sector_size, __VA_ARGS__
#define DEFINE_METHODS(name, fetch, ...)                                                           \
	static const sqlite3_io_methods name[2] = {                                                \
		{.iVersion = 1, PASS_METHODS(__VA_ARGS__)},                                        \
		{.iVersion = 3, PASS_METHODS(__VA_ARGS__), .xShmMap = pass_shm_map,                \
		 .xShmLock = pass_shm_lock, .xShmBarrier = pass_shm_barrier,                       \
		 .xShmUnmap = pass_shm_unmap, .xFetch = fetch, .xUnfetch = pass_unfetch},          \
	}

static inline const sqlite3_io_methods *upper_methods(const struct upper_file *file,
						      const sqlite3_io_methods *methods)
{
	const sqlite3_io_methods *lower = file->lower->pMethods;

	return &methods[lower->iVersion >= 3 && lower->xShmMap != NULL];
}

/* Whether a path is that of a database with this suffix. */
static inline int has_suffix(const char *path, const char *database_path, const char *suffix)
{
	size_t length = strlen(database_path);

	return strncmp(path, database_path, length) == 0 && strcmp(path + length, suffix) == 0;
}

#endif
