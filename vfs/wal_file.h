/* SPDX-License-Identifier: Apache-2.0 */
/* A write-ahead log that is filled with zeros ahead of its frames. */
#ifndef JOJ_WAL_FILE_H
#define JOJ_WAL_FILE_H

#include "lower_file.h"

/* Of a frame's header, which has 24 bytes; the WAL's own has 32 (fileformat2.html, section 4.1). */
#define WAL_HEADER_BYTES 32
#define FRAME_HEADER_BYTES 24

#define WAL_SUFFIX "-wal"
#define WAL_SUFFIX_BYTES ((int)sizeof(WAL_SUFFIX) - 1)

struct wal_file {
	struct upper_file upper;
	/* The size as this connection saw it last. Another one may have made the file longer since,
	 * or, where it truncated the WAL, shorter.
	 */
	sqlite3_int64 size_bytes;
	/* A descriptor of the same file, for fdatasync(2); -1 where there is none. */
	int sync_fd;
	/* The header that xWrite wrote last, which shows that sync_fd is of the same file. */
	sqlite3_int64 witness_offset_bytes;
	unsigned char witness[FRAME_HEADER_BYTES];
	int has_witness;
	int is_filled;
	int fdatasync_is_sound;
	const char *path;
};

extern const sqlite3_io_methods wal_file_methods;

/* Begin to be the file of this path, which SQLite keeps until the file is closed. It gets the mode
 * of its database.
 */
void wal_file_begin(struct wal_file *wal, const char *path);

/*
 * Make the WAL of this path, which no connection has open, one without frames, and keep its size:
 * zeros in place of its header, synced, and its database's mode. Return SQLITE_OK, or SQLITE_IOERR
 * where it has to be deleted: it is shorter than a header, cannot be opened, or zeros save nothing
 * on its filesystem.
 */
int wal_file_empty(const char *path);

#endif
