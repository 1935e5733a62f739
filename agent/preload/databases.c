// SPDX-License-Identifier: Apache-2.0
/*
 * The files of a connection: how large each was when it was opened or attached, which tells whether
 * it was there before; and when the connection committed: SQLite calls the commit hook while it has
 * the locks of all that the transaction changed (vdbeCommit() in src/vdbeaux.c), so that these
 * times are the order of commits of all connections on a file, of other processes too.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By no open descriptor: closing one would drop the locks of this process on the file. */
static int64_t file_size(const char *path)
{
	struct stat status;

	if (!path || !*path || syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) != 0)
		return -1;
	return status.st_size;
}

static int on_commit(void *context)
{
	struct connection *connection = context;
	int64_t now = now_ns();
	int is_refused = 0;

	if (connection->program_commit)
		is_refused = connection->program_commit(connection->program_commit_context);
	if (!is_refused)
		connection->committed_ns = now;
	return is_refused;
}

void watch_database(struct connection *connection)
{
	const struct library *library = connection->library;

	connection->size_bytes = file_size(library->db_filename(connection->db, "main"));
	if (library->commit_hook)
		library->commit_hook(connection->db, on_commit, connection);
}

EXPORTED void *sqlite3_commit_hook(sqlite3 *db, commit_callback callback, void *context)
{
	struct connection *connection = connection_of(db);
	const struct library *library = connection ? NULL : library_of_caller(CALLER);
	void *previous;

	if (!connection)
		return library ? library->commit_hook(db, callback, context) : NULL;
	previous = connection->program_commit_context;
	connection->program_commit = callback;
	connection->program_commit_context = context;
	return previous;
}

void build_options(const struct library *library, char *text, size_t room)
{
	const char *option;
	size_t used = 0, length;

	text[0] = 0;
	for (int i = 0; library->compileoption_get; i++) {
		option = library->compileoption_get(i);
		length = option ? strlen(option) : room;
		if (used + length + 2 > room)
			return;
		memcpy(text + used, option, length);
		used += length;
		text[used++] = ' ';
		text[used] = 0;
	}
}

static bool is_attach(const char *sql)
{
	const char *end;

	while (*sql) {
		if (strchr(" \t\n\f\r", *sql)) {
			sql++;
		} else if (strncmp(sql, "--", 2) == 0) {
			sql += strcspn(sql, "\n");
		} else if (strncmp(sql, "/*", 2) == 0) {
			end = strstr(sql + 2, "*/");
			if (!end)
				return false;
			sql = end + 2;
		} else {
			break;
		}
	}
	return strncasecmp(sql, "attach", 6) == 0;
}

void log_attachment(const struct statement *statement)
{
	const struct connection *connection = statement->connection;
	const struct library *library = connection->library;
	const char *sql = library->sql(statement->stmt), *name = NULL, *next, *path;
	int64_t now = now_ns(), size_bytes;

	if (!sql || !is_attach(sql) || !library->db_name)	/* since 3.39 */
		return;
	/* The last one is the newest (attachFunc() in src/attach.c). */
	for (int i = 0; (next = library->db_name(connection->db, i)); i++)
		name = next;
	path = name ? library->db_filename(connection->db, name) : NULL;
	size_bytes = file_size(path);

	struct piece pieces[] = {
		PIECE(connection->number), PIECE(now), PIECE(size_bytes),
		{ name ? name : "", name ? strlen(name) + 1 : 1 },
		{ path ? path : "", path ? strlen(path) + 1 : 1 },
	};

	log_append(RECORD_ATTACHED, pieces, sizeof(pieces) / sizeof(*pieces));
}
