// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's process 1 that writes to a modelled disk from two processors at once: one as much as a
 * request holds, the other the last slot of that, again and again. Then it compares the disk's
 * record with what the disk holds. Prints one line: what it found wrong, or "in order". PARAMETERS
 * are those of flash.ko.
 *
 * A request's place in the record, its time of issue and its place among the writes of a slot are
 * one (kernel/flash/command.c). So in the record times never go back, and the last piece of a slot
 * is what is read from there. Else a small write, which began while a large one was copied, would
 * be recorded before it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define SYSFS "/sys/block/flash0/"
#define LARGE_WRITES 150
#define SMALL_WRITES 10000 /* at most: it ends with the large ones */
#define SLOTS 128
#define SLOT_BYTES 4096
#define LARGE_BYTES (SLOTS * SLOT_BYTES)
#define SECTOR_BYTES 512
#define SLOT_SECTORS (SLOT_BYTES / SECTOR_BYTES)

/* As kernel/flash/record.h and power_cut.h have them. */
struct request {
	uint64_t issue_ns, completion_ns, first_piece;
	uint32_t piece_count;
	uint8_t is_flush, is_fua, is_atomic, reserved;
};

struct piece {
	uint64_t slot, sectors, after[SLOT_SECTORS], before[SLOT_SECTORS];
};

static struct request requests[LARGE_WRITES + SMALL_WRITES];
static struct piece pieces[LARGE_WRITES * SLOTS + SMALL_WRITES];
static volatile int *large_are_over;

static int must(int result, const char *what)
{
	if (result < 0) {
		printf("%s: %m\n", what);
		exit(1);
	}
	return result;
}

static void tell(const char *name, const char *text)
{
	int file = must(open(name, O_WRONLY), name);

	must(write(file, text, strlen(text)), text);
	close(file);
}

static size_t read_rows(const char *name, void *rows, size_t row_bytes, size_t room)
{
	int file = must(open(name, O_RDONLY), name);
	size_t bytes = 0;
	int part = 1;

	for (; part && bytes < row_bytes * room; bytes += part) {
		part = pread(file, (char *)rows + bytes, row_bytes * room - bytes, bytes);
		must(part, name);
	}
	close(file);
	return bytes / row_bytes;
}

static void *new_pages(size_t bytes, int sharing)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
}

/* pwrite(2) sleeps before its request is issued, and a thread of the kernel issues all of these. */
static void write_by_aio(aio_context_t context, int disk, void *data, size_t bytes)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = disk, .aio_nbytes = bytes,
		.aio_buf = (uintptr_t)data, .aio_offset = LARGE_BYTES - bytes,
	}, *list = &request;
	struct io_event event;

	must(syscall(SYS_io_submit, context, 1, &list), "io_submit");
	must(syscall(SYS_io_getevents, context, 1, 1, &event, NULL), "io_getevents");
	must(event.res == (int64_t)bytes ? 0 : -1, "a write");
}

/* No two writes have the same contents. */
static void write_on(int processor, uint64_t writes, size_t bytes)
{
	int disk = must(open("/dev/flash0", O_WRONLY | O_DIRECT), "open flash0");
	uint64_t *data = new_pages(bytes, MAP_PRIVATE);
	aio_context_t context = 0;
	cpu_set_t one;

	must(syscall(SYS_io_setup, 1, &context), "io_setup");
	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	must(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	for (uint64_t number = 0; number < writes; number++) {
		if (bytes == SLOT_BYTES && *large_are_over)
			return;
		for (size_t word = 0; word < bytes / sizeof(*data); word++)
			data[word] = number * 2 + processor + 1;
		write_by_aio(context, disk, data, bytes);
	}
	*large_are_over |= bytes == LARGE_BYTES;
}

/* As kernel/flash/power_cut.c has it. */
static uint64_t hash_sector(const uint64_t *words)
{
	uint64_t hash = 0x9e3779b97f4a7c15ULL;

	for (size_t i = 0; i < SECTOR_BYTES / sizeof(*words); i++) {
		hash = (hash ^ words[i]) * 0xbf58476d1ce4e5b9ULL;
		hash ^= hash >> 29;
	}
	return hash;
}

static void compare(void)
{
	size_t request_count = read_rows(SYSFS "flash_record_requests", requests,
					 sizeof(*requests), LARGE_WRITES + SMALL_WRITES);
	size_t piece_count = read_rows(SYSFS "flash_record_pieces", pieces, sizeof(*pieces),
				       LARGE_WRITES * SLOTS + SMALL_WRITES);
	int disk = must(open("/dev/flash0", O_RDONLY | O_DIRECT), "open flash0");
	char *data = new_pages(LARGE_BYTES, MAP_PRIVATE);
	size_t back = 0, turns = 0, other = 0;
	struct piece *last[SLOTS] = { NULL };

	must(pread(disk, data, LARGE_BYTES, 0), "pread");
	for (size_t i = 1; i < request_count; i++) {
		back += requests[i].issue_ns < requests[i - 1].issue_ns;
		turns += requests[i].piece_count != requests[i - 1].piece_count;
	}
	for (size_t i = 0; i < piece_count; i++)
		if (pieces[i].slot < SLOTS)
			last[pieces[i].slot] = &pieces[i];
	for (size_t slot = 0; slot < SLOTS; slot++)
		for (size_t sector = 0; sector < SLOT_SECTORS; sector++)
			other += !last[slot] || last[slot]->after[sector] != hash_sector((void *)
				 (data + slot * SLOT_BYTES + sector * SECTOR_BYTES));
	if (back || other)
		printf("%zu of %zu requests before an earlier one, %zu sectors other\n", back,
		       request_count, other);
	else if (turns < LARGE_WRITES / 10)
		printf("the writers took %zu turns: nothing was tested\n", turns);
	else
		puts("in order");
}

int main(void)
{
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	must(mount("sysfs", "/sys", "sysfs", 0, NULL), "mount /sys");
	must(syscall(SYS_finit_module, open("/modules/flash.ko", O_RDONLY), PARAMETERS, 0),
	     "insert flash.ko");
	large_are_over = new_pages(SLOT_BYTES, MAP_SHARED);
	/* With a scheduler that thread would issue everything. */
	tell(SYSFS "queue/scheduler", "none");
	tell(SYSFS "flash_record", "begin 0");
	for (int processor = 0; processor < 2; processor++)
		if (!fork()) {
			write_on(processor, processor ? SMALL_WRITES : LARGE_WRITES,
				 processor ? SLOT_BYTES : LARGE_BYTES);
			exit(0);
		}
	for (int status; wait(&status) > 0;)
		if (status)
			puts("a writer failed");
	tell(SYSFS "flash_record", "end");
	compare();
	fflush(stdout);
	tcdrain(STDOUT_FILENO); /* what the console has not sent is lost by the panic */
	return 0; /* the end of process 1 panics the kernel, and ends the guest */
}
