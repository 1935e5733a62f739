// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw NAND (see raw_nand.h): reads operations and the times at which they are asked for; produces
 * the times at which they are done, their outcomes, and statistics. Pure C, no kernel header.
 */
#include "raw_nand.h"

struct raw_nand_limit {
	const char *name;
	unsigned long offset;
	flash_u64 minimum;
	flash_u64 maximum;
};

static const struct raw_nand_limit limits[] = {
#define RAW_NAND_LIMIT(name, minimum, maximum) \
	{ #name, __builtin_offsetof(struct raw_nand_config, name), minimum, maximum },
	RAW_NAND_PARAMETERS(RAW_NAND_LIMIT)
#undef RAW_NAND_LIMIT
};

static struct flash_complaint wrong(const char *name, flash_u64 value, const char *rule)
{
	return (struct flash_complaint) { name, value, 0, 0, rule };
}

static int is_power_of_two(flash_u64 number)
{
	return !(number & (number - 1));
}

struct flash_complaint raw_nand_check(const struct raw_nand_config *config)
{
	flash_u64 block_bytes, blocks;
	unsigned long i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct raw_nand_limit *limit = &limits[i];
		flash_u64 value = *(const flash_u64 *)((const char *)config + limit->offset);

		if (value < limit->minimum || value > limit->maximum)
			return (struct flash_complaint) { limit->name, value, limit->minimum,
							  limit->maximum, FLASH_NULL };
	}
	if (!is_power_of_two(config->page_bytes))
		return wrong("page_bytes", config->page_bytes, "a power of two");
	if (!is_power_of_two(config->pages_per_block))
		return wrong("pages_per_block", config->pages_per_block, "a power of two");
	if (!is_power_of_two(config->programs_per_page))
		return wrong("programs_per_page", config->programs_per_page, "a power of two");
	block_bytes = config->page_bytes * config->pages_per_block;
	blocks = flash_divide(config->capacity_bytes, block_bytes);
	if (blocks * block_bytes != config->capacity_bytes)
		return wrong("capacity_bytes", config->capacity_bytes, "a number of whole blocks");
	if (blocks * config->pages_per_block >= ~0U)
		return wrong("capacity_bytes", config->capacity_bytes, "less than 2^32 pages");
	if (config->factory_bad_blocks > blocks / 2)
		return wrong("factory_bad_blocks", config->factory_bad_blocks,
			     "at most half of the blocks");
	return (struct flash_complaint) { FLASH_NULL, 0, 0, 0, FLASH_NULL };
}

static flash_u32 blocks_of(const struct raw_nand_config *config)
{
	return flash_divide(config->capacity_bytes, config->page_bytes * config->pages_per_block);
}

static struct flash_nand array(const struct raw_nand_config *config)
{
	return (struct flash_nand) {
		.channels = config->channels,
		.dies = config->channels * config->dies_per_channel,
		.channel_bandwidth_bytes_per_s = config->channel_bandwidth_bytes_per_s,
	};
}

flash_u64 raw_nand_memory_bytes(const struct raw_nand_config *config)
{
	struct flash_nand nand = array(config);
	flash_u64 blocks = blocks_of(config);

	return flash_nand_memory_bytes(&nand) + blocks * sizeof(struct raw_nand_block) +
	       blocks * config->pages_per_block;
}

/* A number that depends on the seed and on `index` alone (SplitMix64, Steele et al. 2014). */
static flash_u64 drawn(const struct raw_nand *model, flash_u64 index)
{
	flash_u64 mixed = (model->config.error_seed << 32) + index * 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed ^ (mixed >> 31);
}

static flash_u64 remainder_of(flash_u64 dividend, flash_u64 divisor)
{
	return dividend - flash_divide(dividend, divisor) * divisor;
}

static void draw_bad_blocks(struct raw_nand *model)
{
	flash_u64 index = 0;

	/* The first block is whole when it leaves the factory, as data sheets promise. */
	while (model->statistics.bad_blocks < model->config.factory_bad_blocks) {
		flash_u64 number = remainder_of(drawn(model, index++), model->blocks);

		if (number)
			raw_nand_mark_bad(model, number);
	}
}

void raw_nand_init(struct raw_nand *model, const struct raw_nand_config *config, void *memory)
{
	static const struct raw_nand idle;
	static const struct raw_nand_block fresh;
	flash_u32 i;

	*model = idle;
	model->config = *config;
	model->blocks = blocks_of(config);
	model->nand = array(config);
	flash_nand_place(&model->nand, memory);
	flash_nand_init(&model->nand);
	model->block = (void *)((char *)memory + flash_nand_memory_bytes(&model->nand));
	model->programs = (void *)(model->block + model->blocks);
	for (i = 0; i < model->blocks; i++)
		model->block[i] = fresh;
	for (i = 0; i < model->blocks * config->pages_per_block; i++)
		model->programs[i] = 0;
	draw_bad_blocks(model);
}

static flash_u32 die_of(const struct raw_nand *model, flash_u32 block)
{
	return block % model->nand.dies;
}

/* Counts the time in which at least one die works. */
static flash_u64 until(struct raw_nand *model, flash_u64 now_ns, flash_u64 completion_ns)
{
	flash_u64 begin_ns = flash_max(now_ns, model->busy_until_ns);

	if (completion_ns > begin_ns) {
		model->statistics.busy_ns += completion_ns - begin_ns;
		model->busy_until_ns = completion_ns;
	}
	return completion_ns;
}

static struct raw_nand_result ended(enum raw_nand_outcome outcome, flash_u64 completion_ns)
{
	return (struct raw_nand_result) { outcome, 0, 0, completion_ns };
}

/* Bits that a read finds flipped in the worst part of the page that is corrected by itself. */
static flash_u32 flipped_bits(struct raw_nand *model, const struct raw_nand_block *block)
{
	const struct raw_nand_config *config = &model->config;
	flash_u64 flipped = 0;

	if (config->read_disturb_reads)
		flipped = flash_divide(block->reads, config->read_disturb_reads);
	if (config->flipped_reads_per_million &&
	    remainder_of(drawn(model, model->statistics.read_requests), 1000000) <
	    config->flipped_reads_per_million)
		flipped++;
	return flash_min(flipped, ~0U);
}

struct raw_nand_result raw_nand_read(struct raw_nand *model, flash_u32 page,
				     flash_u32 length_bytes, flash_u64 now_ns)
{
	flash_u32 number = page / (flash_u32)model->config.pages_per_block, flipped;
	struct raw_nand_block *block = &model->block[number];
	struct raw_nand_result result = ended(RAW_NAND_OFF, now_ns);

	if (model->off)
		return result;
	model->statistics.read_requests++;
	model->statistics.read_bytes += length_bytes;
	result.outcome = RAW_NAND_DONE;
	result.completion_ns = until(model, now_ns,
		flash_nand_host_read(&model->nand, die_of(model, number),
				     model->config.page_read_ns, length_bytes, now_ns));
	flipped = flipped_bits(model, block);
	block->reads += block->reads < ~0U;
	/* An erased page has nothing to protect: its flips are not seen. */
	if (!model->programs[page])
		return result;
	if (model->programs[page] & RAW_NAND_TORN || flipped > model->config.ecc_strength_bits) {
		model->statistics.uncorrectable_reads++;
		result.outcome = RAW_NAND_UNCORRECTABLE;
		result.wrong_bits = flash_max(flipped, model->config.ecc_strength_bits + 1);
		return result;
	}
	model->statistics.corrected_reads += flipped > 0;
	result.flipped_bits = flipped;
	return result;
}

void raw_nand_spoil(const struct raw_nand *model, flash_u32 page, flash_u32 wrong_bits,
		    unsigned char *bytes, flash_u32 length_bytes)
{
	flash_u64 bits = (flash_u64)length_bytes * 8, count = flash_min(wrong_bits, bits / 2), at;

	if (!count)
		return;
	at = remainder_of(drawn(model, page), flash_divide(bits, count));
	for (; at < bits; at += flash_divide(bits, count))
		bytes[at / 8] ^= 1 << at % 8;
}

/* Whether the power goes during the program or erase that begins now. */
static int is_cut(struct raw_nand *model)
{
	model->changes++;
	if (!model->config.cut_after_operations ||
	    model->changes <= model->config.cut_after_operations)
		return 0;
	model->off = 1;
	return 1;
}

struct raw_nand_result raw_nand_program(struct raw_nand *model, flash_u32 page,
					flash_u32 length_bytes, flash_u64 now_ns)
{
	flash_u32 number = page / (flash_u32)model->config.pages_per_block;
	flash_u64 completion_ns;

	if (model->off)
		return ended(RAW_NAND_OFF, now_ns);
	if ((model->programs[page] & ~RAW_NAND_TORN) >= model->config.programs_per_page) {
		model->statistics.refused_programs++;
		return ended(RAW_NAND_REFUSED, now_ns);
	}
	model->statistics.write_requests++;
	model->statistics.write_bytes += length_bytes;
	model->statistics.nand_write_bytes += model->config.page_bytes;
	completion_ns = until(model, now_ns,
		flash_nand_program(&model->nand, die_of(model, number), model->config.program_ns,
				   length_bytes, now_ns, now_ns, now_ns));
	model->programs[page]++;
	if (is_cut(model)) {
		model->programs[page] |= RAW_NAND_TORN;
		return ended(RAW_NAND_CUT, completion_ns);
	}
	if (model->block[number].bad) {
		model->statistics.failed_programs++;
		return ended(RAW_NAND_FAILED, completion_ns);
	}
	return ended(RAW_NAND_DONE, completion_ns);
}

struct raw_nand_result raw_nand_erase(struct raw_nand *model, flash_u32 number, flash_u64 now_ns)
{
	struct raw_nand_block *block = &model->block[number];
	flash_u32 pages = model->config.pages_per_block, page = number * pages, end = page + pages;
	flash_u64 completion_ns;
	int cut;

	if (model->off)
		return ended(RAW_NAND_OFF, now_ns);
	model->statistics.erase_requests++;
	completion_ns = until(model, now_ns, model->config.erase_ns +
		flash_nand_erase(&model->nand, die_of(model, number), model->config.erase_ns,
				 now_ns, now_ns));
	cut = is_cut(model);
	if (!cut && (block->bad || (model->config.endurance_erases &&
				    block->erases >= model->config.endurance_erases))) {
		model->statistics.failed_erases++;
		return ended(RAW_NAND_FAILED, completion_ns);
	}
	/* Half erased cells hold neither the old nor nothing. */
	for (; page < end; page++)
		model->programs[page] = cut && model->programs[page] ?
			model->programs[page] | RAW_NAND_TORN : 0;
	if (cut)
		return ended(RAW_NAND_CUT, completion_ns);
	block->erases++;
	block->reads = 0;
	return ended(RAW_NAND_DONE, completion_ns);
}

flash_u32 raw_nand_is_bad(const struct raw_nand *model, flash_u32 block)
{
	return model->block[block].bad;
}

void raw_nand_mark_bad(struct raw_nand *model, flash_u32 block)
{
	model->statistics.bad_blocks += !model->block[block].bad;
	model->block[block].bad = 1;
}

void raw_nand_rest(struct raw_nand *model)
{
	flash_nand_init(&model->nand);
	model->busy_until_ns = 0;
}

void raw_nand_power_on(struct raw_nand *model, flash_u64 after)
{
	model->config.cut_after_operations = after;
	model->changes = 0;
	model->off = 0;
}
