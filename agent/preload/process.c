// SPDX-License-Identifier: Apache-2.0
/*
 * What this library does when a process begins, forks and ends. A child of fork finds no lock held,
 * and begins a log of its own.
 */
#include "preload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void lock_all(void)
{
	lock_libraries();
	lock_state();
	lock_log();
}

static void unlock_all(void)
{
	unlock_log();
	unlock_state();
	unlock_libraries();
}

static void begin_child(void)
{
	leave_log_to_parent();
	unlock_all();
}

__attribute__((constructor)) static void begin_process(void)
{
	const char *values = getenv("JOJ_STATEMENT_VALUES");

	configure_log(getenv("JOJ_STATEMENTS"), !values || strcmp(values, "shape") != 0);
	pthread_atfork(lock_all, unlock_all, begin_child);
}

__attribute__((destructor)) static void end_process(void)
{
	if (!log_is_there() && library_is_loaded())
		log_count(LOADED_UNSEEN);
	if (another_is_built_in())
		log_count(BUILT_IN_UNSEEN);
}
