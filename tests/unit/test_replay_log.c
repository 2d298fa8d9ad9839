/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a replay as texts: read, cut, damaged, from many windows. */
#include "analyze/findings/internal.h"
#include "analyze/engine/partial.h"
#include "analyze/report/comm/comm.h"
#include "analyze/report/replay/log.h"
#include "analyze/report/report_list.h"
#include "schemas/base/bytes.h"
#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

enum { CEILING = 64 << 20, STEPS = 6 };
static const struct report_type *const asked[] = { &report_findings, NULL };

/* As log.c has them. */
enum { WORK = 1, CORRELATED = 2, DEVICE_WIDE = 4, MARK = 16, STEP_THREAD = 32 };
static const struct {
	uint64_t flags, track, of, does;
	const char *name;
} shapes[] = {
	{ MARK | STEP_THREAD, 1, 0, REPLAY_OTHER, "forward" },
	{ CORRELATED | STEP_THREAD, 1, 0, REPLAY_LAUNCH, "forward" },
	{ CORRELATED | DEVICE_WIDE | STEP_THREAD, 1, 0, REPLAY_SYNC, "forward" },
	{ WORK | CORRELATED, 2, CLASS_COMPUTE, WORK_GEMM, "gemm" },
};

/* A shape has the kind of its number; the first is what lies between calls. */
static void shape_put(struct buf *out, uint64_t number, bool is_new)
{
	packed_put(out, number);
	if (!is_new)
		return;
	packed_put(out, shapes[number].flags);
	packed_put(out, shapes[number].track);
	uint64_t kind[] = { number, shapes[number].of,          shapes[number].does, 0,
			    0,      strlen(shapes[number].name) };
	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++)
		packed_put(out, kind[i]);
	buf_put_text(out, shapes[number].name);
	if (!(shapes[number].flags & WORK))
		packed_put(out, 0);
}

static void delta_put(struct buf *out, uint64_t *last, uint64_t value)
{
	packed_put(out, zigzag((int64_t)(value - *last)));
	*last = value;
}

/* Steps of 900 us: a launch, a wait for 740 us of work. */
static void points_make(struct buf *out)
{
	static const uint64_t begins[] = { 0, 10000, 20000, 50000 };
	static const uint64_t lengths[] = { 900000, 5000, 780000, 740000 };
	uint64_t last = 0, correlations[2] = { 0, 0 };

	buf_init(out, CEILING);
	for (uint64_t step = 0; step < STEPS; step++)
		for (uint64_t i = 0; i < 4; i++) {
			shape_put(out, i, !step);
			delta_put(out, &last, 1000000000 + 1000000 * step + begins[i]);
			packed_put(out, lengths[i]);
			if (shapes[i].flags & CORRELATED)
				delta_put(out, &correlations[i == 3], 2 * step + (i == 2 ? 2 : 1));
			if (shapes[i].flags & WORK)
				packed_put(out, zigzag(40000));
		}
}

static void steps_make(struct buf *out, size_t packed_len)
{
	uint64_t last = 0;

	buf_init(out, CEILING);
	packed_put(out, packed_len);
	packed_put(out, STEPS);
	for (uint64_t step = 0; step < STEPS; step++) {
		delta_put(out, &last, 1000000000 + 1000000 * step);
		packed_put(out, 900000);
	}
}

static void row_put(struct tables *all, uint64_t rank, uint64_t first_ns, const char *packed,
		    const char *steps)
{
	struct table *t = tables_find(all, "replay_log");
	union value keys[LOG_KEYS] = { { .u64 = rank }, { .text = "node" }, { .u64 = 7 } }, *row;

	keys[LOG_FIRST].u64 = first_ns;
	if (!CHECK_OK(table_row(t, keys, &row, NULL), NULL))
		return;
	row[LOG_PACKED].text = table_text(t, packed, NULL);
	row[LOG_STEPS].text = table_text(t, steps, NULL);
}

static struct replay_answer ask(const char *packed, const char *steps)
{
	const char *const edits[] = { "kernel:*=0.5" };
	struct replay_answer a = { .is_known = false };
	struct replayed *r = NULL;
	struct engine_result of;

	CHECK_OK(engine_result_init(&of, asked, CEILING, NULL), NULL);
	row_put(of.tables, 0, 1, packed, steps);
	CHECK_OK(replayed_open(&r, of.tables, NULL), NULL);
	CHECK_OK(replayed_ask(r, edits, 1, NULL), NULL);
	a = replayed_answer(r, edits[0]);
	replayed_close(r);
	engine_result_release(&of);
	return a;
}

void test_replay_log_cut(void)
{
	struct buf packed, steps;
	size_t i;

	points_make(&packed);
	steps_make(&steps, packed.len);
	struct replay_answer whole = ask(buf_text(&packed), buf_text(&steps));
	CHECK(whole.is_known);
	CHECK(whole.step_ns == 530000 && whole.saves_ns == 370000);
	for (i = packed.len; i--;) {
		packed.data[i] = '\0';
		CHECK(!ask((char *)packed.data, buf_text(&steps)).is_known);
	}
	buf_release(&packed);
	points_make(&packed);
	for (i = steps.len; i--;) {
		steps.data[i] = '\0';
		CHECK(!ask(buf_text(&packed), (char *)steps.data).is_known);
	}
	/* Where the length is made right again, what is left may be replayed. */
	for (i = packed.len; i--;) {
		buf_release(&steps);
		steps_make(&steps, i);
		packed.data[i] = '\0';
		struct replay_answer a = ask((char *)packed.data, buf_text(&steps));
		CHECK(!a.is_known || a.step_ns <= 900000);
	}
	buf_release(&packed);
	buf_release(&steps);
}

/* Each number another one, each letter one that stands in no number, and 1 % of all letters. */
void test_replay_log_damage(void)
{
	static const char letters[] = "0?O_o \xff~";
	char huge[] = "oooooooooooo?", *text;
	struct buf packed, steps;
	uint64_t seed = 3;

	points_make(&packed);
	text = malloc(packed.len + sizeof(huge));
	for (size_t i = 0; text && i < packed.len; i++) {
		memcpy(text, packed.data, i);
		memcpy(text + i, huge, sizeof(huge) - 1);
		memcpy(text + i + sizeof(huge) - 1, packed.data + i, packed.len - i);
		text[packed.len + sizeof(huge) - 1] = '\0';
		steps_make(&steps, strlen(text));
		ask(text, buf_text(&steps));
		buf_release(&steps);
		steps_make(&steps, packed.len);
		for (size_t k = 0; letters[k]; k++) {
			memcpy(text, buf_text(&packed), packed.len + 1);
			text[i] = letters[k];
			ask(text, buf_text(&steps));
		}
		for (size_t k = 0; k < packed.len / 100 + 1; k++)
			text[random_u64(&seed) % packed.len] = (char)(1 + random_u64(&seed) % 255);
		ask(text, buf_text(&steps));
		buf_release(&steps);
	}
	free(text);
	steps_make(&steps, packed.len);
	for (size_t i = 0; i < steps.len; i++)
		for (size_t k = 0; letters[k]; k++) {
			uint8_t was = steps.data[i];

			steps.data[i] = (uint8_t)letters[k];
			ask(buf_text(&packed), buf_text(&steps));
			steps.data[i] = was;
		}
	/* A letter of no number, where a number should be, ends both texts. */
	steps.data[steps.len - 1] = ' ';
	CHECK(!ask(buf_text(&packed), buf_text(&steps)).is_known);
	buf_release(&steps);
	buf_release(&packed);
}

/* Each point on a thread or a stream of its own, or within all marks before it. */
void test_replay_log_hostile(void)
{
	for (size_t way = 0; way < 3; way++) {
		struct buf packed, steps;
		uint64_t points = 0;

		buf_init(&packed, LOG_MOST);
		points_make(&steps);
		buf_put(&packed, steps.data, steps.len);
		buf_release(&steps);
		for (; packed.len < 400000; points++) {
			packed_put(&packed, way == 2 ? 0 : 4 + points);
			if (way < 2) {
				packed_put(&packed, way ? WORK : MARK);
				packed_put(&packed, 10 + points);
				packed_put(&packed, way ? 3 : 0);
				if (!way)
					packed_put(&packed, 0);
			}
			packed_put(&packed, zigzag(20000));
			packed_put(&packed, UINT32_MAX + 30000 * points);
		}
		steps_make(&steps, packed.len);
		ask(buf_text(&packed), buf_text(&steps));
		buf_release(&steps);
		buf_release(&packed);
	}
}

/* Windows of one rank in any order of merging: the first are kept, and no others take memory. */
void test_replay_log_windows(void)
{
	enum { WINDOWS = 5 * LOG_WINDOWS };
	char *packed = malloc(LOG_MOST + 1);

	for (unsigned way = 0; packed && way < 3; way++) {
		struct engine_result all;

		CHECK_OK(engine_result_init(&all, asked, CEILING, NULL), NULL);
		for (uint64_t i = 0; i < WINDOWS; i++) {
			uint64_t at = way == 0 ? i : way == 1 ? WINDOWS - 1 - i : i * 7 % WINDOWS;
			/* In descending order as much as may go for others. */
			size_t len = way ? TABLE_GONE_MOST / WINDOWS : LOG_MOST;
			struct engine_result one, back;
			const char *settings = NULL;
			struct buf file;

			memset(packed, '1', len);
			packed[at] = '2';
			packed[len] = '\0';
			buf_init(&file, CEILING);
			CHECK_OK(engine_result_init(&one, asked, CEILING, NULL), NULL);
			row_put(one.tables, 0, at, packed, "1");
			CHECK_OK(engine_partial_put(&one, "all", &file, NULL), NULL);
			if (way == 1)
				CHECK_OK(tables_merge(all.tables, one.tables, NULL), NULL);
			else
				CHECK_OK(engine_partial_take(&all, file.data, file.len, CEILING,
							     &settings, NULL),
					 NULL);
			engine_result_release(&one);
			CHECK_OK(engine_result_init(&back, asked, CEILING, NULL), NULL);
			settings = NULL;
			CHECK_OK(engine_partial_take(&back, file.data, file.len, CEILING, &settings,
						     NULL),
				 NULL);
			CHECK_U64(table_count(tables_find(back.tables, "replay_log")), 1);
			engine_result_release(&back);
			buf_release(&file);
		}
		struct table *t = tables_find(all.tables, "replay_log");
		if (CHECK_U64(table_count(t), LOG_WINDOWS))
			for (uint64_t i = 0; i < LOG_WINDOWS; i++) {
				CHECK_U64(table_at(t, i)[LOG_FIRST].u64, i);
				CHECK(table_at(t, i)[LOG_PACKED].text[i] == '2');
			}
		engine_result_release(&all);
	}
	free(packed);
}
