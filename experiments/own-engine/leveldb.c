// SPDX-License-Identifier: Apache-2.0
/*
 * A program that puts records into LevelDB and acknowledges each, and the check of what a power cut
 * left of them: it is the check where JOJ_ACKED names what was acknowledged. It needs Debian's
 * libleveldb-dev:
 *
 *	cc -Wall -Wextra -Werror -o leveldb leveldb.c -lleveldb
 */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 40
#define VALUE_BYTES 6000
/* The least that LevelDB takes: a table is made of ten records. */
#define WRITE_BUFFER_BYTES 65536

enum { KEPT, LOST, CORRUPT };

static leveldb_t *open_store(char **error)
{
	leveldb_options_t *options = leveldb_options_create();

	leveldb_options_set_create_if_missing(options, 1);
	leveldb_options_set_write_buffer_size(options, WRITE_BUFFER_BYTES);
	/* Else its values, which repeat, are short. */
	leveldb_options_set_compression(options, leveldb_no_compression);
	return leveldb_open(options, "store", error);
}

static void fill(char *value, int number)
{
	memset(value, 'a' + number % 26, VALUE_BYTES);
	snprintf(value, VALUE_BYTES, "%d", number);
}

static int put_records(int acks, int is_synced)
{
	char *error = NULL, key[16], value[VALUE_BYTES];
	leveldb_t *store = open_store(&error);
	leveldb_writeoptions_t *options = leveldb_writeoptions_create();
	int number;

	leveldb_writeoptions_set_sync(options, is_synced);
	for (number = 0; !error && number < RECORDS; number++) {
		int length = snprintf(key, sizeof(key), "key-%d", number);

		fill(value, number);
		leveldb_put(store, options, key, length, value, VALUE_BYTES, &error);
		if (!error)
			dprintf(acks, "%d\n", number);
	}
	if (error) {
		fprintf(stderr, "leveldb: %s\n", error);
		return 1;
	}
	leveldb_close(store);
	return 0;
}

/* Whether the store has the record, as it was put. */
static int judge_record(leveldb_t *store, leveldb_readoptions_t *options, int number)
{
	char *error = NULL, key[16], value[VALUE_BYTES], *found;
	size_t length = 0;
	int outcome = KEPT;

	snprintf(key, sizeof(key), "key-%d", number);
	fill(value, number);
	found = leveldb_get(store, options, key, strlen(key), &length, &error);
	if (error) {
		printf("record %d: %s\n", number, error);
		outcome = CORRUPT;
	} else if (!found) {
		printf("record %d was acknowledged, and is not there\n", number);
		outcome = LOST;
	} else if (length != VALUE_BYTES || memcmp(found, value, length)) {
		printf("record %d has another value\n", number);
		outcome = CORRUPT;
	}
	free(found);
	return outcome;
}

static int judge(const char *acked)
{
	char *error = NULL;
	leveldb_t *store = open_store(&error);
	leveldb_readoptions_t *options = leveldb_readoptions_create();
	FILE *lines = fopen(acked, "r");
	int number, found, worst = KEPT;

	if (!store) {
		printf("it does not open: %s\n", error);
		return CORRUPT;
	}
	leveldb_readoptions_set_verify_checksums(options, 1);
	while (lines && fscanf(lines, "%d", &number) == 1) {
		found = judge_record(store, options, number);
		worst = found > worst ? found : worst;
	}
	leveldb_close(store);
	return worst;
}

int main(int count, char **words)
{
	const char *acked = getenv("JOJ_ACKED"), *acks = getenv("JOJ_ACKS");

	if (acked)
		return judge(acked);
	return put_records(acks ? atoi(acks) : STDOUT_FILENO,
			   count < 2 || strcmp(words[1], "asynchronous"));
}
