/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "schemas/log.h"
#include "schemas/log_writer.h"

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

void test_log_round_trip(void)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		round_trip(seed, 1 + seed * seed * 40, 0);
	round_trip(100, 60000, 0);
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
