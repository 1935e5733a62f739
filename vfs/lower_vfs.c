// SPDX-License-Identifier: Apache-2.0
/* A VFS over SQLite's default one, and those of its methods that only pass a call on. */
#include "lower_vfs.h"

SQLITE_EXTENSION_INIT3

typedef void (*library_function)(void);

#define PASS(result, name, method, parameters, ...)                                                \
	static result pass_##name parameters                                                       \
	{                                                                                          \
		return lower_vfs(vfs)->method(lower_vfs(vfs), __VA_ARGS__);                        \
	}

PASS(int, full_pathname, xFullPathname,
     (sqlite3_vfs *vfs, const char *path, int length, char *full_path), path, length, full_path)
PASS(void *, dl_open, xDlOpen, (sqlite3_vfs *vfs, const char *path), path)
PASS(void, dl_error, xDlError, (sqlite3_vfs *vfs, int length, char *message), length, message)
PASS(library_function, dl_sym, xDlSym, (sqlite3_vfs *vfs, void *library, const char *symbol),
     library, symbol)
PASS(void, dl_close, xDlClose, (sqlite3_vfs *vfs, void *library), library)
PASS(int, randomness, xRandomness, (sqlite3_vfs *vfs, int length, char *bytes), length, bytes)
PASS(int, sleep, xSleep, (sqlite3_vfs *vfs, int time_us), time_us)
PASS(int, current_time, xCurrentTime, (sqlite3_vfs *vfs, double *days), days)
PASS(int, last_error, xGetLastError, (sqlite3_vfs *vfs, int length, char *message), length, message)
PASS(int, current_time_int64, xCurrentTimeInt64, (sqlite3_vfs *vfs, sqlite3_int64 *time_ms),
     time_ms)
PASS(int, set_system_call, xSetSystemCall,
     (sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call), name, call)
PASS(sqlite3_syscall_ptr, get_system_call, xGetSystemCall, (sqlite3_vfs *vfs, const char *name),
     name)
PASS(const char *, next_system_call, xNextSystemCall, (sqlite3_vfs *vfs, const char *name), name)

int register_over_default(sqlite3_vfs *vfs, size_t upper_bytes, int make_default)
{
	sqlite3_vfs *lower;

	if (sqlite3_vfs_find(vfs->zName) == NULL) {
		lower = sqlite3_vfs_find(NULL);
		if (lower == NULL)
			return SQLITE_ERROR;
		vfs->pAppData = lower;
		vfs->iVersion = lower->iVersion < 3 ? lower->iVersion : 3;
		vfs->mxPathname = lower->mxPathname;
		vfs->szOsFile = (int)(lower_bytes(vfs) + upper_bytes);
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

int open_lower(const sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
	struct upper_file *upper = upper_of(vfs, base);
	int rc, version;

	memset(base, 0, (size_t)vfs->szOsFile);
	rc = lower_vfs(vfs)->xOpen(lower_vfs(vfs), path, base, flags, out);
	if (rc != SQLITE_OK)
		return rc;
	upper->base = base;
	upper->lower = base->pMethods;
	version = upper->lower->iVersion;
	/* A VFS of a lower version may have no more than its methods. */
	memcpy(&upper->methods, upper->lower,
	       version < 2   ? offsetof(sqlite3_io_methods, xShmMap)
	       : version < 3 ? offsetof(sqlite3_io_methods, xFetch)
			     : sizeof(upper->methods));
	if (version > 3)
		upper->methods.iVersion = 3;
	return SQLITE_OK;
}
