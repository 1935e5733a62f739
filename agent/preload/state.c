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

void state_lock(void)
{
	pthread_mutex_lock(&lock);
}

void state_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct connection *connection_of(sqlite3 *db)
{
	struct connection *found;

	state_lock();
	for (found = connections[bucket(db)]; found && found->db != db; found = found->next)
		;
	state_unlock();
	return found;
}

struct statement *statement_of(sqlite3_stmt *stmt)
{
	struct statement *found;

	state_lock();
	for (found = statements[bucket(stmt)]; found && found->stmt != stmt; found = found->next)
		;
	state_unlock();
	return found;
}

struct connection *connection_met(sqlite3 *db, const struct library *library, int flags)
{
	struct connection *connection = connection_of(db);

	if (connection)
		return connection;
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return NULL;
	connection->db = db;
	connection->library = library;
	connection->number = atomic_fetch_add(&next_connection, 1);
	connection->references = 1;
	connection->flags = flags;
	connection->open_ns = now_ns();
	state_lock();
	connection->next = connections[bucket(db)];
	connections[bucket(db)] = connection;
	state_unlock();
	trace_installed(connection);
	database_opened(connection);
	return connection;
}

/* Its memory goes when neither the table nor a statement has it; under the lock. */
static void released(struct connection *connection)
{
	if (--connection->references)
		return;
	free(connection);
}

struct statement *statement_made(sqlite3_stmt *stmt, struct connection *connection)
{
	struct statement *statement = calloc(1, sizeof(*statement));

	if (!statement)
		return NULL;
	statement->stmt = stmt;
	statement->connection = connection;
	statement->number = atomic_fetch_add(&next_statement, 1);
	state_lock();
	connection->references++;
	state_unlock();
	return statement;
}

void statement_freed(struct statement *statement)
{
	struct piece pieces[] = { PIECE(statement->number) };

	if (statement->announced == log_number())
		log_append(RECORD_FINALIZED, pieces, 1);
	state_lock();
	released(statement->connection);
	state_unlock();
	free(statement->pending);
	free(statement);
}

struct statement *statement_met(sqlite3_stmt *stmt, const struct library *library)
{
	struct statement *statement = statement_of(stmt);
	struct connection *connection;

	if (statement)
		return statement;
	connection = connection_met(library->db_handle(stmt), library, 0);
	statement = connection ? statement_made(stmt, connection) : NULL;
	if (!statement) {
		log_count(LOST_STATEMENTS);
		return NULL;
	}
	state_lock();
	statement->next = statements[bucket(stmt)];
	statements[bucket(stmt)] = statement;
	state_unlock();
	return statement;
}

void statement_forgotten(sqlite3_stmt *stmt)
{
	struct statement **link = &statements[bucket(stmt)];
	struct statement *found;

	state_lock();
	while (*link && (*link)->stmt != stmt)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	state_unlock();
	if (found)
		statement_freed(found);
}

void connection_forgotten(struct connection *connection, bool is_zombie)
{
	struct connection **link = &connections[bucket(connection->db)];
	int64_t now = now_ns();
	struct piece pieces[] = { PIECE(connection->number), PIECE(now) };

	if (connection->announced == log_number())
		log_append(RECORD_CLOSED, pieces, 2);
	state_lock();
	while (*link && *link != connection)
		link = &(*link)->next;
	if (*link)
		*link = connection->next;
	/* SQLite goes on tracing a zombie, with this address, until its last statement is gone. */
	if (!is_zombie)
		released(connection);
	state_unlock();
}
