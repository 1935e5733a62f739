// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that change files of one folder, or of folders in it, for tests:
 * LD_PRELOAD=call_log.so:... PROGRAM.
 *
 * CALLS_FOLDER is the folder. With CALLS_LOG each call is written to that file: a header, the name
 * of the file and the bytes. With CALLS_DEATH=N the process dies (SIGKILL) before the Nth call.
 * With CALLS_FAULT=KIND:N:ERRNO the Nth call of that kind, and later ones, fail; KIND:N:ERRNO:1
 * fails once. Reads can fail too, and are no calls else. The file `acknowledged` is the program's
 * own: calls on it do not fail. A program that sets CALLS_FAULT itself finds the number of calls of
 * that kind since in calls_of_kind.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { READ = 'r', WRITE = 'w', TRUNCATE = 't', SYNC = 's', UNLINK = 'u', CREATE = 'c' };

struct entry {
	uint32_t kind, name_bytes;
	int64_t offset;
	uint64_t length;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1, calls;
int calls_of_kind;
static char folder[PATH_MAX];

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CALLS_LOG"), *name = getenv("CALLS_FOLDER");

	if (name == NULL || realpath(name, folder) == NULL)
		abort();
	if (path != NULL)
		log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The name of a path in the folder ("" is the folder itself); NULL of another. */
static const char *name_in_folder(const char *path)
{
	size_t length = strlen(folder);

	if (strncmp(path, folder, length) != 0)
		return NULL;
	if (path[length] == 0)
		return "";
	return path[length] == '/' ? path + length + 1 : NULL;
}

static const char *name_of(int fd, char *path)
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, PATH_MAX - 1);
	if (length < 0)
		return NULL;
	path[length] = 0;
	return name_in_folder(path);
}

static int is_fault(int kind)
{
	const char *fault = getenv("CALLS_FAULT");
	int number, error, once = 0;
	char wanted;

	if (fault == NULL || sscanf(fault, "%c:%d:%d:%d", &wanted, &number, &error, &once) < 3 ||
	    wanted != kind)
		return 0;
	calls_of_kind++;
	if (calls_of_kind < number || (once && calls_of_kind > number))
		return 0;
	errno = error;
	return 1;
}

/* Log the call, or die, or return 1 where it has to fail. Calls of the log's map are none. */
static int see(int kind, const char *name, int64_t offset, const void *bytes, uint64_t length)
{
	struct entry entry = {
		.kind = (uint32_t)kind,
		.offset = offset,
		.length = length,
	};
	const char *death = getenv("CALLS_DEATH");

	if (name == NULL || strstr(name, "joj-redo.shm") != NULL)
		return 0;
	if (strcmp(name, "acknowledged") != 0 && is_fault(kind))
		return 1;
	if (kind == READ)
		return 0;
	if (death != NULL && __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == atoi(death))
		kill(getpid(), SIGKILL);
	if (log_fd < 0)
		return 0;
	entry.name_bytes = (uint32_t)strlen(name);
	pthread_mutex_lock(&mutex);
	if (write(log_fd, &entry, sizeof(entry)) < 0 || write(log_fd, name, entry.name_bytes) < 0 ||
	    (bytes != NULL && write(log_fd, bytes, length) < 0))
		abort();
	pthread_mutex_unlock(&mutex);
	return 0;
}

ssize_t pread64(int fd, void *bytes, size_t length, off64_t offset)
{
	char path[PATH_MAX];

	if (see(READ, name_of(fd, path), offset, NULL, 0))
		return -1;
	return syscall(SYS_pread64, fd, bytes, length, offset);
}

ssize_t pread(int fd, void *bytes, size_t length, off_t offset)
{
	return pread64(fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset)
{
	char path[PATH_MAX];

	if (see(WRITE, name_of(fd, path), offset, bytes, length))
		return -1;
	return syscall(SYS_pwrite64, fd, bytes, length, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	return pwrite64(fd, bytes, length, offset);
}

int ftruncate64(int fd, off64_t length)
{
	char path[PATH_MAX];

	if (see(TRUNCATE, name_of(fd, path), length, NULL, 0))
		return -1;
	return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length)
{
	return ftruncate64(fd, length);
}

int fsync(int fd)
{
	char path[PATH_MAX];

	if (see(SYNC, name_of(fd, path), 0, NULL, 0))
		return -1;
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	char path[PATH_MAX];

	if (see(SYNC, name_of(fd, path), 0, NULL, 0))
		return -1;
	return (int)syscall(SYS_fdatasync, fd);
}

int unlink(const char *path)
{
	if (see(UNLINK, name_in_folder(path), 0, NULL, 0))
		return -1;
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static int open_seen(int folder_fd, const char *path, int flags, mode_t mode)
{
	struct stat status;
	int is_new = (flags & O_CREAT) && fstatat(folder_fd, path, &status, 0) != 0;
	int fd = (int)syscall(SYS_openat, folder_fd, path, flags, mode);
	char found[PATH_MAX];

	if (fd >= 0 && is_new && see(CREATE, name_of(fd, found), 0, NULL, 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

int open64(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = (mode_t)va_arg(arguments, int);
	va_end(arguments);
	return open_seen(AT_FDCWD, path, flags, mode);
}

int openat(int folder_fd, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = (mode_t)va_arg(arguments, int);
	va_end(arguments);
	return open_seen(folder_fd, path, flags, mode);
}
