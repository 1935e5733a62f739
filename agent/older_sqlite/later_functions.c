// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of SQLite that rusqlite calls and that came later than a SQLite of the user's, which an
 * agent is linked to (jojlab/guest/image/own_sqlite.py): sqlite3_changes64() of 3.37,
 * sqlite3_error_offset() of 3.38 and sqlite3_set_clientdata() of 3.44. Weak: a SQLite that has them
 * keeps its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

sqlite3_int64 sqlite3_changes64(sqlite3 *db);
int sqlite3_error_offset(sqlite3 *db);
int sqlite3_set_clientdata(sqlite3 *db, const char *name, void *data, void (*destroy)(void *));

/* Before 3.37 a statement's count of rows had 32 bits. */
__attribute__((weak)) sqlite3_int64 sqlite3_changes64(sqlite3 *db)
{
	return sqlite3_changes(db);
}

/* As of an error that is about no place in the statement. */
__attribute__((weak)) int sqlite3_error_offset(sqlite3 *db)
{
	(void)db;
	return -1;
}

/*
 * What a connection was given by a name. It outlives the connection, whose end nobody tells here:
 * another one at the same address that is given something by that name destroys it.
 */
struct client_data {
	struct client_data *next;
	sqlite3 *db;
	char *name;
	void *data;
	void (*destroy)(void *);
};

static struct client_data *all_data;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The data of a connection by a name, made if there is none; NULL without memory. */
static struct client_data *find(sqlite3 *db, const char *name)
{
	struct client_data *it;

	for (it = all_data; it != NULL; it = it->next)
		if (it->db == db && strcmp(it->name, name) == 0)
			return it;
	it = calloc(1, sizeof(*it));
	if (it == NULL)
		return NULL;
	it->name = strdup(name);
	if (it->name == NULL) {
		free(it);
		return NULL;
	}
	it->db = db;
	it->next = all_data;
	all_data = it;
	return it;
}

__attribute__((weak)) int sqlite3_set_clientdata(sqlite3 *db, const char *name, void *data,
						 void (*destroy)(void *))
{
	struct client_data *it, former = {0};

	pthread_mutex_lock(&lock);
	it = find(db, name);
	if (it != NULL) {
		former = *it;
		it->data = data;
		it->destroy = destroy;
	}
	pthread_mutex_unlock(&lock);
	if (it == NULL) {
		if (destroy != NULL)
			destroy(data);
		return SQLITE_NOMEM;
	}
	if (former.data != NULL && former.destroy != NULL)
		former.destroy(former.data);
	return SQLITE_OK;
}
