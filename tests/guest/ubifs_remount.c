// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's process 1 that asks whether UBIFS on raw NAND has after an unmount, a detach of UBI, an
 * attach and a mount what it had before: makes changes to files, drawn from a seed, some of them
 * synced, keeps in memory what is due, and compares names, lengths and bytes of all files after
 * each turn. Prints a line each turn, with the bytes that the NAND read meanwhile, as its model
 * counts; and last the model's counters. PARAMETERS are those of raw_nand.ko, OPTIONS of mount(2).
 *
 * Stops once for the snapshot, as the agent does.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mtd/ubi-user.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#define PVPANIC 0x505
#define STATISTICS "/sys/class/misc/nand0/flash_statistics"
#define TURNS 4
#define CHANGES 60
#define FILES 20
#define LONGEST 98304
/* Time for UBI's thread to move blocks in which bits have flipped, before more of them do. */
#define REST_US 500000

/* Of the model's counters; of the console the last fifteen lines are told. */
static const char *const TOLD[] = { "corrected_reads", "uncorrectable_reads", "failed_programs",
				    "bad_blocks", "lost_operations" };

static struct {
	int exists;
	unsigned int length;
	unsigned char bytes[LONGEST];
} due[FILES];

static long must(long result, const char *what)
{
	if (result < 0) {
		printf("%s: %m\n", what);
		exit(1);
	}
	return result;
}

/* xorshift32 (Marsaglia, Journal of Statistical Software 8, 2003). */
static unsigned int draw(unsigned int below)
{
	static unsigned int state = 2463534242;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

static void insert(const char *name, const char *parameters)
{
	char path[300];
	int file;

	snprintf(path, sizeof(path), "/modules/%s", name);
	file = must(open(path, O_RDONLY | O_CLOEXEC), path);
	must(syscall(SYS_finit_module, file, parameters, 0), path);
	close(file);
}

/* Those that /modules/order names, a line each (jojlab/guest/image/modules.py). */
static void insert_all(void)
{
	FILE *order = fopen("/modules/order", "r");
	char line[256];

	must(order ? 0 : -1, "/modules/order");
	while (fgets(line, sizeof(line), order)) {
		char *name = strtok(line, " \n"), *parameters = strtok(NULL, "\n");

		insert(name, parameters ? parameters : "");
	}
	fclose(order);
}

static void ask(const char *node, unsigned long request, void *argument, const char *what)
{
	int file = must(open(node, O_RDWR | O_CLOEXEC), node);

	must(ioctl(file, request, argument), what);
	close(file);
}

static void attach(void)
{
	struct ubi_attach_req request = { .ubi_num = 0, .mtd_num = 0 };

	ask("/dev/ubi_ctrl", UBI_IOCATT, &request, "attach");
}

static void detach(void)
{
	int number = 0;

	ask("/dev/ubi_ctrl", UBI_IOCDET, &number, "detach");
}

static long long whole_number(const char *path)
{
	FILE *file = fopen(path, "r");
	long long value = 0;

	must(file && fscanf(file, "%lld", &value) == 1 ? 0 : -1, path);
	fclose(file);
	return value;
}

/* The volume of all that is free; UBIFS is made on it by the first mount. */
static void make_volume(void)
{
	struct ubi_mkvol_req request = {
		.vol_id = 0, .alignment = 1, .vol_type = UBI_DYNAMIC_VOLUME,
		.name_len = 5, .name = "flash",
	};

	request.bytes = whole_number("/sys/class/ubi/ubi0/avail_eraseblocks") *
			whole_number("/sys/class/ubi/ubi0/eraseblock_size");
	ask("/dev/ubi0", UBI_IOCMKVOL, &request, "make the volume");
}

static void mount_it(void)
{
	must(mount("/dev/ubi0_0", "/mnt", "ubifs", 0, OPTIONS), "mount");
}

/* What the model counts under a name. */
static long long counted(const char *wanted)
{
	FILE *file = fopen(STATISTICS, "r");
	long long value, found = -1;
	char name[64];

	must(file ? 0 : -1, STATISTICS);
	while (fscanf(file, "%63s %lld", name, &value) == 2) {
		if (!strcmp(name, wanted))
			found = value;
	}
	fclose(file);
	must(found, wanted);
	return found;
}

static const char *path_of(unsigned int file)
{
	static char paths[2][32];
	static int turn;

	turn = !turn;
	snprintf(paths[turn], sizeof(paths[turn]), "/mnt/file-%u", file);
	return paths[turn];
}

/* What is drawn is written somewhere into the file, or behind its end. */
static void write_some(unsigned int number, int file)
{
	unsigned int at = draw(LONGEST), length = 1 + draw(LONGEST - at);

	if (at > due[number].length)
		memset(due[number].bytes + due[number].length, 0, at - due[number].length);
	for (unsigned int i = 0; i < length; i++)
		due[number].bytes[at + i] = draw(256);
	must(pwrite(file, due[number].bytes + at, length, at) == length ? 0 : -1, "pwrite");
	if (at + length > due[number].length)
		due[number].length = at + length;
}

static void change(void)
{
	unsigned int number = draw(FILES), other = draw(FILES), kind = draw(10);
	int file;

	if (due[number].exists && kind == 0) {
		must(unlink(path_of(number)), "unlink");
		due[number].exists = due[number].length = 0;
		return;
	}
	if (due[number].exists && kind == 1 && number != other) {
		must(rename(path_of(number), path_of(other)), "rename");
		due[other] = due[number];
		due[number].exists = due[number].length = 0;
		return;
	}
	file = must(open(path_of(number), O_RDWR | O_CREAT, 0600), "open");
	due[number].exists = 1;
	if (kind == 2) {
		due[number].length = draw(due[number].length + 1);
		must(ftruncate(file, due[number].length), "ftruncate");
	} else {
		write_some(number, file);
	}
	if (kind > 6)
		must(fsync(file), "fsync");
	close(file);
}

static void compare(int turn)
{
	static unsigned char found[LONGEST];
	unsigned int names = 0, files = 0, bytes = 0;
	long long read_bytes = counted("read_bytes");
	DIR *folder = opendir("/mnt");

	must(folder ? 0 : -1, "opendir");
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
		names += entry->d_name[0] != '.';
	closedir(folder);
	for (unsigned int number = 0; number < FILES; number++) {
		struct stat about;
		int file;

		if (!due[number].exists)
			continue;
		file = must(open(path_of(number), O_RDONLY), path_of(number));
		must(fstat(file, &about), "fstat");
		must(read(file, found, LONGEST), "read");
		close(file);
		files++;
		bytes += due[number].length;
		if (about.st_size != due[number].length ||
		    memcmp(found, due[number].bytes, due[number].length))
			printf("file-%u: other bytes\n", number);
	}
	if (names != files)
		printf("%u names where %u files are due\n", names, files);
	printf("turn %d files %u bytes %u read %lld\n", turn, files, bytes,
	       counted("read_bytes") - read_bytes);
}

int main(void)
{
	must(iopl(3), "iopl");
	must(mount("devtmpfs", "/dev", "devtmpfs", 0, NULL), "mount /dev");
	must(mount("sysfs", "/sys", "sysfs", 0, NULL), "mount /sys");
	mkdir("/mnt", 0700);
	insert_all();
	outb(1, PVPANIC);
	insert("raw_nand.ko", PARAMETERS);
	attach();
	make_volume();
	mount_it();
	for (int turn = 1; turn <= TURNS; turn++) {
		for (int i = 0; i < CHANGES; i++)
			change();
		must(umount("/mnt"), "umount");
		detach();
		attach();
		mount_it();
		compare(turn);
		usleep(REST_US);
	}
	for (unsigned int i = 0; i < sizeof(TOLD) / sizeof(TOLD[0]); i++)
		printf("%s %lld\n", TOLD[i], counted(TOLD[i]));
	puts("done");
	fflush(stdout);
	tcdrain(STDOUT_FILENO); /* what the console has not sent is lost by the panic */
	return 0; /* the end of process 1 panics the kernel, and ends the guest */
}
