// SPDX-License-Identifier: Apache-2.0
/*
 * A SQLite of the user's, which an agent is linked to (jojlab/guest/image/own_sqlite.py), with the
 * functions that rusqlite, the agent and its VFSes call and that came after it. It is compiled as
 * one file with these, since what the state of a transaction is, an older SQLite says inside alone.
 */
#include "sqlite3.c"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if SQLITE_VERSION_NUMBER < 3008007

/* Lengths had 31 bits. */
void *sqlite3_malloc64(sqlite3_uint64 length_bytes)
{
	return length_bytes > INT_MAX ? NULL : sqlite3_malloc((int)length_bytes);
}

void *sqlite3_realloc64(void *memory, sqlite3_uint64 length_bytes)
{
	return length_bytes > INT_MAX ? NULL : sqlite3_realloc(memory, (int)length_bytes);
}

/* What is too long to be bound is given back, as SQLite gives back what it does not take. */
static int refuse_length(const void *data, void (*destroy)(void *))
{
	if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT)
		destroy((void *)data);
	return SQLITE_TOOBIG;
}

int sqlite3_bind_blob64(sqlite3_stmt *statement, int index, const void *data,
			sqlite3_uint64 length_bytes, void (*destroy)(void *))
{
	if (length_bytes > INT_MAX)
		return refuse_length(data, destroy);
	return sqlite3_bind_blob(statement, index, data, (int)length_bytes, destroy);
}

/* rusqlite binds UTF-8 alone. */
int sqlite3_bind_text64(sqlite3_stmt *statement, int index, const char *text,
			sqlite3_uint64 length_bytes, void (*destroy)(void *),
			unsigned char encoding)
{
	if (encoding != SQLITE_UTF8)
		return SQLITE_MISUSE;
	if (length_bytes > INT_MAX)
		return refuse_length(text, destroy);
	return sqlite3_bind_text(statement, index, text, (int)length_bytes, destroy);
}

#endif

#if SQLITE_VERSION_NUMBER < 3008011

int sqlite3_bind_zeroblob64(sqlite3_stmt *statement, int index, sqlite3_uint64 length_bytes)
{
	if (length_bytes > INT_MAX)
		return SQLITE_TOOBIG;
	return sqlite3_bind_zeroblob(statement, index, (int)length_bytes);
}

#endif

#if SQLITE_VERSION_NUMBER < 3020000

/* The flags are hints of how long a statement is kept. */
int sqlite3_prepare_v3(sqlite3 *db, const char *sql, int length_bytes, unsigned int flags,
		       sqlite3_stmt **statement, const char **tail)
{
	(void)flags;
	return sqlite3_prepare_v2(db, sql, length_bytes, statement, tail);
}

#endif

#if SQLITE_VERSION_NUMBER < 3034000

/* SQLITE_TXN_WRITE is 2, SQLITE_TXN_READ 1, SQLITE_TXN_NONE 0, and -1 says that there is no such
 * database. The agent asks for one by its name.
 */
int sqlite3_txn_state(sqlite3 *db, const char *name)
{
	int state = -1;
	Btree *tree;

	sqlite3_mutex_enter(db->mutex);
	tree = sqlite3DbNameToBtree(db, name);
	if (tree != NULL)
		state = sqlite3BtreeIsInTrans(tree) ? 2 : sqlite3BtreeIsInReadTrans(tree) ? 1 : 0;
	sqlite3_mutex_leave(db->mutex);
	return state;
}

#endif

#if SQLITE_VERSION_NUMBER < 3037000

/* A statement's count of rows had 32 bits. */
sqlite3_int64 sqlite3_changes64(sqlite3 *db)
{
	return sqlite3_changes(db);
}

#endif

#if SQLITE_VERSION_NUMBER < 3038000

/* As of an error that is about no place in the statement. */
int sqlite3_error_offset(sqlite3 *db)
{
	(void)db;
	return -1;
}

#endif

#if SQLITE_VERSION_NUMBER < 3044000

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

int sqlite3_set_clientdata(sqlite3 *db, const char *name, void *data, void (*destroy)(void *))
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

#endif
