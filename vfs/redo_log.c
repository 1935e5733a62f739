// SPDX-License-Identifier: Apache-2.0
/* The files of a redo log's databases, and the log's records and generations. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redo_log.h"

int read_header(int fd, unsigned char *header, uint64_t *size_bytes)
{
	struct stat status;
	long got;

	memset(header, 0, HEADER_BYTES);
	got = read_most(fd, header, HEADER_BYTES, 0);
	if (got < 0)
		return (int)-got;
	if (fstat(fd, &status) != 0)
		return errno;
	*size_bytes = (uint64_t)status.st_size;
	return 0;
}

int read_file_id(int folder_fd, const char *name, struct file_id *file, unsigned int *names)
{
	struct statx status;

	if (statx(folder_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
		  &status) != 0)
		return errno;
	if (!S_ISREG(status.stx_mode))
		return EMEDIUMTYPE;
	file->inode = status.stx_ino;
	file->born_ns = 0;
	if (status.stx_mask & STATX_BTIME)
		file->born_ns = (uint64_t)status.stx_btime.tv_sec * 1000000000 +
				status.stx_btime.tv_nsec;
	*names = status.stx_nlink;
	return 0;
}

int is_same_file(struct file_id one, struct file_id other)
{
	return one.inode == other.inode && one.born_ns == other.born_ns;
}

int has_name(const struct redo_log *log, struct file_id file, const char *name)
{
	struct file_id now;
	unsigned int names;

	return read_file_id(log->folder_fd, name, &now, &names) == 0 && is_same_file(now, file);
}

int find_name(const struct redo_log *log, struct file_id file, char *name)
{
	int fd = openat(log->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = ENOENT;
	struct dirent *each;
	DIR *folder;

	if (fd < 0)
		return errno;
	folder = fdopendir(fd);
	if (folder == NULL) {
		close(fd);
		return ENOMEM;
	}
	while (error != 0 && (each = readdir(folder)) != NULL) {
		if (each->d_ino != file.inode || !has_name(log, file, each->d_name))
			continue;
		snprintf(name, NAME_MAX + 1, "%s", each->d_name);
		error = 0;
	}
	closedir(folder);
	return error;
}

/*
 * By its inode, which a rename keeps; else by its name, where the folder was copied. Which of the
 * two it is shows its header, which the caller looks at. A log that somebody made may name the
 * log's own files: no database is there.
 */
int database_fd(struct redo_log *log, unsigned int number, int *fd)
{
	struct log_entry *entry = &log->shared->entries[number];

	if (log->fds[number] < 0) {
		if (!has_name(log, entry->file, entry->name))
			find_name(log, entry->file, entry->name);
		if (strcmp(entry->name, LOG_NAME) == 0 || strcmp(entry->name, SHARED_NAME) == 0)
			return ENOENT;
		log->fds[number] = openat(log->folder_fd, entry->name,
					  O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	}
	*fd = log->fds[number];
	return *fd < 0 ? errno : 0;
}

int log_is_busy(const struct redo_log *log)
{
	return __atomic_load_n(&log->shared->is_busy, __ATOMIC_ACQUIRE) != 0;
}

void set_busy(struct redo_log *log, uint32_t is_busy)
{
	__atomic_store_n(&log->shared->is_busy, is_busy, __ATOMIC_SEQ_CST);
}

int log_entry(struct redo_log *log, uint64_t id, struct file_id file, const char *name,
	      unsigned int *number)
{
	struct log_shared *shared = log->shared;
	struct log_entry *entry = shared->entries;

	while (entry < shared->entries + shared->databases && entry->id != id)
		entry++;
	*number = (unsigned int)(entry - shared->entries);
	if (*number == MAX_DATABASES)
		return ENFILE;
	if (*number < shared->databases)
		return 0;
	*entry = (struct log_entry){.id = id, .file = file};
	strncpy(entry->name, name, NAME_MAX);
	shared->databases++;
	return 0;
}

struct outcome *find_place(struct redo_log *log, uint64_t log_key)
{
	struct outcome *place = log->shared->outcomes;

	for (; place < log->shared->outcomes + MAX_OUTCOMES; place++)
		if (place->log_key == log_key || place->log_key == 0)
			return place;
	return NULL;
}

uint64_t log_key(const struct redo_log *log)
{
	uint64_t key = log->id ^ log->file.inode * 0x9e3779b97f4a7c15ULL;

	return key != 0 ? key : 1;
}

/* A failed sync leaves open what is on the disk, and the next one does not tell it (fsync(2)). */
int sync_log(struct redo_log *log)
{
	if (fdatasync(log->fd) == 0)
		return 0;
	report("the redo log of %s cannot be synced: %s; nothing is committed until all have "
	       "closed its databases", log->folder, strerror(errno));
	log->shared->is_broken = 1;
	return EIO;
}

int begin_generation(struct redo_log *log)
{
	struct log_shared *shared = log->shared;
	union {
		struct log_header header;
		unsigned char bytes[BLOCK_BYTES];
	} block;
	uint64_t *lost = block.header.lost;
	unsigned int number;
	int error;

	memset(&block, 0, sizeof(block));
	error = read_log_header(log->fd, &block.header);
	if (error != 0 && error != ENODATA)
		return error;
	for (number = 0; number < shared->databases; number++) {
		struct log_entry *entry = &shared->entries[number];

		if (!entry->is_lost)
			continue;
		/* The oldest one gives way: by then it has been missing for 500 others. */
		if (block.header.lost_count == MAX_LOST)
			memmove(lost, lost + 1, --block.header.lost_count * sizeof(*lost));
		lost[block.header.lost_count++] = entry->id;
		entry->is_lost = 0;
	}
	memcpy(block.header.outcomes, shared->outcomes, sizeof(shared->outcomes));
	block.header.id = log->id;
	block.header.generation = shared->generation + 1;
	seal_log_header(&block.header);
	error = write_all(log->fd, block.bytes, BLOCK_BYTES,
			  block.header.generation % 2 * BLOCK_BYTES);
	if (error == 0)
		error = sync_log(log);
	if (error != 0)
		return error;
	shared->generation++;
	shared->tail_offset = FIRST_RECORD_OFFSET;
	shared->sequence = 0;
	return 0;
}

int fill_log(struct redo_log *log)
{
	struct stat status;
	uint64_t offset;
	int error = 0;

	if (fstat(log->fd, &status) != 0)
		return errno;
	if (status.st_size >= LOG_BYTES)
		return 0;
	memset(log->buffer, 0, BUFFER_BYTES);
	for (offset = (uint64_t)status.st_size; offset < LOG_BYTES && error == 0;) {
		size_t part_bytes = LOG_BYTES - offset;

		if (part_bytes > BUFFER_BYTES)
			part_bytes = BUFFER_BYTES;
		error = write_all(log->fd, log->buffer, part_bytes, offset);
		offset += part_bytes;
	}
	if (error != 0 && ftruncate(log->fd, status.st_size) != 0)
		report("%s/" LOG_NAME " keeps zeros: %s", log->folder, strerror(errno));
	return error;
}

/* Give back what a large transaction has taken, behind all records that are there. */
static void cut_log(const struct redo_log *log)
{
	uint64_t end_offset = log->shared->tail_offset;
	struct stat status;

	if (end_offset < LOG_BYTES)
		end_offset = LOG_BYTES;
	if (fstat(log->fd, &status) == 0 && (uint64_t)status.st_size > end_offset &&
	    ftruncate(log->fd, (off_t)end_offset) != 0)
		report("%s/" LOG_NAME " stays long: %s", log->folder, strerror(errno));
}

int checkpoint_log(struct redo_log *log)
{
	struct log_shared *shared = log->shared;
	unsigned int number;
	int error, fd;

	if (shared->is_broken)
		return EIO;
	if (shared->tail_offset == FIRST_RECORD_OFFSET)
		return 0;
	for (number = 0; number < shared->databases; number++) {
		if (!shared->entries[number].is_logged)
			continue;
		error = database_fd(log, number, &fd);
		if (error == 0 && fdatasync(fd) != 0)
			error = errno;
		if (error == 0 || error == ENOENT)
			continue;
		report("%s/%s cannot be synced: %s; nothing is committed until all have closed "
		       "the databases of its folder", log->folder, shared->entries[number].name,
		       strerror(error));
		shared->is_broken = 1;
		return error;
	}
	error = begin_generation(log);
	if (error != 0)
		return error;
	for (number = 0; number < shared->databases; number++)
		shared->entries[number].is_logged = 0;
	cut_log(log);
	return 0;
}

void begin_log_record(struct redo_log *log, struct record_writer *writer)
{
	struct log_shared *shared = log->shared;
	int is_alone = shared->tail_offset == FIRST_RECORD_OFFSET;

	begin_record(writer, log->fd, shared->tail_offset, is_alone ? 0 : LOG_BYTES, log->buffer);
}

int revoke_record(struct redo_log *log)
{
	static const unsigned char zeros[BLOCK_BYTES];
	int error = write_all(log->fd, zeros, BLOCK_BYTES, log->shared->tail_offset);

	if (error == 0)
		error = sync_log(log);
	if (error != 0)
		log->shared->is_broken = 1;
	set_busy(log, 0);
	return error;
}

int append_record(struct redo_log *log, struct record_writer *writer, enum record_kind kind,
		  int must_sync)
{
	struct record_header header = {
		.log_id = log->id,
		.generation = log->shared->generation,
		.sequence = log->shared->sequence + 1,
		.kind = kind,
	};
	int error = log->shared->is_broken ? EIO : writer->error;

	if (error == 0) {
		set_busy(log, 1);
		error = end_record(writer, &header);
		if (error == 0 && must_sync)
			error = sync_log(log);
		if (error == 0)
			return 0;
		if (error == ENOBUFS)
			set_busy(log, 0);
		else
			revoke_record(log);
	}
	cut_log(log);
	return error;
}

void end_append(struct redo_log *log, uint64_t length_bytes)
{
	log->shared->tail_offset += record_step(length_bytes);
	log->shared->sequence++;
	set_busy(log, 0);
}
