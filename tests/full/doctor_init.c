// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's process 1 that loads no module, runs `joj-agent doctor` on the console, and powers off.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	if (fork() == 0) {
		execl("/joj-agent", "joj-agent", "doctor", NULL);
		_exit(1);
	}
	wait(NULL);
	return reboot(RB_POWER_OFF);
}
