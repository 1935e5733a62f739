/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on the disk of a redo log: its header and records, and the marks of its databases.
 *
 * Two blocks hold the log's header, the newer generation counts. Records follow, each of whole
 * blocks: a header and items. An item of kind ITEM_DATABASE names the database that the items of
 * kind ITEM_BYTES behind it belong to; the other kinds are of transactions over several logs
 * (redo_commit.c). All numbers have the processor's own order of bytes: a log does not leave its
 * machine.
 *
 * A mark lies in the header of a database (https://www.sqlite.org/fileformat2.html, section 1.3)
 * that may have commits in a log. Its read and write versions, bytes 18 and 19, are 3, so that
 * SQLite without this VFS refuses it; the bytes 72 to 91, which SQLite reserves and keeps as zeros,
 * say of which log it is, which of the log's databases, and that the mark is this VFS's.
 */
#ifndef JOJ_REDO_FORMAT_H
#define JOJ_REDO_FORMAT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_BYTES 4096
#define FIRST_RECORD_OFFSET (2 * BLOCK_BYTES)
/* What is written by one call, and held in memory of a record. */
#define BUFFER_BYTES (256 << 10)
/* A block, or the path of a folder and what an item has before it. */
#define MAX_PAYLOAD_BYTES (BLOCK_BYTES + 64)

/* How many ids a log remembers of databases that were not to be found when it was replayed. */
#define MAX_LOST 372
/* How many other logs have an outcome in the log that coordinates them. */
#define MAX_OUTCOMES 64

/* The last transaction that was committed over this log, the coordinator, and another one. A key of
 * 0 is an empty place.
 */
struct outcome {
	uint64_t log_key, transaction;
};

struct log_header {
	uint64_t magic, id, generation, lost_count;
	uint64_t lost[MAX_LOST];
	struct outcome outcomes[MAX_OUTCOMES];
	uint64_t checksum;
};

enum record_kind {
	RECORD_COMMIT = 1,
	/* The header of a database before its mark changes: only to mend a torn one. */
	RECORD_MARK = 2,
	/* A commit if the coordinator has it too; its first item is an ITEM_COORDINATOR. */
	RECORD_PREPARED = 3,
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
	ITEM_COORDINATOR = 3,
	/* In the coordinator's record: the key of a log that has the transaction prepared. */
	ITEM_OUTCOME = 4,
};

struct item_header {
	uint32_t kind, length_bytes;
	/* ITEM_DATABASE: its id; ITEM_BYTES: their offset in it; else the transaction, which is not
	 * 0.
	 */
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

/* What an ITEM_COORDINATOR has before the path of the folder, which no zero ends. */
struct coordinator_item {
	uint64_t log_id;
	struct file_id log_file;
	/* What it knows this log by, and which transaction it knew of it before; this one where no
	 * order is kept on the disk.
	 */
	uint64_t log_key, previous;
};

int write_all(int fd, const void *bytes, size_t length_bytes, uint64_t offset);
/* Return how many bytes there are, or a negative errno. */
long read_most(int fd, void *bytes, size_t length_bytes, uint64_t offset);
/* Of whole words of 8 bytes; the sum of one part is the seed of the next. */
uint64_t checksum(const void *bytes, size_t length_bytes, uint64_t seed);

void seal_log_header(struct log_header *header);
/* The newer header of a log; ENODATA where it has none. */
int read_log_header(int fd, struct log_header *header);

struct record_writer {
	int fd;
	uint64_t begin_offset, length_bytes, checksum;
	/* Where the log ends; a record that would pass it ends with ENOBUFS. 0: it may grow. */
	uint64_t end_offset;
	unsigned char *buffer;
	size_t used_bytes;
	int error;
};

void begin_record(struct record_writer *writer, int fd, uint64_t begin_offset, uint64_t end_offset,
		  unsigned char *buffer);
void add_item(struct record_writer *writer, enum item_kind kind, uint64_t value, const void *bytes,
	      size_t length_bytes);
void add_database(struct record_writer *writer, uint64_t id, struct file_id file,
		  uint64_t size_bytes, const char *name);
void add_coordinator(struct record_writer *writer, uint64_t transaction,
		     const struct coordinator_item *coordinator, const char *folder);
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
	/* A zero ends a database's name, and a folder's path. */
	unsigned char payload[MAX_PAYLOAD_BYTES + 8];
};

/* Read the next item. Return 1, 0 behind the last, or a negative errno: EBADMSG for nonsense. */
int next_item(struct record_reader *reader);

#define HEADER_BYTES 100
/* Where the parts begin and end that a mark changes. */
#define MARK_VERSIONS_OFFSET 18
#define MARK_IDS_OFFSET 72
#define MARK_END 92

#define VERSION_ROLLBACK 1
#define VERSION_WAL 2

/* Whether these 100 bytes are the header of a database that is not encrypted. */
int is_sqlite_header(const unsigned char *header);
/* Whether a header has a mark; where it has one, the ids get those in it. */
int read_mark(const unsigned char *header, uint64_t *log_id, uint64_t *database_id);
void set_mark(unsigned char *header, uint64_t log_id, uint64_t database_id);
void clear_mark(unsigned char *header, int version);

#endif
