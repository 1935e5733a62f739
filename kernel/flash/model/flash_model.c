// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commands of a flash device (see flash_model.h). Reads requests and the times at which they
 * arrive; produces the times at which they complete, and statistics. Pure C, no kernel header.
 */
#include "flash_model.h"

/* A command under way. */
struct flash_command_state {
	flash_u64 start_ns;	/* when its firmware time is over */
	flash_u64 link_ns;	/* when its last transfer over the link ends */
};

/* The NAND of a device, without its tables. */
static struct flash_nand array(const struct flash_config *config,
			       const struct flash_geometry *geometry)
{
	return (struct flash_nand) {
		.channels = config->channels,
		.dies = geometry->dies,
		.channel_bandwidth_bytes_per_s = config->channel_bandwidth_bytes_per_s,
		.suspend_ns = config->suspend_ns,
	};
}

void flash_model_place(struct flash_model *model, void *memory)
{
	const struct flash_geometry *geometry = &model->geometry;

	flash_nand_place(&model->nand, memory);
	model->row = (void *)((char *)memory + flash_nand_memory_bytes(&model->nand));
	model->cached = (void *)(model->row + geometry->rows);
	model->parts = (void *)(model->cached + geometry->cache_slots);
	model->slc_units = (void *)(model->parts + geometry->mapping_slots);
	model->map = (void *)(model->slc_units + geometry->slc_units);
	model->reverse = model->map + geometry->disk_slots + geometry->mapping_slots;
}

flash_u64 flash_model_memory_bytes(const struct flash_config *config)
{
	struct flash_geometry geometry;
	struct flash_nand nand;

	flash_geometry_derive(config, &geometry);
	nand = array(config, &geometry);
	return flash_nand_memory_bytes(&nand) +
	       geometry.rows * sizeof(struct flash_row) +
	       geometry.cache_slots * sizeof(struct flash_cached) +
	       geometry.mapping_slots * sizeof(struct flash_part) +
	       geometry.slc_units * sizeof(struct flash_slc_unit) +
	       ((flash_u64)geometry.disk_slots + geometry.mapping_slots +
		(flash_u64)geometry.rows * geometry.row_slots) * sizeof(flash_u32);
}

void flash_model_init(struct flash_model *model, const struct flash_config *config, void *memory)
{
	static const struct flash_model idle;

	*model = idle;
	model->config = *config;
	flash_geometry_derive(config, &model->geometry);
	model->nand = array(config, &model->geometry);
	flash_model_place(model, memory);
	flash_nand_init(&model->nand);
	flash_rows_init(model);
	flash_mapping_init(model);
	flash_cache_init(model);
	flash_gc_init(model);
}

void flash_model_advance(struct flash_model *model, flash_u64 now_ns)
{
	flash_cache_drain(model, now_ns);
	if (model->config.idle_work_delay_ns)
		flash_idle_work(model, now_ns);
}

/*
 * A transfer over the link of data that are there at ready_ns. Those of one command follow each
 * other; those of several share the link's capacity, used up in the order of arrival. Answers how
 * long it takes by itself.
 */
static flash_u64 transfer(struct flash_model *model, struct flash_command_state *command,
		     enum flash_operation operation, flash_u64 length_bytes, flash_u64 ready_ns)
{
	const struct flash_config *config = &model->config;
	int write = operation == FLASH_WRITE;
	flash_u64 duration_ns = flash_transfer_ns(length_bytes, write ?
						  config->write_bandwidth_bytes_per_s :
						  config->read_bandwidth_bytes_per_s);
	flash_u64 *used_ns = &model->link_used_ns[write && !config->half_duplex];

	*used_ns = flash_max(*used_ns, command->start_ns) + duration_ns;
	command->link_ns = flash_max(command->link_ns, ready_ns) + duration_ns;
	command->link_ns = flash_max(command->link_ns, *used_ns);
	return duration_ns;
}

/* The bytes of a request in the slot that holds offset_bytes. */
static flash_u32 part_bytes(flash_u64 offset_bytes, flash_u64 end_bytes)
{
	flash_u64 slot_end = offset_bytes - offset_bytes % FLASH_SLOT_BYTES + FLASH_SLOT_BYTES;

	return flash_min(slot_end, end_bytes) - offset_bytes;
}

static flash_u64 read(struct flash_model *model, const struct flash_request *request,
		      struct flash_command_state *command)
{
	flash_u64 offset_bytes = request->offset_bytes, ready_ns = command->start_ns;
	flash_u64 end_bytes = offset_bytes + request->length_bytes;
	flash_u32 unit = FLASH_NONE;

	while (offset_bytes < end_bytes) {
		flash_u32 logical = offset_bytes / FLASH_SLOT_BYTES;
		flash_u32 length_bytes = part_bytes(offset_bytes, end_bytes);
		flash_u32 physical = model->map[logical];
		flash_u64 mapped_ns;

		if (flash_mapping_in_cache(model, logical) != FLASH_NONE) {
			model->statistics.cache_read_bytes += length_bytes;
		} else {
			mapped_ns = flash_mapping_use(model, logical, 0, command->start_ns);
			model->statistics.mapping_wait_ns += mapped_ns - command->start_ns;
			ready_ns = flash_max(ready_ns, mapped_ns);
			if (physical != FLASH_NONE &&
			    flash_unit_of(&model->geometry, physical) != unit) {
				unit = flash_unit_of(&model->geometry, physical);
				ready_ns = flash_max(ready_ns,
					flash_read_slot(model, FLASH_FOR_HOST, physical,
							length_bytes, mapped_ns));
			}
		}
		transfer(model, command, FLASH_READ, length_bytes, ready_ns);
		offset_bytes += length_bytes;
	}
	return command->link_ns;
}

/* What is written in part is read first: the NAND has no smaller copy of a slot. */
static flash_u64 fetch_rest(struct flash_model *model, flash_u32 logical, flash_u32 length_bytes,
			    flash_u64 now_ns)
{
	flash_u32 physical = model->map[logical];

	if (length_bytes == FLASH_SLOT_BYTES || physical == FLASH_NONE || physical & FLASH_IN_CACHE)
		return now_ns;
	now_ns = flash_mapping_use(model, logical, 0, now_ns);
	return flash_read_slot(model, FLASH_FOR_HOST, physical, FLASH_SLOT_BYTES, now_ns);
}

static flash_u64 write_cached(struct flash_model *model, const struct flash_request *request,
			      struct flash_command_state *command)
{
	flash_u64 offset_bytes = request->offset_bytes;
	flash_u64 end_bytes = offset_bytes + request->length_bytes;

	while (offset_bytes < end_bytes) {
		flash_u32 logical = offset_bytes / FLASH_SLOT_BYTES;
		flash_u32 length_bytes = part_bytes(offset_bytes, end_bytes);
		flash_u64 duration_ns;

		fetch_rest(model, logical, length_bytes, command->start_ns);
		duration_ns = transfer(model, command, FLASH_WRITE, length_bytes,
				       command->start_ns);
		command->link_ns = flash_cache_write(model, logical, duration_ns,
						     command->link_ns - duration_ns);
		offset_bytes += length_bytes;
	}
	return command->link_ns;
}

/* Past the cache: a unit is programmed as soon as it is there. Answers when the last one is. */
static flash_u64 write_through(struct flash_model *model, const struct flash_request *request,
			       struct flash_command_state *command)
{
	flash_u64 offset_bytes = request->offset_bytes, end_ns = command->start_ns;
	flash_u64 end_bytes = offset_bytes + request->length_bytes;
	flash_u32 units[FLASH_UNIT_SLOTS_MAX], count = 0;

	while (offset_bytes < end_bytes) {
		flash_u32 logical = offset_bytes / FLASH_SLOT_BYTES;
		flash_u32 length_bytes = part_bytes(offset_bytes, end_bytes);
		flash_u64 ready_ns = fetch_rest(model, logical, length_bytes, command->start_ns);

		transfer(model, command, FLASH_WRITE, length_bytes, command->start_ns);
		command->link_ns = flash_max(command->link_ns, ready_ns);
		if (flash_cache_remove(model, logical))
			model->statistics.cache_overwritten_bytes += FLASH_SLOT_BYTES;
		model->statistics.mapped_write_bytes += FLASH_SLOT_BYTES;
		if (model->observer)
			model->observer->accepted(model->observer, logical);
		units[count++] = logical;
		offset_bytes += length_bytes;
		if (count < model->geometry.unit_slots && offset_bytes < end_bytes)
			continue;
		end_ns = flash_max(end_ns,
				   flash_cache_program(model, units, count, command->link_ns));
		count = 0;
	}
	return end_ns;
}

static flash_u64 write(struct flash_model *model, const struct flash_request *request,
		       struct flash_command_state *command)
{
	const struct flash_config *config = &model->config;

	if (config->cache_bytes && (!request->fua || flash_config_keeps_nothing(config)))
		return write_cached(model, request, command);
	if (request->fua)
		command->start_ns = command->link_ns = command->start_ns + config->fua_overhead_ns;
	return flash_mapping_commit(model, write_through(model, request, command));
}

static flash_u64 flush(struct flash_model *model, flash_u64 now_ns)
{
	flash_u64 begin_ns = now_ns + model->config.flush_overhead_ns, end_ns;

	if (flash_config_keeps_nothing(&model->config))
		return begin_ns;
	end_ns = flash_mapping_commit(model, flash_cache_flush(model, begin_ns));
	if (model->config.flush_tail_permille && end_ns > begin_ns)
		end_ns += flash_flush_tail_ns(&model->config, model->statistics.flush_requests);
	return end_ns;
}

/* Discard and write zeroes move no data: they change the mapping table, slot by slot. */
static void unmap(struct flash_model *model, const struct flash_request *request, flash_u64 now_ns)
{
	flash_u64 end_bytes = request->offset_bytes + request->length_bytes;
	flash_u32 logical = flash_divide_up(request->offset_bytes, FLASH_SLOT_BYTES);
	flash_u32 end = end_bytes / FLASH_SLOT_BYTES, used_part = FLASH_NONE;

	for (; logical < end; logical++) {
		if (model->map[logical] == FLASH_NONE)
			continue;
		if (flash_cache_remove(model, logical))
			model->statistics.cache_discarded_bytes += FLASH_SLOT_BYTES;
		if (!flash_mapping_unmap(model, logical, now_ns))
			continue;
		if (logical / FLASH_ENTRIES_PER_SLOT == used_part)
			continue;
		used_part = logical / FLASH_ENTRIES_PER_SLOT;
		flash_mapping_use(model, logical, 1, now_ns);
	}
}

static flash_u64 zeroes(struct flash_model *model, const struct flash_request *request,
			flash_u64 now_ns)
{
	now_ns += model->config.zeroes_ns;
	unmap(model, request, now_ns);
	if (request->fua && !flash_config_keeps_nothing(&model->config))
		now_ns = flash_mapping_commit(model, now_ns);
	return now_ns;
}

static void count(struct flash_statistics *statistics, const struct flash_request *request)
{
	flash_u64 length_bytes = request->length_bytes;

	switch (request->operation) {
	case FLASH_READ:
		statistics->read_requests++;
		statistics->read_bytes += length_bytes;
		break;
	case FLASH_WRITE:
		statistics->write_requests++;
		statistics->fua_requests += request->fua;
		statistics->write_bytes += length_bytes;
		break;
	case FLASH_FLUSH:
		statistics->flush_requests++;
		break;
	case FLASH_DISCARD:
		statistics->discard_requests++;
		statistics->discard_bytes += length_bytes;
		break;
	case FLASH_ZEROES:
		statistics->zeroes_requests++;
		statistics->fua_requests += request->fua;
		statistics->zeroes_bytes += length_bytes;
		break;
	}
}

/* Whether the host puts the write into the command of the one before, which it waits for. */
static int packs(struct flash_model *model, const struct flash_request *request, flash_u64 now_ns)
{
	unsigned int write = request->operation == FLASH_WRITE && !request->fua;
	unsigned int packed = write && model->pack_length && now_ns < model->busy_until_ns &&
		     model->pack_length < model->config.packed_writes;

	model->pack_length = packed ? model->pack_length + 1 : write;
	model->statistics.packed_requests += packed;
	return packed;
}

/* How long a command takes the controller's processor; a flush has an overhead of its own. */
static flash_u64 processor_ns(const struct flash_model *model, enum flash_operation operation)
{
	const struct flash_config *config = &model->config;

	switch (operation) {
	case FLASH_READ:
		return config->command_overhead_ns + config->read_command_ns;
	case FLASH_WRITE:
		return config->command_overhead_ns + config->write_command_ns;
	case FLASH_FLUSH:
		return 0;
	default:
		return config->command_overhead_ns;
	}
}

/* When the device is ready for a command: asleep after a while, and drained by a flush. */
static flash_u64 ready_ns(struct flash_model *model, enum flash_operation operation,
			  flash_u64 now_ns)
{
	const struct flash_config *config = &model->config;

	if (config->sleep_after_ns && now_ns > model->busy_until_ns + config->sleep_after_ns) {
		model->statistics.wake_ups++;
		now_ns += config->wake_up_ns;
	}
	if (config->flush_drains_queue && operation == FLASH_FLUSH)
		now_ns = flash_max(now_ns, model->busy_until_ns);
	return flash_max(now_ns, model->drained_ns);
}

/* Waits for the controller's processor, and takes it. */
static flash_u64 begin(struct flash_model *model, const struct flash_request *request,
		       flash_u64 now_ns)
{
	int packed = packs(model, request, now_ns);

	if (model->config.queue_depth == 1)
		now_ns = flash_max(now_ns, model->busy_until_ns);
	now_ns = flash_max(ready_ns(model, request->operation, now_ns), model->controller_free_ns);
	flash_model_advance(model, now_ns);
	model->serving = 1;
	if (!packed)
		now_ns += processor_ns(model, request->operation);
	model->controller_free_ns = now_ns;
	return now_ns;
}

static flash_u64 serve(struct flash_model *model, const struct flash_request *request,
		       flash_u64 now_ns)
{
	struct flash_command_state command = { now_ns, now_ns };

	switch (request->operation) {
	case FLASH_READ:
		command.start_ns = command.link_ns = now_ns + model->config.read_access_ns;
		return read(model, request, &command);
	case FLASH_WRITE:
		command.start_ns = command.link_ns = now_ns + model->config.write_access_ns;
		return write(model, request, &command);
	case FLASH_FLUSH:
		return flush(model, now_ns);
	case FLASH_DISCARD:
		now_ns += model->config.discard_ns;
		unmap(model, request, now_ns);
		return now_ns;
	case FLASH_ZEROES:
		return zeroes(model, request, now_ns);
	}
	return now_ns;
}

flash_u64 flash_model_submit(struct flash_model *model, const struct flash_request *request,
			     flash_u64 now_ns)
{
	struct flash_statistics *statistics = &model->statistics;
	flash_u64 begin_ns = flash_max(now_ns, model->busy_until_ns), completion_ns;

	count(statistics, request);
	completion_ns = serve(model, request, begin(model, request, now_ns));
	model->serving = 0;
	if (request->operation == FLASH_FLUSH)
		statistics->flush_ns += completion_ns - now_ns;
	if (request->operation == FLASH_FLUSH && model->config.flush_drains_queue)
		model->drained_ns = completion_ns;
	if (completion_ns > begin_ns) {
		statistics->busy_ns += completion_ns - begin_ns;
		model->busy_until_ns = completion_ns;
	}
	return completion_ns;
}
