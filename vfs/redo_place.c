// SPDX-License-Identifier: Apache-2.0
/* Where the databases of a redo log are. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redo_mark.h"
#include "redo_place.h"

int read_header(int fd, unsigned char *header, uint64_t *size_bytes)
{
	struct stat status;
	long got;

	memset(header, 0, HEADER_BYTES);
	got = read_most(fd, header, HEADER_BYTES, 0);
	if (got < 0)
		return (int)-got;
	if (fstat(fd, &status) != 0)
		return errno;
	*size_bytes = (uint64_t)status.st_size;
	return 0;
}

int read_file_id(int folder_fd, const char *name, struct file_id *file, unsigned int *names)
{
	struct statx status;

	if (statx(folder_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
		  &status) != 0)
		return errno;
	if (!S_ISREG(status.stx_mode))
		return EMEDIUMTYPE;
	file->inode = status.stx_ino;
	file->born_ns = 0;
	if (status.stx_mask & STATX_BTIME)
		file->born_ns = (uint64_t)status.stx_btime.tv_sec * 1000000000 +
				status.stx_btime.tv_nsec;
	*names = status.stx_nlink;
	return 0;
}

int is_same_file(struct file_id one, struct file_id other)
{
	return one.inode == other.inode && one.born_ns == other.born_ns;
}

int has_name(const struct redo_log *log, struct file_id file, const char *name)
{
	struct file_id now;
	unsigned int names;

	return read_file_id(log->folder_fd, name, &now, &names) == 0 && is_same_file(now, file);
}

/* Find the name that a file has by now. */
int find_name(const struct redo_log *log, struct file_id file, char *name)
{
	int fd = openat(log->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = ENOENT;
	struct dirent *each;
	DIR *folder;

	if (fd < 0)
		return errno;
	folder = fdopendir(fd);
	if (folder == NULL) {
		close(fd);
		return ENOMEM;
	}
	while (error != 0 && (each = readdir(folder)) != NULL) {
		if (each->d_ino != file.inode || !has_name(log, file, each->d_name))
			continue;
		snprintf(name, NAME_MAX + 1, "%s", each->d_name);
		error = 0;
	}
	closedir(folder);
	return error;
}

/*
 * By its inode, which a rename keeps; else by its name, where the folder was copied. Which of the
 * two it is shows its header, which the caller looks at.
 */
int database_fd(struct redo_log *log, unsigned int number, int *fd)
{
	struct log_entry *entry = &log->shared->entries[number];

	if (log->fds[number] < 0) {
		if (!has_name(log, entry->file, entry->name))
			find_name(log, entry->file, entry->name);
		log->fds[number] = openat(log->folder_fd, entry->name,
					  O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	}
	*fd = log->fds[number];
	return *fd < 0 ? errno : 0;
}
