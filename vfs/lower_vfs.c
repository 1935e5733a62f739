// SPDX-License-Identifier: Apache-2.0
/* A VFS over SQLite's default one, and the methods that only pass a call on. */
#include <string.h>

#include "lower_vfs.h"

SQLITE_EXTENSION_INIT3

static int pass_full_pathname(sqlite3_vfs *vfs, const char *path, int length, char *full_path)
{
	return lower_vfs(vfs)->xFullPathname(lower_vfs(vfs), path, length, full_path);
}

static void *pass_dl_open(sqlite3_vfs *vfs, const char *path)
{
	return lower_vfs(vfs)->xDlOpen(lower_vfs(vfs), path);
}

static void pass_dl_error(sqlite3_vfs *vfs, int length, char *message)
{
	lower_vfs(vfs)->xDlError(lower_vfs(vfs), length, message);
}

static void (*pass_dl_sym(sqlite3_vfs *vfs, void *library, const char *symbol))(void)
{
	return lower_vfs(vfs)->xDlSym(lower_vfs(vfs), library, symbol);
}

static void pass_dl_close(sqlite3_vfs *vfs, void *library)
{
	lower_vfs(vfs)->xDlClose(lower_vfs(vfs), library);
}

static int pass_randomness(sqlite3_vfs *vfs, int length, char *bytes)
{
	return lower_vfs(vfs)->xRandomness(lower_vfs(vfs), length, bytes);
}

static int pass_sleep(sqlite3_vfs *vfs, int time_us)
{
	return lower_vfs(vfs)->xSleep(lower_vfs(vfs), time_us);
}

static int pass_current_time(sqlite3_vfs *vfs, double *days)
{
	return lower_vfs(vfs)->xCurrentTime(lower_vfs(vfs), days);
}

static int pass_last_error(sqlite3_vfs *vfs, int length, char *message)
{
	return lower_vfs(vfs)->xGetLastError(lower_vfs(vfs), length, message);
}

static int pass_current_time_int64(sqlite3_vfs *vfs, sqlite3_int64 *time_ms)
{
	return lower_vfs(vfs)->xCurrentTimeInt64(lower_vfs(vfs), time_ms);
}

static int pass_set_system_call(sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call)
{
	return lower_vfs(vfs)->xSetSystemCall(lower_vfs(vfs), name, call);
}

static sqlite3_syscall_ptr pass_get_system_call(sqlite3_vfs *vfs, const char *name)
{
	return lower_vfs(vfs)->xGetSystemCall(lower_vfs(vfs), name);
}

static const char *pass_next_system_call(sqlite3_vfs *vfs, const char *name)
{
	return lower_vfs(vfs)->xNextSystemCall(lower_vfs(vfs), name);
}

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
