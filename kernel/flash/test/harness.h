/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of the model share: checks that count, a seeded generator, a plain device. */
#ifndef FLASH_TEST_HARNESS_H
#define FLASH_TEST_HARNESS_H

#include "../model/flash_model.h"

/* Fails the test that is running; prints where, and the two values. */
#define CHECK(left, comparison, right) do { \
	flash_u64 left_value = (left), right_value = (right); \
	if (!(left_value comparison right_value)) \
		test_failed(__FILE__, __LINE__, #left " " #comparison " " #right, \
			    left_value, right_value); \
} while (0)

void test_failed(const char *file, int line, const char *check, flash_u64 left, flash_u64 right);

/* Runs a test and counts it. */
void test_run(const char *name, void (*test)(void));

/* Says which seed the test goes on with, to be printed when it fails; 0 when it has failed. */
int test_seed(flash_u64 seed);

/* Prints "N passed, M failed"; returns main()'s value. */
int test_report(void);

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014): one word of state, every seed is good. */
flash_u64 random_next(flash_u64 *state);
flash_u64 random_below(flash_u64 *state, flash_u64 limit);

/* Round numbers, to be added up in the head: see harness.c. */
struct flash_config plain_config(void);

#endif
