// SPDX-License-Identifier: Apache-2.0
/*
 * The least that a workload of buffered writes can cost: pwrite(2) of 4 KiB records in order over
 * a file of 16 MiB, and nothing else. bare_pwrite FILE COUNT prints writes per second.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_BYTES = 4096, RECORDS = 4096 };

static char record[RECORD_BYTES] __attribute__((aligned(4096)));

static int write_records(int file, long count)
{
	for (long i = 0; i < count; i++) {
		off_t offset = (off_t)(i % RECORDS) * RECORD_BYTES;

		if (pwrite(file, record, RECORD_BYTES, offset) != RECORD_BYTES) {
			perror("pwrite");
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct timespec begin, end;
	long count = argc == 3 ? atol(argv[2]) : 0;
	int file = count > 0 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;

	if (file < 0) {
		fprintf(stderr, "bare_pwrite FILE COUNT\n");
		return 2;
	}
	if (write_records(file, RECORDS))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (write_records(file, count))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.0f\n", count / (end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9));
	return 0;
}
