// SPDX-License-Identifier: Apache-2.0
/*
 * What a redo log holds goes into its databases, after a power cut or the death of a process.
 *
 * Records are replayed in their order. They hold absolute bytes, and of each block that changed
 * since the last checkpoint the whole one first: whatever mixture of versions, or torn block, is on
 * the disk, the end is the same.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "redo_log.h"

/* What becomes of the bytes of a database in a record. */
enum fate {
	/* It has the mark: they are written. */
	FATE_WRITE,
	/* Its header is torn: they are written if they begin with a whole header. */
	FATE_MEND,
	FATE_SKIP,
};

struct replay {
	struct redo_log *log;
	enum record_kind kind;
	enum fate fate;
	unsigned int number;
	int fd;
	uint64_t size_bytes;
};

static void lose(struct replay *replay)
{
	struct log_entry *entry = &replay->log->shared->entries[replay->number];

	replay->fate = FATE_SKIP;
	/* A mark's image is there for a torn header alone. */
	if (replay->kind == RECORD_MARK || entry->is_lost)
		return;
	report("%s/%s has commits in " LOG_NAME ", and is not there any more or is another file: "
	       "they are dropped", replay->log->folder, entry->name);
	entry->is_lost = 1;
}

static int begin_database(struct replay *replay, const struct record_reader *reader)
{
	struct redo_log *log = replay->log;
	unsigned char header[HEADER_BYTES];
	uint64_t log_id, id, size_bytes;
	const char *name = (const char *)reader->payload + sizeof(struct database_item);
	struct database_item item;
	int error;

	memcpy(&item, reader->payload, sizeof(item));
	replay->size_bytes = item.size_bytes;
	error = log_entry(log, reader->item.value, item.file, name, &replay->number);
	if (error != 0)
		return error;
	error = database_fd(log, replay->number, &replay->fd);
	if (error == ENOENT || error == ELOOP) {
		lose(replay);
		return 0;
	}
	if (error == 0)
		error = read_header(replay->fd, header, &size_bytes);
	if (error != 0)
		return error;
	if (read_mark(header, &log_id, &id) && log_id == log->id && id == reader->item.value)
		replay->fate = FATE_WRITE;
	else if (!is_sqlite_header(header) && size_bytes > 0 && has_name(log, item.file, name))
		replay->fate = FATE_MEND;
	else
		lose(replay);
	if (replay->fate != FATE_SKIP)
		log->shared->entries[replay->number].is_logged = 1;
	return 0;
}

static int write_bytes(struct replay *replay, const struct record_reader *reader)
{
	if (replay->fate == FATE_MEND) {
		if (reader->item.value != 0 || reader->item.length_bytes < HEADER_BYTES)
			lose(replay);
		else
			replay->fate = FATE_WRITE;
	} else if (replay->kind == RECORD_MARK) {
		return 0;
	}
	if (replay->fate == FATE_SKIP)
		return 0;
	return write_all(replay->fd, reader->payload, reader->item.length_bytes,
			 reader->item.value);
}

static int end_database(const struct replay *replay)
{
	struct stat status;

	if (replay->fate != FATE_WRITE)
		return 0;
	/* Who set the mark may have died before it was durable. */
	if (replay->kind == RECORD_MARK)
		return fsync(replay->fd) == 0 ? 0 : errno;
	if (fstat(replay->fd, &status) != 0)
		return errno;
	if ((uint64_t)status.st_size == replay->size_bytes)
		return 0;
	return ftruncate(replay->fd, (off_t)replay->size_bytes) == 0 ? 0 : errno;
}

/* Another log took part in a transaction that is replayed. */
static int add_outcome(struct redo_log *log, const struct record_reader *reader)
{
	struct outcome *place;
	uint64_t key;

	memcpy(&key, reader->payload, sizeof(key));
	place = key != 0 ? find_place(log, key) : NULL;
	if (place == NULL)
		return EBADMSG;
	*place = (struct outcome){key, reader->item.value};
	return 0;
}

static void begin_reading(struct record_reader *reader, const struct redo_log *log,
			  const struct record_header *header)
{
	reader->fd = log->fd;
	reader->offset = log->shared->tail_offset + sizeof(*header);
	reader->end_offset = log->shared->tail_offset + header->length_bytes;
}

/* Replay the record at the tail, which is done with then. */
static int replay_record(struct redo_log *log, const struct record_header *header)
{
	struct replay replay = {.log = log, .kind = header->kind, .fate = FATE_SKIP};
	struct record_reader reader;
	int got, error = 0, has_database = 0;

	begin_reading(&reader, log, header);
	while (error == 0 && (got = next_item(&reader)) > 0) {
		if (reader.item.kind == ITEM_DATABASE) {
			error = end_database(&replay);
			if (error == 0)
				error = begin_database(&replay, &reader);
			has_database = 1;
		} else if (reader.item.kind == ITEM_OUTCOME) {
			error = add_outcome(log, &reader);
		} else if (reader.item.kind == ITEM_BYTES) {
			error = has_database ? write_bytes(&replay, &reader) : EBADMSG;
		}
	}
	if (error == 0)
		error = got < 0 ? -got : end_database(&replay);
	if (error == 0)
		end_append(log, header->length_bytes);
	else
		report("%s/" LOG_NAME " cannot be replayed: %s", log->folder, strerror(error));
	return error;
}

/* The header of the record at the tail, or of the one behind a record there. As
 * read_record_header().
 */
static int read_tail(const struct redo_log *log, const struct record_header *before,
		     struct record_header *header)
{
	const struct log_shared *shared = log->shared;
	uint64_t offset = shared->tail_offset;

	*header = (struct record_header){
		.log_id = log->id,
		.generation = shared->generation,
		.sequence = shared->sequence + 1,
	};
	if (before != NULL) {
		offset += record_step(before->length_bytes);
		header->sequence++;
	}
	return read_record_header(log->fd, offset, header);
}

/* What the record at the tail, which is prepared, says of its transaction. EINPROGRESS where the
 * doubt was another one.
 */
static int read_doubt(const struct redo_log *log, const struct record_header *header,
		      struct doubt *doubt)
{
	struct record_reader reader;
	int got;

	begin_reading(&reader, log, header);
	got = next_item(&reader);
	if (got < 0)
		return -got;
	if (got == 0 || reader.item.kind != ITEM_COORDINATOR)
		return EBADMSG;
	if (reader.item.value == doubt->transaction)
		return 0;
	doubt->transaction = reader.item.value;
	memcpy(&doubt->coordinator, reader.payload, sizeof(doubt->coordinator));
	strcpy(doubt->folder, (const char *)reader.payload + sizeof(doubt->coordinator));
	/* Who asks must not come to be asked. */
	return doubt->coordinator.log_id < log->id ? EINPROGRESS : EBADMSG;
}

/* The last record, at the tail, may be of a process that died before it was durable, or before
 * another log had the rest. It is not written again: that could be torn, where it is durable.
 */
static int recover_last(struct redo_log *log, const struct record_header *header,
			struct doubt *doubt)
{
	int error = 0;

	if (header->kind == RECORD_PREPARED) {
		error = read_doubt(log, header, doubt);
		if (error == 0 && !doubt->is_committed)
			return revoke_record(log);
	}
	if (error == 0)
		error = sync_log(log);
	return error == 0 ? replay_record(log, header) : error;
}

int recover_tail(struct redo_log *log, struct doubt *doubt)
{
	struct record_header header;
	int is_valid;

	if (log->shared->is_broken)
		return EIO;
	is_valid = read_tail(log, NULL, &header);
	if (is_valid > 0)
		return recover_last(log, &header, doubt);
	if (is_valid == 0)
		set_busy(log, 0);
	return -is_valid;
}

/* A file that has one of these ids from now on is a copy of before the recovery. */
static int retire_ids(struct redo_log *log)
{
	struct log_shared *shared = log->shared;
	unsigned int number;
	int error;

	if (shared->databases == 0)
		return 0;
	for (number = 0; number < shared->databases; number++)
		shared->entries[number].is_lost = 1;
	error = begin_generation(log);
	for (number = 0; number < shared->databases && error == 0; number++)
		if (getrandom(&shared->entries[number].id, sizeof(uint64_t), 0) != sizeof(uint64_t))
			error = EIO;
	return error;
}

int recover_log(struct redo_log *log, struct doubt *doubt)
{
	struct log_shared *shared = log->shared;
	struct record_header record, next;
	struct log_header header;
	int is_valid, error = read_log_header(log->fd, &header);

	if (error == ENODATA) {
		if (getrandom(&log->id, sizeof(log->id), 0) != sizeof(log->id))
			return EIO;
		return begin_generation(log);
	}
	if (error != 0)
		return error;
	log->id = header.id;
	memcpy(shared->outcomes, header.outcomes, sizeof(shared->outcomes));
	shared->generation = header.generation;
	shared->tail_offset = FIRST_RECORD_OFFSET;
	for (is_valid = read_tail(log, NULL, &record); is_valid > 0; record = next) {
		is_valid = read_tail(log, &record, &next);
		if (is_valid >= 0)
			error = is_valid > 0 ? replay_record(log, &record)
					     : recover_last(log, &record, doubt);
		if (error != 0)
			return error;
	}
	error = is_valid < 0 ? -is_valid : leave_all(log);
	return error == 0 ? retire_ids(log) : error;
}
