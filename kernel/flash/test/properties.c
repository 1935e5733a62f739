// SPDX-License-Identifier: GPL-2.0-only
/*
 * Properties of the model, checked request by request: for the random sequences of
 * test_properties.c and for the byte strings of fuzz_model.c.
 */
#include <stdlib.h>
#include <string.h>

#include "properties.h"

/* How often the whole disk is looked at, in requests. */
#define CHECK_ALL_PERIOD 256

void sequence_start(struct sequence *sequence, const struct flash_config *config)
{
	size_t bytes = flash_model_memory_bytes(config);

	memset(sequence, 0, sizeof(*sequence));
	sequence->memory = malloc(bytes);
	sequence->copy = malloc(bytes);
	flash_model_init(&sequence->model, config, sequence->memory);
	shadow_start(&sequence->shadow, &sequence->model);
	flash_ageing_begin(&sequence->model);
	while (flash_ageing_continue(&sequence->model, 64))
		;
	flash_ageing_end(&sequence->model, 0);
	shadow_aged(&sequence->shadow);
}

void sequence_end(struct sequence *sequence)
{
	shadow_check_all(&sequence->shadow);
	shadow_end(&sequence->shadow);
	free(sequence->memory);
	free(sequence->copy);
}

/* The same device in memory of its own, which nobody observes. */
static struct flash_model copy_of(struct sequence *sequence)
{
	struct flash_model copy = sequence->model;

	memcpy(sequence->copy, sequence->memory, flash_model_memory_bytes(&copy.config));
	flash_model_place(&copy, sequence->copy);
	copy.observer = NULL;
	return copy;
}

static void count(struct flash_statistics *submitted, const struct flash_request *request)
{
	flash_u64 *requests[] = {
		[FLASH_READ] = &submitted->read_requests,
		[FLASH_WRITE] = &submitted->write_requests,
		[FLASH_FLUSH] = &submitted->flush_requests,
		[FLASH_DISCARD] = &submitted->discard_requests,
		[FLASH_ZEROES] = &submitted->zeroes_requests,
	};
	flash_u64 *bytes[] = {
		[FLASH_READ] = &submitted->read_bytes,
		[FLASH_WRITE] = &submitted->write_bytes,
		[FLASH_DISCARD] = &submitted->discard_bytes,
		[FLASH_ZEROES] = &submitted->zeroes_bytes,
	};

	(*requests[request->operation])++;
	if (request->operation != FLASH_FLUSH)
		*bytes[request->operation] += request->length_bytes;
	if (request->operation == FLASH_WRITE || request->operation == FLASH_ZEROES)
		submitted->fua_requests += request->fua;
}

static void submit(struct sequence *sequence, const struct flash_request *request,
		   flash_u64 gap_ns)
{
	const struct flash_config *config = &sequence->model.config;

	sequence->now_ns += gap_ns;
	if (request->operation == FLASH_DISCARD || request->operation == FLASH_ZEROES)
		shadow_discard(&sequence->shadow, request);
	sequence->completion_ns = flash_model_submit(&sequence->model, request, sequence->now_ns);
	count(&sequence->submitted, request);
	if (!flash_config_keeps_nothing(config) && request->operation == FLASH_FLUSH)
		shadow_flushed(&sequence->shadow);
	if (!flash_config_keeps_nothing(config) && request->operation == FLASH_WRITE &&
	    (request->fua || !config->cache_bytes))
		shadow_forced(&sequence->shadow, request);
	if (++sequence->operations % CHECK_ALL_PERIOD == 0)
		shadow_check_all(&sequence->shadow);
}

static void check_nand(const struct flash_model *model)
{
	const struct flash_statistics *statistics = &model->statistics;
	flash_u64 programs = 0;
	int cause;

	for (cause = 0; cause < FLASH_CAUSES; cause++)
		programs += statistics->programs[cause];
	CHECK(statistics->nand_write_bytes, ==, programs * model->config.program_unit_bytes);
	CHECK(statistics->programs[FLASH_FOR_HOST] * model->config.program_unit_bytes, >=,
	      statistics->host_programmed_bytes);
	CHECK(statistics->host_programmed_bytes + statistics->cache_overwritten_bytes +
	      statistics->cache_discarded_bytes + statistics->dirty_bytes, ==,
	      statistics->mapped_write_bytes);
	CHECK(statistics->mapped_write_bytes, >=, statistics->write_bytes);
	CHECK(statistics->dirty_bytes, ==,
	      (flash_u64)model->cache.waiting_slots * FLASH_SLOT_BYTES);
	CHECK(model->cache.waiting_slots + model->cache.leaving_slots, <=,
	      model->geometry.cache_slots);
}

void check_accounts(struct sequence *sequence, const struct flash_request *request,
		    flash_u64 gap_ns, flash_u64 random)
{
	const struct flash_config *config = &sequence->model.config;
	const struct flash_statistics *statistics = &sequence->model.statistics;
	const struct flash_statistics *submitted = &sequence->submitted;
	flash_u64 before_ns = sequence->completion_ns;

	(void)random;
	submit(sequence, request, gap_ns);
	CHECK(sequence->completion_ns, >=, sequence->now_ns);
	if (config->queue_depth == 1)
		CHECK(sequence->completion_ns, >=, before_ns);
	CHECK(statistics->busy_ns, <=, sequence->model.busy_until_ns);
	check_nand(&sequence->model);
	if (request->operation != FLASH_FLUSH)
		shadow_check_range(&sequence->shadow, request);
	else if (!flash_config_keeps_nothing(config))
		CHECK(statistics->dirty_bytes, ==, 0);
#define SAME(name) CHECK(statistics->name, ==, submitted->name)
	SAME(read_requests);
	SAME(write_requests);
	SAME(fua_requests);
	SAME(flush_requests);
	SAME(discard_requests);
	SAME(zeroes_requests);
	SAME(read_bytes);
	SAME(write_bytes);
	SAME(discard_bytes);
	SAME(zeroes_bytes);
}

static void check_equal(const struct flash_model *a, const struct flash_model *b)
{
#define EQUAL(name) CHECK(a->statistics.name, ==, b->statistics.name);
	FLASH_COMMAND_STATISTICS(EQUAL)
#define EQUAL_NAND(name, field) CHECK(a->statistics.field, ==, b->statistics.field);
	FLASH_NAND_STATISTICS(EQUAL_NAND)
	CHECK(a->cache.waiting_slots, ==, b->cache.waiting_slots);
	CHECK(a->cache.leaving_slots, ==, b->cache.leaving_slots);
}

void check_repeatable(struct sequence *sequence, const struct flash_request *request,
		      flash_u64 gap_ns, flash_u64 random)
{
	struct flash_model again = copy_of(sequence);
	flash_u64 end_ns, completion_ns;

	flash_model_advance(&again, sequence->now_ns + random % (gap_ns + 1));
	completion_ns = flash_model_submit(&again, request, sequence->now_ns + gap_ns);
	submit(sequence, request, gap_ns);
	CHECK(completion_ns, ==, sequence->completion_ns);

	end_ns = sequence->now_ns + random % (4 * sequence->model.config.program_ns);
	flash_model_advance(&again, sequence->now_ns);
	flash_model_advance(&again, end_ns);
	flash_model_advance(&again, end_ns);
	flash_model_advance(&sequence->model, end_ns);
	sequence->now_ns = end_ns;
	check_equal(&again, &sequence->model);
}

void check_flush_is_whole(struct sequence *sequence, const struct flash_request *request,
			  flash_u64 gap_ns, flash_u64 random)
{
	struct flash_request flush = { FLASH_FLUSH, 0, 0, 0 };
	struct flash_model copy;
	flash_u64 flushed_ns;
	flash_u32 die;

	(void)random;
	submit(sequence, request, gap_ns);
	copy = copy_of(sequence);
	flushed_ns = flash_model_submit(&copy, &flush, sequence->now_ns);
	if (flash_config_keeps_nothing(&copy.config))
		return;
	CHECK(copy.cache.waiting_slots, ==, 0);
	for (die = 0; die < copy.geometry.dies; die++)
		if (copy.nand.die[die].program_slots)
			CHECK(copy.nand.die[die].program_end_ns, <=, flushed_ns);
	CHECK(flash_model_submit(&copy, &flush, flushed_ns), ==,
	      flushed_ns + copy.config.flush_overhead_ns);
}
