// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has the NAND do what the FTL wants of slots, units and rows: reads where they lie, produces the
 * times at which it is done, and counts by cause. Pure C, no kernel header.
 */
#include "flash_model.h"

flash_u64 flash_read_slot(struct flash_model *model, enum flash_cause cause, flash_u32 slot,
			  flash_u32 length_bytes, flash_u64 now_ns)
{
	flash_u32 die = flash_die_of(&model->geometry, slot);
	flash_u64 duration_ns = model->config.page_read_ns;

	model->statistics.page_reads[cause]++;
	model->statistics.nand_ns[cause] += duration_ns;
	if (cause == FLASH_FOR_HOST)
		return flash_nand_host_read(&model->nand, die, duration_ns, length_bytes, now_ns);
	/* Every later command begins after the controller has taken this one; here and below. */
	return flash_nand_own_read(&model->nand, die, duration_ns, length_bytes,
				   model->controller_free_ns, now_ns);
}

flash_u64 flash_program_unit(struct flash_model *model, enum flash_cause cause, flash_u32 die,
			     flash_u64 duration_ns, flash_u64 now_ns)
{
	/* What may begin late takes its share of the channel now: nothing early waits for it. */
	flash_u64 asked_ns = flash_min(now_ns, model->controller_free_ns);
	flash_u32 length_bytes = model->config.program_unit_bytes;

	model->statistics.programs[cause]++;
	model->statistics.nand_write_bytes += length_bytes;
	model->statistics.nand_ns[cause] += duration_ns;
	return flash_nand_program(&model->nand, die, duration_ns, length_bytes, asked_ns,
				  model->controller_free_ns, now_ns);
}

flash_u64 flash_erase_row(struct flash_model *model, enum flash_cause cause, flash_u64 now_ns)
{
	flash_u64 first_ns = ~0ULL, duration_ns = model->config.erase_ns;
	flash_u32 die;

	for (die = 0; die < model->nand.dies; die++) {
		first_ns = flash_min(first_ns,
				     flash_nand_erase(&model->nand, die, duration_ns,
						      model->controller_free_ns, now_ns));
		model->statistics.erases[cause]++;
		model->statistics.nand_ns[cause] += duration_ns;
	}
	return first_ns;
}
