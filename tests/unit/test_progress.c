/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "convert/stage/options.h"
#include "convert/base/progress.h"
#include "convert/base/account.h"

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
	line_is(&p, (struct progress_now){ 10 * S + S / 2, 5, 1, 2 }, NULL); /* too early */
	line_is(&p, (struct progress_now){ 12 * S, 3000000, 25000000, 100000000 },
		"\r\033[K25.0 MB of 100.0 MB, 3.0 M events, 1.5 M/s, 0:06 left");
	line_is(&p, (struct progress_now){ 12 * S + S / 10, 3, 4, 5 }, NULL); /* too soon after */
	line_is(&p, (struct progress_now){ 14 * S, 40000, 0, 0 }, "\r\033[K40 k events, 10 k/s");
	line_is(&p, (struct progress_now){ 20 * S, 0, 1000000, 800000000 },
		"\r\033[K1.0 MB of 800.0 MB, 2:13:10 left");
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
	CHECK_STR(buf_text(&b),
		  "111 events in, 40 out (2 damaged, 7 arrows that are drawn again from "
		  "correlation ids, 3 of a kind that only a newer Tacho knows, 60 with no place in "
		  "memory)");
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
