/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "convert/source/log/internal.h"
#include "schemas/log/log.h"
#include "schemas/log/writer.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 64 << 20 };

static void round_trip(uint64_t seed, size_t count, size_t flush_every)
{
	struct log_run run;
	struct buf file;

	buf_init(&file, FILE_MAX);
	if (log_run_make(&run, seed, count, 4) && log_run_write(&run, flush_every, true, &file))
		CHECK_U64(log_run_compare(&run, file.data, file.len), count);
	buf_release(&file);
	log_run_release(&run);
}

/* Numbers that take all their bits for a while, and nearly none for a while: a block is not what
 * the one before was, nor its end what its begin was. */
static void make_uneven(struct log_run *run, size_t wild, size_t tame)
{
	uint64_t state = wild, *word = run->args;

	for (size_t i = 0; i < run->count; i++) {
		struct event *e = &run->events[i];
		bool is_wild = i % (wild + tame) < wild;

		e->correlation = is_wild ? random_u64(&state) : i;
		e->bytes = is_wild ? random_u64(&state) : 0;
		e->flags = 0;
		for (uint32_t k = trace_get_schema(run->trace, e->schema)->arg_count; k-- > 0;)
			word[(size_t)(e->args - run->args) + k] = is_wild ? random_u64(&state) : k;
	}
}

/* Whole blocks, none larger than a reader allows. */
static uint32_t count_blocks(const struct buf *file)
{
	size_t at = LOG_FILE_HEADER_BYTES;
	uint32_t count = 0;

	for (; at < file->len; count++) {
		struct log_block block;
		size_t skipped;

		if (!CHECK_OK(log_find_block(file->data + at, file->len - at, at, &block, &skipped,
					     NULL),
			      NULL))
			return 0;
		CHECK_U64(skipped, 0);
		CHECK(block.size <= LOG_BLOCK_BYTES && block.rows <= LOG_BLOCK_ROWS);
		at += LOG_HEADER_BYTES + block.size;
	}
	CHECK_U64(at, file->len);
	return count;
}

static void uneven(uint64_t seed, size_t count, size_t wild, size_t tame)
{
	struct log_run run;
	struct buf file;

	buf_init(&file, FILE_MAX);
	if (log_run_make(&run, seed, count, 4)) {
		make_uneven(&run, wild, tame);
		if (log_run_write(&run, 0, true, &file))
			CHECK_U64(log_run_compare(&run, file.data, file.len), count);
		CHECK(count_blocks(&file) > 10);
	}
	buf_release(&file);
	log_run_release(&run);
}

void test_log_round_trip_uneven(void)
{
	uneven(41, 200000, 3000, 57000);
	uneven(42, 200000, 57000, 3000);
	uneven(43, 100000, 100000, 0);
	uneven(44, 100000, 1, 999);
	uneven(45, 200000, 60000, 140000);
}

void test_log_round_trip(void)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		round_trip(seed, 1 + seed * seed * 40, 0);
	round_trip(100, 60000, 0);
}

static void stray(uint64_t seed, size_t count, size_t group)
{
	struct log_run run;
	struct buf file;

	buf_init(&file, FILE_MAX);
	if (log_run_make(&run, seed, count, 4)) {
		run.stray = group;
		if (log_run_write(&run, 0, true, &file))
			CHECK_U64(log_run_compare(&run, file.data, file.len), count);
	}
	buf_release(&file);
	log_run_release(&run);
}

/* Rows near their places, and far from them. */
void test_log_round_trip_strayed(void)
{
	stray(51, 60000, 2);
	stray(52, 60000, 17);
	stray(53, 60000, 500);
	stray(54, 60000, 9000);
	stray(55, 60000, 60000);
	stray(56, 100, 7);
}

static void needs(const uint16_t *order, uint32_t count, uint32_t want)
{
	CHECK_U64(log_window_need(order, count), want);
}

void test_log_window_need(void)
{
	needs((const uint16_t[]){ 0, 1, 2, 3 }, 4, 1);
	needs((const uint16_t[]){ 1, 0, 3, 2 }, 4, 2);
	needs((const uint16_t[]){ 3, 2, 1, 0 }, 4, 4);
	needs((const uint16_t[]){ 0, 3, 1, 2, 4 }, 5, 3);
	needs((const uint16_t[]){ 2, 3, 0, 1 }, 4, 4);
}

void test_log_round_trip_flushed(void)
{
	round_trip(21, 5000, 1);
	round_trip(22, 20000, 777);
}

void test_log_round_trip_empty(void)
{
	round_trip(31, 0, 0);
	round_trip(32, 1, 0);
}
