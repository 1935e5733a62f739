// SPDX-License-Identifier: Apache-2.0
/* The methods of a file that only pass a call on to the file of the VFS below. */
#include "lower_file.h"

#define METHODS(file) (lower_file(file)->pMethods)

int pass_close(sqlite3_file *file)
{
	return METHODS(file)->xClose(lower_file(file));
}

int pass_read(sqlite3_file *file, void *bytes, int length_bytes, sqlite3_int64 offset_bytes)
{
	return METHODS(file)->xRead(lower_file(file), bytes, length_bytes, offset_bytes);
}

int pass_write(sqlite3_file *file, const void *bytes, int length_bytes, sqlite3_int64 offset_bytes)
{
	return METHODS(file)->xWrite(lower_file(file), bytes, length_bytes, offset_bytes);
}

int pass_truncate(sqlite3_file *file, sqlite3_int64 size_bytes)
{
	return METHODS(file)->xTruncate(lower_file(file), size_bytes);
}

int pass_sync(sqlite3_file *file, int flags)
{
	return METHODS(file)->xSync(lower_file(file), flags);
}

int pass_file_size(sqlite3_file *file, sqlite3_int64 *size_bytes)
{
	return METHODS(file)->xFileSize(lower_file(file), size_bytes);
}

int pass_lock(sqlite3_file *file, int level)
{
	return METHODS(file)->xLock(lower_file(file), level);
}

int pass_unlock(sqlite3_file *file, int level)
{
	return METHODS(file)->xUnlock(lower_file(file), level);
}

int pass_check_reserved_lock(sqlite3_file *file, int *is_reserved)
{
	return METHODS(file)->xCheckReservedLock(lower_file(file), is_reserved);
}

int pass_file_control(sqlite3_file *file, int operation, void *argument)
{
	return METHODS(file)->xFileControl(lower_file(file), operation, argument);
}

int pass_sector_size(sqlite3_file *file)
{
	return METHODS(file)->xSectorSize(lower_file(file));
}

int pass_device_characteristics(sqlite3_file *file)
{
	return METHODS(file)->xDeviceCharacteristics(lower_file(file));
}

int pass_shm_map(sqlite3_file *file, int region, int length_bytes, int extend,
		 void volatile **memory)
{
	return METHODS(file)->xShmMap(lower_file(file), region, length_bytes, extend, memory);
}

int pass_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
	return METHODS(file)->xShmLock(lower_file(file), offset, count, flags);
}

void pass_shm_barrier(sqlite3_file *file)
{
	METHODS(file)->xShmBarrier(lower_file(file));
}

int pass_shm_unmap(sqlite3_file *file, int delete)
{
	return METHODS(file)->xShmUnmap(lower_file(file), delete);
}

int pass_fetch(sqlite3_file *file, sqlite3_int64 offset_bytes, int length_bytes, void **memory)
{
	return METHODS(file)->xFetch(lower_file(file), offset_bytes, length_bytes, memory);
}

int pass_unfetch(sqlite3_file *file, sqlite3_int64 offset_bytes, void *memory)
{
	return METHODS(file)->xUnfetch(lower_file(file), offset_bytes, memory);
}
