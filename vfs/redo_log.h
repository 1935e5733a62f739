/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The redo log of a folder: what all processes share that have a database of it open, its records
 * and its generations.
 *
 * joj-redo.log holds the records. joj-redo.shm is mapped by all, and never synced: what a power cut
 * leaves of it is not read. Two locks (open file description locks) lie on the log: who writes to
 * the log or copies from it holds LOCK_BYTE; who has the log open shares MEMBER_BYTE, so that who
 * gets that one alone is the first or the last. A holder of LOCK_BYTE waits for no lock of SQLite.
 *
 * Functions return 0 or an errno. They do not call SQLite.
 */
#ifndef JOJ_REDO_LOG_H
#define JOJ_REDO_LOG_H

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>

#include "redo_record.h"

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
	struct log_entry entries[MAX_DATABASES];
};

struct redo_log {
	struct redo_log *next;
	unsigned int members;
	char *folder;
	int folder_fd, fd;
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

/* What a user has to know; each program says it in its own way. */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether somebody commits, or died in it. */
int log_is_busy(const struct redo_log *log);
void set_busy(struct redo_log *log, uint32_t is_busy);

/* What follows is for holders of the log. */

/* The entry of a database; a new one where it has none. ENFILE where there is no room for it. */
int log_entry(struct redo_log *log, uint64_t id, struct file_id file, const char *name,
	      unsigned int *number);
/* Zeros up to LOG_BYTES, so that a record changes no metadata. The first record's sync makes them
 * durable.
 */
int fill_log(struct redo_log *log);
/* Sync the databases; then the log is empty. */
int checkpoint_log(struct redo_log *log);
/* The header of a new generation: no record that is there is valid any more. */
int begin_generation(struct redo_log *log);
int read_log_header(const struct redo_log *log, struct log_header *header);

void begin_log_record(struct redo_log *log, struct record_writer *writer);
/* Make the record durable if must_sync. After an error there is none. */
int append_record(struct redo_log *log, struct record_writer *writer, enum record_kind kind,
		  int must_sync);
/* The record at the tail, of this length, has been applied: the next one may follow. */
void end_append(struct redo_log *log, uint64_t length_bytes);
/* The record at the tail must not be applied. */
int revoke_record(struct redo_log *log);

#endif
