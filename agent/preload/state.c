// SPDX-License-Identifier: Apache-2.0
/*
 * What is known of the connections and statements of this process. The tables have a lock; what
 * they hold is used under the mutex of its connection, as SQLite's own structures are.
 */
#include "preload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { BUCKETS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection *connections[BUCKETS];
static struct statement *statements[BUCKETS];
static _Atomic uint32_t next_connection = 1;
static _Atomic uint32_t next_statement = 1;

static unsigned bucket(const void *handle)
{
	uintptr_t word = (uintptr_t)handle >> 4;

	return (unsigned)(word ^ word >> 12 ^ word >> 24) % BUCKETS;
}

void lock_state(void)
{
	pthread_mutex_lock(&lock);
}

void unlock_state(void)
{
	pthread_mutex_unlock(&lock);
}

struct connection *connection_of(sqlite3 *db)
{
	struct connection *known;

	lock_state();
	for (known = connections[bucket(db)]; known && known->db != db; known = known->next)
		;
	unlock_state();
	return known;
}

struct statement *statement_of(sqlite3_stmt *stmt)
{
	struct statement *known;

	lock_state();
	for (known = statements[bucket(stmt)]; known && known->stmt != stmt; known = known->next)
		;
	unlock_state();
	return known;
}

struct connection *make_connection(sqlite3 *db, const struct library *library, int flags)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->db = db;
	connection->library = library;
	connection->number = atomic_fetch_add(&next_connection, 1);
	connection->references = 1;
	connection->flags = flags;
	connection->open_ns = now_ns();
	lock_state();
	connection->next = connections[bucket(db)];
	connections[bucket(db)] = connection;
	unlock_state();
	return connection;
}

/* Its memory goes when neither the table nor a statement has it; under the lock. */
static void release(struct connection *connection)
{
	if (--connection->references)
		return;
	free(connection);
}

struct statement *make_statement(sqlite3_stmt *stmt, struct connection *connection)
{
	struct statement *statement = calloc(1, sizeof(*statement));

	if (!statement)
		return NULL;
	statement->stmt = stmt;
	statement->connection = connection;
	statement->number = atomic_fetch_add(&next_statement, 1);
	lock_state();
	connection->references++;
	unlock_state();
	return statement;
}

void remember_statement(struct statement *statement)
{
	lock_state();
	statement->next = statements[bucket(statement->stmt)];
	statements[bucket(statement->stmt)] = statement;
	unlock_state();
}

void free_statement(struct statement *statement)
{
	struct piece pieces[] = { PIECE(statement->number) };

	if (statement->announced == log_number())
		log_append(RECORD_FINALIZED, pieces, 1);
	lock_state();
	release(statement->connection);
	unlock_state();
	free(statement->pending);
	free(statement);
}

void forget_statement(sqlite3_stmt *stmt)
{
	struct statement **link = &statements[bucket(stmt)];
	struct statement *known;

	lock_state();
	while (*link && (*link)->stmt != stmt)
		link = &(*link)->next;
	known = *link;
	if (known)
		*link = known->next;
	unlock_state();
	if (known)
		free_statement(known);
}

void forget_connection(struct connection *connection, bool is_zombie)
{
	struct connection **link = &connections[bucket(connection->db)];
	int64_t now = now_ns();
	struct piece pieces[] = { PIECE(connection->number), PIECE(now) };

	if (connection->announced == log_number())
		log_append(RECORD_CLOSED, pieces, 2);
	lock_state();
	while (*link && *link != connection)
		link = &(*link)->next;
	if (*link)
		*link = connection->next;
	/* SQLite goes on tracing a zombie, with this address, until its last statement is gone. */
	if (!is_zombie)
		release(connection);
	unlock_state();
}
