// SPDX-License-Identifier: Apache-2.0
/*
 * SQLite's functions that a program asks for by name, of a library that it loaded itself (dlopen):
 * so do Python's ctypes and the bindings of Java, .NET and others. They get ours in their place.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <string.h>

__asm__(".symver dlvsym,dlvsym@" FIRST_GLIBC);

static const char OF_SQLITE[] = "sqlite3_";

__attribute__((visibility("hidden"))) symbol_lookup real_dlsym;
static void *loaded_step;

symbol_lookup real_lookup(void)
{
	if (!real_dlsym)
		real_dlsym = (symbol_lookup)dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC);
	return real_dlsym;
}

void *loaded_by_program(void)
{
	return loaded_step;
}

/*
 * Our function of this name, where the library has one; null otherwise. Whose calls come from
 * anywhere can be of one SQLite only: those of a second one are not seen, and counted.
 */
__attribute__((visibility("hidden"), used)) void *ours_by_name(void *handle, const char *name)
{
	symbol_lookup look = real_lookup();
	void *found, *step, *linked, *ours;

	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !name ||
	    strncmp(name, OF_SQLITE, sizeof(OF_SQLITE) - 1) != 0)
		return NULL;
	found = look(handle, name);
	step = look(handle, "sqlite3_step");
	ours = own_function(name);
	if (!found || !step || !ours || found == ours)
		return NULL;
	linked = look(RTLD_NEXT, "sqlite3_step");
	if ((linked && linked != step) || (loaded_step && loaded_step != step)) {
		log_count(OTHERS_BY_NAME);
		return NULL;
	}
	loaded_step = step;
	return ours;
}

/*
 * dlsym(3) of the program: what RTLD_NEXT means depends on who calls, so that the real one is
 * jumped to and not called.
 */
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
#ifdef __aarch64__
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-32]!\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl ours_by_name\n"
	"	mov x9, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	cbnz x9, 1f\n"
	"	adrp x16, real_dlsym\n"
	"	ldr x16, [x16, :lo12:real_dlsym]\n"
	"	br x16\n"
	"1:	mov x0, x9\n"
	"	ret\n"
#else
	"	endbr64\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	sub $8, %rsp\n"
	"	call ours_by_name\n"
	"	add $8, %rsp\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	test %rax, %rax\n"
	"	jne 1f\n"
	"	jmp *real_dlsym(%rip)\n"
	"1:	ret\n"
#endif
	".size dlsym, . - dlsym\n");
