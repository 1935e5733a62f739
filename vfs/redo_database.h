/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a database of a redo log. All is for holders of the log. */
#ifndef JOJ_REDO_DATABASE_H
#define JOJ_REDO_DATABASE_H

#include "redo_log.h"
#include "redo_mark.h"

/*
 * Set the mark of the file of this name, durably, before its first record. A database without
 * bytes gets the header first_page, which says that it has no pages. Errors that say that it cannot
 * have a mark: EMLINK, EXDEV (the name is another file's by now), EMEDIUMTYPE (it is no database,
 * or has another log's mark).
 */
int mark_database(struct redo_log *log, const char *name, struct file_id file,
		  const unsigned char *first_page, unsigned int *number);
/*
 * The entry of a file with a mark. EMEDIUMTYPE where the mark is another log's, EEXIST where the
 * file is a copy of one that is there too, EKEYEXPIRED where its id is one of before a recovery.
 */
int join_database(struct redo_log *log, const char *name, struct file_id file,
		  const unsigned char *header, unsigned int *number);
/* Empty the log, and take the mark of a database away. */
int leave_database(struct redo_log *log, unsigned int number, int version);
/* The same for all of the log. What cannot be done is reported, and stays as it is. */
int leave_all(struct redo_log *log);

#endif
