/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark in the header of a database (https://www.sqlite.org/fileformat2.html, section 1.3) that
 * may have commits in a redo log.
 *
 * Its read and write versions, bytes 18 and 19, are 3, so that SQLite without this VFS refuses it;
 * the bytes 72 to 91, which SQLite reserves and keeps as zeros, say of which log it is, which of
 * the log's databases, and that the mark is this VFS's.
 */
#ifndef JOJ_REDO_MARK_H
#define JOJ_REDO_MARK_H

#include <stdint.h>

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
