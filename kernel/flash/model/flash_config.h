/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters of a flash device: their names, their limits, and the check of a set of values.
 *
 * FLASH_PARAMETERS is the one list. The struct below, the module's parameters and the keys of
 * devices/NAME.toml all carry these names; devices/README.md says what each one means. Those after
 * ageing_seed are mechanisms that not every device has: 0 is without them.
 */
#ifndef FLASH_CONFIG_H
#define FLASH_CONFIG_H

#include "arithmetic.h"

/*                           name                minimum        maximum */
#define FLASH_PARAMETERS(P) \
	P(capacity_bytes,              1048576, 1099511627776) \
	P(queue_depth,                       1,          1024) \
	P(half_duplex,                       0,             1) \
	P(packed_writes,                     1,            64) \
	P(command_overhead_ns,               0,    1000000000) \
	P(read_command_ns,                   0,    1000000000) \
	P(write_command_ns,                  0,    1000000000) \
	P(read_access_ns,                    0,    1000000000) \
	P(read_bandwidth_bytes_per_s,     1000, 1000000000000) \
	P(write_access_ns,                   0,    1000000000) \
	P(write_bandwidth_bytes_per_s,    1000, 1000000000000) \
	P(channels,                          1,            32) \
	P(dies_per_channel,                  1,            32) \
	P(channel_bandwidth_bytes_per_s,  1000, 1000000000000) \
	P(program_unit_bytes,             4096,        262144) \
	P(units_per_erase_block,             2,          8192) \
	P(page_read_ns,                      1,    1000000000) \
	P(program_ns,                        1,    1000000000) \
	P(erase_ns,                          1,    1000000000) \
	P(mapping_program_ns,                0,    1000000000) \
	P(mapping_cache_bytes,               0,    1073741824) \
	P(over_provisioning_percent,         1,           400) \
	P(gc_policy,                         0,             1) \
	P(wear_spread_max,                   0,       1000000) \
	P(cache_bytes,                       0,    1073741824) \
	P(power_loss_protection,             0,             1) \
	P(drain_delay_ns,                    0, 1000000000000) \
	P(flush_overhead_ns,                 0,    1000000000) \
	P(fua,                               0,             1) \
	P(fua_overhead_ns,                   0,    1000000000) \
	P(discard_ns,                        0,    1000000000) \
	P(zeroes_ns,                         0,    1000000000) \
	P(preload_percent,                   0,           100) \
	P(overwrite_percent,                 0,          1000) \
	P(ageing_seed,                       0,    4294967295) \
	P(flush_lies,                        0,             1) \
	P(atomic_slots,                      0,             1) \
	P(torn_slots_max,                    0,         65536) \
	P(unreadable_torn_slots,             0,             1) \
	P(stale_mapping_flushes,             0,          1024) \
	P(early_erase,                       0,             1) \
	P(atomic_write_bytes,                0,        262144) \
	P(atomic_write_lies,                 0,             1) \
	P(flush_drains_queue,                0,             1) \
	P(flush_tail_permille,               0,          1000) \
	P(flush_tail_ns,                     0,    1000000000) \
	P(flush_tail_seed,                   0,    4294967295) \
	P(sleep_after_ns,                    0, 1000000000000) \
	P(wake_up_ns,                        0,    1000000000) \
	P(suspend_ns,                        0,    1000000000) \
	P(slc_buffer_bytes,                  0, 1099511627776) \
	P(slc_program_ns,                    0,    1000000000) \
	P(idle_work_delay_ns,                0, 1000000000000) \
	P(idle_gc_rows,                      0,       1000000)

struct flash_config {
#define FLASH_FIELD(name, minimum, maximum) flash_u64 name;
	FLASH_PARAMETERS(FLASH_FIELD)
#undef FLASH_FIELD
};

/* Whether a power cut loses what has completed and was neither flushed nor forced. */
static inline unsigned int flash_config_is_volatile(const struct flash_config *config)
{
	return config->cache_bytes && !config->power_loss_protection;
}

/* Whether flush and FUA write nothing: they need not, or the device only says that it has. */
static inline unsigned int flash_config_keeps_nothing(const struct flash_config *config)
{
	return config->power_loss_protection || config->flush_lies;
}

/* The value of a parameter that was not given; outside every parameter's limits. */
#define FLASH_NOT_GIVEN (~0ULL)

enum flash_gc_policy {
	FLASH_GC_GREEDY,
	FLASH_GC_COST_BENEFIT,
};

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
