/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters of a flash device: their names, their limits, and the check of a set of values.
 *
 * FLASH_PARAMETERS is the one list. The struct below, the module's parameters and the keys of
 * devices/NAME.toml all carry these names; devices/README.md says what each one means.
 */
#ifndef FLASH_CONFIG_H
#define FLASH_CONFIG_H

/* At least 64 bits by the C standard, and what the kernel's "ullong" parameters are made of. */
typedef unsigned long long flash_u64;

/*                           name                minimum        maximum */
#define FLASH_PARAMETERS(P) \
	P(capacity_bytes,              1048576, 1099511627776) \
	P(queue_depth,                       1,          1024) \
	P(command_overhead_ns,               0,    1000000000) \
	P(read_access_ns,                    0,    1000000000) \
	P(read_bandwidth_bytes_per_s,     1000, 1000000000000) \
	P(write_access_ns,                   0,    1000000000) \
	P(write_bandwidth_bytes_per_s,    1000, 1000000000000) \
	P(program_unit_bytes,              512,      16777216) \
	P(program_ns,                        1,    1000000000) \
	P(mapping_program_ns,                0,    1000000000) \
	P(cache_bytes,                       0,    1073741824) \
	P(drain_delay_ns,                    0, 1000000000000) \
	P(flush_overhead_ns,                 0,    1000000000) \
	P(fua,                               0,             1) \
	P(discard_ns,                        0,    1000000000) \
	P(zeroes_ns,                         0,    1000000000)

struct flash_config {
#define FLASH_FIELD(name, minimum, maximum) flash_u64 name;
	FLASH_PARAMETERS(FLASH_FIELD)
#undef FLASH_FIELD
};

/* The value of a parameter that was not given; outside every parameter's limits. */
#define FLASH_NOT_GIVEN (~0ULL)

/* The capacity is a whole number of these. */
#define FLASH_BLOCK_BYTES 4096ULL

/* What is wrong with a configuration: `name` is null when nothing is. */
struct flash_complaint {
	const char *name;
	flash_u64 value;
	flash_u64 minimum;
	flash_u64 maximum;
	const char *rule;	/* null: it must be minimum to maximum; else what it must be */
};

struct flash_complaint flash_model_check(const struct flash_config *config);

#endif
