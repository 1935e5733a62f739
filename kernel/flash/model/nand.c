// SPDX-License-Identifier: GPL-2.0-only
/*
 * Schedules an array of NAND: reads what is to be done and since when it could be, produces the
 * times at which it is done. Pure C, no kernel header.
 */
#include "nand.h"

flash_u64 flash_nand_memory_bytes(const struct flash_nand *nand)
{
	return nand->channels * sizeof(flash_u64) + nand->dies * sizeof(struct flash_die);
}

void flash_nand_place(struct flash_nand *nand, void *memory)
{
	nand->channel_used_ns = memory;
	nand->die = (void *)(nand->channel_used_ns + nand->channels);
}

void flash_nand_init(struct flash_nand *nand)
{
	static const struct flash_die rested;
	flash_u32 i;

	for (i = 0; i < nand->channels; i++)
		nand->channel_used_ns[i] = 0;
	for (i = 0; i < nand->dies; i++)
		nand->die[i] = rested;
}

void flash_nand_rest(struct flash_nand *nand, flash_u64 now_ns)
{
	flash_u32 i;

	for (i = 0; i < nand->channels; i++)
		nand->channel_used_ns[i] = now_ns;
	for (i = 0; i < nand->dies; i++)
		flash_die_rest(&nand->die[i], now_ns);
}

/* Takes a channel's capacity for one transfer that could begin at ready_ns. */
static flash_u64 transfer(struct flash_nand *nand, flash_u32 die, flash_u32 length_bytes,
			  flash_u64 now_ns, flash_u64 ready_ns)
{
	flash_u64 *used_ns = &nand->channel_used_ns[die % nand->channels];
	flash_u64 duration_ns = flash_transfer_ns(length_bytes,
						  nand->channel_bandwidth_bytes_per_s);

	*used_ns = flash_max(*used_ns, now_ns) + duration_ns;
	return flash_max(*used_ns, ready_ns + duration_ns);
}

/* Answers when the operation begins. */
static flash_u64 append(struct flash_die *die, flash_u64 duration_ns, flash_u64 past_ns,
			flash_u64 now_ns)
{
	flash_die_forget(die, past_ns);
	return flash_die_append(die, duration_ns, now_ns);
}

flash_u64 flash_nand_host_read(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			       flash_u32 length_bytes, flash_u64 now_ns)
{
	flash_u64 read_ns = flash_die_read(&nand->die[die], duration_ns, nand->suspend_ns, now_ns);

	return transfer(nand, die, length_bytes, now_ns, read_ns);
}

flash_u64 flash_nand_own_read(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			      flash_u32 length_bytes, flash_u64 past_ns, flash_u64 now_ns)
{
	flash_u64 begin_ns = append(&nand->die[die], duration_ns, past_ns, now_ns);

	return transfer(nand, die, length_bytes, now_ns, begin_ns + duration_ns);
}

flash_u64 flash_nand_program(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			     flash_u32 length_bytes, flash_u64 asked_ns, flash_u64 past_ns,
			     flash_u64 now_ns)
{
	flash_u64 ready_ns = transfer(nand, die, length_bytes, asked_ns, now_ns);

	return append(&nand->die[die], duration_ns, past_ns, ready_ns) + duration_ns;
}

flash_u64 flash_nand_erase(struct flash_nand *nand, flash_u32 die, flash_u64 duration_ns,
			   flash_u64 past_ns, flash_u64 now_ns)
{
	return append(&nand->die[die], duration_ns, past_ns, now_ns);
}
