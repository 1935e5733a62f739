// SPDX-License-Identifier: Apache-2.0
/* How a process becomes a member of a redo log, leaves it, and holds it for a while. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "redo_log.h"

#define LOCK_BYTE 0
#define MEMBER_BYTE 1
#define POLL_US 1000

/* The logs that this process is a member of. */
static struct redo_log *logs;
/* Who becomes a member of a log, or leaves it, may have to ask another one. */
static pthread_mutex_t logs_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static int lock_byte(int fd, off_t offset, short type, int must_wait)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
	int result;

	do
		result = fcntl(fd, must_wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
	while (result != 0 && errno == EINTR);
	if (result == 0)
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

static int lock_once(struct redo_log *log, int must_wait)
{
	int error;

	error = must_wait ? pthread_mutex_lock(&log->mutex) : pthread_mutex_trylock(&log->mutex);
	if (error != 0)
		return EAGAIN;
	error = lock_byte(log->fd, LOCK_BYTE, F_WRLCK, must_wait);
	if (error != 0)
		pthread_mutex_unlock(&log->mutex);
	return error;
}

/* Without an error the log is locked. */
static int wait_for_lock(struct redo_log *log, int time_ms, struct doubt *doubt)
{
	int error = lock_once(log, time_ms < 0);

	for (; error == EAGAIN && time_ms > 0; time_ms--) {
		usleep(POLL_US);
		error = lock_once(log, 0);
	}
	if (error == EAGAIN)
		return EBUSY;
	if (error != 0 || !log_is_busy(log))
		return error;
	error = recover_tail(log, doubt);
	if (error != 0)
		unlock_log(log);
	return error;
}

/* The id of the log in a folder, without becoming a member. */
static int read_log_id(const char *folder, uint64_t *id)
{
	char path[MAX_PAYLOAD_BYTES + sizeof("/" LOG_NAME)];
	struct log_header header;
	int fd, error;

	snprintf(path, sizeof(path), "%s/" LOG_NAME, folder);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno;
	error = read_log_header(fd, &header);
	close(fd);
	*id = header.id;
	return error;
}

/*
 * What a coordinator, which is locked, says. That the transaction has not committed says only the
 * very file which the prepared record names, and only if it still knows the one before; and the
 * transaction must not be there later: a sync of a record that was revoked may have failed.
 */
static int read_outcome(struct redo_log *log, struct doubt *doubt)
{
	const struct coordinator_item *item = &doubt->coordinator;
	const struct outcome *place = find_place(log, item->log_key);
	uint64_t last = place != NULL ? place->transaction : 0;

	if (last == doubt->transaction) {
		doubt->is_committed = 1;
		return 0;
	}
	if (!is_same_file(log->file, item->log_file) ||
	    (last != item->previous && item->previous != doubt->transaction))
		return ESTALE;
	return log->shared->is_broken ? EIO : revoke_record(log);
}

/* Ask the coordinator whether a transaction has committed. No log is locked by the caller. */
static int find_outcome(struct doubt *doubt, int time_ms)
{
	struct redo_log *log;
	uint64_t id;
	int error = read_log_id(doubt->folder, &id);

	doubt->is_committed = 0;
	if (error == 0)
		error = id == doubt->coordinator.log_id ? attach_log(doubt->folder, NULL, &log)
							: ESTALE;
	if (error != 0)
		return error;
	error = lock_log(log, time_ms);
	if (error == 0) {
		error = read_outcome(log, doubt);
		unlock_log(log);
	}
	detach_log(log);
	return error;
}

/* The coordinator cannot be asked, or does not know. */
static int refuse(const struct doubt *doubt, int error)
{
	report("the redo log of %s has to say whether a transaction over several folders has "
	       "committed, and cannot: %s", doubt->folder,
	       error == ESTALE ? "it is another one, or a copy" : strerror(error));
	return ENOLINK;
}

/* Another process may have ended a doubt before the coordinator was asked, and have committed
 * since: what that cannot say is no refusal, unless the same transaction is in doubt afterwards.
 */
int lock_logs(struct redo_log **logs, int count, int time_ms)
{
	struct doubt doubt = {0};
	uint64_t unknown = 0;
	int locked, error, reason = 0;

	for (;;) {
		error = 0;
		for (locked = 0; locked < count && error == 0; locked++)
			error = wait_for_lock(logs[locked], time_ms, &doubt);
		if (error == 0)
			return 0;
		unlock_logs(logs, locked - 1);
		if (error != EINPROGRESS)
			return error;
		if (doubt.transaction == unknown)
			return refuse(&doubt, reason);
		reason = find_outcome(&doubt, time_ms);
		if (reason == EBUSY)
			return EBUSY;
		if (reason != 0) {
			unknown = doubt.transaction;
			doubt.transaction = 0;
		}
	}
}

void unlock_logs(struct redo_log **logs, int count)
{
	while (count > 0)
		unlock_log(logs[--count]);
}

int lock_log(struct redo_log *log, int time_ms)
{
	return lock_logs(&log, 1, time_ms);
}

void unlock_log(struct redo_log *log)
{
	lock_byte(log->fd, LOCK_BYTE, F_UNLCK, 0);
	pthread_mutex_unlock(&log->mutex);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void unmap_shared(struct redo_log *log)
{
	if (log->shared != NULL)
		munmap(log->shared, sizeof(*log->shared));
	log->shared = NULL;
}

static void close_log(struct redo_log *log)
{
	unsigned int number;

	unmap_shared(log);
	for (number = 0; number < MAX_DATABASES; number++)
		close_if_open(log->fds[number]);
	close_if_open(log->fd);
	close_if_open(log->folder_fd);
	pthread_mutex_destroy(&log->mutex);
	free(log->folder);
	free(log->buffer);
	free(log);
}

/* A log shows pages of each of its databases: it is open to nobody who may not open all of them. */
static void share_access(int fd, const struct stat *database, int is_new)
{
	struct stat status;
	mode_t mode = database->st_mode & 0666;

	if (fstat(fd, &status) != 0)
		return;
	if (is_new && (status.st_uid != database->st_uid || status.st_gid != database->st_gid) &&
	    fchown(fd, database->st_uid, database->st_gid) != 0)
		mode &= 0600;
	if (!is_new)
		mode &= status.st_mode;
	if (mode != (status.st_mode & 0777) && fchmod(fd, mode) != 0)
		report("the redo log has another mode than its database: %s", strerror(errno));
}

static int open_file(struct redo_log *log, const char *name, const struct stat *creator, int *fd)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW, is_new = 0;

	*fd = openat(log->folder_fd, name, flags);
	if (*fd < 0 && errno == ENOENT && creator != NULL) {
		*fd = openat(log->folder_fd, name, flags | O_CREAT | O_EXCL, 0600);
		is_new = *fd >= 0;
		if (*fd < 0 && errno == EEXIST)
			*fd = openat(log->folder_fd, name, flags);
	}
	if (*fd < 0)
		return errno;
	if (creator != NULL)
		share_access(*fd, creator, is_new);
	return 0;
}

/* Map what is shared. Its size is right only where a member has been. */
static int map_shared(struct redo_log *log, int fd, int is_first)
{
	struct stat status;
	void *memory;

	if (is_first && ftruncate(fd, sizeof(struct log_shared)) != 0)
		return errno;
	if (fstat(fd, &status) != 0)
		return errno;
	if (status.st_size != sizeof(struct log_shared))
		return EAGAIN;
	memory = mmap(NULL, sizeof(struct log_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return errno;
	log->shared = memory;
	return 0;
}

static int begin_as_first(struct redo_log *log, int shared_fd)
{
	struct doubt doubt = {0};
	int error = map_shared(log, shared_fd, 1);

	while (error == 0) {
		memset(log->shared, 0, sizeof(*log->shared));
		error = recover_log(log, &doubt);
		if (error != EINPROGRESS)
			break;
		error = find_outcome(&doubt, -1);
		if (error != 0)
			error = refuse(&doubt, error);
	}
	if (error != 0)
		return error;
	__atomic_store_n(&log->shared->is_ready, 1, __ATOMIC_SEQ_CST);
	return lock_byte(log->fd, MEMBER_BYTE, F_RDLCK, 0);
}

static int join_others(struct redo_log *log, int shared_fd)
{
	struct log_header header;
	int error = map_shared(log, shared_fd, 0);

	if (error == 0 && !__atomic_load_n(&log->shared->is_ready, __ATOMIC_SEQ_CST))
		error = EAGAIN;
	if (error == 0)
		error = read_log_header(log->fd, &header);
	if (error == 0)
		log->id = header.id;
	return error;
}

static int become_member(struct redo_log *log, int shared_fd)
{
	struct stat status;
	int error;

	for (;;) {
		error = lock_byte(log->fd, MEMBER_BYTE, F_WRLCK, 0);
		/* Who left for good has deleted the file. */
		if (error == 0 && fstat(log->fd, &status) == 0 && status.st_nlink == 0)
			return ESTALE;
		if (error == 0)
			return begin_as_first(log, shared_fd);
		if (error != EAGAIN)
			return error;
		/* Waits for a recovery, or for the last one to leave. */
		error = lock_byte(log->fd, MEMBER_BYTE, F_RDLCK, 1);
		if (error == 0)
			error = join_others(log, shared_fd);
		if (error != EAGAIN)
			return error;
		unmap_shared(log);
		lock_byte(log->fd, MEMBER_BYTE, F_UNLCK, 0);
		usleep(POLL_US);
	}
}

static int open_log(const char *folder, const struct stat *creator, struct redo_log **result)
{
	struct redo_log *log = calloc(1, sizeof(*log));
	struct stat status;
	unsigned int number, names;
	int error, shared_fd = -1;

	if (log == NULL)
		return ENOMEM;
	log->fd = -1;
	for (number = 0; number < MAX_DATABASES; number++)
		log->fds[number] = -1;
	pthread_mutex_init(&log->mutex, NULL);
	log->folder = strdup(folder);
	log->buffer = malloc(BUFFER_BYTES);
	log->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = log->folder_fd < 0 || fstat(log->folder_fd, &status) != 0 ? errno : 0;
	if (log->folder == NULL || log->buffer == NULL)
		error = ENOMEM;
	log->device = status.st_dev;
	log->folder_inode = status.st_ino;
	if (error == 0)
		error = open_file(log, LOG_NAME, creator, &log->fd);
	if (error == 0)
		error = read_file_id(log->folder_fd, LOG_NAME, &log->file, &names);
	/* The map can be lost alone, as it is never synced. */
	if (error == 0 && creator == NULL && fstat(log->fd, &status) != 0)
		error = errno;
	if (error == 0)
		error = open_file(log, SHARED_NAME, creator != NULL ? creator : &status,
				  &shared_fd);
	if (error == 0)
		error = become_member(log, shared_fd);
	close_if_open(shared_fd);
	if (error != 0) {
		close_log(log);
		return error;
	}
	*result = log;
	return 0;
}

int attach_log(const char *folder, const struct stat *creator, struct redo_log **log)
{
	struct redo_log *each;
	struct stat status;
	int error = 0;

	*log = NULL;
	if (stat(folder, &status) != 0)
		return errno;
	pthread_mutex_lock(&logs_mutex);
	for (each = logs; each != NULL; each = each->next)
		if (each->device == status.st_dev && each->folder_inode == status.st_ino)
			break;
	if (each == NULL) {
		do
			error = open_log(folder, creator, &each);
		while (error == ESTALE);
		if (error == 0) {
			each->next = logs;
			logs = each;
		}
	}
	if (error == 0)
		each->members++;
	pthread_mutex_unlock(&logs_mutex);
	if (error == 0)
		*log = each;
	return error;
}

void detach_log(struct redo_log *log)
{
	struct redo_log **at;

	pthread_mutex_lock(&logs_mutex);
	if (--log->members == 0) {
		for (at = &logs; *at != log; at = &(*at)->next)
			;
		*at = log->next;
		if (lock_byte(log->fd, MEMBER_BYTE, F_WRLCK, 0) == 0) {
			__atomic_store_n(&log->shared->is_ready, 0, __ATOMIC_SEQ_CST);
			if (lock_log(log, -1) == 0) {
				leave_all(log);
				unlock_log(log);
			}
		}
		close_log(log);
	}
	pthread_mutex_unlock(&logs_mutex);
}
