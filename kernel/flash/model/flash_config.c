// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks the parameters of a flash device. Reads a configuration; answers with the first
 * parameter that is wrong and what it must be. Pure C, no kernel header.
 */
#include "flash_config.h"
#include "geometry.h"

struct flash_limit {
	const char *name;
	unsigned long offset;
	flash_u64 minimum;
	flash_u64 maximum;
};

static const struct flash_limit flash_limits[] = {
#define FLASH_LIMIT(name, minimum, maximum) \
	{ #name, __builtin_offsetof(struct flash_config, name), minimum, maximum },
	FLASH_PARAMETERS(FLASH_LIMIT)
#undef FLASH_LIMIT
};

static flash_u64 flash_value(const struct flash_config *config, const struct flash_limit *limit)
{
	return *(const flash_u64 *)((const char *)config + limit->offset);
}

struct flash_complaint flash_model_check(const struct flash_config *config)
{
	struct flash_complaint complaint = { FLASH_NULL, 0, 0, 0, FLASH_NULL };
	struct flash_geometry geometry;
	unsigned long i;

	for (i = 0; i < sizeof(flash_limits) / sizeof(flash_limits[0]); i++) {
		const struct flash_limit *limit = &flash_limits[i];
		flash_u64 value = flash_value(config, limit);

		if (value >= limit->minimum && value <= limit->maximum)
			continue;
		complaint.name = limit->name;
		complaint.value = value;
		complaint.minimum = limit->minimum;
		complaint.maximum = limit->maximum;
		return complaint;
	}
	return flash_geometry_derive(config, &geometry);
}
