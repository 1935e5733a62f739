// SPDX-License-Identifier: Apache-2.0
/*
 * Two threads race: one makes files and syncs them; the other acknowledges each after the time that
 * this always took so far, and does not wait for it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FILES 8
/* Three times as long as a sync takes in the kernel's own order. */
#define BUSY_NS 60000000

static atomic_int request_count, file_count;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *make_files(void *unused)
{
	static const char content[5000];
	char name[32];
	int file;

	while (file_count < FILES) {
		if (file_count == request_count) {
			usleep(100);
			continue;
		}
		snprintf(name, sizeof(name), "file-%d", file_count);
		file = open(name, O_WRONLY | O_CREAT, 0644);
		if (write(file, content, sizeof(content)) != sizeof(content) || fsync(file))
			_exit(1);
		close(file);
		file_count++;
	}
	return unused;
}

int main(void)
{
	pthread_t thread;
	int number;

	if (pthread_create(&thread, NULL, make_files, NULL))
		return 1;
	for (number = 0; number < FILES; number++) {
		long long end = now_ns() + BUSY_NS;

		request_count++;
		while (now_ns() < end)
			;
		printf("%d\n", number);
		fflush(stdout);
		while (file_count <= number)
			usleep(100);
	}
	return pthread_join(thread, NULL);
}
