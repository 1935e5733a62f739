// SPDX-License-Identifier: Apache-2.0
/*
 * A folder of a few files in memory, as one process alone sees it, for the fuzzer: no input waits
 * for the system. Its path is whatever is asked for.
 *
 * A file has at most MAX_FILE_BYTES (EFBIG), one name, and the number of its name as inode. Locks
 * are always free, since nobody else is there. A call that the log does not make ends the process.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILES 8
#define MAX_FILE_BYTES (1 << 20)
#define FOLDER_FD 100
#define FIRST_FD 101
#define MAX_FDS 64

struct file {
	const char *name;
	int is_there;
	size_t size_bytes;
	/* A page's boundary, for mmap(). */
	_Alignas(4096) unsigned char bytes[MAX_FILE_BYTES];
};

static struct file files[MAX_FILES];
static unsigned int file_count;
static struct file *fds[MAX_FDS];
static unsigned int next_entry;
static uint64_t draws;

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "memory_files: %s\n", what);
	abort();
}

/* Bytes behind the end are zeros at any time. */
static void resize(struct file *file, size_t size_bytes)
{
	if (size_bytes < file->size_bytes)
		memset(file->bytes + size_bytes, 0, file->size_bytes - size_bytes);
	file->size_bytes = size_bytes;
}

void begin_memory_files(const char *const *names, unsigned int count)
{
	unsigned int number;

	require(count <= MAX_FILES, "too many names");
	file_count = count;
	for (number = 0; number < count; number++) {
		files[number].name = names[number];
		files[number].is_there = 0;
		resize(&files[number], 0);
	}
	for (number = 0; number < MAX_FDS; number++)
		require(fds[number] == NULL, "a file was not closed");
	draws = 0;
}

static struct file *find_file(const char *name)
{
	unsigned int number;

	for (number = 0; number < file_count; number++)
		if (strcmp(files[number].name, name) == 0)
			return &files[number];
	return NULL;
}

static struct file *file_of(int fd)
{
	require(fd >= FIRST_FD && fd < FIRST_FD + MAX_FDS && fds[fd - FIRST_FD] != NULL,
		"a descriptor of no file");
	return fds[fd - FIRST_FD];
}

static int fail(int error)
{
	errno = error;
	return -1;
}

int openat(int folder_fd, const char *path, int flags, ...)
{
	const char *slash = strrchr(path, '/');
	struct file *file = find_file(slash != NULL ? slash + 1 : path);
	int fd;

	require(folder_fd == FOLDER_FD || folder_fd == AT_FDCWD, "another folder");
	if (flags & O_DIRECTORY)
		return FOLDER_FD;
	require(file != NULL || !(flags & O_CREAT), "another file appeared");
	if (file == NULL || (!file->is_there && !(flags & O_CREAT)))
		return fail(ENOENT);
	if (file->is_there && (flags & O_CREAT) && (flags & O_EXCL))
		return fail(EEXIST);
	file->is_there = 1;
	if (flags & O_TRUNC)
		resize(file, 0);
	for (fd = 0; fd < MAX_FDS; fd++)
		if (fds[fd] == NULL)
			break;
	require(fd < MAX_FDS, "files are not closed");
	fds[fd] = file;
	return FIRST_FD + fd;
}

int open(const char *path, int flags, ...)
{
	return openat(AT_FDCWD, path, flags);
}

int close(int fd)
{
	if (fd == FOLDER_FD)
		return 0;
	file_of(fd);
	fds[fd - FIRST_FD] = NULL;
	return 0;
}

ssize_t pread(int fd, void *bytes, size_t length_bytes, off_t offset)
{
	const struct file *file = file_of(fd);
	size_t left_bytes;

	if (offset < 0)
		return fail(EINVAL);
	left_bytes = (size_t)offset < file->size_bytes ? file->size_bytes - (size_t)offset : 0;
	if (length_bytes > left_bytes)
		length_bytes = left_bytes;
	memcpy(bytes, file->bytes + (left_bytes > 0 ? offset : 0), length_bytes);
	return (ssize_t)length_bytes;
}

ssize_t pwrite(int fd, const void *bytes, size_t length_bytes, off_t offset)
{
	struct file *file = file_of(fd);

	if (offset < 0)
		return fail(EINVAL);
	if (length_bytes > MAX_FILE_BYTES || offset > (off_t)(MAX_FILE_BYTES - length_bytes))
		return fail(EFBIG);
	if ((size_t)offset + length_bytes > file->size_bytes)
		resize(file, (size_t)offset + length_bytes);
	memcpy(file->bytes + offset, bytes, length_bytes);
	return (ssize_t)length_bytes;
}

int ftruncate(int fd, off_t size_bytes)
{
	struct file *file = file_of(fd);

	if (size_bytes < 0)
		return fail(EINVAL);
	if (size_bytes > MAX_FILE_BYTES)
		return fail(EFBIG);
	resize(file, (size_t)size_bytes);
	return 0;
}

/* Of the folder. */
int stat(const char *path, struct stat *status)
{
	(void)path;
	memset(status, 0, sizeof(*status));
	return 0;
}

int fstat(int fd, struct stat *status)
{
	const struct file *file;

	if (fd == FOLDER_FD)
		return stat("", status);
	file = file_of(fd);
	memset(status, 0, sizeof(*status));
	status->st_ino = (ino_t)(file - files + 1);
	status->st_nlink = 1;
	status->st_mode = S_IFREG | 0600;
	status->st_size = (off_t)file->size_bytes;
	return 0;
}

int statx(int folder_fd, const char *name, int flags, unsigned int mask, struct statx *status)
{
	const struct file *file = find_file(name);

	(void)folder_fd;
	(void)flags;
	if (file == NULL || !file->is_there)
		return fail(ENOENT);
	memset(status, 0, sizeof(*status));
	status->stx_mask = mask;
	status->stx_mode = S_IFREG | 0600;
	status->stx_ino = (uint64_t)(file - files + 1);
	status->stx_nlink = 1;
	status->stx_btime.tv_sec = 1;
	return 0;
}

int fsync(int fd)
{
	if (fd != FOLDER_FD)
		file_of(fd);
	return 0;
}

int fdatasync(int fd)
{
	return fsync(fd);
}

int fchmod(int fd, mode_t mode)
{
	(void)mode;
	file_of(fd);
	return 0;
}

int fchown(int fd, uid_t owner, gid_t group)
{
	(void)owner;
	(void)group;
	file_of(fd);
	return 0;
}

int fcntl(int fd, int command, ...)
{
	file_of(fd);
	require(command == F_OFD_SETLK || command == F_OFD_SETLKW, "another fcntl()");
	return 0;
}

void *mmap(void *place, size_t length_bytes, int protection, int flags, int fd, off_t offset)
{
	struct file *file = file_of(fd);

	(void)place;
	(void)protection;
	require((flags & MAP_SHARED) && offset == 0 && length_bytes <= file->size_bytes,
		"another mmap()");
	return file->bytes;
}

int munmap(void *memory, size_t length_bytes)
{
	(void)memory;
	(void)length_bytes;
	return 0;
}

/* A program opens one folder at a time; a DIR is any address that is not NULL. */
DIR *fdopendir(int fd)
{
	require(fd == FOLDER_FD, "another folder");
	next_entry = 0;
	return (DIR *)&next_entry;
}

struct dirent *readdir(DIR *folder)
{
	static struct dirent entry;

	(void)folder;
	while (next_entry < file_count && !files[next_entry].is_there)
		next_entry++;
	if (next_entry == file_count)
		return NULL;
	entry.d_ino = next_entry + 1;
	strncpy(entry.d_name, files[next_entry++].name, sizeof(entry.d_name) - 1);
	return &entry;
}

int closedir(DIR *folder)
{
	(void)folder;
	return 0;
}

/* The same for each input, so that one that does harm does it again. */
ssize_t getrandom(void *bytes, size_t length_bytes, unsigned int flags)
{
	(void)flags;
	require(length_bytes == sizeof(draws), "another number");
	draws += 0x9e3779b97f4a7c15ULL;
	memcpy(bytes, &draws, sizeof(draws));
	return (ssize_t)length_bytes;
}
