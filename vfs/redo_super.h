/* SPDX-License-Identifier: Apache-2.0 */
/* Super-journals, which name the journals of a transaction over several databases. */
#ifndef JOJ_REDO_SUPER_H
#define JOJ_REDO_SUPER_H

#include "spool.h"

struct super_journal {
	struct super_journal *next;
	sqlite3_vfs *lower;
	char *path;
	struct spool names;
	/* Its writer, and the databases whose journals name it, until each is unlocked. */
	unsigned int users;
	/* It is on the disk too: a database that is not ours takes part. */
	int is_file;
	/* A rollback has begun, which commits none: it stays until all databases have had it. */
	int is_rolled_back;
};

/* A new one, with one user. NULL without memory. */
struct super_journal *add_super(sqlite3_vfs *lower, const char *path);
/* That of this path, which no zero ends; NULL where none of ours has it. */
struct super_journal *find_super(const char *path, size_t length);
/* The transaction has ended: its path names no super-journal any more. */
void unlist_super(const struct super_journal *super);
/* A user lets go of it; the last one frees it, unlisted or not: SQLite does not delete that of a
 * transaction that fails for want of memory.
 */
void drop_super(struct super_journal *super);
/* A database's journal names this one, or none, in place of the one before. Other threads look at
 * what is named.
 */
void name_super(struct super_journal **named, struct super_journal *super);

#endif
