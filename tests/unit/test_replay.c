/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/replay/edit.h"

#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

/* ---- edits ------------------------------------------------------------------------------- */

void test_edit_parse(void)
{
	static const struct {
		const char *text;
		enum edit_type type;
		double factor;
		const char *pattern;
	} good[] = {
		{ "data=0", EDIT_DATA, 0, "" },
		{ "launch=graph", EDIT_LAUNCH, 0, "" },
		{ "host:forward=0.5", EDIT_HOST, 0.5, "forward" },
		{ "kernel:*gemm<a=b>*=2", EDIT_KERNEL, 2, "*gemm<a=b>*" },
		{ "comm=0.25", EDIT_COMM, 0.25, "" },
		{ "comm=overlap", EDIT_OVERLAP, 0, "" },
		{ "link=4x", EDIT_COMM, 0.25, "" },
		{ "copy=0", EDIT_COPY, 0, "" },
		{ "copy:HtoD*=0", EDIT_COPY, 0, "HtoD*" },
		{ "work:elementwise=0", EDIT_WORK, 0, "elementwise" },
		{ "place:*/layer1.*=0.5", EDIT_PLACE, 0.5, "*/layer1.*" },
		{ "cause:blocking_copy=0", EDIT_CAUSE, 0, "blocking_copy" },
		{ "rank:7=median", EDIT_RANK, 0, "7" },
	};
	static const char *const bad[] = { "",
					   "data",
					   "data=",
					   "data=-1",
					   "data=nan",
					   "data=2x",
					   "data:x=1",
					   "link=2",
					   "link=0x",
					   "launch=0",
					   "comm=off",
					   "host=0.5",
					   "kernel=0",
					   "cause:other=0",
					   "cause=0",
					   "rank:7=0",
					   "rank:=median",
					   "rank:7x=median",
					   "rank:-1=median",
					   "rank:7=median,data=0",
					   "work:x=0",
					   "place=0",
					   "data=0,",
					   ",data=0",
					   "data=0,bad=1",
					   "comm=1e9" };
	struct edit_set set;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct error err = { .at = NOWHERE };

		CHECK_OK(edit_parse(&set, good[i].text, strlen(good[i].text), &err), &err);
		CHECK_U64(set.count, 1);
		CHECK_U64(set.edits[0].type, good[i].type);
		CHECK(set.edits[0].factor == good[i].factor);
		CHECK_STR(set.edits[0].pattern, good[i].pattern);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = { .at = NOWHERE };

		CHECK(edit_parse(&set, bad[i], strlen(bad[i]), &err) == ST_USAGE);
		CHECK(strstr(err.text, "--what-if") != NULL);
	}
}

void test_edit_sets(void)
{
	struct edit_set *sets = NULL;
	char many[3 * 40];
	size_t count = 0;

	CHECK_OK(edit_sets_parse(&sets, &count, "data=0;comm=0.5,copy=0", NULL), NULL);
	CHECK_U64(count, 2);
	CHECK_STR(sets[1].text, "comm=0.5,copy=0");
	CHECK_U64(sets[1].count, 2);
	free(sets);
	memset(many, ';', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	CHECK(edit_sets_parse(&sets, &count, many, NULL) == ST_USAGE);
	free(sets);
}

void test_edit_factors(void)
{
	struct edit_subject own = { .name = "forward", .phase = PHASE_FORWARD };
	struct edit_subject data = { .name = "data", .phase = PHASE_DATA, .is_step_thread = true };
	struct edit_subject gemm = {
		.name = "a_gemm_b", .work_class = CLASS_COMPUTE, .work = WORK_GEMM, .is_work = true
	};
	struct edit_subject copy = { .name = "HtoD Pageable Device",
				     .work_class = CLASS_COPY,
				     .is_work = true };
	struct edit_subject comm = { .name = "a_gemm_b",
				     .work_class = CLASS_COMM,
				     .work = WORK_COMM,
				     .is_short = true,
				     .is_work = true };
	const char *globs[EDIT_PLACES];
	struct edit_set set;

	CHECK_OK(
		edit_parse(&set, "launch=graph,kernel:*gemm*=0.5,kernel:a*=0.5,comm=0.1", 53, NULL),
		NULL);
	CHECK(edit_factor(&set, &data) == 1);
	CHECK(edit_factor(&set, &own) == 0);
	CHECK(edit_factor(&set, &gemm) == 0.25);
	CHECK(edit_factor(&set, &comm) == 0.1);
	CHECK(edit_factor(&set, &copy) == 1);
	CHECK(!edit_has(&set, EDIT_OVERLAP));
	CHECK_OK(edit_parse(&set, "data=0,cause:sync=0,comm=overlap", 32, NULL), NULL);
	CHECK(edit_factor(&set, &data) == 0);
	data.is_step_thread = false;
	CHECK(edit_factor(&set, &data) == 1);
	own.activity = REPLAY_SYNC;
	CHECK(edit_factor(&set, &own) == 0);
	CHECK(edit_drops_waits(&set, REPLAY_SYNC) && !edit_drops_waits(&set, REPLAY_COPY));
	CHECK(edit_has(&set, EDIT_OVERLAP));
	CHECK_OK(edit_parse(&set, "copy:*pageable*=0,work:gemm=0.5,work:short_comm=0.25", 53, NULL),
		 NULL);
	CHECK(edit_factor(&set, &copy) == 0);
	CHECK(edit_factor(&set, &gemm) == 0.5);
	CHECK(edit_factor(&set, &comm) == 0.25);
	comm.is_short = false;
	CHECK(edit_factor(&set, &comm) == 1);
	CHECK_OK(edit_parse(&set, "place:*.conv2=0.5,place:b=0,place:*.conv2=0.5", 46, NULL), NULL);
	CHECK_U64(edit_places(&set, 1, globs, 0), 2);
	gemm.places = 1;
	CHECK(edit_factor(&set, &gemm) == 0.25);
	own.places = 2;
	CHECK(edit_factor(&set, &own) == 0);
	CHECK(edit_is_place(globs[0], "layer1.conv2", "model/layer1.conv2"));
	CHECK(edit_is_place("*/layer?/conv", "conv", "model/layer2/conv"));
	CHECK(!edit_is_place(globs[1], "c", "b/c"));
}

/* ---- the replay -------------------------------------------------------------------------- */

/* A state with edits, or without what is not explained. */
struct changed {
	struct replay *r;
	struct replay_run *run;
	struct edit_set set;
	const struct edit_set *sets[1];
	struct edit_subject kinds[9]; /* own time is of kind 0, all others are work */
	struct edit_kinds all;
	struct replay_edits edits;
};

static struct replay *open_replay(struct changed *c, const char *edits)
{
	*c = (struct changed){ .kinds = { { .name = "forward" } } };
	for (size_t i = 1; i < 9; i++)
		c->kinds[i] = (struct edit_subject){ .name = "gemm", .is_work = true };
	if (*edits)
		CHECK_OK(edit_parse(&c->set, edits, strlen(edits), NULL), NULL);
	c->sets[0] = &c->set;
	c->all = (struct edit_kinds){ .all = c->kinds, .count = 9 };
	c->edits = (struct replay_edits){
		.sets = c->sets, .count = *edits != '\0', .has_rest = !*edits, .kinds = &c->all
	};
	CHECK_OK(replay_open(&c->r, NULL), NULL);
	CHECK_OK(replay_run_open(&c->run, c->r, &c->edits, NULL), NULL);
	return c->r;
}

static void close_replay(struct changed *c)
{
	replay_run_close(c->run);
	replay_close(c->r);
}

static void put_host(struct replay *r, uint64_t begin_ns, uint64_t end_ns, unsigned activity,
		     uint64_t correlation, bool is_mark)
{
	struct replay_host h = { .begin_ns = begin_ns,
				 .end_ns = end_ns,
				 .correlation = correlation,
				 .thread = 1,
				 .activity = (uint8_t)activity,
				 .is_device_wide = activity == REPLAY_SYNC,
				 .is_mark = is_mark,
				 .is_step_thread = true };

	CHECK_OK(replay_put_host(r, &h, NULL), NULL);
}

static void put_work(struct replay *r, uint64_t begin_ns, uint64_t end_ns, uint64_t correlation,
		     uint64_t launch_ns)
{
	struct replay_work w = { .begin_ns = begin_ns,
				 .end_ns = end_ns,
				 .correlation = correlation,
				 .launch_ns = launch_ns,
				 .stream = 2,
				 .kind = 1 };

	CHECK_OK(replay_put_work(r, &w, NULL), NULL);
}

/*
 * In microseconds:
 *
 *	host  [launch 100-110]        [sync 120 .............. 1020]  step from 50 to 1100
 *	GPU            [work 200 .................... 1000]
 */
static double one_step(struct replay *r, struct replay_run *run)
{
	put_host(r, 50000, 1100000, REPLAY_OTHER, 0, true);
	put_host(r, 100000, 110000, REPLAY_LAUNCH, 7, false);
	put_host(r, 120000, 1020000, REPLAY_SYNC, 8, false);
	put_work(r, 200000, 1000000, 7, 100000);
	CHECK_OK(replay_end(r, NULL), NULL);
	CHECK_OK(replay_run_go(run, NULL), NULL);
	CHECK(replay_is_exact(run));
	CHECK(replay_at(run, 51000) == NULL);
	const double *begin = replay_at(run, 50000), *end = replay_at(run, 1100000);
	if (!CHECK(begin && end))
		return 0;
	CHECK_F64(begin[0], 0, 1e-3);
	CHECK_F64(end[0], 1050000, 1e-3);
	return end[1];
}

void test_replay_waits(void)
{
	static const struct {
		const char *edits;
		uint64_t end_us;
	} rows[] = {
		{ "host:*=1", 1100 },
		/* 400 of 800 us of work; what comes after the wait stays. */
		{ "kernel:*=0.5", 700 },
		/* The host alone: the work begins 100 us after the launch, which is at 50 now. */
		{ "host:*=0", 950 },
		/* Nothing waits: the work ends after the host, and the step with it. */
		{ "host:*=0,cause:sync=0", 950 },
		/* The call takes its own 2 us and the 20 us by which it returned late. */
		{ "kernel:*=0.001,cause:sync=0", 222 },
		/* The 20 us between the end of the work and that of the call. */
		{ "", 1080 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct changed c;

		open_replay(&c, rows[i].edits);

		CHECK_F64(one_step(c.r, c.run) + 50000, 1000. * (double)rows[i].end_us, 1e-3);
		close_replay(&c);
	}
}

static uint8_t pick(uint64_t random, unsigned shift, unsigned count)
{
	return (uint8_t)((random >> shift) % count);
}

/* Whatever comes, in whatever order of threads: state 0 is what was measured. */
void test_replay_is_exact(void)
{
	uint64_t seed = 20260101;

	for (size_t round = 0; round < 50; round++) {
		struct changed c;
		struct replay *r = open_replay(&c, "host:*=0.5,kernel:*=0.5");
		uint64_t now_ns = 1000;

		for (size_t i = 0; i < 400; i++) {
			uint64_t random = random_u64(&seed);

			now_ns += random % 700;
			if (random >> 60 < 6)
				CHECK_OK(replay_put_work(
						 r,
						 &(struct replay_work){
							 .begin_ns = now_ns,
							 .end_ns = now_ns + (random >> 8) % 3000,
							 .correlation = 1 + (random >> 16) % 300,
							 .launch_ns = pick(random, 24, 2)
									      ? now_ns - 400
									      : 0,
							 .stream = pick(random, 32, 4),
							 .kind = (uint32_t)pick(random, 40, 9),
							 .work_class = pick(random, 44, 3) },
						 NULL),
					 NULL);
			else
				CHECK_OK(replay_put_host(
						 r,
						 &(struct replay_host){
							 .begin_ns = now_ns,
							 .end_ns = now_ns + (random >> 8) % 5000,
							 .correlation = i + 1,
							 .thread = pick(random, 32, 3),
							 .activity = pick(random, 36,
									  REPLAY_ACTIVITIES),
							 .is_device_wide = pick(random, 44, 2),
							 .is_stream_wait = pick(random, 45, 8) == 0,
							 .is_mark = pick(random, 48, 16) == 0,
							 .is_step_thread =
								 pick(random, 32, 3) == 1 },
						 NULL),
					 NULL);
		}
		CHECK_OK(replay_end(r, NULL), NULL);
		CHECK_OK(replay_run_go(c.run, NULL), NULL);
		CHECK(replay_is_exact(c.run));
		close_replay(&c);
	}
}

/* More launches than are remembered: the oldest are forgotten, the rest is as it was. */
void test_replay_many_launches(void)
{
	struct changed c;
	struct replay *r = open_replay(&c, "kernel:*=0");
	uint64_t i;

	put_host(r, 1, 10000000, REPLAY_OTHER, 0, true);
	for (i = 0; i < 40000; i++)
		put_host(r, 10 + 100 * i, 60 + 100 * i, REPLAY_LAUNCH, 1 + i, false);
	put_work(r, 5000000, 5000100, 40000, 10 + 100 * 39999);
	put_work(r, 5000200, 5000300, 1, 10);
	CHECK_OK(replay_end(r, NULL), NULL);
	CHECK_OK(replay_run_go(c.run, NULL), NULL);
	CHECK(replay_is_exact(c.run));
	const double *end = replay_at(c.run, 10000000);
	if (CHECK(end != NULL))
		CHECK_F64(end[1], 9999999, 1e-3);
	close_replay(&c);
}

/* Launches alone are nothing to make a graph of: such steps take what they took. */
void test_replay_graph_without_work(void)
{
	struct changed c;
	struct replay *r = open_replay(&c, "launch=graph");
	struct replay_step steps[3];
	uint64_t lengths[3];

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t at = 1000 + 100000 * i;

		steps[i] = (struct replay_step){ at, at + 90000 };
		put_host(r, at, at + 90000, REPLAY_OTHER, 0, true);
		put_host(r, at + 10000, at + 20000, REPLAY_LAUNCH, 1 + i, false);
		if (i == 2)
			put_work(r, at + 30000, at + 31000, 1 + i, at + 10000);
	}
	CHECK_OK(replay_end(r, NULL), NULL);
	CHECK_OK(replay_run_go(c.run, NULL), NULL);
	CHECK_U64(replay_lengths(c.run, steps, 3, 1, lengths, NULL), 2);
	CHECK_U64(lengths[0], 90000);
	CHECK_U64(lengths[1], 21000); /* 20 us from the launch to the work, which takes 1 */
	close_replay(&c);
}
