// SPDX-License-Identifier: Apache-2.0
/*
 * Logs and marks of any bytes, for libFuzzer: make fuzz.
 *
 * An input is the header of a database and what a log holds. Checksums are set right where a bit of
 * the input says so, and ids where another does: else hardly an input would come past them. The log
 * is recovered as the first process does it, then the database is joined and left. Whatever the
 * bytes are: a database without a mark is not written to, no other file appears, and a recovery
 * that has succeeded leaves nothing to a second one. All files are in memory (memory_files.c).
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../redo_log.h"

#define LOG_ID 0x1122334455667788ULL
#define DATABASE_BYTES (3 * BLOCK_BYTES)

enum { SEAL_HEADER = 1, FORM_RECORDS = 2, SET_MARK = 4, SET_IDS = 8, SECOND_HEADER = 16 };

static const char *const names[] = {LOG_NAME, SHARED_NAME, "a.db", "plain.db"};
#define FOLDER "/folder"

struct input {
	const uint8_t *at;
	size_t left_bytes;
};

void report(const char *format, ...)
{
	(void)format;
}

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void take(struct input *input, void *bytes, size_t length_bytes)
{
	size_t there_bytes = length_bytes < input->left_bytes ? length_bytes : input->left_bytes;

	memset(bytes, 0, length_bytes);
	if (there_bytes > 0)
		memcpy(bytes, input->at, there_bytes);
	input->at += there_bytes;
	input->left_bytes -= there_bytes;
}

static int create(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	require(fd >= 0, name);
	return fd;
}

/* A database of three blocks, of which the header is given. */
static struct file_id write_database(const char *name, const unsigned char *header)
{
	unsigned char bytes[DATABASE_BYTES];
	struct file_id file;
	unsigned int links;
	int fd = create(name);

	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, header, HEADER_BYTES);
	require(write_all(fd, bytes, sizeof(bytes), 0) == 0, "no database");
	close(fd);
	require(read_file_id(AT_FDCWD, name, &file, &links) == 0, "no file");
	return file;
}

/* An item of a record that has its form. */
static void add_any_item(struct input *input, struct record_writer *writer,
			 const struct file_id *files)
{
	static const char *const item_names[] = {"a.db", "plain.db", LOG_NAME, "no.db"};
	struct {
		uint8_t kind, file, name, offset_bits;
		uint16_t length_bytes;
		uint64_t id, value;
	} item;
	unsigned char bytes[2 * BLOCK_BYTES];

	take(input, &item, sizeof(item));
	if (item.kind % 4 == 0) {
		struct file_id file = {.inode = item.value, .born_ns = item.id};

		if (item.file % 4 < 2)
			file = files[item.file % 4];
		add_database(writer, item.id % 4, file, item.value >> item.offset_bits % 64,
			     item_names[item.name % 4]);
		return;
	}
	if (item.name == 1) {
		struct coordinator_item coordinator = {.log_id = item.id, .log_file = files[0]};

		add_coordinator(writer, item.value, &coordinator, FOLDER);
		return;
	}
	item.length_bytes %= sizeof(bytes);
	take(input, bytes, item.length_bytes);
	if (item.name == 2) {
		add_item(writer, item.file % 8, item.value, bytes, item.length_bytes);
		return;
	}
	add_item(writer, ITEM_BYTES, item.value >> item.offset_bits % 64, bytes,
		 item.length_bytes);
}

static void write_record(struct input *input, int fd, uint64_t *offset,
			 struct record_header *header, const struct file_id *files)
{
	static unsigned char buffer[BUFFER_BYTES];
	struct record_writer writer;
	uint8_t items;

	begin_record(&writer, fd, *offset, 0, buffer);
	take(input, &items, sizeof(items));
	for (items %= 16; items > 0; items--)
		add_any_item(input, &writer, files);
	take(input, &items, sizeof(items));
	header->kind = items == 10 ? RECORD_PREPARED : items % 3;
	header->sequence++;
	require(end_record(&writer, header) == 0, "no record");
	*offset += record_step(header->length_bytes);
}

static void write_log(struct input *input, int flags, const struct file_id *files)
{
	union {
		struct log_header header;
		unsigned char bytes[BLOCK_BYTES];
	} block = {0};
	unsigned char bytes[2 * BLOCK_BYTES];
	uint64_t offset = FIRST_RECORD_OFFSET;
	struct record_header header = {0};
	uint16_t length_bytes;
	int fd = create(LOG_NAME);

	/* Of the lost ids the first eight are the input's. */
	take(input, &block, offsetof(struct log_header, lost) + 8 * sizeof(uint64_t));
	if (flags & SET_IDS)
		block.header.id = LOG_ID;
	if (flags & SEAL_HEADER) {
		block.header.lost_count %= 1000;
		seal_log_header(&block.header);
	}
	require(write_all(fd, block.bytes, BLOCK_BYTES, flags & SECOND_HEADER ? BLOCK_BYTES : 0) ==
			0, "no log");
	header.log_id = block.header.id;
	header.generation = block.header.generation;
	if (flags & FORM_RECORDS) {
		uint8_t records;

		take(input, &records, sizeof(records));
		for (records %= 8; records > 0; records--)
			write_record(input, fd, &offset, &header, files);
		offset = FIRST_RECORD_OFFSET;
	}
	/* Bytes without a form, also over records that have one. */
	while (input->left_bytes > 0) {
		take(input, &length_bytes, sizeof(length_bytes));
		length_bytes %= sizeof(bytes);
		take(input, bytes, length_bytes);
		require(write_all(fd, bytes, length_bytes, offset) == 0, "no record");
		offset += length_bytes;
	}
	close(fd);
}

/* What a file holds: 0 where it is not there. */
static uint64_t sum_of(const char *name)
{
	unsigned char bytes[BLOCK_BYTES];
	int fd = open(name, O_RDONLY);
	uint64_t sum = 0, offset = 0;
	long got;

	if (fd < 0)
		return 0;
	for (; (got = read_most(fd, bytes, sizeof(bytes), offset)) > 0; offset += (uint64_t)got) {
		memset(bytes + got, 0, sizeof(bytes) - (size_t)got);
		sum = checksum(bytes, sizeof(bytes), sum + (uint64_t)got);
	}
	close(fd);
	return sum;
}

static void join_and_leave(const unsigned char *header, struct file_id file)
{
	unsigned int number;
	struct redo_log *log;

	if (attach_log(FOLDER, NULL, &log) != 0)
		return;
	if (lock_log(log, -1) == 0) {
		if (join_database(log, "a.db", file, header, &number) == 0)
			leave_database(log, number, VERSION_ROLLBACK);
		unlock_log(log);
	}
	detach_log(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	struct input input = {bytes, length_bytes};
	unsigned char header[HEADER_BYTES], plain[HEADER_BYTES] = "SQLite format 3";
	struct file_id files[2];
	struct redo_log *log;
	uint64_t sum, plain_sum, ids[2];
	uint8_t flags;

	begin_memory_files(names, sizeof(names) / sizeof(names[0]));
	take(&input, &flags, sizeof(flags));
	take(&input, header, sizeof(header));
	if (flags & SET_MARK) {
		memcpy(header, plain, 16);
		memcpy(ids, header + MARK_IDS_OFFSET, sizeof(ids));
		set_mark(header, flags & SET_IDS ? LOG_ID : ids[0], ids[1] % 4);
	}
	files[0] = write_database("a.db", header);
	files[1] = write_database("plain.db", plain);
	plain_sum = sum_of("plain.db");
	write_log(&input, flags, files);
	if (attach_log(FOLDER, NULL, &log) == 0) {
		detach_log(log);
		sum = sum_of("a.db");
		require(attach_log(FOLDER, NULL, &log) == 0, "a second recovery fails");
		detach_log(log);
		require(sum_of("a.db") == sum, "a second recovery finds something to do");
	}
	join_and_leave(header, files[0]);
	require(sum_of("plain.db") == plain_sum, "a database without a mark was written to");
	return 0;
}
