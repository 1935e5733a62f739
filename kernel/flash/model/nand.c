// SPDX-License-Identifier: GPL-2.0-only
/*
 * Schedules the NAND: reads what is to be done and since when it could be, produces the times at
 * which it is done, and counts by cause. Pure C, no kernel header.
 */
#include "flash_model.h"

/* Takes a channel's capacity for one transfer that could begin at ready_ns. */
static flash_u64 transfer(struct flash_model *model, flash_u32 die, flash_u32 length_bytes,
			  flash_u64 now_ns, flash_u64 ready_ns)
{
	flash_u64 *used_ns = &model->channel_used_ns[die % model->config.channels];
	flash_u64 duration_ns = flash_transfer_ns(length_bytes,
						  model->config.channel_bandwidth_bytes_per_s);

	*used_ns = flash_max(*used_ns, now_ns) + duration_ns;
	return flash_max(*used_ns, ready_ns + duration_ns);
}

/* Answers when the operation begins. */
static flash_u64 append(struct flash_model *model, struct flash_die *die, flash_u64 duration_ns,
			flash_u64 now_ns)
{
	/* Every later command begins after the controller has taken this one. */
	flash_die_forget(die, model->controller_free_ns);
	return flash_die_append(die, duration_ns, now_ns);
}

flash_u64 flash_nand_read(struct flash_model *model, enum flash_cause cause, flash_u32 slot,
			  flash_u32 length_bytes, flash_u64 now_ns)
{
	flash_u32 number = flash_die_of(&model->geometry, slot);
	struct flash_die *die = &model->dies[number];
	flash_u64 duration_ns = model->config.page_read_ns, read_ns;

	model->statistics.page_reads[cause]++;
	model->statistics.nand_ns[cause] += duration_ns;
	if (cause == FLASH_FOR_HOST)
		read_ns = flash_die_read(die, duration_ns, model->config.suspend_ns, now_ns);
	else
		read_ns = append(model, die, duration_ns, now_ns) + duration_ns;
	return transfer(model, number, length_bytes, now_ns, read_ns);
}

flash_u64 flash_nand_program(struct flash_model *model, enum flash_cause cause, flash_u32 die,
			     flash_u64 duration_ns, flash_u64 now_ns)
{
	/* What may begin late takes its share of the channel now: nothing early waits for it. */
	flash_u64 asked_ns = flash_min(now_ns, model->controller_free_ns);
	flash_u64 ready_ns = transfer(model, die, model->config.program_unit_bytes, asked_ns,
				      now_ns);

	model->statistics.programs[cause]++;
	model->statistics.nand_write_bytes += model->config.program_unit_bytes;
	model->statistics.nand_ns[cause] += duration_ns;
	return append(model, &model->dies[die], duration_ns, ready_ns) + duration_ns;
}

flash_u64 flash_nand_erase_row(struct flash_model *model, enum flash_cause cause,
			       flash_u64 now_ns)
{
	flash_u64 first_ns = ~0ULL;
	flash_u32 die;

	for (die = 0; die < model->geometry.dies; die++) {
		first_ns = flash_min(first_ns, append(model, &model->dies[die],
						      model->config.erase_ns, now_ns));
		model->statistics.erases[cause]++;
		model->statistics.nand_ns[cause] += model->config.erase_ns;
	}
	return first_ns;
}
