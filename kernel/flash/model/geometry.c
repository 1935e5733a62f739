// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts slots, units and rows out of a device's parameters, and refuses those that no device can
 * have. Pure C, no kernel header.
 */
#include "geometry.h"

static struct flash_complaint wrong(const char *name, flash_u64 value, const char *rule)
{
	return (struct flash_complaint) { name, value, 0, 0, rule };
}

/*
 * At least six rows and a unit of each row more than can be valid, whatever the over-provisioning.
 * Collection begins when three rows are free; then at least one of the others has a unit's worth of
 * invalid slots, so that moving the rest, of which the last unit is padded, gains something.
 */
static flash_u64 rows_needed(const struct flash_geometry *geometry)
{
	flash_u64 valid = (flash_u64)geometry->disk_slots + geometry->mapping_slots;
	flash_u64 spare = (flash_u64)FLASH_SPARE_ROWS * geometry->row_slots;

	return flash_divide_up(valid + spare, geometry->row_slots - geometry->unit_slots);
}

struct flash_complaint flash_geometry_derive(const struct flash_config *config,
					     struct flash_geometry *geometry)
{
	flash_u64 slots = config->capacity_bytes / FLASH_SLOT_BYTES, physical_slots;

	if (config->capacity_bytes % FLASH_SLOT_BYTES)
		return wrong("capacity_bytes", config->capacity_bytes, "a multiple of 4096");
	if (config->program_unit_bytes % FLASH_SLOT_BYTES)
		return wrong("program_unit_bytes", config->program_unit_bytes,
			     "a multiple of 4096");
	if (config->cache_bytes && config->cache_bytes < config->program_unit_bytes)
		return wrong("cache_bytes", config->cache_bytes,
			     "0 (no cache) or at least program_unit_bytes");
	if (config->mapping_cache_bytes && config->mapping_cache_bytes < FLASH_SLOT_BYTES)
		return wrong("mapping_cache_bytes", config->mapping_cache_bytes,
			     "0 (the whole table) or at least 4096");
	if (config->slc_buffer_bytes > config->capacity_bytes)
		return wrong("slc_buffer_bytes", config->slc_buffer_bytes,
			     "no more than capacity_bytes");
	if (config->slc_buffer_bytes && !config->slc_program_ns)
		return wrong("slc_program_ns", 0, "1 or more where there is an slc_buffer_bytes");
	if (config->atomic_write_bytes & (config->atomic_write_bytes - 1) ||
	    (config->atomic_write_bytes && config->atomic_write_bytes < FLASH_SLOT_BYTES))
		return wrong("atomic_write_bytes", config->atomic_write_bytes,
			     "0 (none) or a power of two of at least 4096");
	geometry->dies = config->channels * config->dies_per_channel;
	geometry->unit_slots = config->program_unit_bytes / FLASH_SLOT_BYTES;
	geometry->row_units = geometry->dies * config->units_per_erase_block;
	geometry->row_slots = geometry->row_units * geometry->unit_slots;
	geometry->disk_slots = slots;
	geometry->mapping_slots = flash_divide_up(slots, FLASH_ENTRIES_PER_SLOT);
	physical_slots = flash_divide_up(slots * (100 + config->over_provisioning_percent), 100);
	geometry->rows = flash_max(flash_divide_up(physical_slots, geometry->row_slots),
				   rows_needed(geometry));
	geometry->cache_slots = config->cache_bytes / FLASH_SLOT_BYTES;
	geometry->mapping_cache_slots = config->mapping_cache_bytes ?
		config->mapping_cache_bytes / FLASH_SLOT_BYTES : FLASH_NONE;
	geometry->slc_units = flash_divide(config->slc_buffer_bytes, config->program_unit_bytes);
	if ((flash_u64)FLASH_SPARE_ROWS * geometry->row_slots > slots)
		return wrong("units_per_erase_block", config->units_per_erase_block,
			     "less: six erase blocks of every die must fit in the capacity");
	return (struct flash_complaint) { FLASH_NULL, 0, 0, 0, FLASH_NULL };
}
