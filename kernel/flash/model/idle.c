// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lets an idle device work for itself: reads when it was last asked for something and when its dies
 * are free; produces page reads, programs and erases. Pure C, no kernel header.
 */
#include "flash_model.h"

/* When all dies have ended what they were given, and the host has been silent for long enough. */
static flash_u64 next_begin_ns(const struct flash_model *model)
{
	flash_u64 begin_ns = model->busy_until_ns + model->config.idle_work_delay_ns;
	flash_u32 die;

	for (die = 0; die < model->nand.dies; die++)
		begin_ns = flash_max(begin_ns, model->nand.die[die].free_ns);
	return begin_ns;
}

void flash_idle_work(struct flash_model *model, flash_u64 now_ns)
{
	flash_u64 begin_ns;
	flash_u32 done;

	if (model->cache.waiting_slots)
		return;
	for (begin_ns = next_begin_ns(model); begin_ns < now_ns; begin_ns = next_begin_ns(model)) {
		for (done = 0; done < model->nand.dies; done++)
			if (!flash_slc_move(model, begin_ns) && !flash_gc_at_rest(model, begin_ns))
				break;
		if (!done)
			return;
		model->statistics.idle_rounds++;
	}
}
