// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the SQLite that a caller would have called without us. A process may hold several: a
 * Python module with a library of its own beside the system's. So it is looked up from the caller:
 * first in the object that the call came from and what that needs, then behind us in the order of
 * the whole program, then what the program asked for by name.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

__asm__(".symver dlopen,dlopen@" FIRST_GLIBC);
__asm__(".symver dlclose,dlclose@" FIRST_GLIBC);
__asm__(".symver dlvsym,dlvsym@" FIRST_GLIBC);

enum { LIBRARIES = 16, CALLERS = 256 };

/* dlsym.c jumps to it. */
__attribute__((visibility("hidden"))) symbol_lookup real_dlsym;
/* sqlite3_step of the SQLite of which the program asked for functions by name. */
static void *program_step;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct library libraries[LIBRARIES];
static unsigned count;

/* Callers that were looked up: where the call came from, and what was found. */
static struct {
	const void *address;
	const struct library *library;
} callers[CALLERS];

void lock_libraries(void)
{
	pthread_mutex_lock(&lock);
}

void unlock_libraries(void)
{
	pthread_mutex_unlock(&lock);
}

symbol_lookup real_lookup(void)
{
	if (!real_dlsym)
		real_dlsym = (symbol_lookup)dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC);
	return real_dlsym;
}

bool note_program_library(void *step)
{
	if (program_step && program_step != step)
		return false;
	program_step = step;
	return true;
}

struct search {
	const void *address;	/* the object that holds it, or null: a libsqlite3 */
	char path[4096];
	bool is_found;
	bool is_program;
};

static int match_object(struct dl_phdr_info *object, size_t size, void *context)
{
	struct search *search = context;
	const char *name = object->dlpi_name ? object->dlpi_name : "";
	const char *base = strrchr(name, '/');
	bool holds = false;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum && search->address; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + part->p_vaddr;
		uintptr_t at = (uintptr_t)search->address;

		holds |= part->p_type == PT_LOAD && at >= begin && at - begin < part->p_memsz;
	}
	if (!search->address)
		holds = strncmp(base ? base + 1 : name, "libsqlite3", 10) == 0;
	if (!holds || strlen(name) >= sizeof(search->path))
		return 0;
	strcpy(search->path, name);
	search->is_found = true;
	search->is_program = !*name;
	return 1;
}

bool library_is_loaded(void)
{
	struct search search = { .address = NULL };

	dl_iterate_phdr(match_object, &search);
	return search.is_found;
}

/* Words of SQLite's own that nothing else has (OP_AutoCommit in src/vdbe.c). */
static const char OF_SQLITE[] = "cannot start a transaction within a transaction";

static int match_other_sqlite(struct dl_phdr_info *object, size_t size, void *context)
{
	const char *name = object->dlpi_name ? object->dlpi_name : "";
	const char *base = strrchr(name, '/');
	bool *is_found = context;

	(void)size;
	if (strncmp(base ? base + 1 : name, "libsqlite3", 10) == 0)
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + part->p_vaddr;
		uintptr_t own = (uintptr_t)OF_SQLITE;

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_R) || part->p_flags & PF_W)
			continue;
		if (own >= begin && own - begin < part->p_filesz)
			return 0;	/* this library */
		for (unsigned j = 0; j < count; j++) {
			uintptr_t step = (uintptr_t)libraries[j].step;

			if (step >= begin && step - begin < part->p_memsz)
				return 0;
		}
	}
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && part->p_flags & PF_R && !(part->p_flags & PF_W) &&
		    memmem((const void *)(object->dlpi_addr + part->p_vaddr), part->p_filesz,
			   OF_SQLITE, sizeof(OF_SQLITE))) {
			*is_found = true;
			return 1;
		}
	}
	return 0;
}

bool another_is_built_in(void)
{
	bool is_found = false;

	dl_iterate_phdr(match_other_sqlite, &is_found);
	return is_found;
}

static void *step_in_object(const struct search *search)
{
	void *handle, *step;

	if (!search->is_found || search->is_program)
		return NULL;
	handle = dlopen(search->path, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	step = real_lookup()(handle, "sqlite3_step");
	dlclose(handle);	/* it stays: the caller is in it */
	return step;
}

static const struct library *add_library(void *step)
{
	struct search search = { .address = step };
	struct library *library = &libraries[count];
	void *handle = NULL;

	for (unsigned i = 0; i < count; i++)
		if ((void *)libraries[i].step == step)
			return &libraries[i];
	if (count == LIBRARIES)
		return NULL;
	dl_iterate_phdr(match_object, &search);
	if (search.is_found && !search.is_program)
		handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	library->handle = handle;
#define FIND(name) \
	(library->name = (__typeof__(library->name))real_lookup()(handle, "sqlite3_" #name))
	FIND(step);
	FIND(reset);
	FIND(finalize);
	FIND(trace_v2);
	FIND(get_autocommit);
	FIND(extended_errcode);
	FIND(total_changes);
	FIND(stmt_readonly);
	FIND(bind_parameter_count);
	FIND(sql);
	FIND(expanded_sql);
	FIND(free);
	FIND(db_handle);
	FIND(next_stmt);
	FIND(db_filename);
	FIND(db_name);
	FIND(commit_hook);
	FIND(compileoption_get);
	FIND(libversion);
	FIND(db_mutex);
	FIND(mutex_enter);
	FIND(mutex_leave);
	FIND(value_dup);
	FIND(value_free);
	FIND(value_type);
	FIND(value_bytes);
	FIND(value_blob);
	FIND(value_text);
	FIND(value_int64);
	FIND(value_double);
	FIND(bind_int);
	FIND(bind_int64);
	FIND(bind_double);
	FIND(bind_null);
	FIND(bind_text);
	FIND(bind_text16);
	FIND(bind_text64);
	FIND(bind_blob);
	FIND(bind_blob64);
	FIND(bind_zeroblob);
	FIND(bind_zeroblob64);
	FIND(bind_pointer);
	FIND(bind_value);
	FIND(clear_bindings);
#undef FIND
	count++;
	return library;
}

const struct library *library_of_caller(const void *address)
{
	unsigned slot = ((uintptr_t)address >> 2) % CALLERS;
	const struct library *library = NULL;
	struct search search = { .address = address };
	void *step;

	lock_libraries();
	if (callers[slot].address == address)
		library = callers[slot].library;
	unlock_libraries();
	if (library)
		return library;
	dl_iterate_phdr(match_object, &search);
	step = step_in_object(&search);
	if (!step)
		step = real_lookup()(RTLD_NEXT, "sqlite3_step");
	if (!step)
		step = program_step;
	if (!step) {
		search = (struct search){ .address = NULL };
		dl_iterate_phdr(match_object, &search);
		step = step_in_object(&search);
	}
	if (!step)
		return NULL;
	lock_libraries();
	library = add_library(step);
	callers[slot].address = address;
	callers[slot].library = library;
	unlock_libraries();
	return library;
}

void *own_function(const char *name)
{
	static void *own;
	struct search search = { .address = (const void *)own_function };

	if (!own && (dl_iterate_phdr(match_object, &search), search.is_found))
		own = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
	return own ? real_lookup()(own, name) : NULL;
}

void *library_function(const struct library *library, const char *name)
{
	return library ? real_lookup()(library->handle, name) : NULL;
}
