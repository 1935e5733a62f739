/* SPDX-License-Identifier: Apache-2.0 */
/* How a process becomes a member of a redo log, leaves it, and holds it for a while. */
#ifndef JOJ_REDO_MEMBER_H
#define JOJ_REDO_MEMBER_H

#include "redo_log.h"

/*
 * Become a member of the log of this folder; the first one recovers it. ENOENT where there is none,
 * unless creator is the database that needs one: the log gets its mode and owner.
 */
int attach_log(const char *folder, const struct stat *creator, struct redo_log **log);
/* Leave it; the last one empties the log and takes the marks away. */
void detach_log(struct redo_log *log);

/* Wait at most time_ms for the log (-1: without end), else EBUSY. What a dead committer left is
 * applied before.
 */
int lock_log(struct redo_log *log, int time_ms);
void unlock_log(struct redo_log *log);

#endif
