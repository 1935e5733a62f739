/* SPDX-License-Identifier: Apache-2.0 */
/* A database as one connection has it open: what its transaction has written stays here until the
 * commit.
 */
#ifndef JOJ_REDO_FILE_H
#define JOJ_REDO_FILE_H

#include "lower_vfs.h"
#include "redo_database.h"
#include "redo_super.h"
#include "spool.h"

struct redo_file {
	struct upper_file upper;
	struct redo_file *next;
	sqlite3_vfs *lower;
	/* SQLite keeps a file's path, and that of its journal, until the file is closed. */
	const char *path, *name, *journal_path;
	char *folder;
	struct file_id file;
	/* The log, and the database's number in it, once the database has had a mark. */
	struct redo_log *log;
	unsigned int number;
	/* Other threads look for the writer of a journal of theirs. */
	int level;
	/* PRAGMA joj_redo = off */
	int is_off;
	/* SQLite opened it itself: no part of a file that a VFS above splits. */
	int is_whole;
	/* The journal is ours, and SQLite has not deleted it; it has pages of a transaction. */
	int has_journal, is_in_transaction;
	/* The super-journal that its journal names; other threads look for the files of theirs. */
	struct super_journal *super;
	/* Writes go to the file: they are of no transaction of ours. */
	int is_direct;
	/* A commit in the way of SQLite failed: its journal on the disk has to be played first. */
	int is_failed;
	/* A durable commit could not be copied to the file: nothing is read before it is. */
	int is_unapplied;
	int must_sync, is_dirty;
	/* As the transaction sees it, where it is dirty. */
	sqlite3_int64 size_bytes;
	struct spool journal;
	/* What was written, in blocks: the slot of each in the spool, counted from 1. */
	struct spool blocks;
	uint32_t *slots, slot_count;
	uint32_t *touched, touched_count, touched_room;
	/* Which blocks this connection has logged whole in this generation. */
	unsigned char *whole;
	uint32_t whole_count;
	uint64_t whole_generation;
};

/* Begin to be a database, whose lower file is open; the folder is the file's own from here on, also
 * after an error, which closes the lower file. Return SQLite's result code.
 */
int begin_file(struct redo_file *file, sqlite3_vfs *lower, const char *path, char *folder);
/* Empty the log of a database that has a mark, and take it away. */
int leave_log(struct redo_file *file);

/* The open database with this journal that has begun to write; NULL where there is none. */
struct redo_file *find_writer(const char *journal_path);
/* Put at most max of the files into `files` for which the test holds; return how many there are. */
int collect_files(int (*test)(const struct redo_file *file, const void *argument),
		  const void *argument, struct redo_file **files, int max);

int result_of(int error);

#endif
