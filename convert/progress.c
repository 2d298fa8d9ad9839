/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/progress.h"

#define SECOND_NS 1000000000ull

enum { LEFT_MAX_S = 359999 };

static const char clear[] = "\r\033[K";

/* "12.3 M", "456": a count for people. */
static void put_count(struct buf *out, double count)
{
	if (count >= 1e6)
		buf_putf(out, "%.1f M", count / 1e6);
	else if (count >= 1e4)
		buf_putf(out, "%.0f k", count / 1e3);
	else
		buf_putf(out, "%.0f", count);
}

/* From the share of the input that is read; an input is read at an even pace. */
static void put_left(struct buf *out, const struct progress_now *now, double spent_s)
{
	double left_s;

	if (!now->done_bytes || now->done_bytes > now->all_bytes)
		return;
	left_s = spent_s * (double)(now->all_bytes - now->done_bytes) / (double)now->done_bytes;
	if (left_s > LEFT_MAX_S)
		return;
	unsigned s = (unsigned)(left_s + 0.5);
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
	if (now->events) {
		buf_put_text(out, now->done_bytes ? ", " : "");
		put_count(out, (double)now->events);
		buf_put_text(out, " events, ");
		put_count(out, (double)now->events / spent_s);
		buf_put_text(out, "/s");
	}
	put_left(out, now, spent_s);
	return true;
}

void progress_end(struct progress *p, struct buf *out)
{
	if (p->shown_ns)
		buf_put_text(out, clear);
	p->shown_ns = 0;
}
