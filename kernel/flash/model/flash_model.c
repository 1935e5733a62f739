// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timing model of a flash device (see flash_model.h). Reads requests and the times at which
 * they arrive; produces the times at which they complete, and statistics. Pure C, no kernel header.
 */
#include "flash_model.h"

#define NS_PER_S 1000000000ULL

static flash_u64 minimum(flash_u64 a, flash_u64 b)
{
	return a < b ? a : b;
}

static flash_u64 maximum(flash_u64 a, flash_u64 b)
{
	return a > b ? a : b;
}

static flash_u64 divide_up(flash_u64 a, flash_u64 b)
{
	return a / b + (a % b != 0);
}

/* No overflow: a length is below 2^32, and NS_PER_S below 2^30. */
static flash_u64 transfer_ns(flash_u64 length_bytes, flash_u64 bandwidth_bytes_per_s)
{
	return divide_up(length_bytes * NS_PER_S, bandwidth_bytes_per_s);
}

void flash_model_init(struct flash_model *model, const struct flash_config *config)
{
	static const struct flash_model idle;

	*model = idle;
	model->config = *config;
}

static void count_programs(struct flash_model *model, flash_u64 programs, flash_u64 length_bytes)
{
	model->statistics.programs += programs;
	model->statistics.programmed_bytes += length_bytes;
}

/* Takes the program's data out of the cache if it has ended by now_ns. */
static void end_program(struct flash_model *model, flash_u64 now_ns)
{
	if (!model->programming_bytes || model->nand_free_ns > now_ns)
		return;
	model->statistics.dirty_bytes -= model->programming_bytes;
	count_programs(model, 1, model->programming_bytes);
	model->programming_bytes = 0;
}

/* Begins to program what is in the cache, a unit at most. The array must be free at start_ns. */
static void begin_program(struct flash_model *model, flash_u64 start_ns)
{
	model->programming_bytes = minimum(model->statistics.dirty_bytes,
					   model->config.program_unit_bytes);
	model->nand_free_ns = start_ns + model->config.program_ns;
}

/*
 * Runs the programs of full units that begin before now_ns: one after the other since the array
 * was free and the data there. Those that have ended are counted at once, without a loop.
 */
static void drain_full_units(struct flash_model *model, flash_u64 now_ns)
{
	const struct flash_config *config = &model->config;
	flash_u64 ready_ns, begun, ended_bytes;

	end_program(model, now_ns);
	ready_ns = maximum(model->nand_free_ns, model->cached_ns);
	if (ready_ns >= now_ns)		/* so too while a program runs */
		return;
	begun = minimum(model->statistics.dirty_bytes / config->program_unit_bytes,
			divide_up(now_ns - ready_ns, config->program_ns));
	if (!begun)
		return;
	ended_bytes = (begun - 1) * config->program_unit_bytes;
	model->statistics.dirty_bytes -= ended_bytes;
	count_programs(model, begun - 1, ended_bytes);
	begin_program(model, ready_ns + (begun - 1) * config->program_ns);
	end_program(model, now_ns);
}

void flash_model_advance(struct flash_model *model, flash_u64 now_ns)
{
	flash_u64 start_ns;

	drain_full_units(model, now_ns);
	if (model->programming_bytes || !model->statistics.dirty_bytes ||
	    model->statistics.dirty_bytes >= model->config.program_unit_bytes)
		return;
	start_ns = maximum(model->nand_free_ns, model->free_ns + model->config.drain_delay_ns);
	if (start_ns >= now_ns)
		return;
	begin_program(model, start_ns);
	end_program(model, now_ns);
}

/* When a command that is at now_ns has the array to itself. */
static flash_u64 wait_for_nand(struct flash_model *model, flash_u64 now_ns)
{
	now_ns = maximum(now_ns, model->nand_free_ns);
	end_program(model, now_ns);
	return now_ns;
}

/* When `length_bytes`, a unit at most, fit in the cache. */
static flash_u64 wait_for_room(struct flash_model *model, flash_u64 length_bytes, flash_u64 now_ns)
{
	drain_full_units(model, now_ns);
	while (model->statistics.dirty_bytes + length_bytes > model->config.cache_bytes) {
		if (!model->programming_bytes)
			begin_program(model, maximum(now_ns, model->nand_free_ns));
		now_ns = wait_for_nand(model, now_ns);
	}
	return now_ns;
}

static flash_u64 program_mapping(struct flash_model *model, flash_u64 now_ns)
{
	model->statistics.mapping_programs++;
	return now_ns + model->config.mapping_program_ns;
}

static flash_u64 read(struct flash_model *model, flash_u64 length_bytes, flash_u64 now_ns)
{
	const struct flash_config *config = &model->config;

	now_ns = wait_for_nand(model, now_ns + config->command_overhead_ns);
	now_ns += config->read_access_ns;
	now_ns += transfer_ns(length_bytes, config->read_bandwidth_bytes_per_s);
	model->nand_free_ns = now_ns;
	return now_ns;
}

/* Unit by unit, so that the array programs one while the next is transferred. */
static flash_u64 write_cached(struct flash_model *model, flash_u64 length_bytes, flash_u64 now_ns)
{
	const struct flash_config *config = &model->config;

	now_ns += config->command_overhead_ns + config->write_access_ns;
	while (length_bytes) {
		flash_u64 part_bytes = minimum(length_bytes, config->program_unit_bytes);

		now_ns = wait_for_room(model, part_bytes, now_ns);
		now_ns += transfer_ns(part_bytes, config->write_bandwidth_bytes_per_s);
		drain_full_units(model, now_ns);
		model->statistics.dirty_bytes += part_bytes;
		model->cached_ns = now_ns;
		length_bytes -= part_bytes;
	}
	model->mapping_dirty = 1;
	return now_ns;
}

/*
 * Past the cache, which keeps what it holds: the data and their mapping are programmed. The
 * transfer is unit by unit as well, so that the rounding is the same as of a cached write.
 */
static flash_u64 write_through(struct flash_model *model, flash_u64 length_bytes, flash_u64 now_ns)
{
	const struct flash_config *config = &model->config;
	flash_u64 programs = divide_up(length_bytes, config->program_unit_bytes);
	flash_u64 units = length_bytes / config->program_unit_bytes;
	flash_u64 rest_bytes = length_bytes % config->program_unit_bytes;

	now_ns += config->command_overhead_ns + config->write_access_ns;
	now_ns = wait_for_nand(model, now_ns);
	now_ns += units * transfer_ns(config->program_unit_bytes,
				      config->write_bandwidth_bytes_per_s);
	now_ns += transfer_ns(rest_bytes, config->write_bandwidth_bytes_per_s);
	now_ns += programs * config->program_ns;
	count_programs(model, programs, length_bytes);
	now_ns = program_mapping(model, now_ns);
	model->nand_free_ns = now_ns;
	return now_ns;
}

static flash_u64 flush(struct flash_model *model, flash_u64 now_ns)
{
	const struct flash_config *config = &model->config;
	flash_u64 programs;

	now_ns = wait_for_nand(model, now_ns + config->flush_overhead_ns);
	programs = divide_up(model->statistics.dirty_bytes, config->program_unit_bytes);
	now_ns += programs * config->program_ns;
	count_programs(model, programs, model->statistics.dirty_bytes);
	model->statistics.dirty_bytes = 0;
	if (model->mapping_dirty)
		now_ns = program_mapping(model, now_ns);
	model->mapping_dirty = 0;
	model->nand_free_ns = now_ns;
	return now_ns;
}

/* Discard and write zeroes move no data: they change the mapping table. */
static flash_u64 unmap(struct flash_model *model, flash_u64 service_time_ns, unsigned int fua,
		       flash_u64 now_ns)
{
	now_ns += model->config.command_overhead_ns + service_time_ns;
	if (!fua) {
		model->mapping_dirty = 1;
		return now_ns;
	}
	now_ns = program_mapping(model, wait_for_nand(model, now_ns));
	model->nand_free_ns = now_ns;
	return now_ns;
}

static flash_u64 serve(struct flash_model *model, const struct flash_request *request,
		       flash_u64 now_ns)
{
	struct flash_statistics *statistics = &model->statistics;
	flash_u64 length_bytes = request->length_bytes;

	switch (request->operation) {
	case FLASH_READ:
		statistics->read_requests++;
		statistics->read_bytes += length_bytes;
		return read(model, length_bytes, now_ns);
	case FLASH_WRITE:
		statistics->write_requests++;
		statistics->fua_requests += request->fua;
		statistics->write_bytes += length_bytes;
		if (request->fua || !model->config.cache_bytes)
			return write_through(model, length_bytes, now_ns);
		return write_cached(model, length_bytes, now_ns);
	case FLASH_FLUSH:
		statistics->flush_requests++;
		return flush(model, now_ns);
	case FLASH_DISCARD:
		statistics->discard_requests++;
		statistics->discard_bytes += length_bytes;
		return unmap(model, model->config.discard_ns, 0, now_ns);
	case FLASH_ZEROES:
		statistics->zeroes_requests++;
		statistics->fua_requests += request->fua;
		statistics->zeroes_bytes += length_bytes;
		return unmap(model, model->config.zeroes_ns, request->fua, now_ns);
	}
	return now_ns;
}

flash_u64 flash_model_submit(struct flash_model *model, const struct flash_request *request,
			     flash_u64 now_ns)
{
	flash_u64 start_ns = maximum(now_ns, model->free_ns);

	flash_model_advance(model, start_ns);
	model->free_ns = serve(model, request, start_ns);
	model->statistics.busy_ns += model->free_ns - start_ns;
	return model->free_ns;
}
