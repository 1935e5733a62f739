// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's process 1 that misbehaves as its case tells, by the case's first letter. Stops once
 * for the snapshot, as the agent does; then nothing that the lab relies on happens.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

#define PVPANIC 0x505
#define FW_CFG_SELECT 0x510
#define FW_CFG_DATA 0x511
#define HANDOUT 0x10000000 /* where a machine of 256 MiB has it: right above */

static void read_bytes(unsigned char *bytes, int count)
{
	while (count--)
		*bytes++ = inb(FW_CFG_DATA);
}

static char case_letter(void)
{
	unsigned char entry[64], count[4];

	outw(0x19, FW_CFG_SELECT);
	read_bytes(count, sizeof(count));
	for (int i = 0; i < count[3]; i++) {
		read_bytes(entry, sizeof(entry));
		if (strcmp((char *)entry + 8, "opt/jojlab/case") == 0) {
			outw(entry[4] << 8 | entry[5], FW_CFG_SELECT);
			inb(FW_CFG_DATA); /* the JSON string's quote */
			return inb(FW_CFG_DATA);
		}
	}
	return 0;
}

static void eat_memory(void)
{
	for (;;)
		memset(malloc(1 << 20), 1, 1 << 20);
}

/* A header that claims more than the region holds. */
static void lie(void)
{
	char *region;
	int memory;

	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	memory = open("/dev/mem", O_RDWR);
	region = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, HANDOUT);
	memcpy(region, "joj-tar\0\1\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377", 24);
	outb(1, PVPANIC);
}

int main(void)
{
	if (iopl(3))
		return 1;
	outb(1, PVPANIC);
	switch (case_letter()) {
	case 'h': /* hang */
		for (;;)
			;
	case 'i': /* idle: the virtual clock races ahead for ever */
		for (;;)
			pause();
	case 'o': /* out of memory */
		eat_memory();
	case 'r': /* reboot */
		reboot(RB_AUTOBOOT);
		break;
	case 'p': /* power off */
		reboot(RB_POWER_OFF);
		break;
	case 'n': /* nothing handed out */
		outb(1, PVPANIC);
		break;
	case 'l':
		lie();
		break;
	}
	puts("process 1 has had enough"); /* and its end panics the kernel */
	return 1;
}
