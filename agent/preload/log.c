// SPDX-License-Identifier: Apache-2.0
/*
 * The log of this process: a file that is mapped a piece at a time, so that a record costs no
 * system call, needs no open descriptor (a program may close all of them), and is there when the
 * program is killed. Space is allocated before it is mapped: a full disk loses records, which are
 * counted, and never raises SIGBUS.
 *
 *   page 0    struct log_head
 *   chunks    { u64 length_bytes, records ... }, each of whole pages
 *   record    { u32 length_bytes, u32 kind, ... }, 8-byte aligned; length 0: no more in the chunk
 *
 * System calls are made by syscall(2), which is no cancellation point (pthreads(7)).
 */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, CHUNK = 256 * 1024, LOG_VERSION = 2, RECORD_ALIGNMENT = 8 };

struct log_head {
	char magic[8];
	uint32_t version;
	int32_t pid;
	int32_t parent_pid;
	uint32_t counters;
	int64_t begin_ns;
	_Atomic uint64_t counts[COUNTERS];
	char executable[2048];	/* as /proc names it; ends with a zero */
};
_Static_assert(sizeof(struct log_head) <= PAGE, "the head is one page");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *folder;
static bool keeps_values = true;
static _Atomic uint32_t number = 1;
static char path[4096];
static struct log_head *head;
static struct log_head uncounted;	/* in the place of a head that cannot be made */
static unsigned char *chunk;
static uint64_t chunk_bytes;
static uint64_t used_bytes;
static uint64_t file_bytes;
static bool is_broken;
static __thread int32_t thread_id __attribute__((tls_model("initial-exec")));

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int32_t thread_number(void)
{
	if (!thread_id)
		thread_id = (int32_t)syscall(SYS_gettid);
	return thread_id;
}

uint32_t log_number(void)
{
	return atomic_load_explicit(&number, memory_order_relaxed);
}

bool log_keeps_values(void)
{
	return keeps_values;
}

bool log_is_there(void)
{
	return head && head != &uncounted;
}

/* Allocates so many bytes behind the file's end, and maps them. Null if that is not possible. */
static void *extend_file(uint64_t length_bytes, int flags)
{
	static const unsigned char zeros[PAGE];
	struct rlimit limit;
	void *mapped = MAP_FAILED;
	long failed = 0;
	int file;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && file_bytes + length_bytes > limit.rlim_cur)
		return NULL;	/* it would raise SIGXFSZ */
	flags |= O_RDWR | O_CLOEXEC | O_NOFOLLOW;
	file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
	if (file < 0)
		return NULL;
	failed = syscall(SYS_fallocate, file, 0, file_bytes, length_bytes);
	if (failed && errno == EOPNOTSUPP) {
		failed = 0;
		for (uint64_t at = 0; at < length_bytes && !failed; at += PAGE)
			failed = syscall(SYS_pwrite64, file, zeros, PAGE, file_bytes + at) != PAGE;
	}
	if (!failed)
		mapped = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
			      (off_t)file_bytes);
	syscall(SYS_close, file);
	if (mapped == MAP_FAILED)
		return NULL;
	file_bytes += length_bytes;
	return mapped;
}

static void begin_log(void)
{
	struct log_head *page;
	ssize_t length;

	uncounted = (struct log_head){ .pid = 0 };
	head = &uncounted;
	is_broken = true;
	if (!folder)
		return;
	length = snprintf(path, sizeof(path), "%s/%d-%lld.log", folder, (int)getpid(),
			  (long long)now_ns());
	if (length < 0 || (size_t)length >= sizeof(path))
		return;
	file_bytes = 0;
	page = extend_file(PAGE, O_CREAT | O_EXCL);
	if (!page)
		return;
	length = readlink("/proc/self/exe", page->executable, sizeof(page->executable) - 1);
	page->executable[length < 0 ? 0 : length] = 0;
	page->pid = getpid();
	page->parent_pid = getppid();
	page->counters = COUNTERS;
	page->begin_ns = now_ns();
	page->version = LOG_VERSION;
	memcpy(page->magic, "JOJ-SQL\n", sizeof(page->magic));
	head = page;
	is_broken = false;
}

/* Room for a record in the chunk that is mapped; null if there is none. */
static unsigned char *room(uint64_t length_bytes)
{
	uint64_t wanted = sizeof(uint64_t) + length_bytes;

	if (is_broken)
		return NULL;
	if (!chunk || used_bytes + length_bytes > chunk_bytes) {
		wanted = wanted < CHUNK ? CHUNK : (wanted + PAGE - 1) / PAGE * PAGE;
		if (chunk)
			munmap(chunk, chunk_bytes);
		chunk = extend_file(wanted, 0);
		is_broken = !chunk;
		if (!chunk)
			return NULL;
		chunk_bytes = wanted;
		used_bytes = sizeof(uint64_t);
		memcpy(chunk, &wanted, sizeof(wanted));
	}
	used_bytes += length_bytes;
	return chunk + used_bytes - length_bytes;
}

bool log_append(enum record kind, const struct piece *pieces, unsigned count)
{
	uint64_t length_bytes = 2 * sizeof(uint32_t);
	uint32_t kind_word = kind;
	unsigned char *record, *to;
	int error = errno;

	for (unsigned i = 0; i < count; i++)
		length_bytes += pieces[i].length_bytes;
	length_bytes = (length_bytes + RECORD_ALIGNMENT - 1) & ~(uint64_t)(RECORD_ALIGNMENT - 1);
	pthread_mutex_lock(&lock);
	if (!head)
		begin_log();
	record = length_bytes <= UINT32_MAX ? room(length_bytes) : NULL;
	if (record) {
		memcpy(record + sizeof(uint32_t), &kind_word, sizeof(kind_word));
		to = record + 2 * sizeof(uint32_t);
		for (unsigned i = 0; i < count; i++) {
			if (pieces[i].length_bytes)
				memcpy(to, pieces[i].data, pieces[i].length_bytes);
			to += pieces[i].length_bytes;
		}
		/* Last: a record that has a length is whole. */
		atomic_store_explicit((_Atomic uint32_t *)(void *)record, (uint32_t)length_bytes,
				      memory_order_release);
	} else {
		atomic_fetch_add(&head->counts[LOST_RECORDS], 1);
	}
	pthread_mutex_unlock(&lock);
	errno = error;
	return record;
}

void log_count(enum counter counter)
{
	int error = errno;

	pthread_mutex_lock(&lock);
	if (!head)
		begin_log();
	atomic_fetch_add(&head->counts[counter], 1);
	pthread_mutex_unlock(&lock);
	errno = error;
}

void configure_log(const char *log_folder, bool has_values)
{
	if (log_folder)
		folder = strdup(log_folder);
	keeps_values = has_values;
}

void lock_log(void)
{
	pthread_mutex_lock(&lock);
}

void unlock_log(void)
{
	pthread_mutex_unlock(&lock);
}

void leave_log_to_parent(void)
{
	if (chunk)
		munmap(chunk, chunk_bytes);
	if (log_is_there())
		munmap(head, PAGE);
	chunk = NULL;
	head = NULL;
	is_broken = false;
	thread_id = 0;
	atomic_fetch_add(&number, 1);
}
