// SPDX-License-Identifier: Apache-2.0
/* What is on the disk of a redo log: how its header, records and marks are written and read. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redo_format.h"

#define LOG_MAGIC 0x316f6465726a6f6aULL	   /* "jojredo1" */
#define RECORD_MAGIC 0x6472636572616f6aULL /* "joarecrd" */
#define CHECKSUM_SEED 0x9e3779b97f4a7c15ULL

_Static_assert(sizeof(struct log_header) <= BLOCK_BYTES, "the log's header is one block");

int write_all(int fd, const void *bytes, size_t length_bytes, uint64_t offset)
{
	while (length_bytes > 0) {
		ssize_t written = pwrite(fd, bytes, length_bytes, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? errno : EIO;
		bytes = (const char *)bytes + written;
		length_bytes -= (size_t)written;
		offset += (uint64_t)written;
	}
	return 0;
}

long read_most(int fd, void *bytes, size_t length_bytes, uint64_t offset)
{
	size_t at = 0;

	while (at < length_bytes) {
		char *rest = (char *)bytes + at;
		ssize_t got = pread(fd, rest, length_bytes - at, (off_t)(offset + at));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		at += (size_t)got;
	}
	return (long)at;
}

uint64_t checksum(const void *bytes, size_t length_bytes, uint64_t seed)
{
	const unsigned char *at = bytes;
	uint64_t sum = seed, word;

	for (; length_bytes >= 8; length_bytes -= 8, at += 8) {
		memcpy(&word, at, 8);
		sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
		sum ^= sum >> 32;
	}
	return sum;
}

static uint64_t log_checksum(const struct log_header *header)
{
	return checksum(header, offsetof(struct log_header, checksum), CHECKSUM_SEED);
}

void seal_log_header(struct log_header *header)
{
	header->magic = LOG_MAGIC;
	header->checksum = log_checksum(header);
}

static int is_log_header(const struct log_header *header)
{
	return header->magic == LOG_MAGIC && header->lost_count <= MAX_LOST &&
	       header->checksum == log_checksum(header);
}

int read_log_header(int fd, struct log_header *header)
{
	struct log_header slot;
	int number, error = ENODATA;

	for (number = 0; number < 2; number++) {
		long got = read_most(fd, &slot, sizeof(slot), (uint64_t)number * BLOCK_BYTES);

		if (got < 0)
			return (int)-got;
		if ((size_t)got < sizeof(slot) || !is_log_header(&slot) ||
		    (error == 0 && slot.generation < header->generation))
			continue;
		*header = slot;
		error = 0;
	}
	return error;
}

static uint64_t padded(uint64_t length_bytes, uint64_t unit_bytes)
{
	return (length_bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
}

uint64_t record_step(uint64_t length_bytes)
{
	return padded(length_bytes, BLOCK_BYTES);
}

/* The header is zeros until the record ends. */
void begin_record(struct record_writer *writer, int fd, uint64_t begin_offset, uint64_t end_offset,
		  unsigned char *buffer)
{
	*writer = (struct record_writer){
		.fd = fd,
		.begin_offset = begin_offset,
		.end_offset = end_offset,
		.length_bytes = sizeof(struct record_header),
		.checksum = CHECKSUM_SEED,
		.buffer = buffer,
		.used_bytes = sizeof(struct record_header),
	};
	memset(buffer, 0, sizeof(struct record_header));
}

static int has_header(const struct record_writer *writer)
{
	return writer->used_bytes == writer->length_bytes;
}

static void sum_buffer(struct record_writer *writer)
{
	size_t skip_bytes = has_header(writer) ? sizeof(struct record_header) : 0;

	writer->checksum = checksum(writer->buffer + skip_bytes, writer->used_bytes - skip_bytes,
				    writer->checksum);
}

/* Write what the buffer holds, and zeros behind it. */
static void write_buffer(struct record_writer *writer, size_t padding_bytes)
{
	uint64_t offset = writer->begin_offset + writer->length_bytes - writer->used_bytes;
	size_t length_bytes = writer->used_bytes + padding_bytes;

	if (writer->end_offset != 0 && offset + length_bytes > writer->end_offset)
		writer->error = ENOBUFS;
	if (writer->error != 0)
		return;
	memset(writer->buffer + writer->used_bytes, 0, padding_bytes);
	writer->error = write_all(writer->fd, writer->buffer, length_bytes, offset);
	writer->used_bytes = 0;
}

static void add_bytes(struct record_writer *writer, const void *bytes, size_t length_bytes)
{
	while (length_bytes > 0 && writer->error == 0) {
		size_t part_bytes = BUFFER_BYTES - writer->used_bytes;

		if (part_bytes > length_bytes)
			part_bytes = length_bytes;
		memcpy(writer->buffer + writer->used_bytes, bytes, part_bytes);
		writer->used_bytes += part_bytes;
		writer->length_bytes += part_bytes;
		bytes = (const char *)bytes + part_bytes;
		length_bytes -= part_bytes;
		if (writer->used_bytes == BUFFER_BYTES) {
			sum_buffer(writer);
			write_buffer(writer, 0);
		}
	}
}

void add_item(struct record_writer *writer, enum item_kind kind, uint64_t value, const void *bytes,
	      size_t length_bytes)
{
	static const unsigned char zeros[8];
	struct item_header item = {
		.kind = kind, .length_bytes = (uint32_t)length_bytes, .value = value};

	add_bytes(writer, &item, sizeof(item));
	add_bytes(writer, bytes, length_bytes);
	add_bytes(writer, zeros, padded(length_bytes, 8) - length_bytes);
}

/* An item whose bytes end with a name. */
static void add_named_item(struct record_writer *writer, enum item_kind kind, uint64_t value,
			   const void *begin, size_t begin_bytes, const char *name)
{
	unsigned char bytes[MAX_PAYLOAD_BYTES];
	size_t name_bytes = strnlen(name, sizeof(bytes) - begin_bytes);

	memcpy(bytes, begin, begin_bytes);
	memcpy(bytes + begin_bytes, name, name_bytes);
	add_item(writer, kind, value, bytes, begin_bytes + name_bytes);
}

void add_database(struct record_writer *writer, uint64_t id, struct file_id file,
		  uint64_t size_bytes, const char *name)
{
	struct database_item place = {.file = file, .size_bytes = size_bytes};

	add_named_item(writer, ITEM_DATABASE, id, &place, sizeof(place), name);
}

void add_coordinator(struct record_writer *writer, uint64_t transaction,
		     const struct coordinator_item *coordinator, const char *folder)
{
	add_named_item(writer, ITEM_COORDINATOR, transaction, coordinator, sizeof(*coordinator),
		       folder);
}

static uint64_t header_checksum(const struct record_header *header, uint64_t of_items)
{
	struct record_header copy = *header;

	copy.checksum = 0;
	return checksum(&copy, sizeof(copy), of_items);
}

int end_record(struct record_writer *writer, struct record_header *header)
{
	/* A full buffer was written: there is room for the padding. */
	size_t padding_bytes = record_step(writer->length_bytes) - writer->length_bytes;
	int is_one_write = has_header(writer);

	sum_buffer(writer);
	header->magic = RECORD_MAGIC;
	header->length_bytes = writer->length_bytes;
	header->reserved = 0;
	header->checksum = header_checksum(header, writer->checksum);
	if (is_one_write)
		memcpy(writer->buffer, header, sizeof(*header));
	write_buffer(writer, padding_bytes);
	if (writer->error == 0 && !is_one_write)
		writer->error = write_all(writer->fd, header, sizeof(*header),
					  writer->begin_offset);
	return writer->error;
}

/* The sum of the items of a record, read in parts. Return 0 or a negative errno. */
static int sum_items(int fd, uint64_t offset, uint64_t length_bytes, uint64_t *sum)
{
	unsigned char bytes[BLOCK_BYTES];

	*sum = CHECKSUM_SEED;
	while (length_bytes > 0) {
		size_t part_bytes = length_bytes < sizeof(bytes) ? length_bytes : sizeof(bytes);
		long got = read_most(fd, bytes, part_bytes, offset);

		if (got < 0)
			return (int)got;
		if ((size_t)got < part_bytes)
			return 0;
		*sum = checksum(bytes, part_bytes, *sum);
		offset += part_bytes;
		length_bytes -= part_bytes;
	}
	return 0;
}

int read_record_header(int fd, uint64_t offset, struct record_header *header)
{
	struct record_header got;
	struct stat status;
	uint64_t sum;
	long length_bytes = read_most(fd, &got, sizeof(got), offset);
	int error;

	if (length_bytes < 0)
		return (int)length_bytes;
	if (fstat(fd, &status) != 0)
		return -errno;
	if ((size_t)length_bytes < sizeof(got) || got.magic != RECORD_MAGIC ||
	    got.log_id != header->log_id || got.generation != header->generation ||
	    got.sequence != header->sequence || got.length_bytes < sizeof(got) ||
	    got.length_bytes % 8 != 0 || got.length_bytes > (uint64_t)status.st_size - offset)
		return 0;
	error = sum_items(fd, offset + sizeof(got), got.length_bytes - sizeof(got), &sum);
	if (error != 0)
		return error;
	if (got.checksum != header_checksum(&got, sum))
		return 0;
	*header = got;
	return 1;
}

/* Whether the payload of an item of a database ends with the name of a file. */
static int has_file_name(const struct record_reader *reader)
{
	size_t name_bytes = reader->item.length_bytes - sizeof(struct database_item);
	const unsigned char *name = reader->payload + sizeof(struct database_item);

	return reader->item.length_bytes > sizeof(struct database_item) && name_bytes <= NAME_MAX &&
	       memchr(name, 0, name_bytes) == NULL && memchr(name, '/', name_bytes) == NULL;
}

/* Whether what was read is an item. */
static int is_item(const struct record_reader *reader)
{
	const struct item_header *item = &reader->item;

	switch (item->kind) {
	case ITEM_DATABASE:
		return has_file_name(reader);
	case ITEM_BYTES:
		return item->value <= INT64_MAX - BLOCK_BYTES;
	case ITEM_COORDINATOR:
		return item->value != 0 && item->length_bytes > sizeof(struct coordinator_item);
	case ITEM_OUTCOME:
		return item->value != 0 && item->length_bytes == sizeof(uint64_t);
	default:
		return 0;
	}
}

int next_item(struct record_reader *reader)
{
	struct item_header *item = &reader->item;
	uint64_t left_bytes = reader->end_offset - reader->offset;
	long got;

	if (left_bytes == 0)
		return 0;
	if (left_bytes < sizeof(*item))
		return -EBADMSG;
	got = read_most(reader->fd, item, sizeof(*item), reader->offset);
	if (got < 0)
		return (int)got;
	left_bytes -= sizeof(*item);
	if ((size_t)got < sizeof(*item) || item->length_bytes > MAX_PAYLOAD_BYTES ||
	    padded(item->length_bytes, 8) > left_bytes)
		return -EBADMSG;
	got = read_most(reader->fd, reader->payload, item->length_bytes,
			reader->offset + sizeof(*item));
	if (got < 0)
		return (int)got;
	if ((size_t)got < item->length_bytes)
		return -EBADMSG;
	reader->payload[item->length_bytes] = 0;
	if (!is_item(reader))
		return -EBADMSG;
	reader->offset += sizeof(*item) + padded(item->length_bytes, 8);
	return 1;
}

#define VERSION_MARKED 3

static const char sqlite_magic[16] = "SQLite format 3";
static const unsigned char mark_magic[4] = {'j', 'o', 'j', '1'};

int is_sqlite_header(const unsigned char *header)
{
	return memcmp(header, sqlite_magic, sizeof(sqlite_magic)) == 0;
}

int read_mark(const unsigned char *header, uint64_t *log_id, uint64_t *database_id)
{
	const unsigned char *ids = header + MARK_IDS_OFFSET;

	if (!is_sqlite_header(header) || header[MARK_VERSIONS_OFFSET] != VERSION_MARKED ||
	    memcmp(ids + 16, mark_magic, sizeof(mark_magic)) != 0)
		return 0;
	memcpy(log_id, ids, 8);
	memcpy(database_id, ids + 8, 8);
	return 1;
}

void set_mark(unsigned char *header, uint64_t log_id, uint64_t database_id)
{
	unsigned char *ids = header + MARK_IDS_OFFSET;

	memset(header + MARK_VERSIONS_OFFSET, VERSION_MARKED, 2);
	memcpy(ids, &log_id, 8);
	memcpy(ids + 8, &database_id, 8);
	memcpy(ids + 16, mark_magic, sizeof(mark_magic));
}

void clear_mark(unsigned char *header, int version)
{
	memset(header + MARK_VERSIONS_OFFSET, version, 2);
	memset(header + MARK_IDS_OFFSET, 0, MARK_END - MARK_IDS_OFFSET);
}
