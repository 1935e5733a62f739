// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's process 1 that traces one NVMe disk while 64 MiB are written to its node, copies the
 * table of counters to a second one, says on the console how long it is, and powers off.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1 << 20)
#define FIRST "/dev/nvme0n1"
#define SECOND "/dev/nvme1n1"

static int write_node(const char *path, const void *bytes, int count_mib)
{
	int node = open(path, O_WRONLY | O_DIRECT), done;

	for (done = 0; done < count_mib && write(node, bytes, MIB) == MIB; done++)
		;
	return node < 0 || done < count_mib || fsync(node) != 0 || close(node) != 0;
}

static void load_modules(void)
{
	char line[256], path[300], *end;
	FILE *order = fopen("/modules/order", "r");
	int file;

	while (order != NULL && fgets(line, sizeof(line), order) != NULL) {
		line[strcspn(line, "\n")] = 0;
		end = line + strcspn(line, " ");
		snprintf(path, sizeof(path), "/modules/%.*s", (int)(end - line), line);
		file = open(path, O_RDONLY);
		syscall(SYS_finit_module, file, *end ? end + 1 : "", 0);
		close(file);
	}
}

int main(int argc, char **argv)
{
	char *bytes = aligned_alloc(4096, MIB);
	int waited, table;
	long size;

	if (argc > 1)
		return write_node(FIRST, memset(bytes, 7, MIB), atoi(argv[1]));
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	load_modules();
	for (waited = 0; waited < 600 && (access(FIRST, F_OK) || access(SECOND, F_OK)); waited++)
		usleep(100000);
	/* A disk that nothing was written to tells 0, as one does that does not count. */
	if (write_node(FIRST, memset(bytes, 5, MIB), 1) != 0)
		puts("the first write failed");
	if (fork() == 0) {
		execl("/joj-agent", "joj-agent", "trace", "--device", FIRST, "--output", "/tmp/out",
		      "--", "/init", "64", NULL);
		_exit(1);
	}
	wait(NULL);
	table = open("/tmp/out/counters.parquet", O_RDONLY);
	memset(bytes, 0, MIB);
	size = read(table, bytes, MIB);
	if (size > 0 && write_node(SECOND, bytes, 1) == 0)
		printf("counters.parquet: %ld bytes\n", size);
	fflush(stdout);
	return reboot(RB_POWER_OFF);
}
