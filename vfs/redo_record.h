/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of a redo log, and how its records are written and read.
 *
 * Two blocks hold the log's header, the newer generation counts. Records follow, each of whole
 * blocks: a header and items. An item of kind ITEM_DATABASE names the database that the items of
 * kind ITEM_BYTES behind it belong to. All numbers have the processor's own order of bytes: a log
 * does not leave its machine.
 */
#ifndef JOJ_REDO_RECORD_H
#define JOJ_REDO_RECORD_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_BYTES 4096
#define FIRST_RECORD_OFFSET (2 * BLOCK_BYTES)
/* What is written by one call, and held in memory of a record. */
#define BUFFER_BYTES (256 << 10)
#define MAX_PAYLOAD_BYTES BLOCK_BYTES

/* How many ids a log remembers of databases that were not to be found when it was replayed. */
#define MAX_LOST 500

struct log_header {
	uint64_t magic, id, generation, lost_count;
	uint64_t lost[MAX_LOST];
	uint64_t checksum;
};

enum record_kind {
	RECORD_COMMIT = 1,
	/* The header of a database before its mark changes: only to mend a torn one. */
	RECORD_MARK = 2,
};

struct record_header {
	uint64_t magic, log_id, generation, sequence;
	/* Of header and items, without what fills the last block. */
	uint64_t length_bytes;
	uint64_t kind;
	uint64_t checksum;
	uint64_t reserved;
};

enum item_kind {
	ITEM_DATABASE = 1,
	ITEM_BYTES = 2,
};

struct item_header {
	uint32_t kind, length_bytes;
	/* ITEM_DATABASE: its id; ITEM_BYTES: their offset in it. */
	uint64_t value;
};

/* Which file it is. A number of an inode is given again when its file is deleted; when the file was
 * born tells the two apart, on filesystems that know it (else 0).
 */
struct file_id {
	uint64_t inode, born_ns;
};

/* What an ITEM_DATABASE has before the file's name, which no zero ends. */
struct database_item {
	struct file_id file;
	uint64_t size_bytes;
};

/* Of whole words of 8 bytes; the sum of one part is the seed of the next. */
uint64_t checksum(const void *bytes, size_t length_bytes, uint64_t seed);
void seal_log_header(struct log_header *header);
int is_log_header(const struct log_header *header);

struct record_writer {
	int fd;
	uint64_t begin_offset, length_bytes, checksum;
	/* Where the log ends; a record that would pass it ends with ENOBUFS. 0: it may grow. */
	uint64_t end_offset;
	unsigned char *buffer;
	size_t used_bytes;
	/* The block of the record's header, where it has left the buffer. */
	unsigned char first[BLOCK_BYTES];
	int has_first;
	int error;
};

void begin_record(struct record_writer *writer, int fd, uint64_t begin_offset, uint64_t end_offset,
		  unsigned char *buffer);
void add_item(struct record_writer *writer, enum item_kind kind, uint64_t value, const void *bytes,
	      size_t length_bytes);
void add_database(struct record_writer *writer, uint64_t id, struct file_id file,
		  uint64_t size_bytes, const char *name);
/* Write what is left of the record, its header last. Return 0 or an errno. */
int end_record(struct record_writer *writer, struct record_header *header);

/*
 * Read the header of the record at this offset. Return 1 if the whole record is there, valid and of
 * the log, generation and sequence in header; 0 if not; or a negative errno.
 */
int read_record_header(int fd, uint64_t offset, struct record_header *header);
/* How far the next record is from the begin of one of this length. */
uint64_t record_step(uint64_t length_bytes);

struct record_reader {
	int fd;
	uint64_t offset, end_offset;
	struct item_header item;
	/* A zero ends a database's name. */
	unsigned char payload[MAX_PAYLOAD_BYTES + 8];
};

void begin_items(struct record_reader *reader, int fd, uint64_t offset,
		 const struct record_header *header);
/* Read the next item. Return 1, 0 behind the last, or a negative errno: EBADMSG for nonsense. */
int next_item(struct record_reader *reader);

int write_all(int fd, const void *bytes, size_t length_bytes, uint64_t offset);
/* Return how many bytes there are, or a negative errno. */
long read_most(int fd, void *bytes, size_t length_bytes, uint64_t offset);

#endif
