// SPDX-License-Identifier: Apache-2.0
/*
 * The calls that step, reset and finalize statements. An execution begins with the first step and
 * ends with the step that returns no row, or with the reset; its record is written then.
 */
#include "preload.h"

static void lock_connection(const struct connection *connection)
{
	const struct library *library = connection->library;

	library->mutex_enter(library->db_mutex(connection->db));
}

static void unlock_connection(const struct connection *connection)
{
	const struct library *library = connection->library;

	library->mutex_leave(library->db_mutex(connection->db));
}

/* A call that runs the statement: `call` is sqlite3_step or sqlite3_reset. */
static int run_statement(struct statement *statement, int (*call)(sqlite3_stmt *), int64_t begin_ns)
{
	struct connection *connection = statement->connection;
	const struct library *library = connection->library;
	struct frame frame = { connection, statement->stmt, NULL };
	bool before = library->get_autocommit(connection->db), after;
	int result;

	push_frame(&frame);
	result = call(statement->stmt);
	pop_frame();
	after = library->get_autocommit(connection->db);
	if (before != after)
		statement->flags |= before ? BEGAN_TRANSACTION : ENDED_TRANSACTION;
	statement->inside_ns += now_ns() - begin_ns;
	return result;
}

static int32_t result_code(const struct connection *connection, int result)
{
	if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE)
		return result;
	return connection->library->extended_errcode(connection->db);
}

/* Whether this thread is in another call of the connection: then the statement is not the
 * program's, or is that of a function within a statement. A replay of the outer one makes it. */
static bool is_nested(struct statement *statement)
{
	const struct frame *outer;

	if (!statement->is_nested) {
		outer = frame_on(statement->connection);
		if (statement->is_running || !outer)
			return false;
		/* What runs while a statement is prepared reads the schema. */
		if (outer->stmt)
			log_count(NESTED_STATEMENTS);
		statement->is_nested = true;
	}
	return true;
}

EXPORTED int sqlite3_step(sqlite3_stmt *stmt)
{
	int64_t begin_ns = now_ns();
	struct statement *statement = stmt ? statement_of(stmt) : NULL;
	const struct library *library = statement ? statement->connection->library : NULL;
	struct connection *connection;
	int result;

	if (!statement) {
		library = library_of_caller(CALLER);
		if (!library || !stmt)
			return library ? library->step(stmt) : SQLITE_MISUSE;
		/* It was prepared where we did not see it, and its values may be unseen. */
		statement = register_statement(stmt, library);
		if (!statement)
			return library->step(stmt);
		statement->is_unseen = library->bind_parameter_count(stmt) > 0;
	}
	connection = statement->connection;
	lock_connection(connection);
	if (is_nested(statement)) {
		result = run_statement(statement, library->step, begin_ns);
		statement->is_nested = result == SQLITE_ROW;
		unlock_connection(connection);
		return result;
	}
	if (!statement->is_running)
		begin_execution(statement, begin_ns);
	result = run_statement(statement, library->step, begin_ns);
	if (result == SQLITE_ROW)
		statement->rows++;
	else
		end_execution(statement, result_code(connection, result), now_ns());
	unlock_connection(connection);
	return result;
}

EXPORTED int sqlite3_reset(sqlite3_stmt *stmt)
{
	int64_t begin_ns = now_ns();
	struct statement *statement = stmt ? statement_of(stmt) : NULL;
	const struct library *library = statement ? statement->connection->library : NULL;
	struct connection *connection;
	int result;

	if (!stmt)
		return SQLITE_OK;
	if (!statement) {
		library = library_of_caller(CALLER);
		return library ? library->reset(stmt) : SQLITE_MISUSE;
	}
	/* A statement that the schema has outlived is prepared anew and reset within its step. */
	if (is_under_way(stmt))
		return library->reset(stmt);
	connection = statement->connection;
	lock_connection(connection);
	if (statement->is_running) {
		result = run_statement(statement, library->reset, begin_ns);
		end_execution(statement, SQLITE_ROW, now_ns());
	} else {
		result = library->reset(stmt);
	}
	statement->is_nested = false;
	unlock_connection(connection);
	return result;
}

EXPORTED int sqlite3_finalize(sqlite3_stmt *stmt)
{
	struct statement *statement = stmt ? statement_of(stmt) : NULL;
	const struct library *library;
	int result = SQLITE_OK, last;

	if (!stmt)
		return SQLITE_OK;
	library = statement ? statement->connection->library : library_of_caller(CALLER);
	if (!library)
		return SQLITE_MISUSE;
	if (statement) {
		if (statement->is_running) {
			/* What finalize does to a statement under way is what reset does. */
			lock_connection(statement->connection);
			result = run_statement(statement, library->reset, now_ns());
			end_execution(statement, SQLITE_ROW, now_ns());
			unlock_connection(statement->connection);
		}
		forget_statement(stmt);
	}
	last = library->finalize(stmt);
	return result ? result : last;
}
