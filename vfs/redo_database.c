// SPDX-License-Identifier: Apache-2.0
/* The mark of a database of a redo log: how it is set, looked at and taken away. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "redo_log.h"

/* A journal of SQLite's own may have been deleted, or cut, and not be so on the disk: it would be
 * played over the commits in the log. And a log that is new may not have its name there.
 */
static int sync_names(const struct redo_log *log, const char *name)
{
	char journal[NAME_MAX + 16];
	int fd, error = 0;

	snprintf(journal, sizeof(journal), "%s-journal", name);
	fd = openat(log->folder_fd, journal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		error = fsync(fd) == 0 ? 0 : errno;
		close(fd);
	}
	if (error == 0 && fsync(log->folder_fd) != 0)
		error = errno;
	return error;
}

/* Write a header with another mark. No journal of SQLite's covers that write, which may be torn: an
 * image of the header's block is in the log before.
 */
static int write_header(struct redo_log *log, unsigned int number, int fd,
			const unsigned char *image, size_t image_bytes)
{
	struct log_shared *shared = log->shared;
	struct log_entry *entry = &shared->entries[number];
	struct record_writer writer;
	int error;

	if (shared->tail_offset + 4 * BLOCK_BYTES > LOG_BYTES) {
		error = checkpoint_log(log);
		if (error != 0)
			return error;
	}
	begin_log_record(log, &writer);
	add_database(&writer, entry->id, entry->file, 0, entry->name);
	add_item(&writer, ITEM_BYTES, 0, image, image_bytes);
	error = append_record(log, &writer, RECORD_MARK, 1);
	if (error != 0)
		return error;
	entry->is_logged = 1;
	error = write_all(fd, image, HEADER_BYTES, 0);
	if (error == 0 && fsync(fd) != 0)
		error = errno;
	/* A mark that may be on the disk or not is one that the next one sets or takes again. */
	if (error != 0)
		shared->is_broken = 1;
	end_append(log, writer.length_bytes);
	return error;
}

static int is_mark_of(const struct redo_log *log, unsigned int number, uint64_t log_id, uint64_t id)
{
	return log_id == log->id && id == log->shared->entries[number].id;
}

/* The entry of the file of this name, and its descriptor. */
static int begin_entry(struct redo_log *log, const char *name, struct file_id file,
		       unsigned int *number, int *fd)
{
	struct log_shared *shared = log->shared;
	struct stat status;
	struct file_id now;
	unsigned int names;
	uint64_t id;
	int error = read_file_id(log->folder_fd, name, &now, &names);

	if (error != 0 || !is_same_file(now, file))
		return EXDEV;
	if (names != 1)
		return EMLINK;
	for (*number = 0; *number < shared->databases; (*number)++)
		if (is_same_file(shared->entries[*number].file, file))
			break;
	if (*number == shared->databases) {
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			return EIO;
		error = log_entry(log, id, file, name, number);
	}
	if (error == 0)
		error = database_fd(log, *number, fd);
	if (error == 0 && fstat(*fd, &status) != 0)
		error = errno;
	if (error != 0)
		return error;
	return status.st_ino == file.inode ? 0 : EXDEV;
}

int join_database(struct redo_log *log, const char *name, struct file_id file,
		  const unsigned char *header, unsigned int *number)
{
	char other[NAME_MAX + 1];
	struct log_entry *entry;
	struct log_header head;
	uint64_t log_id, id, at;
	int error;

	if (!read_mark(header, &log_id, &id) || log_id != log->id)
		return EMEDIUMTYPE;
	error = read_log_header(log->fd, &head);
	if (error != 0)
		return error;
	for (at = 0; at < head.lost_count; at++)
		if (head.lost[at] == id)
			return EKEYEXPIRED;
	error = log_entry(log, id, file, name, number);
	if (error != 0)
		return error;
	entry = &log->shared->entries[*number];
	if (is_same_file(entry->file, file))
		return 0;
	if (has_name(log, entry->file, entry->name) || find_name(log, entry->file, other) == 0)
		return EEXIST;
	return EMEDIUMTYPE;
}

int mark_database(struct redo_log *log, const char *name, struct file_id file,
		  const unsigned char *first_page, unsigned int *number)
{
	unsigned char image[BLOCK_BYTES] = {0};
	uint64_t log_id, id;
	int fd, error = begin_entry(log, name, file, number, &fd);
	long got;

	if (error != 0)
		return error;
	got = read_most(fd, image, sizeof(image), 0);
	if (got < 0)
		return (int)-got;
	if (read_mark(image, &log_id, &id))
		return is_mark_of(log, *number, log_id, id) ? 0 : EMEDIUMTYPE;
	if (got == 0 && first_page != NULL) {
		memcpy(image, first_page, HEADER_BYTES);
		/* Its number of pages, and the first page of the freelist. */
		memset(image + 28, 0, 8);
		got = HEADER_BYTES;
	}
	if (got < HEADER_BYTES || !is_sqlite_header(image))
		return EMEDIUMTYPE;
	error = fill_log(log);
	/* Where a filesystem knows no births, older records may be of a file with this inode. */
	if (error == 0 && log->shared->entries[*number].is_logged)
		error = checkpoint_log(log);
	if (error == 0)
		error = sync_names(log, name);
	if (error != 0)
		return error;
	set_mark(image, log->id, log->shared->entries[*number].id);
	return write_header(log, *number, fd, image, (size_t)got);
}

/* Take the mark away. The log has to be empty. */
static int unmark_database(struct redo_log *log, unsigned int number, int version)
{
	unsigned char image[BLOCK_BYTES] = {0};
	uint64_t log_id, id;
	int fd, error = database_fd(log, number, &fd);
	long got;

	if (error != 0)
		return error == ENOENT ? 0 : error;
	got = read_most(fd, image, sizeof(image), 0);
	if (got < 0)
		return (int)-got;
	if (!read_mark(image, &log_id, &id) || !is_mark_of(log, number, log_id, id))
		return 0;
	/* It has no pages. */
	if (got == HEADER_BYTES)
		return ftruncate(fd, 0) == 0 && fsync(fd) == 0 ? 0 : errno;
	clear_mark(image, version);
	return write_header(log, number, fd, image, (size_t)got);
}

static int leave_range(struct redo_log *log, unsigned int begin, unsigned int end, int version)
{
	int error = checkpoint_log(log);

	for (; begin < end && error == 0; begin++)
		error = unmark_database(log, begin, version);
	/* The image must not outlive the mark: it would go over what has the name later. */
	return error == 0 ? checkpoint_log(log) : error;
}

int leave_database(struct redo_log *log, unsigned int number, int version)
{
	return leave_range(log, number, number + 1, version);
}

int leave_all(struct redo_log *log)
{
	int error = leave_range(log, 0, log->shared->databases, VERSION_ROLLBACK);

	if (error != 0)
		report("the databases of %s keep their marks: %s", log->folder, strerror(error));
	return error;
}
