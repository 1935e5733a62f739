/* SPDX-License-Identifier: Apache-2.0 */
/* What the transaction of a connection has written to a database, until it commits. */
#ifndef JOJ_REDO_CHANGES_H
#define JOJ_REDO_CHANGES_H

#include "redo_file.h"

/* A longer database keeps SQLite's own way: what is changed is counted in blocks by 32 bits, of
 * which each has four bytes of memory up to the last one that is written to.
 */
#define MAX_DATABASE_BYTES (1LL << 43)

/* Whether the file has a mark, by its header. */
int read_file_header(struct redo_file *file, unsigned char *header, int *has_mark);
/* The size of the file; a header alone, with a mark, is a database without pages. */
int read_size(struct redo_file *file, sqlite3_int64 *size_bytes);

int add_changes(struct redo_file *file, const void *bytes, int length_bytes, sqlite3_int64 offset);
/* The transaction changes the size of the file. */
int cut_changes(struct redo_file *file, sqlite3_int64 size_bytes);
/* Put what the transaction has written over what was read. */
int lay_changes_over(struct redo_file *file, unsigned char *bytes, int length_bytes,
		     sqlite3_int64 offset);
/* A block that it has written. */
int read_block(struct redo_file *file, uint32_t block, unsigned char *bytes);
/* Forget what the transaction has written. */
void drop_changes(struct redo_file *file);
/* Forget its journal too: it has ended. */
void discard_transaction(struct redo_file *file);

#endif
