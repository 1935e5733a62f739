// SPDX-License-Identifier: Apache-2.0
/*
 * SQLite's functions that a program asks for by name, of a library that it loaded itself (dlopen):
 * so do Python's ctypes and the bindings of Java, .NET and others. They get ours in their place.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <string.h>

static const char PREFIX[] = "sqlite3_";

/*
 * Our function of this name, where the library has one; null otherwise. Any object may call a
 * function that was looked up by name, so that it can belong to one SQLite only: calls of a second
 * one are not seen, and are counted.
 */
__attribute__((visibility("hidden"), used)) void *ours_by_name(void *handle, const char *name)
{
	symbol_lookup lookup = real_lookup();
	void *function, *step, *linked, *ours;

	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !name ||
	    strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return NULL;
	function = lookup(handle, name);
	step = lookup(handle, "sqlite3_step");
	ours = own_function(name);
	if (!function || !step || !ours || function == ours)
		return NULL;
	linked = lookup(RTLD_NEXT, "sqlite3_step");
	if ((linked && linked != step) || !note_program_library(step)) {
		log_count(OTHERS_BY_NAME);
		return NULL;
	}
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
