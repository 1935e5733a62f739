// SPDX-License-Identifier: Apache-2.0
/*
 * Executions of statements: where they begin and end, the record of each, and the calls of SQLite
 * that this thread is in.
 */
#include "preload.h"

#include <string.h>

static __thread const struct frame *innermost __attribute__((tls_model("initial-exec")));

void push_frame(struct frame *frame)
{
	frame->outer = innermost;
	innermost = frame;
}

void pop_frame(void)
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

bool is_in_call(void)
{
	return innermost;
}

bool is_under_way(const sqlite3_stmt *stmt)
{
	const struct frame *frame = innermost;

	while (frame && frame->stmt != stmt)
		frame = frame->outer;
	return frame;
}

void announce_in_log(struct statement *statement)
{
	struct connection *connection = statement->connection;
	const struct library *library = connection->library;
	const char *file = library->db_filename(connection->db, "main");
	const char *version = library->libversion();
	char options[4096];
	const char *sql;
	int32_t thread = thread_number();
	struct piece connection_pieces[] = {
		PIECE(connection->number), PIECE(connection->flags), PIECE(connection->open_ns),
		PIECE(connection->size_bytes), PIECE(thread), { version, strlen(version) + 1 },
		{ file ? file : "", 0 }, { options, 0 },
	};
	uint32_t parameters;
	struct piece statement_pieces[] = {
		PIECE(statement->number), PIECE(connection->number), PIECE(parameters), { NULL, 0 },
	};

	if (connection->announced != log_number()) {
		connection_pieces[6].length_bytes = strlen(connection_pieces[6].data) + 1;
		build_options(library, options, sizeof(options));
		connection_pieces[7].length_bytes = strlen(options) + 1;
		if (log_append(RECORD_CONNECTION, connection_pieces, 8))
			connection->announced = log_number();
	}
	if (statement->announced != log_number()) {
		parameters = (uint32_t)library->bind_parameter_count(statement->stmt);
		sql = statement->expanded ? statement->expanded : library->sql(statement->stmt);
		statement_pieces[3] = (struct piece){ sql ? sql : "", sql ? strlen(sql) + 1 : 1 };
		if (log_append(RECORD_PREPARED, statement_pieces, 4))
			statement->announced = log_number();
	}
}

void begin_execution(struct statement *statement, int64_t now)
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

void end_execution(struct statement *statement, int32_t result, int64_t now)
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
	announce_in_log(statement);
	log_append(RECORD_EXECUTED, pieces, sizeof(pieces) / sizeof(*pieces));
	if (result < 0 || result == SQLITE_DONE || result == SQLITE_ROW)
		log_attachment(statement);
	connection->committed_ns = 0;
	statement->pending_bytes = 0;
	if (statement->expanded)
		connection->library->free(statement->expanded);
	statement->expanded = NULL;
}
