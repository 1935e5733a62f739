// SPDX-License-Identifier: Apache-2.0
/*
 * Registers connections and statements when a call names them first. A connection gets the trace
 * and the commit hook of this library then.
 */
#include "preload.h"

struct connection *register_connection(sqlite3 *db, const struct library *library, int flags)
{
	struct connection *connection = connection_of(db);

	if (connection)
		return connection;
	connection = make_connection(db, library, flags);
	if (!connection)
		return NULL;
	install_trace(connection);
	watch_database(connection);
	return connection;
}

struct statement *register_statement(sqlite3_stmt *stmt, const struct library *library)
{
	struct statement *statement = statement_of(stmt);
	struct connection *connection;

	if (statement)
		return statement;
	connection = register_connection(library->db_handle(stmt), library, 0);
	statement = connection ? make_statement(stmt, connection) : NULL;
	if (!statement) {
		log_count(LOST_STATEMENTS);
		return NULL;
	}
	remember_statement(statement);
	return statement;
}
