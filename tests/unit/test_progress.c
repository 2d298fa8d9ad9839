/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "convert/stage/options.h"
#include "convert/base/messages.h"
#include "convert/input/input.h"
#include "convert/source/source.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define S 1000000000ull

static void line_is(struct progress *p, struct progress_now now, const char *want)
{
	struct buf b;

	buf_init(&b, 1000);
	CHECK(progress_line(p, &now, &b) == (want != NULL));
	CHECK_STR(buf_text(&b), want ? want : "");
	buf_release(&b);
}

void test_progress_line(void)
{
	struct progress p = { .begin_ns = 10 * S };
	struct buf b;

	buf_init(&b, 1000);
	progress_end(&p, &b);
	CHECK_U64(b.len, 0); /* nothing to take away */
	line_is(&p, (struct progress_now){ 10 * S + S / 2, 5, 1, 2, 0 }, NULL); /* too early */
	line_is(&p, (struct progress_now){ 12 * S, 3000000, 25000000, 100000000, 0.25 },
		"\r\033[K25.0 MB of 100.0 MB at 12.5 MB/s, 3.0 M events, 1.5 M/s, 0:06 left");
	line_is(&p, (struct progress_now){ 12 * S + S / 10, 3, 4, 5, 0.5 },
		NULL); /* too soon after */
	line_is(&p, (struct progress_now){ 14 * S, 40000, 0, 0, 0 }, "\r\033[K40 k events, 10 k/s");
	/* all is read, but not all is given on */
	line_is(&p, (struct progress_now){ 18 * S, 0, 5000000, 5000000, 0.8 },
		"\r\033[K5.0 MB of 5.0 MB, 0:02 left");
	line_is(&p, (struct progress_now){ 20 * S, 0, 1000000, 800000000, 1 / 800.0 },
		"\r\033[K1.0 MB of 800.0 MB at 0.1 MB/s, 2:13:10 left");
	progress_end(&p, &b);
	CHECK_STR(buf_text(&b), "\r\033[K");
	buf_release(&b);
}

static void look(void *self, struct progress_now *now)
{
	atomic_fetch_add((atomic_uint *)self, 1);
	now->events = 1;
}

static void show(void *self, const char *text)
{
	(void)self;
	CHECK(strstr(text, "events") || strcmp(text, "\r\033[K") == 0);
}

void test_progress_thread(void)
{
	struct timespec half = { 0, 500000000 };
	atomic_uint looks = 0;
	struct progress_ticker *t = progress_start(&(struct progress_hooks){ look, show }, &looks);

	if (!CHECK(t != NULL))
		return;
	nanosleep(&half, NULL);
	progress_stop(t);
	CHECK(atomic_load(&looks) >= 1);
	progress_stop(NULL);
}

void test_account_text(void)
{
	struct account a = { .events_in = 100 };
	struct trace *trace;
	struct error err;
	struct buf b;

	buf_init(&b, 1000);
	CHECK_OK(trace_new(&trace, 1 << 20, &err), &err);
	account_put(&a, "memory", &b);
	CHECK_STR(buf_text(&b), "100 events in, 0 out");
	trace_provenance(trace)->events = 11;
	trace_lose(trace, 0, LOSS_DERIVED, 7);
	trace_lose(trace, 0, LOSS_DAMAGED, 2);
	account_add(&a, trace);
	a.events_out = 40;
	a.left_out = 60;
	a.unknown_kind = 3;
	buf_clear(&b);
	account_put(&a, "memory", &b);
	CHECK_STR(
		buf_text(&b),
		"111 events in, 40 out (2 damaged, 7 flow events that repeat correlation ids, 3 of "
		"a kind that only a newer Tacho knows, 60 with no place in memory)");
	a.has_arrows = true;
	buf_clear(&b);
	account_put(&a, "chrome", &b);
	CHECK(strstr(buf_text(&b), "7 flow events that are drawn again from correlation ids, "));
	CHECK_U64(a.lost_all, 2);
	buf_release(&b);
	trace_free(trace);
}

void test_options_common(void)
{
	struct common_options o;
	const struct option_set sets[] = { { common_options, &o }, { NULL, NULL } };
	char *argv[] = { "tool", "-o", "out", "--memory", "32M", "-q", "in", NULL };
	struct budget budget;
	struct error err;
	int operands;

	CHECK_OK(option_defaults(sets, &err), &err);
	CHECK_U64(o.memory_bytes, 64 << 20);
	CHECK_OK(option_arguments(sets, 7, argv, &operands, &err), &err);
	CHECK_STR(o.output, "out");
	CHECK(o.quiet && !o.strict);
	CHECK_U64((uint64_t)operands, 1);
	budget = options_budget(&o, "/tmp");
	CHECK_U64(budget.opening, 12 << 20);
	CHECK(budget.opening + options_trace_ceiling(&o) + budget.resident < 32 << 20);
	CHECK_OK(options_check(&o, &err), &err);
	o.memory_bytes = 1 << 20;
	CHECK_U64(options_check(&o, &err), ST_USAGE);
	CHECK(strstr(err.text, "16M") != NULL);
}

/* Reads an input to its end; what it says after the first batch and at the end. */
static void read_all(struct input *in, struct input_progress *first, struct input_progress *last)
{
	struct budget budget = { .opening = 8 << 20, .resident = 65536, .scratch = "/tmp" };
	struct source *source = NULL;
	struct trace *trace = NULL;
	struct error err = { .at = NOWHERE };
	struct batch batch;
	size_t batches = 0;

	CHECK_OK(trace_new(&trace, 32 << 20, &err), &err);
	CHECK_OK(source_open(&source, in, trace, &budget, NULL, &err), &err);
	while (source && source_next(source, &batch, &err) == ST_OK)
		if (!batches++)
			input_look(in, first);
	input_look(in, last);
	CHECK(batches > 1);
	source_close(source);
	trace_free(trace);
	input_close(in);
}

/* Of a log the bytes of blocks count as they are read; what waits in a spool has half its way to
 * go when all of its file is read. */
void test_progress_of_inputs(void)
{
	static const char event[] = "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%u,"
				    "\"dur\":1},";
	struct input_progress first, last;
	struct log_run run;
	struct buf bytes;

	buf_init(&bytes, 16 << 20);
	CHECK(log_run_make(&run, 7, 30000, 4));
	CHECK(log_run_write(&run, 1000, true, &bytes));
	read_all(log_input(bytes.data, bytes.len), &first, &last);
	CHECK(first.share < 0.3 && last.share > 0.95);
	CHECK_U64(first.all_bytes, bytes.len);
	CHECK(first.read_bytes && first.read_bytes < last.read_bytes);
	log_run_release(&run);

	buf_clear(&bytes);
	buf_put_text(&bytes, "{\"traceEvents\":[");
	for (unsigned i = 0; i < 30000; i++)
		buf_putf(&bytes, event, i);
	buf_put_text(&bytes, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1}]}");
	read_all(log_input(bytes.data, bytes.len), &first, &last);
	CHECK_U64(first.read_bytes, bytes.len);
	CHECK(first.share > 0.49 && first.share < 0.7 && last.share > 0.99);
	buf_release(&bytes);
}
