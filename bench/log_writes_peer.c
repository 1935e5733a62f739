// SPDX-License-Identifier: GPL-2.0-only
/*
 * The peer of bench.durability: the first process of a guest. Judges what power cuts leave as
 * CrashMonkey (Mohan et al., OSDI 2018) and xfstests' generic/455 do: dm-log-writes logs what a
 * workload writes to an ext4; the log is replayed, and at every flush and FUA write a snapshot
 * (dm-snapshot) of the replayed disk is mounted, unmounted and checked by e2fsck. Stops the machine
 * through pvpanic before the first state and after the last, and prints how many there were.
 *
 * The workload writes and syncs as SQLite does in a commit by TRUNCATE: journal, database, journal
 * again; it is no SQLite, as here nobody looks into files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define DISK_BYTES (2ULL << 30) /* as the profile emmc-galaxy-s3 */
#define SECTOR 512
#define PAGE 4096
#define TRANSACTIONS 97 /* as experiments/first-look */
#define STATES 100
#define DISK "/dev/ram0"
#define LOG "/dev/ram1"
#define REPLAYED "/dev/ram2"
#define COPIES "/dev/ram3"
#define PLACE "/mnt"

/* On the log, little-endian (drivers/md/dm-log-writes.c). */
struct log_super {
	uint64_t magic, version, entries;
	uint32_t sector_bytes;
};
struct log_entry {
	uint64_t sector, sectors, flags, data_bytes;
};
enum { LOG_FLUSH = 1, LOG_FUA = 2, LOG_DISCARD = 4, LOG_MARK = 8 };

static void need(int well, const char *what)
{
	if (well)
		return;
	dprintf(2, "peer: %s: %s\n", what, strerror(errno));
	_exit(1); /* the first process: the kernel panics, which ends the machine */
}

static void stop_machine(void)
{
	need(!iopl(3), "iopl");
	outb(1, 0x505);
}

static void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	need(file >= 0 && write(file, text, strlen(text)) > 0, path);
	close(file);
}

/* Those that /modules/order names, a line each (jojlab/guest/image/modules.py). */
static void load_modules(void)
{
	FILE *order = fopen("/modules/order", "r");
	char line[256], path[300], disks[64];

	need(order != NULL, "/modules/order");
	snprintf(disks, sizeof(disks), "rd_nr=4 rd_size=%llu", DISK_BYTES >> 10);
	while (fgets(line, sizeof(line), order)) {
		char *name = strtok(line, " \n"), *parameters = strtok(NULL, "\n");
		int file;

		snprintf(path, sizeof(path), "/modules/%s", name);
		if (!strcmp(name, "brd.ko"))
			parameters = disks;
		file = open(path, O_RDONLY | O_CLOEXEC);
		need(file >= 0, path);
		need(!syscall(SYS_finit_module, file, parameters ? parameters : "", 0), path);
		close(file);
	}
	fclose(order);
}

static int run(const char *const *arguments)
{
	pid_t child = vfork();
	int status;

	need(child >= 0, "vfork");
	if (!child) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execv(arguments[0], (char *const *)arguments);
		_exit(127);
	}
	need(waitpid(child, &status, 0) == child, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static const char *tool(const char *name)
{
	static const char *const folders[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };
	static char path[64];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (!access(path, X_OK))
			break;
	}
	return path;
}

/* One command of device mapper; with a target, its table is of that one. */
static uint64_t mapper(unsigned long command, const char *name, const char *target,
		       const char *parameters)
{
	static int control = -1;
	struct {
		struct dm_ioctl head;
		struct dm_target_spec spec;
		char parameters[256];
	} asked = { .head = { .version = { 4, 0, 0 }, .data_size = sizeof(asked),
			      .data_start = sizeof(asked.head) } };

	if (control < 0)
		control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	snprintf(asked.head.name, sizeof(asked.head.name), "%s", name);
	if (target) {
		asked.head.target_count = 1;
		asked.spec.length = DISK_BYTES / SECTOR;
		snprintf(asked.spec.target_type, sizeof(asked.spec.target_type), "%s", target);
		snprintf(asked.parameters, sizeof(asked.parameters), "%s", parameters);
	}
	need(!ioctl(control, command, &asked), name);
	return asked.head.dev;
}

/* Puts a mark into the log; with it the log's head says how many entries there are. */
static void mark(void)
{
	static const char text[] = "mark workload";
	int control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	struct {
		struct dm_ioctl head;
		struct dm_target_msg message;
		char text[sizeof(text)];
	} asked = { .head = { .version = { 4, 0, 0 }, .data_size = sizeof(asked),
			      .data_start = sizeof(asked.head), .name = "logged" } };

	memcpy((char *)&asked + sizeof(asked.head) + sizeof(asked.message), text, sizeof(text));
	need(control >= 0 && !ioctl(control, DM_TARGET_MSG, &asked), "mark");
	close(control);
}

/* Makes a device of device mapper, and gives the path of a node for it. */
static const char *make_device(const char *name, const char *target, const char *parameters)
{
	static char path[64];
	uint64_t number = mapper(DM_DEV_CREATE, name, NULL, NULL);

	mapper(DM_TABLE_LOAD, name, target, parameters);
	mapper(DM_DEV_SUSPEND, name, NULL, NULL); /* without its flag: resumes */
	snprintf(path, sizeof(path), "/dev/%s", name);
	unlink(path);
	/* As the kernel packs it in 64 bits: huge_encode_dev(). */
	need(!mknod(path, S_IFBLK | 0600,
		    makedev((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00))),
	     path);
	return path;
}

static void put(int file, off_t offset, int pages, unsigned int content)
{
	static unsigned char page[PAGE];
	int i;

	memset(page, content, sizeof(page));
	for (i = 0; i < pages; i++)
		need(pwrite(file, page, PAGE, offset + (off_t)i * PAGE) == PAGE, "pwrite");
	need(!fsync(file), "fsync");
}

static void work(void)
{
	int database = open(PLACE "/test.db", O_RDWR | O_CREAT, 0600);
	int journal = open(PLACE "/test.db-journal", O_RDWR | O_CREAT, 0600);
	int i;

	need(database >= 0 && journal >= 0, "open");
	for (i = 0; i < TRANSACTIONS; i++) {
		put(journal, 0, 3, i + 1);
		put(journal, 0, 1, i + 2);
		put(database, (off_t)(i / 4) * PAGE, 2, i + 3);
		need(!ftruncate(journal, 0) && !fsync(journal), "ftruncate");
	}
	close(database);
	close(journal);
}

static void judge(int number)
{
	const char *device = make_device("copy", "snapshot", REPLAYED " " COPIES " N 8");
	const char *const check[] = { tool("e2fsck"), "-f", "-n", device, NULL };

	if (!mount(device, PLACE, "ext4", 0, "")) {
		need(!umount(PLACE), "umount");
		if (run(check))
			dprintf(2, "peer: state %d is not clean\n", number);
	} else {
		dprintf(2, "peer: state %d cannot be mounted\n", number);
	}
	mapper(DM_DEV_REMOVE, "copy", NULL, NULL);
}

/* Reads one entry's head; gives where its data are. */
static off_t read_head(int log, off_t at, struct log_entry *entry)
{
	char sector[SECTOR];

	need(pread(log, sector, SECTOR, at) == SECTOR, "the log");
	memcpy(entry, sector, sizeof(*entry));
	return at + SECTOR;
}

/* Replays one entry; gives where the next one is. */
static off_t replay(int log, int replayed, off_t at, struct log_entry *entry)
{
	static char data[1 << 20];
	uint64_t left, done;

	at = read_head(log, at, entry);
	if (entry->flags & LOG_DISCARD)
		return at;
	left = entry->sectors * SECTOR;
	for (done = 0; done < left;) {
		size_t some = left - done < sizeof(data) ? left - done : sizeof(data);

		need(pread(log, data, some, at + done) == (ssize_t)some, "the log's data");
		need(pwrite(replayed, data, some, entry->sector * SECTOR + done) == (ssize_t)some,
		     REPLAYED);
		done += some;
	}
	return at + left;
}

/* How many entries from `first` on are flushes or FUA writes. */
static int count_flushes(int log, off_t at, uint64_t first, uint64_t entries)
{
	struct log_entry entry;
	int count = 0;

	for (; first < entries; first++) {
		at = read_head(log, at, &entry);
		if (!(entry.flags & LOG_DISCARD))
			at += entry.sectors * SECTOR;
		count += !!(entry.flags & (LOG_FLUSH | LOG_FUA));
	}
	return count;
}

/*
 * Judges STATES states from the first mark on, evenly spread over the flushes: what is before the
 * mark is of mkfs and mount.
 */
static void replay_and_judge(void)
{
	int log = open(LOG, O_RDONLY), replayed = open(REPLAYED, O_RDWR);
	int total, met = 0, states = 0;
	struct log_super super;
	struct log_entry entry = { 0 };
	char sector[SECTOR];
	off_t at = SECTOR;
	uint64_t i;

	need(log >= 0 && replayed >= 0 && pread(log, sector, SECTOR, 0) == SECTOR, "devices");
	memcpy(&super, sector, sizeof(super));
	for (i = 0; i < super.entries && !(entry.flags & LOG_MARK); i++)
		at = replay(log, replayed, at, &entry);
	total = count_flushes(log, at, i, super.entries);
	stop_machine();
	for (; i < super.entries; i++) {
		at = replay(log, replayed, at, &entry);
		if (!(entry.flags & (LOG_FLUSH | LOG_FUA)))
			continue;
		need(!fsync(replayed), REPLAYED);
		met++;
		if ((long)met * STATES / total > (long)(met - 1) * STATES / total)
			judge(states++);
	}
	dprintf(1, "peer: %d states of %d\n", states, total);
}

int main(void)
{
	const char *device;

	need(!mount("proc", "/proc", "proc", 0, "") && !mount("sys", "/sys", "sysfs", 0, ""),
	     "proc and sys");
	need(!mount("dev", "/dev", "devtmpfs", 0, "") || errno == EBUSY, "/dev");
	dup2(open("/dev/console", O_RDWR), 1);
	dup2(1, 2);
	/* So that it has what joj's guests have: QEMU keeps what it translates, by address. */
	write_file("/proc/sys/kernel/randomize_va_space", "0");
	load_modules();
	device = make_device("logged", "log-writes", DISK " " LOG);
	{
		const char *const make[] = { tool("mkfs.ext4"), "-q", "-F", "-E",
			"lazy_itable_init=0,lazy_journal_init=0", device, NULL };

		need(!run(make), "mkfs.ext4");
	}
	need(!mount(device, PLACE, "ext4", 0, ""), "mount");
	sync();
	mark();
	work();
	mark();
	need(!umount(PLACE), "umount");
	mapper(DM_DEV_REMOVE, "logged", NULL, NULL);
	replay_and_judge();
	stop_machine();
	for (;;)
		pause();
}
