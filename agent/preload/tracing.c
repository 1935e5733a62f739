// SPDX-License-Identifier: Apache-2.0
/*
 * SQLite's own trace (sqlite.org/c3ref/trace_v2.html) shows statements that it runs by itself, in
 * no call of sqlite3_step that we see: those of sqlite3_exec, where the library does not call
 * itself by name. A connection has one trace: that of the program is called from ours.
 */
#include "preload.h"

enum { OURS = SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE };

static void call_legacy(const struct connection *connection, unsigned event, void *stmt,
			void *extra)
{
	const struct library *library = connection->library;
	const char *sql = extra;
	char *expanded;

	if (event == SQLITE_TRACE_STMT && connection->program_legacy_trace) {
		expanded = sql[0] == '-' && sql[1] == '-' ? NULL : library->expanded_sql(stmt);
		connection->program_legacy_trace(connection->program_legacy_trace_context,
						 expanded ? expanded : sql);
		library->free(expanded);
	}
	if (event == SQLITE_TRACE_PROFILE && connection->program_legacy_profile)
		connection->program_legacy_profile(connection->program_legacy_profile_context,
						   library->sql(stmt), *(sqlite3_uint64 *)extra);
}

static void end_internal(struct connection *connection)
{
	struct statement *internal = connection->internal;

	connection->internal = NULL;
	if (!internal)
		return;
	if (!connection->library->get_autocommit(connection->db)) {
		if (internal->flags & WAS_AUTOCOMMIT)
			internal->flags |= BEGAN_TRANSACTION;
	} else if (!(internal->flags & WAS_AUTOCOMMIT)) {
		internal->flags |= ENDED_TRANSACTION;
	}
	internal->inside_ns = now_ns() - internal->begin_ns;
	/* The trace does not tell how it went. */
	end_execution(internal, -1, now_ns());
	free_statement(internal);
}

static void begin_internal(struct connection *connection, sqlite3_stmt *stmt)
{
	const struct library *library = connection->library;
	struct statement *internal = make_statement(stmt, connection);

	if (!internal) {
		log_count(LOST_STATEMENTS);
		return;
	}
	if (library->bind_parameter_count(stmt) > 0) {
		/* The best that is left: reals of 15 digits, text to its first zero. */
		internal->is_unseen = true;
		internal->expanded = library->expanded_sql(stmt);
	}
	begin_execution(internal, now_ns());
	connection->internal = internal;
}

static int on_trace(unsigned event, void *context, void *stmt, void *extra)
{
	struct connection *connection = context;
	const char *sql = extra;
	const struct frame *frame = frame_on(connection);
	bool is_trigger = event == SQLITE_TRACE_STMT && sql[0] == '-' && sql[1] == '-';

	if (connection->program_trace && connection->program_mask & event)
		connection->program_trace(event, connection->program_context, stmt, extra);
	call_legacy(connection, event, stmt, extra);
	if (frame) {
		bool is_inner = frame->stmt && frame->stmt != stmt && !statement_of(stmt);

		if (event == SQLITE_TRACE_STMT && !is_trigger && is_inner)
			log_count(NESTED_STATEMENTS);
		return 0;
	}
	if (event == SQLITE_TRACE_STMT && !is_trigger) {
		if (connection->internal)
			log_count(NESTED_STATEMENTS);
		else
			begin_internal(connection, stmt);
	} else if (event == SQLITE_TRACE_PROFILE && connection->internal &&
		   connection->internal->stmt == stmt) {
		end_internal(connection);
	}
	return 0;
}

void install_trace(struct connection *connection)
{
	unsigned mask = OURS | (connection->program_trace ? connection->program_mask : 0);

	if (connection->library->trace_v2)	/* since 3.14 */
		connection->library->trace_v2(connection->db, mask, on_trace, connection);
}

EXPORTED int sqlite3_trace_v2(sqlite3 *db, unsigned mask, trace_callback callback, void *context)
{
	struct connection *connection = connection_of(db);
	const struct library *library = connection ? NULL : library_of_caller(CALLER);

	if (!connection)
		return library ? library->trace_v2(db, mask, callback, context) : SQLITE_MISUSE;
	/* sqlite3_trace and this one replace each other. */
	connection->program_legacy_trace = NULL;
	connection->program_legacy_profile = NULL;
	connection->program_trace = mask ? callback : NULL;
	connection->program_mask = mask;
	connection->program_context = context;
	install_trace(connection);
	return SQLITE_OK;
}

EXPORTED void *sqlite3_trace(sqlite3 *db, legacy_trace callback, void *context)
{
	struct connection *connection = connection_of(db);
	void *previous;

	if (!connection)
		return NULL;
	previous = connection->program_legacy_trace_context;
	connection->program_trace = NULL;
	connection->program_legacy_trace = callback;
	connection->program_legacy_trace_context = context;
	install_trace(connection);
	return previous;
}

EXPORTED void *sqlite3_profile(sqlite3 *db, legacy_profile callback, void *context)
{
	struct connection *connection = connection_of(db);
	void *previous;

	if (!connection)
		return NULL;
	previous = connection->program_legacy_profile_context;
	connection->program_trace = NULL;
	connection->program_legacy_profile = callback;
	connection->program_legacy_profile_context = context;
	install_trace(connection);
	return previous;
}
