// SPDX-License-Identifier: Apache-2.0
/*
 * Process 1 of a machine with raw NAND: loads the modules of the image and raw_nand.ko, has the
 * agent run each case of /cases on /dev/mtd0, prints its exit code and its tables in hexadecimal,
 * and ends the machine.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(int result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	sync();
	reboot(RB_AUTOBOOT);
}

/* Nothing here is secret, and nobody is to wait for chance. */
static void seed_random(void)
{
	struct {
		int bits, length;
		char bytes[64];
	} seed = { 512, 64, "jojlab" };
	int file = open("/dev/random", O_WRONLY);

	need(ioctl(file, RNDADDENTROPY, &seed), "/dev/random");
	close(file);
}

static void load(const char *name, const char *parameters)
{
	char path[256];
	int file;

	snprintf(path, sizeof(path), "/modules/%s", name);
	file = open(path, O_RDONLY);
	need(file, path);
	need(syscall(SYS_finit_module, file, parameters, 0), path);
	close(file);
}

static void load_all(void)
{
	static char line[4096];
	FILE *order = fopen("/modules/order", "r");
	FILE *parameters = fopen("/parameters", "r");

	need(order && parameters ? 0 : -1, "/modules/order, /parameters");
	while (fgets(line, sizeof(line), order)) {
		char *name = strtok(line, " \n"), *rest = strtok(NULL, "\n");

		load(name, rest ? rest : "");
	}
	need(fgets(line, sizeof(line), parameters) ? 0 : -1, "/parameters");
	load("raw_nand.ko", line);
}

static void print_file(const char *folder, const char *name)
{
	char path[1024];
	FILE *file;
	int byte;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	need(file ? 0 : -1, path);
	printf("file %s ", name);
	while ((byte = getc(file)) != EOF)
		printf("%02x", byte);
	printf("\n");
	fclose(file);
}

static void run_case(const char *name)
{
	char path[300], output[300];
	struct dirent *entry;
	DIR *folder;
	int status;

	snprintf(path, sizeof(path), "/cases/%s", name);
	snprintf(output, sizeof(output), "/tmp/%s", name);
	need(mkdir(output, 0700), output);
	if (!fork()) {
		need(dup2(open(path, O_RDONLY), 0), path);
		execl("/init", "joj-agent", "bench", "--nand", "/dev/mtd0", "--output", output,
		      NULL);
		_exit(127);
	}
	need(wait(&status), "wait");
	printf("case %s ended with %d\n", name, status);
	folder = opendir(output);
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			print_file(output, entry->d_name);
	closedir(folder);
}

int main(void)
{
	struct dirent **names;
	int count, i;

	need(mount("dev", "/dev", "devtmpfs", 0, ""), "/dev");
	need(mount("proc", "/proc", "proc", 0, ""), "/proc");
	need(mount("sys", "/sys", "sysfs", 0, ""), "/sys");
	need(mount("tmp", "/tmp", "tmpfs", 0, ""), "/tmp");
	need(dup2(open("/dev/console", O_WRONLY), 1), "/dev/console");
	dup2(1, 2);
	setlinebuf(stdout);
	seed_random();
	load_all();
	printf("modules are in\n");
	count = scandir("/cases", &names, NULL, alphasort);
	for (i = 0; i < count; i++)
		if (names[i]->d_name[0] != '.')
			run_case(names[i]->d_name);
	printf("attached %d\n", access("/sys/class/ubi/ubi0", F_OK) == 0);
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	return 0;
}
