// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin of QEMU that gives every load and store of the guest to the model in memory.c and counts
 * what misses, in each part of the run: in all, by instruction, and by buffer. It changes nothing
 * that the guest sees.
 *
 * The guest tells it of its parts by stores to one page of reserved memory, whose contents nobody
 * reads: a store of anything at offset N says the byte N. Bytes make lines (agent/src/lab/channel/
 * marks.rs): "count PART", "pause", "end". At "end" the counts go to a file, which is whole only
 * with its last line.
 *
 * Arguments: NAME=NUMBER for marks (the physical address of that page) and the fields of struct
 * memory_config; out=FILE; buffer=NAME:ADDRESS:BYTES for each buffer, which the run without this
 * plugin told of: it is counted from the beginning, before the guest could say where it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "qemu_plugin.h"

#define BUCKETS (1 << 17)
#define MOST_BUFFERS 16
#define MOST_PARTS 16
#define MARK_BYTES 4096

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_FIRST_VERSION;

/* QEMU reads the version once the plugin is loaded, and so after this. */
__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_num_vcpus)
		qemu_plugin_version = QEMU_PLUGIN_SECOND_VERSION;
}

struct counts {
	uint64_t loads, stores, bytes, micro_tlb_misses, walk_levels, l1_misses, l2_misses;
};

struct instruction {
	struct instruction *next;
	uint64_t address;
	struct counts *counts[MOST_PARTS];	/* null where it loaded and stored nothing */
};

struct buffer {
	char name[32];
	uint64_t address, length_bytes;
};

struct part {
	char name[32];
	struct counts all;
	struct counts buffers[MOST_BUFFERS];
};

static struct memory memory;
static uint64_t marks_address;
static char out_path[4096];
static bool counting, overflown;
static struct instruction *instructions[BUCKETS];
static struct buffer buffers[MOST_BUFFERS];
static unsigned int buffer_count;
static struct part parts[MOST_PARTS];
static unsigned int part_count, current;
static char line[128];
static size_t line_length;

static void print_counts(FILE *out, const struct counts *counts)
{
	fprintf(out, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 "\n", counts->loads, counts->stores, counts->bytes,
		counts->micro_tlb_misses, counts->walk_levels, counts->l1_misses,
		counts->l2_misses);
}

static void print_part(FILE *out, unsigned int number)
{
	const struct part *part = &parts[number];

	fprintf(out, "part %s\nall", part->name);
	print_counts(out, &part->all);
	for (unsigned int at = 0; at < buffer_count; at++) {
		fprintf(out, "buffer %s", buffers[at].name);
		print_counts(out, &part->buffers[at]);
	}
	for (unsigned int at = 0; at < BUCKETS; at++) {
		for (struct instruction *one = instructions[at]; one; one = one->next) {
			if (!one->counts[number])
				continue;
			fprintf(out, "code %" PRIx64, one->address);
			print_counts(out, one->counts[number]);
		}
	}
}

static void write_out(void)
{
	FILE *out = overflown ? NULL : fopen(out_path, "w");

	if (!out)
		return; /* whoever reads it misses it */
	for (unsigned int number = 0; number < part_count; number++)
		print_part(out, number);
	fputs("end\n", out);
	fclose(out);
}

static void begin_part(const char *name)
{
	counting = true;
	for (current = 0; current < part_count; current++)
		if (!strcmp(parts[current].name, name))
			return;
	if (part_count == MOST_PARTS || strlen(name) >= sizeof(parts->name)) {
		overflown = true;
		counting = false;
		return;
	}
	strcpy(parts[part_count++].name, name);
}

static void take_line(void)
{
	if (!strncmp(line, "count ", 6)) {
		begin_part(line + 6);
	} else if (!strcmp(line, "pause")) {
		counting = false;
	} else if (!strcmp(line, "end")) {
		counting = false;
		write_out();
	}
}

static void take_byte(char byte)
{
	if (byte == '\n') {
		line[line_length] = 0;
		line_length = 0;
		take_line();
	} else if (line_length + 1 < sizeof(line)) {
		line[line_length++] = byte;
	}
}

static void count(struct counts *counts, struct outcome outcome, bool is_store, uint64_t bytes)
{
	counts->loads += !is_store;
	counts->stores += is_store;
	counts->bytes += bytes;
	counts->micro_tlb_misses += outcome.micro_tlb_miss;
	counts->walk_levels += outcome.walk_levels;
	counts->l1_misses += outcome.l1_miss;
	counts->l2_misses += outcome.l2_miss;
}

static struct counts *counts_of(struct instruction *instruction)
{
	struct counts **place = &instruction->counts[current];

	if (!*place)
		*place = calloc(1, sizeof(**place));
	if (!*place)
		abort();
	return *place;
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, address);
	bool is_store = qemu_plugin_mem_is_store(info);
	struct instruction *instruction = data;
	struct outcome outcome;
	uint64_t physical, bytes;

	(void)cpu;
	if (!place || qemu_plugin_hwaddr_is_io(place))
		return;
	physical = qemu_plugin_hwaddr_phys_addr(place);
	if (is_store && physical - marks_address < MARK_BYTES) {
		if (physical - marks_address < 128)
			take_byte(physical - marks_address);
		return;
	}
	outcome = memory_access(&memory, address, physical);
	if (!counting)
		return;
	bytes = 1ull << qemu_plugin_mem_size_shift(info);
	count(&parts[current].all, outcome, is_store, bytes);
	count(counts_of(instruction), outcome, is_store, bytes);
	for (unsigned int at = 0; at < buffer_count; at++)
		if (address - buffers[at].address < buffers[at].length_bytes)
			count(&parts[current].buffers[at], outcome, is_store, bytes);
}

/* An instruction that is translated again keeps its counts. */
static struct instruction *instruction_at(uint64_t address)
{
	struct instruction **place = &instructions[(address ^ address >> 17) % BUCKETS];

	while (*place && (*place)->address != address)
		place = &(*place)->next;
	if (!*place) {
		*place = calloc(1, sizeof(**place));
		if (!*place)
			abort();
		(*place)->address = address;
	}
	return *place;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	size_t instruction_count = qemu_plugin_tb_n_insns(block);

	(void)id;
	for (size_t at = 0; at < instruction_count; at++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, at);
		void *counted = instruction_at(qemu_plugin_insn_vaddr(instruction));

		qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, counted);
	}
}

static bool take_buffer(const char *text)
{
	struct buffer *buffer = &buffers[buffer_count];

	return buffer_count < MOST_BUFFERS &&
	       sscanf(text, "%31[^:]:%" SCNx64 ":%" SCNu64, buffer->name, &buffer->address,
		      &buffer->length_bytes) == 3 && ++buffer_count;
}

static bool take_argument(const char *argument, struct memory_config *config)
{
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = {
		{ "marks", &marks_address },
		{ "line_bytes", &config->line_bytes },
		{ "l1_bytes", &config->l1_bytes },
		{ "l1_ways", &config->l1_ways },
		{ "l2_bytes", &config->l2_bytes },
		{ "l2_ways", &config->l2_ways },
		{ "micro_tlb_entries", &config->micro_tlb_entries },
		{ "main_tlb_entries", &config->main_tlb_entries },
		{ "main_tlb_ways", &config->main_tlb_ways },
		{ "section_bytes", &config->section_bytes },
	};
	const char *value = strchr(argument, '=');

	if (!value)
		return false;
	if (!strncmp(argument, "out=", 4))
		return snprintf(out_path, sizeof(out_path), "%s", value + 1) <
		       (int)sizeof(out_path);
	if (!strncmp(argument, "buffer=", 7))
		return take_buffer(value + 1);
	for (size_t at = 0; at < sizeof(numbers) / sizeof(*numbers); at++) {
		if (strlen(numbers[at].name) == (size_t)(value - argument) &&
		    !strncmp(argument, numbers[at].name, value - argument)) {
			*numbers[at].value = strtoull(value + 1, NULL, 0);
			return true;
		}
	}
	return false;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	struct memory_config config = { 0 };

	(void)info;
	for (int at = 0; at < argc; at++) {
		if (!take_argument(argv[at], &config)) {
			fprintf(stderr, "memory model: wrong argument %s\n", argv[at]);
			return -1;
		}
	}
	if (!*out_path || !marks_address || !memory_init(&memory, &config)) {
		fputs("memory model: sizes that make no caches, or no out or marks\n", stderr);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
