/* SPDX-License-Identifier: Apache-2.0 */
/* Where the databases of a redo log are. */
#ifndef JOJ_REDO_PLACE_H
#define JOJ_REDO_PLACE_H

#include "redo_log.h"

/* Which file has this name, and how many names it has. */
int read_file_id(int folder_fd, const char *name, struct file_id *file, unsigned int *names);
int is_same_file(struct file_id one, struct file_id other);
int has_name(const struct redo_log *log, struct file_id file, const char *name);
/* Find the name that a file has by now, of at most NAME_MAX bytes. */
int find_name(const struct redo_log *log, struct file_id file, char *name);
/* A descriptor of a database, which the log keeps. ENOENT where the file is no more. */
int database_fd(struct redo_log *log, unsigned int number, int *fd);
/* The 100 bytes of its header; zeros behind the file's end, whose size is told. */
int read_header(int fd, unsigned char *header, uint64_t *size_bytes);

#endif
