// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's process 1 that times raw NAND through /dev/mtd0, as mtd_speedtest does: erases blocks,
 * and programs and reads them, a whole block by one call, and then a page by one call. Prints a
 * line each, its name and the nanoseconds that a block's erase took at the median, or a page at the
 * mean of all, by the guest's clock; or what failed. PARAMETERS are those of raw_nand.ko.
 *
 * Stops once for the snapshot, as the agent does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mtd/mtd-user.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PVPANIC 0x505
#define BLOCKS 8

static struct mtd_info_user part;
static unsigned char *written, *found;
static int nand;

static long must(long result, const char *what)
{
	if (result < 0) {
		printf("%s: %m\n", what);
		exit(1);
	}
	return result;
}

static void insert(const char *path, const char *parameters)
{
	int file = must(open(path, O_RDONLY), path);

	must(syscall(SYS_finit_module, file, parameters, 0), path);
	close(file);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void tell(const char *name, long long begin_ns, unsigned int count)
{
	printf("%s %lld\n", name, (now_ns() - begin_ns) / count);
}

static int by_length(const void *one, const void *other)
{
	long long difference_ns = *(const long long *)one - *(const long long *)other;

	return (difference_ns > 0) - (difference_ns < 0);
}

/* The median: Linux 6.12 does 4 ms of its own work in a softirq during one of them. */
static void erase(const char *name)
{
	long long took_ns[BLOCKS];

	for (unsigned int block = 0; block < BLOCKS; block++) {
		struct erase_info_user erased = { block * part.erasesize, part.erasesize };
		long long begin_ns = now_ns();

		must(ioctl(nand, MEMERASE, &erased), "MEMERASE");
		took_ns[block] = now_ns() - begin_ns;
	}
	qsort(took_ns, BLOCKS, sizeof(*took_ns), by_length);
	printf("%s %lld\n", name, took_ns[BLOCKS / 2]);
}

/* Each call moves `length` bytes. */
static void program(const char *name, unsigned int length)
{
	unsigned int whole = BLOCKS * part.erasesize;
	long long begin_ns = now_ns();

	for (unsigned int at = 0; at < whole; at += length)
		must(pwrite(nand, written + at, length, at) == length ? 0 : -1, name);
	tell(name, begin_ns, whole / part.writesize);
}

static void read_back(const char *name, unsigned int length)
{
	unsigned int whole = BLOCKS * part.erasesize;
	long long begin_ns = now_ns();

	for (unsigned int at = 0; at < whole; at += length)
		must(pread(nand, found + at, length, at) == length ? 0 : -1, name);
	tell(name, begin_ns, whole / part.writesize);
	if (memcmp(found, written, whole))
		printf("%s: other bytes\n", name);
	memset(found, 0, whole);
}

/* What a program touches for the first time faults, which is not the part's time. */
static unsigned char *touched(void)
{
	unsigned char *bytes = malloc(BLOCKS * part.erasesize);

	for (unsigned int i = 0; i < BLOCKS * part.erasesize; i++)
		bytes[i] = (i * 2654435761U) >> 24;
	return bytes;
}

int main(void)
{
	must(iopl(3), "iopl");
	must(mount("devtmpfs", "/dev", "devtmpfs", 0, NULL), "mount /dev");
	insert("/modules/mtd.ko", "");
	insert("/modules/raw_nand.ko", PARAMETERS);
	nand = must(open("/dev/mtd0", O_RDWR), "/dev/mtd0");
	must(ioctl(nand, MEMGETINFO, &part), "MEMGETINFO");
	written = touched();
	found = touched();
	outb(1, PVPANIC);
	erase("erase");
	program("program_by_block", part.erasesize);
	read_back("read_by_block", part.erasesize);
	erase("erase_again");
	program("program_by_page", part.writesize);
	read_back("read_by_page", part.writesize);
	puts("done");
	fflush(stdout);
	tcdrain(STDOUT_FILENO); /* what the console has not sent is lost by the panic */
	return 0; /* the end of process 1 panics the kernel, and ends the guest */
}
