// SPDX-License-Identifier: Apache-2.0
/*
 * A VFS for a program that one cannot change: LD_PRELOAD=joj_wal_preload.so PROGRAM. VFS_INIT is
 * what SQLite would call of the loaded library.
 *
 * The dynamic linker finds the functions that open a database here before those of libsqlite3. The
 * first call registers the VFS. SQLite gives the table of its functions to an automatic extension
 * alone, when a connection opens: one to no file is opened for that. A program that has SQLite
 * linked into itself calls its own functions, and is not changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include <sqlite3.h>

#define EXPORTED __attribute__((visibility("default")))

typedef int (*open_v2_function)(const char *, sqlite3 **, int, const char *);
typedef int (*open16_function)(const void *, sqlite3 **);
typedef int (*close_function)(sqlite3 *);
typedef int (*extension_function)(void (*)(void));

struct sqlite3_api_routines;
int VFS_INIT(sqlite3 *db, char **message, const struct sqlite3_api_routines *routines);

static pthread_once_t registered = PTHREAD_ONCE_INIT;
static open_v2_function lower_open_v2;
static open16_function lower_open16;

/* A function of the SQLite that the program uses. Python loads its own with local symbols, which
 * RTLD_NEXT does not see.
 */
static void *lower_function(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name), *library;

	if (function != NULL)
		return function;
	library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_NOLOAD);
	return library != NULL ? dlsym(library, name) : NULL;
}

static void register_vfs(void)
{
	extension_function add = (extension_function)lower_function("sqlite3_auto_extension");
	extension_function cancel =
		(extension_function)lower_function("sqlite3_cancel_auto_extension");
	close_function close = (close_function)lower_function("sqlite3_close");
	void (*init)(void) = (void (*)(void))VFS_INIT;
	sqlite3 *db = NULL;

	lower_open_v2 = (open_v2_function)lower_function("sqlite3_open_v2");
	lower_open16 = (open16_function)lower_function("sqlite3_open16");
	if (add == NULL || cancel == NULL || close == NULL || lower_open_v2 == NULL)
		return;
	add(init);
	lower_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	close(db);
	cancel(init);
}

EXPORTED int sqlite3_open(const char *path, sqlite3 **db)
{
	return sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
}

EXPORTED int sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs)
{
	pthread_once(&registered, register_vfs);
	return lower_open_v2 != NULL ? lower_open_v2(path, db, flags, vfs) : SQLITE_MISUSE;
}

EXPORTED int sqlite3_open16(const void *path, sqlite3 **db)
{
	pthread_once(&registered, register_vfs);
	return lower_open16 != NULL ? lower_open16(path, db) : SQLITE_MISUSE;
}
