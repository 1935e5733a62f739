// SPDX-License-Identifier: Apache-2.0
/*
 * joj-redo-leave FILE...: databases that joj_redo has marked become ones of any SQLite again.
 *
 * For databases that no process has open: their log is replayed, as the next one to open them with
 * joj_redo would do it. It needs no SQLite.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redo_log.h"

void report(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("joj-redo-leave: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

enum state { STATE_UNKNOWN, STATE_PLAIN, STATE_MARKED, STATE_TORN };

static enum state read_state(const char *path, unsigned char *header)
{
	uint64_t log_id, id, size_bytes = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;

	if (error == 0)
		error = read_header(fd, header, &size_bytes);
	if (fd >= 0)
		close(fd);
	if (error != 0) {
		report("%s: %s", path, strerror(error));
		return STATE_UNKNOWN;
	}
	if (read_mark(header, &log_id, &id))
		return STATE_MARKED;
	return size_bytes == 0 || is_sqlite_header(header) ? STATE_PLAIN : STATE_TORN;
}

/* Take the mark of a database that had nothing in the log, whose recovery takes those of others. */
static int leave(struct redo_log *log, const char *name, const unsigned char *header)
{
	unsigned int number, names;
	struct file_id file;
	int error = read_file_id(log->folder_fd, name, &file, &names);

	if (error == 0)
		error = lock_log(log, -1);
	if (error != 0)
		return error;
	error = join_database(log, name, file, header, &number);
	if (error == 0)
		error = leave_database(log, number, VERSION_ROLLBACK);
	unlock_log(log);
	return error;
}

/* Return 0 where any SQLite opens the file from here on. */
static int leave_path(const char *path)
{
	unsigned char header[HEADER_BYTES];
	char *copy = strdup(path), *folder = dirname(copy);
	enum state state = read_state(path, header);
	const char *name = strrchr(path, '/') + 1;
	struct redo_log *log;
	int error = 0;

	if (state == STATE_MARKED || state == STATE_TORN) {
		error = attach_log(folder, NULL, &log);
		if (error == 0) {
			state = read_state(path, header);
			if (state == STATE_MARKED)
				error = leave(log, name, header);
			detach_log(log);
			state = read_state(path, header);
		}
	}
	free(copy);
	if (state == STATE_PLAIN) {
		printf("%s is open to any SQLite\n", path);
		return 0;
	}
	if (error == ENOENT || error == EMEDIUMTYPE)
		report("%s: its redo log is not in its folder: put it back", path);
	else if (error == ENOLINK)
		report("%s: the redo log of that folder is not there: put it back", path);
	else if (error != 0)
		report("%s: %s", path, strerror(error));
	else if (state == STATE_TORN)
		report("%s is no database, or is encrypted", path);
	else if (state == STATE_MARKED)
		report("%s has its mark again: a process has it open", path);
	return 1;
}

int main(int count, char **arguments)
{
	int number, failures = 0;

	if (count < 2 || strcmp(arguments[1], "--help") == 0) {
		fprintf(count < 2 ? stderr : stdout,
			"Usage: joj-redo-leave FILE...\nReplay the redo log of databases that no "
			"process has open, and take the marks of joj_redo away.\n");
		return count < 2 ? 2 : 0;
	}
	for (number = 1; number < count; number++) {
		char *path = realpath(arguments[number], NULL);

		if (path == NULL)
			report("%s: %s", arguments[number], strerror(errno));
		failures += path == NULL || leave_path(path) != 0;
		free(path);
	}
	return failures != 0;
}
