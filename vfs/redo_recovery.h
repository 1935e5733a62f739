/* SPDX-License-Identifier: Apache-2.0 */
/* What a redo log holds goes into its databases, after a power cut or the death of a process. */
#ifndef JOJ_REDO_RECOVERY_H
#define JOJ_REDO_RECOVERY_H

#include "redo_log.h"

/* For the one member of a log: replay all that is valid, and take all marks away. */
int recover_log(struct redo_log *log);
/* For its holder: apply the record that a dead committer wrote, if it is whole. */
int recover_tail(struct redo_log *log);

#endif
