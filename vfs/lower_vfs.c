// SPDX-License-Identifier: Apache-2.0
/* A VFS over SQLite's default one, and the methods that only pass a call on. */
#include <string.h>

#include "lower_vfs.h"

SQLITE_EXTENSION_INIT3

typedef void (*library_function)(void);

#define PASS(result, name, method, parameters, arguments)                                          \
	static result pass_##name parameters                                                       \
	{                                                                                          \
		return lower_vfs(vfs)->method arguments;                                           \
	}
#define LOWER lower_vfs(vfs)

PASS(int, full_pathname, xFullPathname,
     (sqlite3_vfs *vfs, const char *path, int length, char *full_path),
     (LOWER, path, length, full_path))
PASS(void *, dl_open, xDlOpen, (sqlite3_vfs *vfs, const char *path), (LOWER, path))
PASS(void, dl_error, xDlError, (sqlite3_vfs *vfs, int length, char *message),
     (LOWER, length, message))
PASS(library_function, dl_sym, xDlSym, (sqlite3_vfs *vfs, void *library, const char *symbol),
     (LOWER, library, symbol))
PASS(void, dl_close, xDlClose, (sqlite3_vfs *vfs, void *library), (LOWER, library))
PASS(int, randomness, xRandomness, (sqlite3_vfs *vfs, int length, char *bytes),
     (LOWER, length, bytes))
PASS(int, sleep, xSleep, (sqlite3_vfs *vfs, int time_us), (LOWER, time_us))
PASS(int, current_time, xCurrentTime, (sqlite3_vfs *vfs, double *days), (LOWER, days))
PASS(int, last_error, xGetLastError, (sqlite3_vfs *vfs, int length, char *message),
     (LOWER, length, message))
PASS(int, current_time_int64, xCurrentTimeInt64, (sqlite3_vfs *vfs, sqlite3_int64 *time_ms),
     (LOWER, time_ms))
PASS(int, set_system_call, xSetSystemCall,
     (sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call), (LOWER, name, call))
PASS(sqlite3_syscall_ptr, get_system_call, xGetSystemCall, (sqlite3_vfs *vfs, const char *name),
     (LOWER, name))
PASS(const char *, next_system_call, xNextSystemCall, (sqlite3_vfs *vfs, const char *name),
     (LOWER, name))

int register_over_default(sqlite3_vfs *vfs, size_t file_bytes, int make_default)
{
	sqlite3_vfs *lower;

	if (sqlite3_vfs_find(vfs->zName) == NULL) {
		lower = sqlite3_vfs_find(NULL);
		if (lower == NULL)
			return SQLITE_ERROR;
		vfs->iVersion = lower->iVersion < 3 ? lower->iVersion : 3;
		vfs->mxPathname = lower->mxPathname;
		vfs->szOsFile = (int)file_bytes + lower->szOsFile;
		vfs->pAppData = lower;
		vfs->xFullPathname = pass_full_pathname;
		vfs->xDlOpen = pass_dl_open;
		vfs->xDlError = pass_dl_error;
		vfs->xDlSym = pass_dl_sym;
		vfs->xDlClose = pass_dl_close;
		vfs->xRandomness = pass_randomness;
		vfs->xSleep = pass_sleep;
		vfs->xCurrentTime = pass_current_time;
		vfs->xGetLastError = pass_last_error;
		vfs->xCurrentTimeInt64 = pass_current_time_int64;
		vfs->xSetSystemCall = pass_set_system_call;
		vfs->xGetSystemCall = pass_get_system_call;
		vfs->xNextSystemCall = pass_next_system_call;
	}
	return sqlite3_vfs_register(vfs, make_default);
}

int open_lower(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, size_t file_bytes, int flags,
	       int *out)
{
	struct upper_file *upper = (struct upper_file *)file;
	int rc;

	memset(file, 0, (size_t)vfs->szOsFile);
	upper->lower = (sqlite3_file *)((char *)file + file_bytes);
	rc = lower_vfs(vfs)->xOpen(lower_vfs(vfs), path, upper->lower, flags, out);
	/* SQLite closes a file that has methods, even where it could not be opened. */
	if (rc != SQLITE_OK && upper->lower->pMethods != NULL)
		upper->lower->pMethods->xClose(upper->lower);
	return rc;
}
