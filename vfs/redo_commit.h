/* SPDX-License-Identifier: Apache-2.0 */
/* The commit of a transaction over one database or several. */
#ifndef JOJ_REDO_COMMIT_H
#define JOJ_REDO_COMMIT_H

#include "redo_file.h"

/* As many as SQLite attaches at most (SQLITE_MAX_ATTACHED is 125 at most), and the main one. */
#define MAX_FILES 126

/*
 * Make the changes of these files durable, all or none: in one record of the log; or, where they
 * cannot have one, in SQLite's own way, with their journals as files. super is NULL for one file.
 */
int commit_files(struct redo_file **files, int count, struct super_journal *super);

#endif
