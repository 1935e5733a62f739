// SPDX-License-Identifier: Apache-2.0
/*
 * Connections opened and closed, statements prepared, and calls that change a database without a
 * statement: those are counted.
 */
#include "preload.h"

static void note_opening(int result, sqlite3 **db, const struct library *library, int flags)
{
	/* A handle is there even where opening failed (sqlite.org/c3ref/open.html). */
	if (*db && result == SQLITE_OK && !register_connection(*db, library, flags))
		log_count(LOST_STATEMENTS);
}

EXPORTED int sqlite3_open(const char *name, sqlite3 **db)
{
	const struct library *library = library_of_caller(CALLER);
	int result;

	if (!library)
		return SQLITE_MISUSE;
	result = REAL(library, sqlite3_open)(name, db);
	note_opening(result, db, library, 6);
	return result;
}

EXPORTED int sqlite3_open16(const void *name, sqlite3 **db)
{
	const struct library *library = library_of_caller(CALLER);
	int result;

	if (!library)
		return SQLITE_MISUSE;
	result = REAL(library, sqlite3_open16)(name, db);
	note_opening(result, db, library, 6);
	return result;
}

EXPORTED int sqlite3_open_v2(const char *name, sqlite3 **db, int flags, const char *vfs)
{
	const struct library *library = library_of_caller(CALLER);
	int result;

	if (!library)
		return SQLITE_MISUSE;
	result = REAL(library, sqlite3_open_v2)(name, db, flags, vfs);
	note_opening(result, db, library, flags);
	return result;
}

EXPORTED int sqlite3_close(sqlite3 *db)
{
	struct connection *connection = db ? connection_of(db) : NULL;
	const struct library *library =
		connection ? connection->library : db ? library_of_caller(CALLER) : NULL;
	int result;

	if (!library)
		return db ? SQLITE_MISUSE : SQLITE_OK;
	result = REAL(library, sqlite3_close)(db);
	if (connection && result == SQLITE_OK)
		forget_connection(connection, false);
	return result;
}

EXPORTED int sqlite3_close_v2(sqlite3 *db)
{
	struct connection *connection = db ? connection_of(db) : NULL;
	const struct library *library =
		connection ? connection->library : db ? library_of_caller(CALLER) : NULL;
	bool is_zombie;
	int result;

	if (!library)
		return db ? SQLITE_MISUSE : SQLITE_OK;
	is_zombie = library->next_stmt(db, NULL);
	result = REAL(library, sqlite3_close_v2)(db);
	if (connection && result == SQLITE_OK)
		forget_connection(connection, is_zombie);
	return result;
}

static const struct library *library_of(sqlite3 *db, const void *caller)
{
	struct connection *connection = connection_of(db);

	return connection ? connection->library : library_of_caller(caller);
}

static int note_preparation(int result, struct connection *connection, sqlite3_stmt **stmt,
			    const struct library *library)
{
	if (connection)
		pop_frame();
	if (result == SQLITE_OK && *stmt) {
		/* One with this address was finalized where we did not see it. */
		forget_statement(*stmt);
		register_statement(*stmt, library);
	} else if (result != SQLITE_OK && connection && !frame_on(connection)) {
		log_count(FAILED_PREPARES);
	}
	return result;
}

/* While a statement is prepared, SQLite may read the schema by statements of its own. */
#define PREPARE(name, text, parameters, arguments) \
	EXPORTED int sqlite3_##name(sqlite3 *db, const text *sql, int length parameters, \
				    sqlite3_stmt **stmt, const text **tail) \
	{ \
		const struct library *library = library_of(db, CALLER); \
		struct connection *connection = NULL; \
		struct frame frame = { 0 }; \
\
		if (!library) \
			return SQLITE_MISUSE; \
		if (db) \
			connection = register_connection(db, library, 0); \
		frame.connection = connection; \
		if (connection) \
			push_frame(&frame); \
		return note_preparation( \
			REAL(library, sqlite3_##name)(db, sql, length arguments, stmt, tail), \
			connection, stmt, library); \
	}
#define NOTHING
#define COMMA ,
PREPARE(prepare, char, NOTHING, NOTHING)
PREPARE(prepare_v2, char, NOTHING, NOTHING)
PREPARE(prepare16, void, NOTHING, NOTHING)
PREPARE(prepare16_v2, void, NOTHING, NOTHING)
PREPARE(prepare_v3, char, COMMA unsigned flags, COMMA flags)
PREPARE(prepare16_v3, void, COMMA unsigned flags, COMMA flags)

EXPORTED int sqlite3_blob_write(sqlite3_blob *blob, const void *data, int length, int offset)
{
	const struct library *library = library_of_caller(CALLER);

	log_count(BLOB_WRITES);
	if (!library)
		return SQLITE_MISUSE;
	return REAL(library, sqlite3_blob_write)(blob, data, length, offset);
}

EXPORTED int sqlite3_backup_step(sqlite3_backup *backup, int pages)
{
	const struct library *library = library_of_caller(CALLER);

	/* VACUUM copies what it made that way (sqlite3BtreeCopyFile() in src/backup.c). */
	if (!is_in_call())
		log_count(BACKUP_STEPS);
	return library ? REAL(library, sqlite3_backup_step)(backup, pages) : SQLITE_MISUSE;
}

EXPORTED int sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *name, int mode, int *frames,
				       int *checkpointed)
{
	const struct library *library = library_of(db, CALLER);
	struct connection *connection = connection_of(db);

	/* SQLite's own default of sqlite3_wal_autocheckpoint comes this way, within a step. */
	if (!connection || !frame_on(connection))
		log_count(CHECKPOINT_CALLS);
	if (!library)
		return SQLITE_MISUSE;
	return REAL(library, sqlite3_wal_checkpoint_v2)(db, name, mode, frames, checkpointed);
}

EXPORTED int sqlite3_deserialize(sqlite3 *db, const char *schema, unsigned char *data,
				 sqlite3_int64 size, sqlite3_int64 room, unsigned flags)
{
	const struct library *library = library_of(db, CALLER);

	log_count(DESERIALIZED);
	if (!library)
		return SQLITE_MISUSE;
	return REAL(library, sqlite3_deserialize)(db, schema, data, size, room, flags);
}
