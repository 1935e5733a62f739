// SPDX-License-Identifier: Apache-2.0
/* Bytes that are kept until a transaction ends. */
#include "redo_file.h"

SQLITE_EXTENSION_INIT3

#define FIRST_BYTES (64 << 10)
#define COPY_BYTES 4096
/* What a journal's header has at least: the smallest sector that SQLite knows (pager.c). */
#define JOURNAL_HEADER_BYTES 512

/* How many of the bytes are in memory. */
static int part_in_memory(int length_bytes, sqlite3_int64 offset_bytes)
{
	if (offset_bytes >= SPOOL_BYTES)
		return 0;
	if (offset_bytes + length_bytes <= SPOOL_BYTES)
		return length_bytes;
	return (int)(SPOOL_BYTES - offset_bytes);
}

static int grow_memory(struct spool *spool, sqlite3_int64 end_bytes)
{
	sqlite3_int64 bytes = spool->memory_bytes < FIRST_BYTES ? FIRST_BYTES : spool->memory_bytes;
	unsigned char *memory;

	while (bytes < end_bytes)
		bytes *= 2;
	if (bytes > SPOOL_BYTES)
		bytes = SPOOL_BYTES;
	memory = sqlite3_realloc64(spool->memory, (sqlite3_uint64)bytes);
	if (memory == NULL)
		return SQLITE_IOERR_NOMEM;
	spool->memory = memory;
	spool->memory_bytes = bytes;
	return SQLITE_OK;
}

static void close_file(sqlite3_file *file)
{
	/* SQLite closes a file that has methods, even where it could not be opened. */
	if (file->pMethods != NULL)
		file->pMethods->xClose(file);
	sqlite3_free(file);
}

static int open_file(const char *path, int flags, sqlite3_file **file)
{
	sqlite3_vfs *lower = lower_vfs(&redo_vfs);
	int rc;

	*file = sqlite3_malloc(lower->szOsFile);
	if (*file == NULL)
		return SQLITE_IOERR_NOMEM;
	memset(*file, 0, (size_t)lower->szOsFile);
	flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	rc = lower->xOpen(lower, path, *file, flags, &flags);
	if (rc == SQLITE_OK)
		return rc;
	close_file(*file);
	*file = NULL;
	return SQLITE_IOERR_WRITE;
}

static int write_part(struct spool *spool, const void *bytes, int length_bytes,
		      sqlite3_int64 offset_bytes)
{
	int here = part_in_memory(length_bytes, offset_bytes), rc = SQLITE_OK;

	if (here > 0 && offset_bytes + here > spool->memory_bytes)
		rc = grow_memory(spool, offset_bytes + here);
	if (rc == SQLITE_OK && here > 0)
		memcpy(spool->memory + offset_bytes, bytes, (size_t)here);
	if (rc == SQLITE_OK && here < length_bytes && spool->rest == NULL)
		rc = open_file(NULL, SQLITE_OPEN_EXCLUSIVE | SQLITE_OPEN_DELETEONCLOSE |
			       SQLITE_OPEN_TEMP_JOURNAL, &spool->rest);
	if (rc == SQLITE_OK && here < length_bytes)
		rc = spool->rest->pMethods->xWrite(spool->rest, (const char *)bytes + here,
						   length_bytes - here,
						   offset_bytes + here - SPOOL_BYTES);
	if (rc == SQLITE_OK && offset_bytes + length_bytes > spool->size_bytes)
		spool->size_bytes = offset_bytes + length_bytes;
	return rc;
}

int spool_write(struct spool *spool, const void *bytes, int length_bytes,
		sqlite3_int64 offset_bytes)
{
	static const unsigned char zeros[4096];
	int rc = SQLITE_OK;

	/* What was there before the spool was cut must not be seen in a hole. */
	while (rc == SQLITE_OK && spool->size_bytes < offset_bytes) {
		sqlite3_int64 gap_bytes = offset_bytes - spool->size_bytes;

		if (gap_bytes > (sqlite3_int64)sizeof(zeros))
			gap_bytes = sizeof(zeros);
		rc = write_part(spool, zeros, (int)gap_bytes, spool->size_bytes);
	}
	if (rc != SQLITE_OK)
		return rc;
	return write_part(spool, bytes, length_bytes, offset_bytes);
}

int spool_read(const struct spool *spool, void *bytes, int length_bytes, sqlite3_int64 offset_bytes)
{
	sqlite3_int64 there_bytes = spool->size_bytes - offset_bytes;
	int here;

	if (there_bytes < length_bytes) {
		if (there_bytes < 0)
			there_bytes = 0;
		memset((char *)bytes + there_bytes, 0, (size_t)(length_bytes - there_bytes));
		length_bytes = (int)there_bytes;
	}
	here = part_in_memory(length_bytes, offset_bytes);
	if (here > 0)
		memcpy(bytes, spool->memory + offset_bytes, (size_t)here);
	if (here == length_bytes)
		return SQLITE_OK;
	return spool->rest->pMethods->xRead(spool->rest, (char *)bytes + here, length_bytes - here,
					    offset_bytes + here - SPOOL_BYTES);
}

void spool_cut(struct spool *spool, sqlite3_int64 size_bytes)
{
	if (size_bytes < spool->size_bytes)
		spool->size_bytes = size_bytes;
}

/* Copy the bytes from one offset on until another one, and sync them. */
static int copy_part(const struct spool *spool, sqlite3_file *file, sqlite3_int64 offset,
		     sqlite3_int64 end)
{
	unsigned char bytes[COPY_BYTES];
	int rc = SQLITE_OK;

	for (; offset < end && rc == SQLITE_OK; offset += COPY_BYTES) {
		int part = end - offset < COPY_BYTES ? (int)(end - offset) : COPY_BYTES;

		rc = spool_read(spool, bytes, part, offset);
		if (rc == SQLITE_OK)
			rc = file->pMethods->xWrite(file, bytes, part, offset);
	}
	/* The first sync of a new journal makes its name durable too (os_unix.c). */
	return rc == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : rc;
}

int spool_copy(const struct spool *spool, const char *path, int flags)
{
	sqlite3_int64 first_bytes = spool->size_bytes;
	sqlite3_file *file;
	int rc = open_file(path, flags, &file);

	if (rc != SQLITE_OK)
		return rc;
	rc = file->pMethods->xTruncate(file, 0);
	/* A journal is one by its header, which says how many pages it has: they are on the disk
	 * before. The sum that each of them has is of every 200th byte alone (pager.c).
	 */
	if (rc == SQLITE_OK && first_bytes > JOURNAL_HEADER_BYTES) {
		rc = copy_part(spool, file, JOURNAL_HEADER_BYTES, spool->size_bytes);
		first_bytes = JOURNAL_HEADER_BYTES;
	}
	if (rc == SQLITE_OK)
		rc = copy_part(spool, file, 0, first_bytes);
	close_file(file);
	return rc == SQLITE_OK || rc == SQLITE_FULL ? rc : SQLITE_IOERR_WRITE;
}

void spool_free(struct spool *spool)
{
	if (spool->rest != NULL)
		close_file(spool->rest);
	sqlite3_free(spool->memory);
	memset(spool, 0, sizeof(*spool));
}
