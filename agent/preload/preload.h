/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is loaded before a program's SQLite and records its statements. Its functions have
 * the names of SQLite's own: each calls the real one, and notes what it did. A file calls only
 * those below it:
 *
 *   process.c                           the begin, the forks and the end of a process
 *   statements.c, values.c, others.c    the functions of SQLite that a program calls
 *   registration.c                      registers connections and statements at their first call
 *   tracing.c                           SQLite's own trace: statements that it runs by itself
 *   executions.c                        executions of statements, and the record of each
 *   databases.c                         the files of a connection, and their commits
 *   dlsym.c                             gives programs our functions by name
 *   library.c, state.c                  the real functions; the connections and statements
 *   log.c                               the file of this process, record by record
 *
 * The reader of that file is agent/src/recorder/statements/log.rs. Only symbols of glibc 2.17 and
 * older are used, so that a library built here runs on the systems of others.
 */
#ifndef JOJ_PRELOAD_H
#define JOJ_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first version of glibc's symbols on this processor. Since 2.34 some have a new one as well,
 * which older systems lack.
 */
#ifdef __aarch64__
#define FIRST_GLIBC "GLIBC_2.17"
#else
#define FIRST_GLIBC "GLIBC_2.2.5"
#endif

/* SQLite's interface (sqlite.org/c3ref), as far as it is used; no header of one release. */
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef struct sqlite3_value sqlite3_value;
typedef struct sqlite3_mutex sqlite3_mutex;
typedef struct sqlite3_blob sqlite3_blob;
typedef struct sqlite3_backup sqlite3_backup;
typedef long long sqlite3_int64;
typedef unsigned long long sqlite3_uint64;
typedef void (*destructor)(void *);
typedef int (*row_callback)(void *, int, char **, char **);
typedef int (*trace_callback)(unsigned, void *, void *, void *);
typedef void (*legacy_trace)(void *, const char *);
typedef void (*legacy_profile)(void *, const char *, sqlite3_uint64);
typedef int (*commit_callback)(void *);

enum { SQLITE_OK = 0, SQLITE_NOMEM = 7, SQLITE_MISUSE = 21, SQLITE_ROW = 100, SQLITE_DONE = 101 };
enum { SQLITE_TRACE_STMT = 1, SQLITE_TRACE_PROFILE = 2, SQLITE_TRACE_ROW = 4 };
enum { SQLITE_INTEGER = 1, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL };
enum { SQLITE_UTF8 = 1, SQLITE_UTF16LE, SQLITE_UTF16BE, SQLITE_UTF16 };

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* The SQLite of one caller. Functions that a release may lack are null there. */
struct library {
	void *handle;
	int (*step)(sqlite3_stmt *);
	int (*reset)(sqlite3_stmt *);
	int (*finalize)(sqlite3_stmt *);
	int (*trace_v2)(sqlite3 *, unsigned, trace_callback, void *);
	int (*get_autocommit)(sqlite3 *);
	int (*extended_errcode)(sqlite3 *);
	int (*total_changes)(sqlite3 *);
	int (*stmt_readonly)(sqlite3_stmt *);
	int (*bind_parameter_count)(sqlite3_stmt *);
	const char *(*sql)(sqlite3_stmt *);
	char *(*expanded_sql)(sqlite3_stmt *);
	void (*free)(void *);
	sqlite3 *(*db_handle)(sqlite3_stmt *);
	sqlite3_stmt *(*next_stmt)(sqlite3 *, sqlite3_stmt *);
	const char *(*db_filename)(sqlite3 *, const char *);
	const char *(*db_name)(sqlite3 *, int);
	void *(*commit_hook)(sqlite3 *, commit_callback, void *);
	const char *(*compileoption_get)(int);
	const char *(*libversion)(void);
	sqlite3_mutex *(*db_mutex)(sqlite3 *);
	void (*mutex_enter)(sqlite3_mutex *);
	void (*mutex_leave)(sqlite3_mutex *);
	sqlite3_value *(*value_dup)(const sqlite3_value *);
	void (*value_free)(sqlite3_value *);
	int (*value_type)(sqlite3_value *);
	int (*value_bytes)(sqlite3_value *);
	const void *(*value_blob)(sqlite3_value *);
	const unsigned char *(*value_text)(sqlite3_value *);
	sqlite3_int64 (*value_int64)(sqlite3_value *);
	double (*value_double)(sqlite3_value *);
	int (*bind_int)(sqlite3_stmt *, int, int);
	int (*bind_int64)(sqlite3_stmt *, int, sqlite3_int64);
	int (*bind_double)(sqlite3_stmt *, int, double);
	int (*bind_null)(sqlite3_stmt *, int);
	int (*bind_text)(sqlite3_stmt *, int, const char *, int, destructor);
	int (*bind_text16)(sqlite3_stmt *, int, const void *, int, destructor);
	int (*bind_text64)(sqlite3_stmt *, int, const char *, sqlite3_uint64, destructor,
			   unsigned char);
	int (*bind_blob)(sqlite3_stmt *, int, const void *, int, destructor);
	int (*bind_blob64)(sqlite3_stmt *, int, const void *, sqlite3_uint64, destructor);
	int (*bind_zeroblob)(sqlite3_stmt *, int, int);
	int (*bind_zeroblob64)(sqlite3_stmt *, int, sqlite3_uint64);
	int (*bind_pointer)(sqlite3_stmt *, int, void *, const char *, destructor);
	int (*bind_value)(sqlite3_stmt *, int, const sqlite3_value *);
	int (*clear_bindings)(sqlite3_stmt *);
};

/* The SQLite that the code at `address` calls; null if there is none. */
const struct library *library_of_caller(const void *address);
/* A function of it by name; null if it has none. */
void *library_function(const struct library *library, const char *name);
/* A function of this library by the name of SQLite's; null if it has none. */
void *own_function(const char *name);
/* The real dlsym(3): this library has one of its own. */
typedef void *(*symbol_lookup)(void *, const char *);
symbol_lookup real_lookup(void);
/*
 * Notes sqlite3_step of the SQLite of which the program asks for functions by name. False if it has
 * asked another before.
 */
bool note_program_library(void *step);
/* The lock of what was found. */
void lock_libraries(void);
void unlock_libraries(void);
/* Whether a libsqlite3 is loaded in this process. */
bool library_is_loaded(void);
/* Whether an object of this process has a SQLite of its own that was not called here. */
bool another_is_built_in(void);

/* The real function that is called by the name of one of ours. */
#define REAL(library, function) ((__typeof__(&function))library_function(library, #function))

struct connection {
	sqlite3 *db;
	const struct library *library;
	struct connection *next;
	uint32_t number;
	uint32_t announced;	/* the log it was written to: log_number() */
	uint32_t references;
	int32_t flags;
	int64_t open_ns;
	int64_t size_bytes;	/* of its file then; -1: it has none */
	int64_t committed_ns;	/* since the last statement ended; 0: it has not */
	commit_callback program_commit;
	void *program_commit_context;
	/* The trace that the program asked for itself. */
	unsigned program_mask;
	trace_callback program_trace;
	void *program_context;
	legacy_trace program_legacy_trace;
	void *program_legacy_trace_context;
	legacy_profile program_legacy_profile;
	void *program_legacy_profile_context;
	/* A statement that SQLite runs by itself, in no call of sqlite3_step that is seen. */
	struct statement *internal;
};

struct statement {
	sqlite3_stmt *stmt;
	struct connection *connection;
	struct statement *next;
	uint32_t number;
	uint32_t announced;
	/* Bound values that no record has yet. */
	unsigned char *pending;
	uint32_t pending_bytes;
	uint32_t pending_room;
	/* The execution under way. */
	bool is_running;
	bool is_nested;
	bool is_unseen;		/* its values were bound where we did not see it */
	uint32_t flags;
	int64_t begin_ns;
	int64_t inside_ns;
	int64_t rows;
	int32_t changes_before;
	char *expanded;		/* of a statement whose values were not seen; SQLite's memory */
};

/* The entry of a handle; null if it has none. */
struct connection *connection_of(sqlite3 *db);
struct statement *statement_of(sqlite3_stmt *stmt);
/* A new entry; null without memory. */
struct connection *make_connection(sqlite3 *db, const struct library *library, int flags);
/* A statement that belongs to no table; null without memory. */
struct statement *make_statement(sqlite3_stmt *stmt, struct connection *connection);
/* Enters a statement in the table. */
void remember_statement(struct statement *statement);
void free_statement(struct statement *statement);
/* Take an entry out of its table. */
void forget_statement(sqlite3_stmt *stmt);
void forget_connection(struct connection *connection, bool is_zombie);
void lock_state(void);
void unlock_state(void);
/* The entry of a handle, made where it has none; null only without memory. */
struct connection *register_connection(sqlite3 *db, const struct library *library, int flags);
struct statement *register_statement(sqlite3_stmt *stmt, const struct library *library);

/* Flags of an execution. */
enum {
	WAS_AUTOCOMMIT = 1,
	BEGAN_TRANSACTION = 2,
	ENDED_TRANSACTION = 4,
	IS_READONLY = 8,
	VALUES_UNSEEN = 16,
};

/* Kinds of bound values; those of SQLite first. */
enum {
	VALUE_ZEROBLOB = 6,
	VALUE_TEXT_UTF16LE,
	VALUE_TEXT_UTF16BE,
	VALUE_POINTER,
	VALUE_CLEARED,		/* all of the statement */
	WITHOUT_CONTENTS = 256,	/* beside a kind: only its length is known */
};

/* Writes to the log of this process what records of the statement refer to. */
void announce_in_log(struct statement *statement);
void begin_execution(struct statement *statement, int64_t now);
void end_execution(struct statement *statement, int32_t result, int64_t now);
/* Installs the trace of this library on a connection. */
void install_trace(struct connection *connection);
/* Installs the commit hook of this library on a connection, and notes the size of its file. */
void watch_database(struct connection *connection);
/*
 * Writes the options that SQLite was built with into `room` bytes, with blanks between; none if it
 * does not tell.
 */
void build_options(const struct library *library, char *text, size_t room);
/* Writes to the log which file an ATTACH has attached. */
void log_attachment(const struct statement *statement);

/* A call under way in this thread, in which SQLite may run statements by itself. */
struct frame {
	const struct connection *connection;
	sqlite3_stmt *stmt;	/* that is stepped; null while one is prepared */
	const struct frame *outer;
};
void push_frame(struct frame *frame);
void pop_frame(void);
/* The innermost one on `connection`; null if there is none. */
const struct frame *frame_on(const struct connection *connection);
/* Whether this thread is in a call of SQLite, which calls the functions of its own that way. */
bool is_in_call(void);
/* Whether this thread is in a call that runs the statement. */
bool is_under_way(const sqlite3_stmt *stmt);

/* Records. */
enum record {
	RECORD_CONNECTION = 1,
	RECORD_CLOSED,
	RECORD_PREPARED,
	RECORD_BOUND,
	RECORD_EXECUTED,
	RECORD_FINALIZED,
	RECORD_WITHDRAWN,
	RECORD_ATTACHED,
};

/* What was seen and not recorded; the order is the reader's. */
enum counter {
	LOST_RECORDS,		/* the log could not be written */
	LOST_STATEMENTS,	/* no memory for what is known of one */
	FAILED_PREPARES,
	NESTED_STATEMENTS,	/* run by SQLite or a function within another */
	BLOB_WRITES,
	BACKUP_STEPS,
	CHECKPOINT_CALLS,
	DESERIALIZED,
	LOADED_UNSEEN,		/* a libsqlite3 was loaded, and none of these functions called */
	OTHERS_BY_NAME,		/* functions asked for by name of a second SQLite */
	BUILT_IN_UNSEEN,	/* a SQLite was built into an object, and not called here */
	COUNTERS,
};

struct piece {
	const void *data;
	size_t length_bytes;
};

/* Appends a record that is made of pieces. False if it could not be written. */
bool log_append(enum record kind, const struct piece *pieces, unsigned count);
/* Number of the log of this process; a child of fork has another. */
uint32_t log_number(void);
void log_count(enum counter counter);
bool log_keeps_values(void);
/* Whether a log was begun. */
bool log_is_there(void);
/* Sets the folder of logs, null for none, and whether they have the values that are bound. */
void configure_log(const char *log_folder, bool has_values);
/* A child of fork gets a log of its own, once it has something to say; under the lock. */
void leave_log_to_parent(void);
void lock_log(void);
void unlock_log(void);
int64_t now_ns(void);
int32_t thread_number(void);

#define PIECE(value) { &(value), sizeof(value) }

#endif
