/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model of raw NAND, without a controller that hides it: a function (model, operation, now_ns)
 * -> (completion_ns, outcome). Dies, channels and times are those of ../../flash/model/nand.h.
 * No clock, allocation or randomness of its own; memory for its tables is handed in. It keeps no
 * contents: who calls it does, and asks here which of them can still be read.
 *
 *   page    what is read or programmed at once, with its out-of-band bytes
 *   block   what is erased at once; block n lies on die n % dies
 *
 * Errors are off unless their parameters say otherwise: blocks that are bad from the factory or
 * worn out, bits that flip by chance or because the block was read often, and a power cut in the
 * middle of a program or an erase.
 */
#ifndef RAW_NAND_MODEL_H
#define RAW_NAND_MODEL_H

#include "../../flash/model/flash_config.h"
#include "../../flash/model/nand.h"

/* Those after erase_ns are what not every part or experiment has: 0 is without them. */
/*                              name                minimum        maximum */
#define RAW_NAND_PARAMETERS(P) \
	P(capacity_bytes,              1048576, 1099511627776) \
	P(page_bytes,                     2048,         65536) \
	P(spare_bytes,                      16,          8192) \
	P(pages_per_block,                  16,          4096) \
	P(programs_per_page,                 1,             8) \
	P(ecc_strength_bits,                 1,            72) \
	P(channels,                          1,            32) \
	P(dies_per_channel,                  1,            32) \
	P(channel_bandwidth_bytes_per_s,  1000, 1000000000000) \
	P(page_read_ns,                      1,    1000000000) \
	P(program_ns,                        1,    1000000000) \
	P(erase_ns,                          1,    1000000000) \
	P(factory_bad_blocks,                0,         65536) \
	P(flipped_reads_per_million,         0,       1000000) \
	P(read_disturb_reads,                0,    4294967295) \
	P(endurance_erases,                  0,    4294967295) \
	P(cut_after_operations,              0,    4294967295) \
	P(error_seed,                        0,    4294967295)

struct raw_nand_config {
#define RAW_NAND_FIELD(name, minimum, maximum) flash_u64 name;
	RAW_NAND_PARAMETERS(RAW_NAND_FIELD)
#undef RAW_NAND_FIELD
};

/* What is wrong with a configuration; `name` is null when nothing is. */
struct flash_complaint raw_nand_check(const struct raw_nand_config *config);

/*
 * Requests are operations on one page or one block. read_bytes and write_bytes are what the host
 * moved, nand_write_bytes whole pages without their out-of-band bytes.
 */
#define RAW_NAND_STATISTICS(S) \
	S(read_requests) \
	S(write_requests) \
	S(erase_requests) \
	S(read_bytes) \
	S(write_bytes) \
	S(nand_write_bytes) \
	S(busy_ns) \
	S(corrected_reads) \
	S(uncorrectable_reads) \
	S(failed_programs) \
	S(failed_erases) \
	S(bad_blocks) \
	S(refused_programs)

struct raw_nand_statistics {
#define RAW_NAND_FIELD(name) flash_u64 name;
	RAW_NAND_STATISTICS(RAW_NAND_FIELD)
#undef RAW_NAND_FIELD
};

enum raw_nand_outcome {
	RAW_NAND_DONE,
	RAW_NAND_UNCORRECTABLE,	/* more flipped bits than are corrected, or torn */
	RAW_NAND_FAILED,	/* the block is bad */
	RAW_NAND_REFUSED,	/* programmed as often as the part allows since its erase */
	RAW_NAND_CUT,		/* the power goes in the middle of it */
	RAW_NAND_OFF,		/* there is no power */
};

struct raw_nand_result {
	enum raw_nand_outcome outcome;
	flash_u32 flipped_bits;		/* corrected ones of a read */
	flash_u32 wrong_bits;		/* of a read that cannot be corrected */
	flash_u64 completion_ns;
};

struct raw_nand_block {
	flash_u32 erases;
	flash_u32 reads;		/* of its pages since its erase */
	flash_u32 bad;
};

struct raw_nand {
	struct raw_nand_config config;
	struct raw_nand_statistics statistics;
	struct flash_nand nand;
	flash_u32 blocks;
	flash_u64 busy_until_ns;
	flash_u64 changes;		/* programs and erases since the power came */
	flash_u32 off;

	/* Tables, in the memory handed in. */
	struct raw_nand_block *block;
	unsigned char *programs;	/* of each page since its erase, and RAW_NAND_TORN */
};

#define RAW_NAND_TORN 0x80

/* What the tables take. `config` must have passed raw_nand_check(), here and below. */
flash_u64 raw_nand_memory_bytes(const struct raw_nand_config *config);

/* All erased, and the bad blocks of the factory drawn. `memory` is aligned to 8 bytes. */
void raw_nand_init(struct raw_nand *model, const struct raw_nand_config *config, void *memory);

/* Operations, in the order of time. Pages are counted through the blocks. */
struct raw_nand_result raw_nand_read(struct raw_nand *model, flash_u32 page,
				     flash_u32 length_bytes, flash_u64 now_ns);
struct raw_nand_result raw_nand_program(struct raw_nand *model, flash_u32 page,
					flash_u32 length_bytes, flash_u64 now_ns);
struct raw_nand_result raw_nand_erase(struct raw_nand *model, flash_u32 block, flash_u64 now_ns);

/*
 * Turns as many bits over in what a read of a page gives as its result says are wrong: a driver
 * hands out what it could not correct (nand_do_read_ops() in drivers/mtd/nand/raw/nand_base.c).
 * They are spread over these bytes, at most half of their bits; the same page has the same ones.
 */
void raw_nand_spoil(const struct raw_nand *model, flash_u32 page, flash_u32 wrong_bits,
		    unsigned char *bytes, flash_u32 length_bytes);

/* The marker in the out-of-band bytes of a bad block. It takes no time. */
flash_u32 raw_nand_is_bad(const struct raw_nand *model, flash_u32 block);
void raw_nand_mark_bad(struct raw_nand *model, flash_u32 block);

/* Nothing is under way any more: the power was off meanwhile. */
void raw_nand_rest(struct raw_nand *model);

/* The power comes back; `after` more programs and erases till it goes again, 0: it stays. */
void raw_nand_power_on(struct raw_nand *model, flash_u64 after);

#endif
