// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures raw NAND in user space, as a benchmark of the MTD layer measures a real part.
 *   figures NAME=VALUE...     every parameter of the part; prints a line "figure value" each
 * One operation at a time, each a whole page or block; exit code 2 and a message when a parameter
 * is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model/raw_nand.h"

#define ROUND_PAGES 16U		/* no part has smaller blocks */

static struct raw_nand_config config;
static struct raw_nand nand;

static int set(const char *word)
{
	size_t length = strcspn(word, "=");

	if (!word[length])
		return 0;
#define TAKE(name, minimum, maximum) \
	if (strlen(#name) == length && !strncmp(word, #name, length)) { \
		config.name = strtoull(word + length + 1, NULL, 10); \
		return 1; \
	}
	RAW_NAND_PARAMETERS(TAKE)
	return 0;
}

static flash_u64 read_pages(flash_u32 pages, flash_u64 now_ns)
{
	flash_u32 page;

	for (page = 0; page < pages; page++)
		now_ns = raw_nand_read(&nand, page, config.page_bytes, now_ns).completion_ns;
	return now_ns;
}

static flash_u64 program_pages(flash_u32 pages, flash_u64 now_ns)
{
	flash_u32 page;

	for (page = 0; page < pages; page++)
		now_ns = raw_nand_program(&nand, page, config.page_bytes, now_ns).completion_ns;
	return now_ns;
}

static flash_u64 bytes_per_s(flash_u64 duration_ns)
{
	return ROUND_PAGES * config.page_bytes * FLASH_NS_PER_S / duration_ns;
}

int main(int count, char **words)
{
	struct flash_complaint complaint;
	void *tables;
	int i;

	for (i = 1; i < count; i++) {
		if (!set(words[i])) {
			fprintf(stderr, "%s: no such parameter\n", words[i]);
			return 2;
		}
	}
	complaint = raw_nand_check(&config);
	if (complaint.name) {
		fprintf(stderr, "parameter %s is %llu\n", complaint.name, complaint.value);
		return 2;
	}
	tables = malloc(raw_nand_memory_bytes(&config));
	if (!tables) {
		fprintf(stderr, "no memory for the tables of the model\n");
		return 2;
	}
	raw_nand_init(&nand, &config, tables);
	printf("page_read_latency_ns %llu\n", read_pages(1, 0));
	raw_nand_init(&nand, &config, tables);
	printf("page_program_latency_ns %llu\n", program_pages(1, 0));
	raw_nand_init(&nand, &config, tables);
	printf("block_erase_latency_ns %llu\n", raw_nand_erase(&nand, 0, 0).completion_ns);
	raw_nand_init(&nand, &config, tables);
	printf("sequential_read_bytes_per_s %llu\n", bytes_per_s(read_pages(ROUND_PAGES, 0)));
	raw_nand_init(&nand, &config, tables);
	printf("sequential_program_bytes_per_s %llu\n",
	       bytes_per_s(program_pages(ROUND_PAGES, 0)));
	free(tables);
	return 0;
}
