// SPDX-License-Identifier: GPL-2.0-only
/*
 * Puts operations on a die: reads when they may begin, and changes its runs, of which the header
 * tells. Pure C, no kernel header.
 */
#include "arithmetic.h"
#include "die.h"

void flash_die_rest(struct flash_die *die, flash_u64 now_ns)
{
	die->free_ns = die->program_end_ns = now_ns;
	die->runs = 0;
}

static void take_out(struct flash_die *die, flash_u32 first, flash_u32 count)
{
	flash_u32 i;

	die->runs -= count;
	for (i = first; i < die->runs; i++)
		die->run[i] = die->run[i + count];
}

void flash_die_forget(struct flash_die *die, flash_u64 past_ns)
{
	flash_u32 ended = 0;

	while (ended < die->runs && die->run[ended].end_ns <= past_ns)
		ended++;
	if (ended)
		take_out(die, 0, ended);
}

/* Takes the last two runs for one until there is room for `more`. */
static void make_room(struct flash_die *die, flash_u32 more)
{
	while (die->runs + more > FLASH_DIE_RUNS) {
		struct flash_run *last = &die->run[die->runs - 1], *before = last - 1;

		before->operation_ns = flash_max(before->operation_ns, last->operation_ns);
		before->end_ns = last->end_ns;
		before->host_reads = 0;
		die->runs--;
	}
}

static void put_in(struct flash_die *die, flash_u32 place, struct flash_run run)
{
	flash_u32 i;

	for (i = die->runs++; i > place; i--)
		die->run[i] = die->run[i - 1];
	die->run[place] = run;
}

static void append(struct flash_die *die, struct flash_run added)
{
	struct flash_run *last = die->runs ? &die->run[die->runs - 1] : FLASH_NULL;

	die->free_ns = added.end_ns;
	if (last && last->end_ns == added.begin_ns && last->host_reads == added.host_reads &&
	    last->operation_ns == added.operation_ns) {
		last->end_ns = added.end_ns;
		return;
	}
	make_room(die, 1);
	put_in(die, die->runs, added);
}

flash_u64 flash_die_append(struct flash_die *die, flash_u64 duration_ns, flash_u64 now_ns)
{
	flash_u64 begin_ns = flash_max(die->free_ns, now_ns);
	struct flash_run added = { begin_ns, begin_ns + duration_ns, duration_ns, 0 };

	append(die, added);
	return begin_ns;
}

/* Lets what comes after `end_ns` from the place on begin no earlier; gaps take the delay up. */
static void put_off(struct flash_die *die, flash_u32 place, flash_u64 end_ns)
{
	flash_u64 program_end_ns = die->program_end_ns;

	for (; place < die->runs && die->run[place].begin_ns < end_ns; place++) {
		struct flash_run *run = &die->run[place];
		flash_u64 delay_ns = end_ns - run->begin_ns;

		if (program_end_ns > run->begin_ns && program_end_ns <= run->end_ns)
			die->program_end_ns = program_end_ns + delay_ns;
		run->begin_ns += delay_ns;
		run->end_ns += delay_ns;
		end_ns = run->end_ns;
	}
	die->free_ns = flash_max(die->free_ns, end_ns);
}

/* When the operation of a run ends that is under way at now_ns. */
static flash_u64 operation_end_ns(const struct flash_run *run, flash_u64 now_ns)
{
	flash_u64 ended = flash_divide(now_ns - run->begin_ns, run->operation_ns);

	return flash_min(run->begin_ns + (ended + 1) * run->operation_ns, run->end_ns);
}

/*
 * Lets the operation that a run is in stop at stop_ns: what is left of it, till end_ns, becomes a
 * run of its own at the place.
 */
static void stop(struct flash_die *die, flash_u32 place, flash_u64 stop_ns, flash_u64 end_ns)
{
	struct flash_run left = { stop_ns, end_ns, end_ns - stop_ns, 0 };

	put_in(die, place, left);
}

flash_u64 flash_die_read(struct flash_die *die, flash_u64 duration_ns, flash_u64 suspend_ns,
			 flash_u64 now_ns)
{
	struct flash_run read = { now_ns, 0, duration_ns, 1 };
	flash_u32 place = 0;

	make_room(die, suspend_ns ? 3 : 2);
	while (place < die->runs && die->run[place].end_ns <= now_ns)
		place++;
	if (place < die->runs && die->run[place].begin_ns < now_ns &&
	    !die->run[place].host_reads) {
		struct flash_run *running = &die->run[place++], rest = *running;

		read.begin_ns = operation_end_ns(running, now_ns);
		if (read.begin_ns < running->end_ns) {
			running->end_ns = rest.begin_ns = read.begin_ns;
			put_in(die, place, rest);
		}
		if (suspend_ns && now_ns + suspend_ns < read.begin_ns) {
			running->end_ns = now_ns + suspend_ns;
			stop(die, place, running->end_ns, read.begin_ns);
			read.begin_ns = running->end_ns;
		}
	}
	for (; place < die->runs && die->run[place].host_reads &&
	     die->run[place].begin_ns <= read.begin_ns; place++)
		read.begin_ns = flash_max(read.begin_ns, die->run[place].end_ns);
	read.end_ns = read.begin_ns + duration_ns;
	put_off(die, place, read.end_ns);
	if (place == die->runs)
		append(die, read);
	else
		put_in(die, place, read);
	return read.end_ns;
}
