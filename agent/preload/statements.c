// SPDX-License-Identifier: Apache-2.0
/*
 * Statements stepped, reset, finalized. An execution begins with the first step and ends
 * with the step that returns no row, or with the reset; its record is written then.
 */
#include "preload.h"

#include <string.h>

static __thread const struct frame *innermost __attribute__((tls_model("initial-exec")));

void frame_pushed(struct frame *frame)
{
	frame->outer = innermost;
	innermost = frame;
}

void frame_popped(void)
{
	innermost = innermost->outer;
}

const struct frame *frame_on(const struct connection *connection)
{
	const struct frame *frame = innermost;

	while (frame && frame->connection != connection)
		frame = frame->outer;
	return frame;
}

bool is_within_call(void)
{
	return innermost;
}

/* Whether this thread is in a call that runs the statement. */
static bool is_under_way(const sqlite3_stmt *stmt)
{
	const struct frame *frame = innermost;

	while (frame && frame->stmt != stmt)
		frame = frame->outer;
	return frame;
}

static void entered(const struct connection *connection)
{
	const struct library *library = connection->library;

	library->mutex_enter(library->db_mutex(connection->db));
}

static void left(const struct connection *connection)
{
	const struct library *library = connection->library;

	library->mutex_leave(library->db_mutex(connection->db));
}

/* Writes to the log of this process what its records refer to. */
void announced_in_log(struct statement *statement)
{
	struct connection *connection = statement->connection;
	const struct library *library = connection->library;
	const char *file = library->db_filename(connection->db, "main");
	const char *version = library->libversion();
	char options[4096];
	const char *sql;
	int32_t thread = thread_number();
	struct piece opened[] = {
		PIECE(connection->number), PIECE(connection->flags), PIECE(connection->open_ns),
		PIECE(connection->size_bytes), PIECE(thread), { version, strlen(version) + 1 },
		{ file ? file : "", 0 }, { options, 0 },
	};
	uint32_t parameters;
	struct piece prepared[] = {
		PIECE(statement->number), PIECE(connection->number), PIECE(parameters), { NULL, 0 },
	};

	if (connection->announced != log_number()) {
		opened[6].length_bytes = strlen(opened[6].data) + 1;
		build_options(library, options, sizeof(options));
		opened[7].length_bytes = strlen(options) + 1;
		if (log_append(RECORD_CONNECTION, opened, 8))
			connection->announced = log_number();
	}
	if (statement->announced != log_number()) {
		parameters = (uint32_t)library->bind_parameter_count(statement->stmt);
		sql = statement->expanded ? statement->expanded : library->sql(statement->stmt);
		prepared[3] = (struct piece){ sql ? sql : "", sql ? strlen(sql) + 1 : 1 };
		if (log_append(RECORD_PREPARED, prepared, 4))
			statement->announced = log_number();
	}
}

void execution_begins(struct statement *statement, int64_t now)
{
	const struct connection *connection = statement->connection;
	const struct library *library = connection->library;

	statement->is_running = true;
	statement->begin_ns = now;
	statement->inside_ns = 0;
	statement->rows = 0;
	statement->flags = library->stmt_readonly(statement->stmt) ? IS_READONLY : 0;
	if (library->get_autocommit(connection->db))
		statement->flags |= WAS_AUTOCOMMIT;
	if (statement->is_unseen)
		statement->flags |= VALUES_UNSEEN;
	statement->changes_before = library->total_changes(connection->db);
}

void execution_ends(struct statement *statement, int32_t result, int64_t now)
{
	struct connection *connection = statement->connection;
	int32_t thread = thread_number();
	int32_t changes = connection->library->total_changes(connection->db) -
			  statement->changes_before;
	struct piece pieces[] = {
		PIECE(statement->number), PIECE(statement->flags), PIECE(thread), PIECE(result),
		PIECE(statement->begin_ns), PIECE(now), PIECE(statement->inside_ns),
		PIECE(connection->committed_ns), PIECE(statement->rows), PIECE(changes),
		PIECE(statement->pending_bytes), { statement->pending, statement->pending_bytes },
	};

	statement->is_running = false;
	announced_in_log(statement);
	log_append(RECORD_EXECUTED, pieces, sizeof(pieces) / sizeof(*pieces));
	if (result < 0 || result == SQLITE_DONE || result == SQLITE_ROW)
		attached_in_log(statement);
	connection->committed_ns = 0;
	statement->pending_bytes = 0;
	if (statement->expanded)
		connection->library->free(statement->expanded);
	statement->expanded = NULL;
}

/* A call that runs the statement: `call` is sqlite3_step or sqlite3_reset. */
static int within(struct statement *statement, int (*call)(sqlite3_stmt *), int64_t begin_ns)
{
	struct connection *connection = statement->connection;
	const struct library *library = connection->library;
	struct frame frame = { connection, statement->stmt, NULL };
	bool before = library->get_autocommit(connection->db), after;
	int result;

	frame_pushed(&frame);
	result = call(statement->stmt);
	frame_popped();
	after = library->get_autocommit(connection->db);
	if (before != after)
		statement->flags |= before ? BEGAN_TRANSACTION : ENDED_TRANSACTION;
	statement->inside_ns += now_ns() - begin_ns;
	return result;
}

static int32_t told(const struct connection *connection, int result)
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
		statement = statement_met(stmt, library);
		if (!statement)
			return library->step(stmt);
		statement->is_unseen = library->bind_parameter_count(stmt) > 0;
	}
	connection = statement->connection;
	entered(connection);
	if (is_nested(statement)) {
		result = within(statement, library->step, begin_ns);
		statement->is_nested = result == SQLITE_ROW;
		left(connection);
		return result;
	}
	if (!statement->is_running)
		execution_begins(statement, begin_ns);
	result = within(statement, library->step, begin_ns);
	if (result == SQLITE_ROW)
		statement->rows++;
	else
		execution_ends(statement, told(connection, result), now_ns());
	left(connection);
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
	entered(connection);
	if (statement->is_running) {
		result = within(statement, library->reset, begin_ns);
		execution_ends(statement, SQLITE_ROW, now_ns());
	} else {
		result = library->reset(stmt);
	}
	statement->is_nested = false;
	left(connection);
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
			entered(statement->connection);
			result = within(statement, library->reset, now_ns());
			execution_ends(statement, SQLITE_ROW, now_ns());
			left(statement->connection);
		}
		statement_forgotten(stmt);
	}
	last = library->finalize(stmt);
	return result ? result : last;
}
