// SPDX-License-Identifier: Apache-2.0
/* Super-journals, which name the journals of a transaction over several databases. */
#include <pthread.h>
#include <string.h>

#include "redo_super.h"

SQLITE_EXTENSION_INIT3

static struct super_journal *supers;
static pthread_mutex_t supers_mutex = PTHREAD_MUTEX_INITIALIZER;

struct super_journal *add_super(sqlite3_vfs *lower, const char *path)
{
	struct super_journal *super = sqlite3_malloc(sizeof(*super));

	if (super == NULL)
		return NULL;
	memset(super, 0, sizeof(*super));
	super->lower = lower;
	super->users = 1;
	super->path = sqlite3_mprintf("%s", path);
	if (super->path == NULL) {
		sqlite3_free(super);
		return NULL;
	}
	pthread_mutex_lock(&supers_mutex);
	super->next = supers;
	supers = super;
	pthread_mutex_unlock(&supers_mutex);
	return super;
}

struct super_journal *find_super(const char *path, size_t length)
{
	struct super_journal *super;

	pthread_mutex_lock(&supers_mutex);
	for (super = supers; super != NULL; super = super->next)
		if (strlen(super->path) == length && memcmp(super->path, path, length) == 0)
			break;
	pthread_mutex_unlock(&supers_mutex);
	return super;
}

void unlist_super(const struct super_journal *super)
{
	struct super_journal **at;

	pthread_mutex_lock(&supers_mutex);
	for (at = &supers; *at != NULL && *at != super; at = &(*at)->next)
		;
	if (*at != NULL)
		*at = super->next;
	pthread_mutex_unlock(&supers_mutex);
}

void drop_super(struct super_journal *super)
{
	if (--super->users > 0)
		return;
	unlist_super(super);
	spool_free(&super->names);
	sqlite3_free(super->path);
	sqlite3_free(super);
}

void name_super(struct super_journal **named, struct super_journal *super)
{
	struct super_journal *old = *named;

	if (super != NULL)
		super->users++;
	__atomic_store_n(named, super, __ATOMIC_RELAXED);
	if (old != NULL)
		drop_super(old);
}
