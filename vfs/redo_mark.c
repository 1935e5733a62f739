// SPDX-License-Identifier: Apache-2.0
/* The mark in the header of a database that may have commits in a redo log. */
#include <string.h>

#include "redo_mark.h"

#define VERSION_MARKED 3
#define IDS_BYTES (MARK_END - MARK_IDS_OFFSET)

static const char magic[16] = "SQLite format 3";
static const unsigned char mark_magic[4] = {'j', 'o', 'j', '1'};

int is_sqlite_header(const unsigned char *header)
{
	return memcmp(header, magic, sizeof(magic)) == 0;
}

int read_mark(const unsigned char *header, uint64_t *log_id, uint64_t *database_id)
{
	const unsigned char *ids = header + MARK_IDS_OFFSET;

	if (!is_sqlite_header(header) || header[MARK_VERSIONS_OFFSET] != VERSION_MARKED ||
	    memcmp(ids + 16, mark_magic, sizeof(mark_magic)) != 0)
		return 0;
	memcpy(log_id, ids, 8);
	memcpy(database_id, ids + 8, 8);
	return 1;
}

void set_mark(unsigned char *header, uint64_t log_id, uint64_t database_id)
{
	unsigned char *ids = header + MARK_IDS_OFFSET;

	memset(header + MARK_VERSIONS_OFFSET, VERSION_MARKED, 2);
	memcpy(ids, &log_id, 8);
	memcpy(ids + 8, &database_id, 8);
	memcpy(ids + 16, mark_magic, sizeof(mark_magic));
}

void clear_mark(unsigned char *header, int version)
{
	memset(header + MARK_VERSIONS_OFFSET, version, 2);
	memset(header + MARK_IDS_OFFSET, 0, IDS_BYTES);
}
