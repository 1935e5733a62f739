// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures a modelled flash device in user space, as a benchmark measures a real one.
 *   figures NAME=VALUE...     every parameter of the device; prints a line "figure value" each
 * Reads the parameters; drives the model with closed loops of requests; exit code 2 and a message
 * when a parameter is wrong. Bandwidth is of requests of 512 KiB, all else of 4 KiB; random access
 * is within 128 MiB, as data sheets have it, "wide" within half of the disk.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model/flash_model.h"

#define BLOCK 4096U
#define LARGE (512U * 1024)
#define NARROW_BYTES (128ULL << 20)	/* where data sheets measure random access */
#define DEPTH_MAX 128
#define START_NS 1000000000ULL
#define IDLE_NS 100000000000ULL	/* longer than any drain */

static struct flash_config config;
static struct flash_model model;
static void *tables;
static flash_u64 random_state;

/* A device half full of data written in order, or `preload_percent` if that is more. */
static void fresh(flash_u64 preload_percent, flash_u64 overwrite_percent)
{
	struct flash_config aged = config;

	aged.preload_percent = flash_max(aged.preload_percent, preload_percent);
	aged.overwrite_percent = flash_max(aged.overwrite_percent, overwrite_percent);
	flash_model_init(&model, &aged, tables);
	flash_ageing_begin(&model);
	while (flash_ageing_continue(&model, ~0U))
		;
	flash_ageing_end(&model, START_NS);
	random_state = 1;
}

static flash_u64 random_below(flash_u64 limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % limit;
}

static flash_u64 submit(enum flash_operation operation, unsigned int fua, flash_u64 offset_bytes,
			unsigned int length_bytes, flash_u64 now_ns)
{
	struct flash_request request = { operation, fua, length_bytes, offset_bytes };

	return flash_model_submit(&model, &request, now_ns);
}

struct loop {
	enum flash_operation operation;
	unsigned int length_bytes;
	unsigned int depth;
	flash_u64 span_bytes;	/* from the disk's beginning on */
	int random;
	flash_u64 requests;
};

/* Keeps `depth` requests outstanding; answers how long all of them take. */
static flash_u64 run(const struct loop *loop)
{
	flash_u64 places = loop->span_bytes / loop->length_bytes, end_ns = START_NS, i;
	flash_u64 completion_ns[DEPTH_MAX];
	unsigned int slot, first;

	for (slot = 0; slot < loop->depth; slot++)
		completion_ns[slot] = START_NS;
	for (i = 0; i < loop->requests; i++) {
		flash_u64 place = loop->random ? random_below(places) : i % places;

		for (first = 0, slot = 1; slot < loop->depth; slot++)
			if (completion_ns[slot] < completion_ns[first])
				first = slot;
		completion_ns[first] = submit(loop->operation, 0, place * loop->length_bytes,
					      loop->length_bytes, completion_ns[first]);
		end_ns = flash_max(end_ns, completion_ns[first]);
	}
	return end_ns - START_NS;
}

static void print(const char *name, flash_u64 value)
{
	printf("%s %llu\n", name, value);
}

static unsigned int depth(void)
{
	return flash_min(flash_max(config.queue_depth, config.packed_writes), DEPTH_MAX);
}

static flash_u64 half(void)
{
	return config.capacity_bytes / 2;
}

static flash_u64 narrow(void)
{
	return flash_min(half(), NARROW_BYTES);
}

static void bandwidth(const char *name, enum flash_operation operation)
{
	struct loop loop = { operation, LARGE, depth(), half(), 0, 512 };

	fresh(50, 0);
	print(name, loop.requests * LARGE * FLASH_NS_PER_S / run(&loop));
}

static void iops(const char *name, enum flash_operation operation, flash_u64 span_bytes)
{
	struct loop loop = { operation, BLOCK, depth(), span_bytes, 1, 16384 };

	fresh(50, 0);
	print(name, loop.requests * FLASH_NS_PER_S / run(&loop));
}

static void latency(const char *name, enum flash_operation operation, flash_u64 requests)
{
	struct loop loop = { operation, BLOCK, 1, narrow(), 1, requests };

	fresh(50, 0);
	print(name, run(&loop) / requests);
}

static void durability(void)
{
	flash_u64 now_ns, written_ns, flushed_ns;

	fresh(50, 0);
	now_ns = START_NS + IDLE_NS;
	print("flush_empty_ns", submit(FLASH_FLUSH, 0, 0, 0, now_ns) - now_ns);
	now_ns += IDLE_NS;
	written_ns = submit(FLASH_WRITE, 0, BLOCK, BLOCK, now_ns);
	flushed_ns = submit(FLASH_FLUSH, 0, 0, 0, written_ns);
	print("flush_dirty_ns", flushed_ns - written_ns);
	print("write_and_flush_ns", flushed_ns - now_ns);
	now_ns += IDLE_NS;
	print("fua_write_ns", submit(FLASH_WRITE, 1, BLOCK, BLOCK, now_ns) - now_ns);
}

/* As full and as mixed as years of use: what garbage collection costs. */
static void aged(void)
{
	struct loop loop = { FLASH_WRITE, BLOCK, depth(), half(), 1, 16384 };

	fresh(90, 100);
	print("aged_random_write_iops", loop.requests * FLASH_NS_PER_S / run(&loop));
	print("aged_ftl_wa_percent", model.statistics.nand_write_bytes * 100 /
	      model.statistics.write_bytes);
}

static int set(const char *argument)
{
	const char *equals = strchr(argument, '=');
	char *end;

	if (!equals)
		return 0;
#define SET(name, minimum, maximum) \
	if (!strncmp(argument, #name "=", sizeof(#name))) { \
		errno = 0; \
		config.name = strtoull(equals + 1, &end, 10); \
		return !*end && end != equals + 1 && !errno; \
	}
	FLASH_PARAMETERS(SET)
	return 0;
}

static int complain(struct flash_complaint complaint)
{
	if (complaint.value == FLASH_NOT_GIVEN)
		fprintf(stderr, "parameter %s is missing\n", complaint.name);
	else if (complaint.rule)
		fprintf(stderr, "parameter %s is %llu: must be %s\n", complaint.name,
			complaint.value, complaint.rule);
	else
		fprintf(stderr, "parameter %s is %llu: must be %llu to %llu\n", complaint.name,
			complaint.value, complaint.minimum, complaint.maximum);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct flash_config missing = {
#define UNSET(name, minimum, maximum) .name = FLASH_NOT_GIVEN,
		FLASH_PARAMETERS(UNSET)
	};
	struct flash_complaint complaint;
	int i;

	config = missing;
	for (i = 1; i < argc; i++) {
		if (!set(argv[i])) {
			fprintf(stderr, "not NAME=VALUE of a parameter: %s\n", argv[i]);
			return 2;
		}
	}
	complaint = flash_model_check(&config);
	if (complaint.name)
		return complain(complaint);
	tables = malloc(flash_model_memory_bytes(&config));
	if (!tables) {
		perror("cannot allocate the model's tables");
		return 3;
	}
	/* Each figure as it comes: a large device takes long. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	bandwidth("sequential_read_bytes_per_s", FLASH_READ);
	bandwidth("sequential_write_bytes_per_s", FLASH_WRITE);
	iops("random_read_iops", FLASH_READ, narrow());
	iops("random_write_iops", FLASH_WRITE, narrow());
	iops("wide_random_read_iops", FLASH_READ, half());
	iops("wide_random_write_iops", FLASH_WRITE, half());
	latency("random_read_latency_ns", FLASH_READ, 1024);
	latency("random_write_latency_ns", FLASH_WRITE, 16);
	durability();
	aged();
	print("model_memory_bytes", flash_model_memory_bytes(&config));
	free(tables);
	return 0;
}
