/* SPDX-License-Identifier: Apache-2.0 */
/* Rollback journals, and super-journals over several of them, that are no files. */
#ifndef JOJ_REDO_JOURNAL_H
#define JOJ_REDO_JOURNAL_H

#include "redo_file.h"

struct journal_file {
	sqlite3_file base;
	/* Of one of the two. */
	struct redo_file *database;
	struct super_journal *super;
	/* It writes the super-journal, and does not read it. */
	int is_writer;
};

/* Be the journal of a database, or a super-journal. Return SQLite's result codes. */
void begin_journal(sqlite3_file *file, struct redo_file *database, const char *path);
int begin_super(sqlite3_file *file, sqlite3_vfs *lower, const char *path);
/* As begin_super() for one that there is; SQLITE_NOTFOUND where it is none of ours. */
int open_super(sqlite3_file *file, const char *path);

/* SQLite deletes a journal: where it is one of ours the transaction commits, and is_ours is set. */
int delete_journal(const char *path, int *is_ours);

#endif
