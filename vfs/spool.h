/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are kept until a transaction ends: in memory, and what is too much in a file of
 * SQLite's folder for temporary files, which has no name and is never synced.
 */
#ifndef JOJ_SPOOL_H
#define JOJ_SPOOL_H

#include "lower_file.h"

/* What a spool has in memory; a connection has two, for its journal and for its pages. */
#ifndef SPOOL_BYTES
#define SPOOL_BYTES (32 << 20)
#endif

struct spool {
	unsigned char *memory;
	sqlite3_int64 memory_bytes, size_bytes;
	sqlite3_file *rest;
};

/* These return SQLite's result codes. A read behind the end gives zeros, as a hole does. */
int spool_write(struct spool *spool, sqlite3_vfs *lower, const void *bytes, int length_bytes,
		sqlite3_int64 offset_bytes);
int spool_read(const struct spool *spool, void *bytes, int length_bytes,
	       sqlite3_int64 offset_bytes);
void spool_cut(struct spool *spool, sqlite3_int64 size_bytes);
/* A copy as a file, synced; the header of a journal after all else. */
int spool_copy(const struct spool *spool, sqlite3_vfs *lower, const char *path, int flags);
/* Give memory and file back. */
void spool_free(struct spool *spool);

#endif
