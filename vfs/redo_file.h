/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database as one connection has it open: what its transaction has written stays here until the
 * commit, with its journal. Functions return SQLite's result codes where nothing else is said.
 */
#ifndef JOJ_REDO_FILE_H
#define JOJ_REDO_FILE_H

#include "lower_vfs.h"
#include "redo_log.h"
#include "redo_vfs.h"

/* What a spool has in memory; a connection has two, for its journal and for its pages. */
#ifndef SPOOL_BYTES
#define SPOOL_BYTES (32 << 20)
#endif

/* A longer database keeps SQLite's own way: what is changed is counted in blocks by 31 bits, of
 * which each has four bytes of memory up to the last one that is written to.
 */
#define MAX_DATABASE_BYTES ((1LL << 43) - BLOCK_BYTES)

/* As many as SQLite attaches at most (SQLITE_MAX_ATTACHED is 125 at most), and the main one. */
#define MAX_FILES 126

/* Bytes that are kept until a transaction ends: in memory, and what is too much in a file of
 * SQLite's folder for temporary files, which has no name and is never synced.
 */
struct spool {
	unsigned char *memory;
	sqlite3_int64 memory_bytes, size_bytes;
	sqlite3_file *rest;
};

/* It names the journals of a transaction over several databases. */
struct super_journal {
	struct super_journal *next;
	char *path;
	struct spool names;
	/* Those who have it open, and the databases whose journals name it, until each is unlocked.
	 */
	unsigned int users;
	/* It is on the disk too: a database that is not ours takes part. */
	int is_file;
	/* A rollback has begun, which commits none: it stays until all databases have had it. */
	int is_rolled_back;
};

/* What a connection knows of a block of its database. */
struct block_state {
	/* Of what the transaction has written, in the spool: counted from 1, 0 where it has not. */
	uint32_t slot : 31;
	/* The connection has logged it whole since the last checkpoint. */
	uint32_t is_whole : 1;
};

struct redo_file {
	struct upper_file upper;
	struct redo_file *next;
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
	/* What was written, in blocks, and which ones. */
	struct spool blocks;
	uint32_t *touched, touched_count, touched_room;
	struct block_state *states;
	uint32_t state_count;
	/* The generation of the log that is_whole is of. */
	uint64_t whole_generation;
};

extern sqlite3_vfs redo_vfs;

/* spool.c. A read behind the end gives zeros, as a hole does. */
int spool_write(struct spool *spool, const void *bytes, int length_bytes,
		sqlite3_int64 offset_bytes);
int spool_read(const struct spool *spool, void *bytes, int length_bytes,
	       sqlite3_int64 offset_bytes);
void spool_cut(struct spool *spool, sqlite3_int64 size_bytes);
/* A copy as a file, synced; the header of a journal after all else. */
int spool_copy(const struct spool *spool, const char *path, int flags);
/* Give memory and file back. */
void spool_free(struct spool *spool);

/* What a transaction has written to a database: redo_changes.c. */

/* Whether the file has a mark, by its header. */
int read_file_header(struct redo_file *file, unsigned char *header, int *has_mark);
/* The size of the file; a header alone, with a mark, is a database without pages. */
int read_size(struct redo_file *file, sqlite3_int64 *size_bytes);
/* As the transaction sees the file, without the mark. */
int read_changed(struct redo_file *file, void *bytes, int length_bytes, sqlite3_int64 offset);
int add_changes(struct redo_file *file, const void *bytes, int length_bytes, sqlite3_int64 offset);
/* The transaction changes the size of the file. */
int cut_changes(struct redo_file *file, sqlite3_int64 size_bytes);
/* A block that it has written. */
int read_block(struct redo_file *file, uint32_t block, unsigned char *bytes);
/* Bytes of a block that the file has, as the transaction leaves it. */
size_t block_bytes(const struct redo_file *file, uint32_t block);
/* Forget what the transaction has written. */
void drop_changes(struct redo_file *file);
/* Forget its journal too: it has ended. */
void discard_transaction(struct redo_file *file);

/* The databases and the super-journals that this process has open: redo_file.c. */

/* Begin to be a database, whose lower file is open. */
int begin_file(struct redo_file *file, const char *path);
/* Empty the log of a database that has a mark, and take it away. */
int leave_log(struct redo_file *file);
/* The open database with this journal that has begun to write; NULL where there is none. */
struct redo_file *find_writer(const char *journal_path);
/* Put at most MAX_FILES into `found` whose transaction is of this super-journal, and has not ended;
 * return how many there are.
 */
int find_members(const struct super_journal *super, struct redo_file **found);
/* A new one, with one user. NULL without memory. */
struct super_journal *add_super(const char *path);
/* That of this path, which no zero ends; NULL where none of ours has it. */
struct super_journal *find_super(const char *path, size_t length);
/* The transaction has ended: its path names no super-journal any more. */
void unlist_super(const struct super_journal *super);
/* A user lets go of it; the last one frees it, unlisted or not: SQLite does not delete that of a
 * transaction that fails for want of memory.
 */
void drop_super(struct super_journal *super);
/* A database's journal names this one, or none, in place of the one before. */
void name_super(struct redo_file *file, struct super_journal *super);
/* What SQLite says of an errno. */
int result_of(int error);

/*
 * Make the changes of these files durable, all or none: in one record of each log (redo_commit.c);
 * or, where they cannot have one, in SQLite's own way, with their journals as files (redo_stock.c).
 * super is NULL for one file.
 */
int commit_files(struct redo_file **files, int count, struct super_journal *super);
int play_as_sqlite(struct redo_file **files, int count, struct super_journal *super);

/* Journals that are no files: redo_journal.c. */

struct journal_file {
	sqlite3_file base;
	/* Of one of the two. */
	struct redo_file *database;
	struct super_journal *super;
};

/* Be the journal of a database, or a super-journal. */
void begin_journal(sqlite3_file *file, struct redo_file *database, const char *path);
int begin_super(sqlite3_file *file, const char *path);
/* As begin_super() for one that there is; SQLITE_NOTFOUND where it is none of ours. */
int open_super(sqlite3_file *file, const char *path);
/* SQLite deletes a journal: where it is one of ours the transaction commits, and is_ours is set. */
int delete_journal(const char *path, int *is_ours);

#endif
