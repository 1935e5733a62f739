// SPDX-License-Identifier: Apache-2.0
/* The records of a redo log, and its generations. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redo_log.h"
#include "redo_place.h"

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
	unsigned int at;

	for (at = 0; at < shared->databases; at++)
		if (shared->entries[at].id == id)
			break;
	*number = at;
	if (at == MAX_DATABASES)
		return ENFILE;
	if (at < shared->databases)
		return 0;
	memset(&shared->entries[at], 0, sizeof(shared->entries[at]));
	shared->entries[at].id = id;
	shared->entries[at].file = file;
	strncpy(shared->entries[at].name, name, NAME_MAX);
	shared->databases = at + 1;
	return 0;
}

int read_log_header(const struct redo_log *log, struct log_header *header)
{
	struct log_header slot;
	int number, found = 0;

	for (number = 0; number < 2; number++) {
		long got = read_most(log->fd, &slot, sizeof(slot), (uint64_t)number * BLOCK_BYTES);

		if (got < 0)
			return (int)-got;
		if ((size_t)got < sizeof(slot) || !is_log_header(&slot) ||
		    (found && slot.generation < header->generation))
			continue;
		*header = slot;
		found = 1;
	}
	return found ? 0 : ENODATA;
}

/* A failed sync leaves open what is on the disk, and the next one does not tell it (fsync(2)). */
static int sync_log(struct redo_log *log)
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
	} block = {.bytes = {0}};
	unsigned int number;
	int error = read_log_header(log, &block.header);

	if (error == ENODATA)
		memset(&block, 0, sizeof(block));
	else if (error != 0)
		return error;
	for (number = 0; number < shared->databases; number++) {
		struct log_entry *entry = &shared->entries[number];

		/* The oldest one gives way: by then it has been missing for 500 others. */
		if (entry->is_lost)
			block.header.lost[block.header.lost_count++ % MAX_LOST] = entry->id;
		if (block.header.lost_count > MAX_LOST)
			block.header.lost_count = MAX_LOST;
		entry->is_lost = 0;
	}
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
		if (error == ENOENT)
			continue;
		if (error == 0 && fdatasync(fd) != 0)
			error = errno;
		if (error == 0)
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
	struct log_shared *shared = log->shared;
	struct record_header header = {
		.log_id = log->id,
		.generation = shared->generation,
		.sequence = shared->sequence + 1,
		.kind = kind,
	};
	int error = shared->is_broken ? EIO : writer->error;

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
