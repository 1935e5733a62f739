// SPDX-License-Identifier: GPL-2.0-only
/*
 * Properties of the timing model, checked request by request: for the random sequences of
 * test_properties.c and for the byte strings of fuzz_model.c.
 */
#include "properties.h"

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
	sequence->now_ns += gap_ns;
	sequence->completion_ns = flash_model_submit(&sequence->model, request, sequence->now_ns);
	count(&sequence->submitted, request);
}

void check_accounts(struct sequence *sequence, const struct flash_request *request,
		    flash_u64 gap_ns, flash_u64 random)
{
	const struct flash_statistics *statistics = &sequence->model.statistics;
	const struct flash_statistics *submitted = &sequence->submitted;
	flash_u64 before_ns = sequence->completion_ns;

	(void)random;
	submit(sequence, request, gap_ns);
	CHECK(sequence->completion_ns, >=, sequence->now_ns);
	CHECK(sequence->completion_ns, >=, before_ns);
	CHECK(statistics->busy_ns, <=, sequence->completion_ns);
	CHECK(statistics->dirty_bytes, <=, sequence->model.config.cache_bytes);
	CHECK(statistics->programmed_bytes + statistics->dirty_bytes, ==, submitted->write_bytes);
	CHECK(statistics->programs * sequence->model.config.program_unit_bytes, >=,
	      statistics->programmed_bytes);
	if (request->operation == FLASH_FLUSH) {
		CHECK(statistics->dirty_bytes, ==, 0);
		CHECK(sequence->model.nand_free_ns, <=, sequence->completion_ns);
	}
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

void check_repeatable(struct sequence *sequence, const struct flash_request *request,
		      flash_u64 gap_ns, flash_u64 random)
{
	struct sequence again = *sequence;
	flash_u64 end_ns;

	flash_model_advance(&again.model, again.now_ns + random % (gap_ns + 1));
	submit(&again, request, gap_ns);
	submit(sequence, request, gap_ns);
	CHECK(again.completion_ns, ==, sequence->completion_ns);

	end_ns = sequence->completion_ns + random % (4 * sequence->model.config.program_ns);
	flash_model_advance(&again.model, sequence->now_ns);
	flash_model_advance(&again.model, end_ns);
	flash_model_advance(&again.model, end_ns);
	flash_model_advance(&sequence->model, end_ns);
	sequence->now_ns = end_ns;
#define EQUAL(name) CHECK(again.model.statistics.name, ==, sequence->model.statistics.name);
	FLASH_STATISTICS(EQUAL)
	CHECK(again.model.programming_bytes, ==, sequence->model.programming_bytes);
	if (sequence->model.programming_bytes)
		CHECK(again.model.nand_free_ns, ==, sequence->model.nand_free_ns);
}

void check_durability_costs(struct sequence *sequence, const struct flash_request *request,
			    flash_u64 gap_ns, flash_u64 random)
{
	struct flash_model cached = sequence->model, durable = sequence->model;
	struct flash_request write = { FLASH_WRITE, 0, request->length_bytes };
	flash_u64 now_ns = sequence->now_ns + gap_ns, cached_ns, durable_ns;

	(void)random;
	cached_ns = flash_model_submit(&cached, &write, now_ns);
	write.fua = 1;
	durable_ns = flash_model_submit(&durable, &write, now_ns);
	CHECK(durable_ns, >=, cached_ns);
	submit(sequence, request, gap_ns);
}

/* Makes the device slower in one parameter, which `random` chooses. */
static void slow_down(struct flash_config *config, flash_u64 random)
{
	flash_u64 *times[] = {
		&config->command_overhead_ns, &config->read_access_ns, &config->write_access_ns,
		&config->program_ns, &config->mapping_program_ns, &config->flush_overhead_ns,
		&config->discard_ns, &config->zeroes_ns,
	};
	flash_u64 which = random % 10, amount = random >> 32;

	if (which < 8)
		*times[which] += amount;
	else if (which == 8)
		config->read_bandwidth_bytes_per_s -= amount % config->read_bandwidth_bytes_per_s;
	else
		config->write_bandwidth_bytes_per_s -= amount % config->write_bandwidth_bytes_per_s;
}

/*
 * Of one request, in one state. Of a whole sequence it does not hold, and should not: a slower
 * program may begin later, and so be over or not have begun when the next command comes.
 */
void check_slower_is_later(struct sequence *sequence, const struct flash_request *request,
			   flash_u64 gap_ns, flash_u64 random)
{
	struct flash_model slower;
	flash_u64 now_ns = sequence->now_ns + gap_ns, start_ns;

	start_ns = now_ns > sequence->model.free_ns ? now_ns : sequence->model.free_ns;
	flash_model_advance(&sequence->model, start_ns);
	slower = sequence->model;
	slow_down(&slower.config, random);
	submit(sequence, request, gap_ns);
	CHECK(flash_model_submit(&slower, request, now_ns), >=, sequence->completion_ns);
}
