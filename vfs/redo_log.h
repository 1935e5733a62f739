/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The redo log of a folder: what all processes share that have a database of it open, its records
 * and its generations.
 *
 * joj-redo.log holds the records. joj-redo.shm is mapped by all, and never synced: what a power cut
 * leaves of it is not read. Two locks (open file description locks) lie on the log: who writes to
 * the log or copies from it holds LOCK_BYTE; who has the log open shares MEMBER_BYTE, so that who
 * gets that one alone is the first or the last. A holder of LOCK_BYTE waits for no lock of SQLite;
 * who needs several logs locks them by their ids, and has become a member of all before.
 *
 * Functions return 0 or an errno. They do not call SQLite.
 */
#ifndef JOJ_REDO_LOG_H
#define JOJ_REDO_LOG_H

#include <pthread.h>
#include <sys/stat.h>

#include "redo_format.h"

#define LOG_NAME "joj-redo.log"
#define SHARED_NAME "joj-redo.shm"
/* What is filled with zeros; a larger transaction makes the log longer until its checkpoint. */
#ifndef LOG_BYTES
#define LOG_BYTES (4 << 20)
#endif
#ifndef MAX_DATABASES
#define MAX_DATABASES 512
#endif

struct log_entry {
	uint64_t id;
	struct file_id file;
	/* The log has records of it that were not synced in the database. */
	uint32_t is_logged;
	/* A recovery dropped its commits, or has given it another id. */
	uint32_t is_lost;
	char name[NAME_MAX + 1];
};

struct log_shared {
	/* Set when a recovery has ended, and taken back before the last one leaves. */
	uint32_t is_ready;
	/* The record at the tail may be there, and may not be applied. */
	uint32_t is_busy;
	/* A sync failed: nothing is committed until all have left and the next one recovers. */
	uint32_t is_broken;
	uint32_t databases;
	uint64_t generation, tail_offset, sequence;
	struct outcome outcomes[MAX_OUTCOMES];
	struct log_entry entries[MAX_DATABASES];
};

struct redo_log {
	struct redo_log *next;
	unsigned int members;
	/* The path that its first member knew its folder by. */
	char *folder;
	dev_t device;
	ino_t folder_inode;
	int folder_fd, fd;
	struct file_id file;
	uint64_t id;
	struct log_shared *shared;
	/* Between threads what LOCK_BYTE is between processes. */
	pthread_mutex_t mutex;
	/* A second descriptor of a database, once it is open, stays open: to close one drops the
	 * locks of the whole process (fcntl_locking(2)).
	 */
	int fds[MAX_DATABASES];
	unsigned char *buffer;
};

/* A transaction whose record is prepared at the tail of a log, and what its coordinator says. */
struct doubt {
	uint64_t transaction;
	int is_committed;
	struct coordinator_item coordinator;
	char folder[MAX_PAYLOAD_BYTES];
};

/* What a user has to know; each program says it in its own way. */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whose file it is: redo_log.c. */

/* Which file has this name, and how many names it has. */
int read_file_id(int folder_fd, const char *name, struct file_id *file, unsigned int *names);
int is_same_file(struct file_id one, struct file_id other);
int has_name(const struct redo_log *log, struct file_id file, const char *name);
/* Find the name that a file has by now, of at most NAME_MAX bytes. */
int find_name(const struct redo_log *log, struct file_id file, char *name);
/* A descriptor of a database, which the log keeps. ENOENT where the file is no more. */
int database_fd(struct redo_log *log, unsigned int number, int *fd);
/* The 100 bytes of its header; zeros behind the file's end, whose size is told. */
int read_header(int fd, unsigned char *header, uint64_t *size_bytes);

/* Members, and the holder of the log: redo_member.c. */

/*
 * Become a member of the log of this folder; the first one recovers it. ENOENT where there is none,
 * unless creator is the database that needs one: the log gets its mode and owner.
 */
int attach_log(const char *folder, const struct stat *creator, struct redo_log **log);
/* Leave it; the last one empties the log and takes the marks away. */
void detach_log(struct redo_log *log);
/* Wait at most time_ms for each log (-1: without end), else EBUSY. What a dead committer left is
 * applied before; ENOLINK where the coordinator of that is not to be found. The logs are in the
 * order of their ids.
 */
int lock_logs(struct redo_log **logs, int count, int time_ms);
void unlock_logs(struct redo_log **logs, int count);
int lock_log(struct redo_log *log, int time_ms);
void unlock_log(struct redo_log *log);
/* Whether somebody commits, or died in it. */
int log_is_busy(const struct redo_log *log);

/* What follows is for holders of the log. Records and generations: redo_log.c. */

/* The entry of a database; a new one where it has none. ENFILE where there is no room for it. */
int log_entry(struct redo_log *log, uint64_t id, struct file_id file, const char *name,
	      unsigned int *number);
/* Zeros up to LOG_BYTES, so that a record changes no metadata. The first record's sync makes them
 * durable.
 */
int fill_log(struct redo_log *log);
int sync_log(struct redo_log *log);
/* Sync the databases; then the log is empty. */
int checkpoint_log(struct redo_log *log);
/* The header of a new generation: no record that is there is valid any more. */
int begin_generation(struct redo_log *log);
void begin_log_record(struct redo_log *log, struct record_writer *writer);
/* Make the record durable if must_sync. After an error there is none. */
int append_record(struct redo_log *log, struct record_writer *writer, enum record_kind kind,
		  int must_sync);
/* The record at the tail, of this length, has been applied: the next one may follow. */
void end_append(struct redo_log *log, uint64_t length_bytes);
/* The record at the tail must not be applied; durable. */
int revoke_record(struct redo_log *log);
/* The place for the outcome of transactions with another log; NULL where there is none. */
struct outcome *find_place(struct redo_log *log, uint64_t log_key);
/* What a coordinator knows a log by. Logs that are copies have the same id. */
uint64_t log_key(const struct redo_log *log);
void set_busy(struct redo_log *log, uint32_t is_busy);

/* The marks of databases: redo_database.c. */

/*
 * Set the mark of the file of this name, durably, before its first record. A database without
 * bytes gets the header first_page, which says that it has no pages. Errors that say that it cannot
 * have a mark: EMLINK, EXDEV (the name is another file's by now), EMEDIUMTYPE (it is no database,
 * or has another log's mark).
 */
int mark_database(struct redo_log *log, const char *name, struct file_id file,
		  const unsigned char *first_page, unsigned int *number);
/*
 * The entry of a file with a mark. EMEDIUMTYPE where the mark is another log's, EEXIST where the
 * file is a copy of one that is there too, EKEYEXPIRED where its id is one of before a recovery.
 */
int join_database(struct redo_log *log, const char *name, struct file_id file,
		  const unsigned char *header, unsigned int *number);
/* Empty the log, and take the mark of a database away. */
int leave_database(struct redo_log *log, unsigned int number, int version);
/* The same for all of the log. What cannot be done is reported, and stays as it is. */
int leave_all(struct redo_log *log);

/*
 * After a power cut or the death of a process: redo_recovery.c. EINPROGRESS where a coordinator has
 * to be asked, of what doubt says then.
 */

/* For the one member of a log: replay all that is valid, and take all marks away. */
int recover_log(struct redo_log *log, struct doubt *doubt);
/* Apply the record that a dead committer wrote, if it is whole. */
int recover_tail(struct redo_log *log, struct doubt *doubt);

#endif
