// SPDX-License-Identifier: Apache-2.0
/* What the transaction of a connection has written to a database, until it commits. */
#include <stdlib.h>
#include <string.h>

#include "redo_changes.h"

SQLITE_EXTENSION_INIT3

void drop_changes(struct redo_file *file)
{
	uint32_t at;

	for (at = 0; at < file->touched_count; at++)
		file->slots[file->touched[at]] = 0;
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

static int read_lower(struct redo_file *file, void *bytes, int length_bytes, sqlite3_int64 offset)
{
	int rc = pass_read(&file->upper.base, bytes, length_bytes, offset);

	return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc;
}

int read_file_header(struct redo_file *file, unsigned char *header, int *has_mark)
{
	uint64_t log_id, id;
	int rc;

	memset(header, 0, HEADER_BYTES);
	rc = read_lower(file, header, HEADER_BYTES, 0);
	*has_mark = rc == SQLITE_OK && read_mark(header, &log_id, &id);
	return rc;
}

int read_size(struct redo_file *file, sqlite3_int64 *size_bytes)
{
	unsigned char header[HEADER_BYTES];
	int rc = pass_file_size(&file->upper.base, size_bytes), has_mark;

	if (rc != SQLITE_OK || *size_bytes != HEADER_BYTES)
		return rc;
	rc = read_file_header(file, header, &has_mark);
	if (has_mark)
		*size_bytes = 0;
	return rc;
}

/* Show SQLite a header without the mark. */
static void hide_mark(unsigned char *header)
{
	uint64_t log_id, id;

	if (read_mark(header, &log_id, &id))
		clear_mark(header, VERSION_ROLLBACK);
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

int read_block(struct redo_file *file, uint32_t block, unsigned char *bytes)
{
	sqlite3_int64 slot = file->slots[block] - 1;

	return spool_read(&file->blocks, bytes, BLOCK_BYTES, slot * BLOCK_BYTES);
}

/* Make room for a slot of the block, whose number it gets. */
static int add_slot(struct redo_file *file, uint32_t block)
{
	if (block >= file->slot_count) {
		uint32_t count = (block | 1023) + 1;
		uint32_t *slots = realloc(file->slots, count * sizeof(*slots));

		if (slots == NULL)
			return SQLITE_IOERR_NOMEM;
		memset(slots + file->slot_count, 0, (count - file->slot_count) * sizeof(*slots));
		file->slots = slots;
		file->slot_count = count;
	}
	if (file->slots[block] != 0)
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
	file->slots[block] = file->touched_count;
	return SQLITE_OK;
}

/* What the transaction sees of a block. */
static int see_block(struct redo_file *file, uint32_t block, unsigned char *bytes)
{
	sqlite3_int64 offset = (sqlite3_int64)block * BLOCK_BYTES;
	sqlite3_int64 there = file->size_bytes - offset;
	int rc;

	if (block < file->slot_count && file->slots[block] != 0) {
		rc = read_block(file, block, bytes);
	} else {
		memset(bytes, 0, BLOCK_BYTES);
		rc = read_lower(file, bytes, BLOCK_BYTES, offset);
		if (block == 0)
			hide_mark(bytes);
	}
	if (there < 0)
		there = 0;
	if (there < BLOCK_BYTES)
		memset(bytes + there, 0, (size_t)(BLOCK_BYTES - there));
	return rc;
}

static int change_block(struct redo_file *file, uint32_t block, const void *bytes,
			int length_bytes, int offset_bytes)
{
	int is_new = block >= file->slot_count || file->slots[block] == 0, rc = SQLITE_OK;
	unsigned char whole[BLOCK_BYTES];

	if (length_bytes < BLOCK_BYTES)
		rc = see_block(file, block, whole);
	if (rc == SQLITE_OK)
		rc = add_slot(file, block);
	if (rc != SQLITE_OK)
		return rc;
	memcpy(whole + offset_bytes, bytes, (size_t)length_bytes);
	rc = spool_write(&file->blocks, file->lower, whole, BLOCK_BYTES,
			 ((sqlite3_int64)file->slots[block] - 1) * BLOCK_BYTES);
	/* A slot without bytes would read as zeros: the rollback that follows would commit them. */
	if (rc != SQLITE_OK && is_new) {
		file->slots[block] = 0;
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

int lay_changes_over(struct redo_file *file, unsigned char *bytes, int length_bytes,
		     sqlite3_int64 offset)
{
	sqlite3_int64 at = offset, end = offset + length_bytes, there;

	while (at < end) {
		unsigned char whole[BLOCK_BYTES];
		uint32_t block = (uint32_t)(at / BLOCK_BYTES);
		int begin = (int)(at % BLOCK_BYTES), part = BLOCK_BYTES - begin, rc;

		if (part > end - at)
			part = (int)(end - at);
		if (block < file->slot_count && file->slots[block] != 0) {
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
