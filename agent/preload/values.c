// SPDX-License-Identifier: Apache-2.0
/*
 * Bound values, as the program gives them: SQLite has no function that reads them back, and the
 * text of sqlite3_expanded_sql rounds reals and ends text at a zero. Small ones wait for the
 * statement's execution; long ones are written at once, so that no copy is held.
 */
#include "preload.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of values that wait, for each statement. */
enum { MOST_PENDING = 64 * 1024 };

struct value {
	uint32_t index;
	uint32_t kind;
	uint64_t length_bytes;
};

/* Bytes that SQLite's record format has for an integer (sqlite.org/fileformat2.html, 2.1). */
static unsigned stored_bytes(sqlite3_int64 value)
{
	static const unsigned sizes[] = { 1, 2, 3, 4, 6 };

	if (value == 0 || value == 1)
		return 0;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		sqlite3_int64 half = 1LL << (8 * sizes[i] - 1);

		if (value >= -half && value < half)
			return sizes[i];
	}
	return 8;
}

static void write_pending(struct statement *statement)
{
	struct piece pieces[] = {
		PIECE(statement->number), PIECE(statement->pending_bytes),
		{ statement->pending, statement->pending_bytes },
	};

	if (statement->pending_bytes)
		log_append(RECORD_BOUND, pieces, 3);
	statement->pending_bytes = 0;
}

static bool has_room(struct statement *statement, uint32_t more)
{
	uint32_t wanted = statement->pending_bytes + more;
	void *larger;

	if (wanted <= statement->pending_room)
		return true;
	wanted = wanted * 2 > MOST_PENDING ? MOST_PENDING : wanted * 2;
	larger = realloc(statement->pending, wanted);
	if (!larger)
		return false;
	statement->pending = larger;
	statement->pending_room = wanted;
	return true;
}

/* Notes a value before it is bound: afterwards the memory may be SQLite's. */
static void append_value(struct statement *statement, struct value value, const void *data)
{
	uint64_t content_bytes = value.kind & WITHOUT_CONTENTS || !data ? 0 : value.length_bytes;
	uint64_t room = sizeof(value) + content_bytes;
	uint32_t bytes = (uint32_t)room;
	struct piece pieces[] = {
		PIECE(statement->number), PIECE(bytes), PIECE(value), { data, content_bytes },
	};

	if (room + statement->pending_bytes > MOST_PENDING)
		write_pending(statement);
	if (room > MOST_PENDING || !has_room(statement, bytes)) {
		write_pending(statement);
		log_append(RECORD_BOUND, pieces, 4);
		return;
	}
	memcpy(statement->pending + statement->pending_bytes, &value, sizeof(value));
	if (content_bytes)
		memcpy(statement->pending + statement->pending_bytes + sizeof(value), data,
		       content_bytes);
	statement->pending_bytes += bytes;
}

/* The statement as it was before the last value. */
static void withdraw_value(struct statement *statement, uint32_t pending_before)
{
	struct piece pieces[] = { PIECE(statement->number) };

	if (statement->pending_bytes > pending_before)
		statement->pending_bytes = pending_before;
	else
		log_append(RECORD_WITHDRAWN, pieces, 1);
}

struct binding {
	const struct library *library;
	struct statement *statement;
	uint32_t index;
	uint32_t pending_before;
};

static struct binding begin_binding(sqlite3_stmt *stmt, int index, const void *caller)
{
	struct statement *statement = stmt ? statement_of(stmt) : NULL;
	struct binding binding = { .statement = statement, .index = (uint32_t)index };

	binding.library = statement ? statement->connection->library : library_of_caller(caller);
	if (!statement && binding.library && stmt) {
		statement = register_statement(stmt, binding.library);
		binding.statement = statement;
	}
	if (statement) {
		const struct library *library = binding.library;

		library->mutex_enter(library->db_mutex(statement->connection->db));
	}
	return binding;
}

static void note(struct binding *binding, uint32_t kind, const void *data, uint64_t length_bytes)
{
	struct value value = { binding->index, kind, length_bytes };
	struct statement *statement = binding->statement;

	if (!statement)
		return;
	announce_in_log(statement);
	if (!log_keeps_values() && kind != VALUE_CLEARED)
		value.kind |= WITHOUT_CONTENTS;
	/* A value that does not fit beside those that wait sends them ahead. */
	binding->pending_before = statement->pending_bytes;
	if (sizeof(value) + length_bytes + statement->pending_bytes > MOST_PENDING)
		binding->pending_before = 0;
	append_value(statement, value, data);
}

static int end_binding(struct binding *binding, int result)
{
	struct statement *statement = binding->statement;
	const struct library *library = binding->library;

	if (!statement)
		return result;
	if (result != SQLITE_OK)
		withdraw_value(statement, binding->pending_before);
	library->mutex_leave(library->db_mutex(statement->connection->db));
	return result;
}

static void note_integer(struct binding *binding, sqlite3_int64 value)
{
	bool is_kept = log_keeps_values();

	note(binding, SQLITE_INTEGER, &value, is_kept ? sizeof(value) : stored_bytes(value));
}

#define CALL(function, ...) \
	end_binding(&binding, binding.library ? binding.library->function(stmt, __VA_ARGS__) : \
						SQLITE_MISUSE)

EXPORTED int sqlite3_bind_int(sqlite3_stmt *stmt, int index, int value)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note_integer(&binding, value);
	return CALL(bind_int, index, value);
}

EXPORTED int sqlite3_bind_int64(sqlite3_stmt *stmt, int index, sqlite3_int64 value)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note_integer(&binding, value);
	return CALL(bind_int64, index, value);
}

EXPORTED int sqlite3_bind_double(sqlite3_stmt *stmt, int index, double value)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, SQLITE_FLOAT, &value, sizeof(value));
	return CALL(bind_double, index, value);
}

EXPORTED int sqlite3_bind_null(sqlite3_stmt *stmt, int index)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, SQLITE_NULL, NULL, 0);
	return CALL(bind_null, index);
}

EXPORTED int sqlite3_bind_text(sqlite3_stmt *stmt, int index, const char *text, int length,
			       destructor free_text)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, text ? SQLITE_TEXT : SQLITE_NULL, text,
	     !text ? 0 : length < 0 ? strlen(text) : (unsigned)length);
	return CALL(bind_text, index, text, length, free_text);
}

static uint64_t length16(const void *text)
{
	const uint16_t *unit = text;

	while (*unit)
		unit++;
	return (uint64_t)((const char *)unit - (const char *)text);
}

EXPORTED int sqlite3_bind_text16(sqlite3_stmt *stmt, int index, const void *text, int length,
				 destructor free_text)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, text ? VALUE_TEXT_UTF16LE : SQLITE_NULL, text,
	     !text ? 0 : length < 0 ? length16(text) : (unsigned)length & ~1U);
	return CALL(bind_text16, index, text, length, free_text);
}

EXPORTED int sqlite3_bind_text64(sqlite3_stmt *stmt, int index, const char *text,
				 sqlite3_uint64 length, destructor free_text,
				 unsigned char encoding)
{
	struct binding binding = begin_binding(stmt, index, CALLER);
	uint32_t kind = encoding == SQLITE_UTF8 ? SQLITE_TEXT :
			encoding == SQLITE_UTF16BE ? VALUE_TEXT_UTF16BE : VALUE_TEXT_UTF16LE;

	note(&binding, text ? kind : SQLITE_NULL, text,
	     !text ? 0 : kind == SQLITE_TEXT ? length : length & ~1ULL);
	return CALL(bind_text64, index, text, length, free_text, encoding);
}

EXPORTED int sqlite3_bind_blob(sqlite3_stmt *stmt, int index, const void *data, int length,
			       destructor free_data)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, data ? SQLITE_BLOB : SQLITE_NULL, data,
	     data && length > 0 ? (unsigned)length : 0);
	return CALL(bind_blob, index, data, length, free_data);
}

EXPORTED int sqlite3_bind_blob64(sqlite3_stmt *stmt, int index, const void *data,
				 sqlite3_uint64 length, destructor free_data)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, data ? SQLITE_BLOB : SQLITE_NULL, data, data ? length : 0);
	return CALL(bind_blob64, index, data, length, free_data);
}

EXPORTED int sqlite3_bind_zeroblob(sqlite3_stmt *stmt, int index, int length)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, VALUE_ZEROBLOB, NULL, length > 0 ? (unsigned)length : 0);
	return CALL(bind_zeroblob, index, length);
}

EXPORTED int sqlite3_bind_zeroblob64(sqlite3_stmt *stmt, int index, sqlite3_uint64 length)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, VALUE_ZEROBLOB, NULL, length);
	return CALL(bind_zeroblob64, index, length);
}

EXPORTED int sqlite3_bind_pointer(sqlite3_stmt *stmt, int index, void *pointer, const char *type,
				  destructor free_pointer)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note(&binding, VALUE_POINTER, NULL, 0);
	return CALL(bind_pointer, index, pointer, type, free_pointer);
}

/* Reading a value may convert it: a copy is read. */
static void note_value(struct binding *binding, const sqlite3_value *original)
{
	const struct library *library = binding->library;
	sqlite3_value *value = binding->statement ? library->value_dup(original) : NULL;
	double real;

	if (!binding->statement)
		return;
	switch (value ? library->value_type(value) : SQLITE_NULL) {
	case SQLITE_INTEGER:
		note_integer(binding, library->value_int64(value));
		break;
	case SQLITE_FLOAT:
		real = library->value_double(value);
		note(binding, SQLITE_FLOAT, &real, sizeof(real));
		break;
	case SQLITE_TEXT: {
		const void *text = library->value_text(value);

		note(binding, SQLITE_TEXT, text, (unsigned)library->value_bytes(value));
		break;
	}
	case SQLITE_BLOB: {
		const void *data = library->value_blob(value);

		note(binding, SQLITE_BLOB, data, (unsigned)library->value_bytes(value));
		break;
	}
	default:
		note(binding, SQLITE_NULL, NULL, 0);
	}
	library->value_free(value);
}

EXPORTED int sqlite3_bind_value(sqlite3_stmt *stmt, int index, const sqlite3_value *value)
{
	struct binding binding = begin_binding(stmt, index, CALLER);

	note_value(&binding, value);
	return CALL(bind_value, index, value);
}

EXPORTED int sqlite3_clear_bindings(sqlite3_stmt *stmt)
{
	struct binding binding = begin_binding(stmt, 0, CALLER);

	note(&binding, VALUE_CLEARED, NULL, 0);
	if (!binding.library)
		return SQLITE_MISUSE;
	return end_binding(&binding, binding.library->clear_bindings(stmt));
}
