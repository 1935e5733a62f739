// SPDX-License-Identifier: Apache-2.0
/* The format of a redo log, and how its records are written and read. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redo_record.h"

#define LOG_MAGIC 0x316f6465726a6f6aULL	   /* "jojredo1" */
#define CHECKSUM_SEED 0x9e3779b97f4a7c15ULL
#define RECORD_MAGIC 0x6472636572616f6aULL /* "joarecrd" */

_Static_assert(sizeof(struct log_header) <= BLOCK_BYTES, "the log's header is one block");

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

int is_log_header(const struct log_header *header)
{
	return header->magic == LOG_MAGIC && header->lost_count <= MAX_LOST &&
	       header->checksum == log_checksum(header);
}

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

static uint64_t padded(uint64_t length_bytes, uint64_t unit_bytes)
{
	return (length_bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
}

uint64_t record_step(uint64_t length_bytes)
{
	return padded(length_bytes, BLOCK_BYTES);
}

void begin_record(struct record_writer *writer, int fd, uint64_t begin_offset, uint64_t end_offset,
		  unsigned char *buffer)
{
	writer->fd = fd;
	writer->begin_offset = begin_offset;
	writer->end_offset = end_offset;
	writer->length_bytes = sizeof(struct record_header);
	writer->checksum = CHECKSUM_SEED;
	writer->buffer = buffer;
	writer->used_bytes = sizeof(struct record_header);
	writer->has_first = 0;
	writer->error = 0;
	memset(buffer, 0, sizeof(struct record_header));
}

/* Where the buffer lies in the log. */
static uint64_t buffer_offset(const struct record_writer *writer)
{
	return writer->begin_offset + writer->length_bytes - writer->used_bytes;
}

static void sum_buffer(struct record_writer *writer)
{
	size_t skip_bytes = writer->has_first ? 0 : sizeof(struct record_header);

	writer->checksum = checksum(writer->buffer + skip_bytes, writer->used_bytes - skip_bytes,
				    writer->checksum);
}

static void empty_buffer(struct record_writer *writer)
{
	uint64_t offset = buffer_offset(writer);

	if (writer->end_offset != 0 && offset + writer->used_bytes > writer->end_offset)
		writer->error = ENOBUFS;
	if (writer->error != 0)
		return;
	sum_buffer(writer);
	if (!writer->has_first) {
		memcpy(writer->first, writer->buffer, BLOCK_BYTES);
		writer->has_first = 1;
	}
	writer->error = write_all(writer->fd, writer->buffer, writer->used_bytes, offset);
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
		if (writer->used_bytes == BUFFER_BYTES)
			empty_buffer(writer);
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

void add_database(struct record_writer *writer, uint64_t id, struct file_id file,
		  uint64_t size_bytes, const char *name)
{
	unsigned char bytes[sizeof(struct database_item) + NAME_MAX];
	struct database_item place = {.file = file, .size_bytes = size_bytes};
	size_t name_bytes = strnlen(name, NAME_MAX);

	memcpy(bytes, &place, sizeof(place));
	memcpy(bytes + sizeof(place), name, name_bytes);
	add_item(writer, ITEM_DATABASE, id, bytes, sizeof(place) + name_bytes);
}

static uint64_t header_checksum(const struct record_header *header, uint64_t of_items)
{
	struct record_header copy = *header;

	copy.checksum = 0;
	return checksum(&copy, sizeof(copy), of_items);
}

int end_record(struct record_writer *writer, struct record_header *header)
{
	uint64_t offset = buffer_offset(writer);
	size_t used_bytes = writer->used_bytes, padding_bytes;

	padding_bytes = record_step(writer->length_bytes) - writer->length_bytes;
	/* A full buffer was emptied: there is room for the padding. */
	if (writer->end_offset != 0 && offset + used_bytes + padding_bytes > writer->end_offset)
		writer->error = ENOBUFS;
	if (writer->error != 0)
		return writer->error;
	sum_buffer(writer);
	header->magic = RECORD_MAGIC;
	header->length_bytes = writer->length_bytes;
	header->reserved = 0;
	header->checksum = header_checksum(header, writer->checksum);
	memset(writer->buffer + used_bytes, 0, padding_bytes);
	memcpy(writer->has_first ? writer->first : writer->buffer, header, sizeof(*header));
	writer->error = write_all(writer->fd, writer->buffer, used_bytes + padding_bytes, offset);
	if (writer->error == 0 && writer->has_first)
		writer->error = write_all(writer->fd, writer->first, BLOCK_BYTES,
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

void begin_items(struct record_reader *reader, int fd, uint64_t offset,
		 const struct record_header *header)
{
	reader->fd = fd;
	reader->offset = offset + sizeof(*header);
	reader->end_offset = offset + header->length_bytes;
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
	if (item->kind == ITEM_DATABASE
		    ? item->length_bytes <= sizeof(struct database_item) ||
			      item->length_bytes > sizeof(struct database_item) + NAME_MAX ||
			      memchr(reader->payload + sizeof(struct database_item), 0,
				     item->length_bytes - sizeof(struct database_item)) != NULL ||
			      memchr(reader->payload + sizeof(struct database_item), '/',
				     item->length_bytes - sizeof(struct database_item)) != NULL
		    : item->kind != ITEM_BYTES || item->value > INT64_MAX - BLOCK_BYTES)
		return -EBADMSG;
	reader->offset += sizeof(*item) + padded(item->length_bytes, 8);
	return 1;
}
