// SPDX-License-Identifier: Apache-2.0
/* What the transaction of a connection has written to a database, until it commits. */
#include <stdlib.h>

#include "redo_file.h"

SQLITE_EXTENSION_INIT3

void drop_changes(struct redo_file *file)
{
	uint32_t at;

	for (at = 0; at < file->touched_count; at++)
		file->states[file->touched[at]].slot = 0;
	file->touched_count = 0;
	file->is_dirty = 0;
	spool_free(&file->blocks);
}

void discard_transaction(struct redo_file *file)
{
	drop_changes(file);
	file->is_in_transaction = 0;
	file->must_sync = 0;
	spool_free(&file->journal);
}

int read_file_header(struct redo_file *file, unsigned char *header, int *has_mark)
{
	uint64_t log_id, id;
	int rc;

	memset(header, 0, HEADER_BYTES);
	rc = LOWER(file, xRead, header, HEADER_BYTES, 0);
	if (rc == SQLITE_IOERR_SHORT_READ)
		rc = SQLITE_OK;
	*has_mark = rc == SQLITE_OK && read_mark(header, &log_id, &id);
	return rc;
}

int read_size(struct redo_file *file, sqlite3_int64 *size_bytes)
{
	unsigned char header[HEADER_BYTES];
	int rc = LOWER(file, xFileSize, size_bytes), has_mark;

	if (rc != SQLITE_OK || *size_bytes != HEADER_BYTES)
		return rc;
	rc = read_file_header(file, header, &has_mark);
	if (has_mark)
		*size_bytes = 0;
	return rc;
}

/* Hide the mark in what was read of the header. */
static int hide_mark(struct redo_file *file, unsigned char *bytes, int length_bytes,
		     sqlite3_int64 offset)
{
	unsigned char header[HEADER_BYTES];
	int has_mark, rc = read_file_header(file, header, &has_mark);
	sqlite3_int64 at, size_bytes;

	if (rc == SQLITE_OK && has_mark)
		rc = LOWER(file, xFileSize, &size_bytes);
	if (rc != SQLITE_OK || !has_mark)
		return rc;
	if (size_bytes == HEADER_BYTES) {
		memset(bytes, 0, (size_t)length_bytes);
		return SQLITE_IOERR_SHORT_READ;
	}
	clear_mark(header, VERSION_ROLLBACK);
	for (at = offset; at < offset + length_bytes && at < HEADER_BYTES; at++)
		bytes[at - offset] = header[at];
	return SQLITE_OK;
}

/* Whether these bytes have a part of the mark. */
static int has_mark_bytes(int length_bytes, sqlite3_int64 offset)
{
	return offset < MARK_END && offset + length_bytes > MARK_VERSIONS_OFFSET &&
	       !(offset >= MARK_VERSIONS_OFFSET + 2 && offset + length_bytes <= MARK_IDS_OFFSET);
}

static int has_slot(const struct redo_file *file, uint32_t block)
{
	return block < file->state_count && file->states[block].slot != 0;
}

int read_block(struct redo_file *file, uint32_t block, unsigned char *bytes)
{
	sqlite3_int64 slot = file->states[block].slot - 1;

	return spool_read(&file->blocks, bytes, BLOCK_BYTES, slot * BLOCK_BYTES);
}

size_t block_bytes(const struct redo_file *file, uint32_t block)
{
	sqlite3_int64 left = file->size_bytes - (sqlite3_int64)block * BLOCK_BYTES;

	return left < 0 ? 0 : left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
}

/* Put what the transaction has written over what was read. */
static int lay_changes_over(struct redo_file *file, unsigned char *bytes, int length_bytes,
			    sqlite3_int64 offset)
{
	sqlite3_int64 at = offset, end = offset + length_bytes, there;
	unsigned char whole[BLOCK_BYTES];

	while (at < end) {
		uint32_t block = (uint32_t)(at / BLOCK_BYTES);
		int begin = (int)(at % BLOCK_BYTES), part = BLOCK_BYTES - begin, rc;

		if (part > end - at)
			part = (int)(end - at);
		if (has_slot(file, block)) {
			rc = read_block(file, block, whole);
			if (rc != SQLITE_OK)
				return rc;
			memcpy(bytes + (at - offset), whole + begin, (size_t)part);
		}
		at += part;
	}
	if (end <= file->size_bytes)
		return SQLITE_OK;
	there = file->size_bytes > offset ? file->size_bytes - offset : 0;
	memset(bytes + there, 0, (size_t)(length_bytes - there));
	return SQLITE_IOERR_SHORT_READ;
}

int read_changed(struct redo_file *file, void *bytes, int length_bytes, sqlite3_int64 offset)
{
	int rc = LOWER(file, xRead, bytes, length_bytes, offset), hidden = SQLITE_OK;

	if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
		return rc;
	if (has_mark_bytes(length_bytes, offset))
		hidden = hide_mark(file, bytes, length_bytes, offset);
	if (hidden != SQLITE_OK)
		rc = hidden;
	if (!file->is_dirty || (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ))
		return rc;
	return lay_changes_over(file, bytes, length_bytes, offset);
}

static int begin_changes(struct redo_file *file)
{
	int rc;

	if (file->is_dirty)
		return SQLITE_OK;
	rc = read_size(file, &file->size_bytes);
	if (rc == SQLITE_OK)
		file->is_dirty = 1;
	return rc;
}

/* Make room for a slot of the block, whose number it gets. */
static int add_slot(struct redo_file *file, uint32_t block)
{
	if (block >= file->state_count) {
		uint32_t old_count = file->state_count, count = (block | 1023) + 1;
		struct block_state *states = realloc(file->states, count * sizeof(*states));

		if (states == NULL)
			return SQLITE_IOERR_NOMEM;
		memset(states + old_count, 0, (count - old_count) * sizeof(*states));
		file->states = states;
		file->state_count = count;
	}
	if (file->states[block].slot != 0)
		return SQLITE_OK;
	if (file->touched_count == file->touched_room) {
		uint32_t room = file->touched_room * 2 + 64;
		uint32_t *touched = realloc(file->touched, room * sizeof(*touched));

		if (touched == NULL)
			return SQLITE_IOERR_NOMEM;
		file->touched = touched;
		file->touched_room = room;
	}
	file->touched[file->touched_count++] = block;
	file->states[block].slot = file->touched_count;
	return SQLITE_OK;
}

static int change_block(struct redo_file *file, uint32_t block, const void *bytes,
			int length_bytes, int offset_bytes)
{
	int is_new = !has_slot(file, block), rc = SQLITE_OK;
	unsigned char whole[BLOCK_BYTES];

	if (length_bytes < BLOCK_BYTES)
		rc = read_changed(file, whole, BLOCK_BYTES, (sqlite3_int64)block * BLOCK_BYTES);
	if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ)
		rc = add_slot(file, block);
	if (rc != SQLITE_OK)
		return rc;
	memcpy(whole + offset_bytes, bytes, (size_t)length_bytes);
	rc = spool_write(&file->blocks, whole, BLOCK_BYTES,
			 ((sqlite3_int64)file->states[block].slot - 1) * BLOCK_BYTES);
	/* A slot without bytes would read as zeros: the rollback that follows would commit them. */
	if (rc != SQLITE_OK && is_new) {
		file->states[block].slot = 0;
		file->touched_count--;
	}
	return rc;
}

int add_changes(struct redo_file *file, const void *bytes, int length_bytes, sqlite3_int64 offset)
{
	sqlite3_int64 at = offset, end = offset + length_bytes;
	int rc = end <= MAX_DATABASE_BYTES ? begin_changes(file) : SQLITE_FULL;

	while (rc == SQLITE_OK && at < end) {
		int begin = (int)(at % BLOCK_BYTES), part = BLOCK_BYTES - begin;

		if (part > end - at)
			part = (int)(end - at);
		rc = change_block(file, (uint32_t)(at / BLOCK_BYTES),
				  (const char *)bytes + (at - offset), part, begin);
		at += part;
		if (rc == SQLITE_OK && at > file->size_bytes)
			file->size_bytes = at;
	}
	return rc;
}

int cut_changes(struct redo_file *file, sqlite3_int64 size_bytes)
{
	static const unsigned char zeros[BLOCK_BYTES];
	int rc = begin_changes(file), rest = (int)(size_bytes % BLOCK_BYTES);
	uint32_t at;

	/* Where the file grows again, zeros are behind its old end. */
	if (rc == SQLITE_OK && size_bytes < file->size_bytes && rest != 0)
		rc = change_block(file, (uint32_t)(size_bytes / BLOCK_BYTES), zeros,
				  BLOCK_BYTES - rest, rest);
	for (at = 0; at < file->touched_count && rc == SQLITE_OK; at++)
		if ((sqlite3_int64)file->touched[at] * BLOCK_BYTES >= size_bytes)
			rc = change_block(file, file->touched[at], zeros, BLOCK_BYTES, 0);
	if (rc == SQLITE_OK)
		file->size_bytes = size_bytes;
	return rc;
}
