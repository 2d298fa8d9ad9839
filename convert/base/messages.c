/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and the progress line of a tool. */
#include "convert/base/messages.h"
#include "schemas/base/utf8.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void say(const char *tool, const char *fmt, ...)
{
	char *text;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	utf8_tame(text);
	fprintf(stderr, "%s: %s\n", tool, text);
	free(text);
}

void say_passed_over(const char *tool, size_t count, const char *one, const char *several)
{
	if (count)
		say(tool, "skipped %zu %s", count, count == 1 ? one : several);
}

void say_error(const char *tool, const char *file, const struct error *err)
{
	char at[40] = "";

	if (err->at != NOWHERE)
		snprintf(at, sizeof(at), "byte %llu: ", (unsigned long long)err->at);
	say(tool, "%s%s%s%s", file ? file : "", file ? ": " : "", at, err->text);
}

#define SECOND_NS 1000000000ull

enum { LEFT_MAX_S = 359999, TICK_NS = 200 * 1000 * 1000, LINE_CEILING = 4096 };

static const char clear[] = "\r\033[K";

/* Appends a rounded count such as "12.3 M" or "456". */
static void put_count(struct buf *out, double count)
{
	if (count >= 1e6)
		buf_putf(out, "%.1f M", count / 1e6);
	else if (count >= 1e4)
		buf_putf(out, "%.0f k", count / 1e3);
	else
		buf_putf(out, "%.0f", count);
}

/* Appends the time left, if the work continues at the same rate; `share` of it took `spent_s`. */
static void put_left(struct buf *out, double share, double spent_s)
{
	double left_s = share > 0 && share < 1 ? spent_s * (1 - share) / share : LEFT_MAX_S + 1;
	unsigned s;

	if (left_s > LEFT_MAX_S)
		return;
	s = (unsigned)(left_s + 0.5);
	if (s >= 3600)
		buf_putf(out, ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
	else
		buf_putf(out, ", %u:%02u left", s / 60, s % 60);
}

bool progress_line(struct progress *p, const struct progress_now *now, struct buf *out)
{
	double spent_s = (double)(now->now_ns - p->begin_ns) / 1e9;

	if (now->now_ns < p->begin_ns + SECOND_NS || now->now_ns < p->shown_ns + SECOND_NS / 5)
		return false;
	p->shown_ns = now->now_ns;
	buf_put_text(out, clear);
	if (now->done_bytes)
		buf_putf(out, "%.1f MB", (double)now->done_bytes / 1e6);
	if (now->done_bytes && now->all_bytes)
		buf_putf(out, " of %.1f MB", (double)now->all_bytes / 1e6);
	if (now->done_bytes && now->done_bytes < now->all_bytes)
		buf_putf(out, " at %.1f MB/s", (double)now->done_bytes / 1e6 / spent_s);
	if (now->events) {
		buf_put_text(out, now->done_bytes ? ", " : "");
		put_count(out, (double)now->events);
		buf_put_text(out, " events, ");
		put_count(out, (double)now->events / spent_s);
		buf_put_text(out, "/s");
	}
	put_left(out, now->share, spent_s);
	return true;
}

void progress_end(struct progress *p, struct buf *out)
{
	if (p->shown_ns)
		buf_put_text(out, clear);
	p->shown_ns = 0;
}

/* ---- the thread ---- */

struct progress_ticker {
	struct progress_hooks hooks;
	void *self;
	struct progress progress;
	struct buf line;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_over; /* protected by `lock` */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void *run_ticker(void *self)
{
	struct progress_ticker *t = self;

	pthread_mutex_lock(&t->lock);
	while (!t->is_over) {
		uint64_t until_ns = clock_ns(CLOCK_REALTIME) + TICK_NS;
		struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
					  .tv_nsec = (long)(until_ns % SECOND_NS) };

		pthread_cond_timedwait(&t->wake, &t->lock, &until);
		if (t->is_over)
			break;
		struct progress_now now = { .now_ns = 0 };
		t->hooks.look(t->self, &now);
		now.now_ns = clock_ns(CLOCK_MONOTONIC);
		buf_clear(&t->line);
		if (progress_line(&t->progress, &now, &t->line))
			t->hooks.show(t->self, buf_text(&t->line));
	}
	pthread_mutex_unlock(&t->lock);
	buf_clear(&t->line);
	progress_end(&t->progress, &t->line);
	if (t->line.len)
		t->hooks.show(t->self, buf_text(&t->line));
	return NULL;
}

static void release(struct progress_ticker *t)
{
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->lock);
	buf_release(&t->line);
	free(t);
}

struct progress_ticker *progress_start(const struct progress_hooks *hooks, void *self)
{
	struct progress_ticker *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->hooks = *hooks;
	t->self = self;
	t->progress.begin_ns = clock_ns(CLOCK_MONOTONIC);
	buf_init(&t->line, LINE_CEILING);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->wake, NULL);
	if (pthread_create(&t->thread, NULL, run_ticker, t) == 0)
		return t;
	release(t);
	return NULL;
}

void progress_stop(struct progress_ticker *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->is_over = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	release(t);
}

void account_add(struct account *a, struct trace *t)
{
	a->events_in += trace_provenance(t)->events;
	a->lost_all += trace_lost_total(t, 0);
	for (unsigned why = 0; why < LOSS_END; why++)
		a->lost[why] += trace_lost(t, 0, (enum loss)why);
}

static void put_reason(struct buf *out, size_t from, uint64_t count, const char *why)
{
	if (!count)
		return;
	buf_put_text(out, out->len == from ? " (" : ", ");
	buf_put_u64_text(out, count);
	buf_put_byte(out, ' ');
	buf_put_text(out, why);
}

void account_put(const struct account *a, const char *output, struct buf *out)
{
	size_t from;

	buf_putf(out, "%llu events in, %llu out", (unsigned long long)a->events_in,
		 (unsigned long long)a->events_out);
	from = out->len;
	for (unsigned why = 0; why < LOSS_END; why++)
		put_reason(out, from, a->lost[why],
			   why == LOSS_DERIVED && a->has_arrows
				   ? "flow events that are drawn again from correlation ids"
			   : why ? loss_text((enum loss)why)
				 : "that only a newer Tacho knows");
	put_reason(out, from, a->unknown_kind, "of a kind that only a newer Tacho knows");
	put_reason(out, from, a->left_out, "with no place in ");
	if (a->left_out)
		buf_put_text(out, output);
	if (out->len > from)
		buf_put_byte(out, ')');
}
