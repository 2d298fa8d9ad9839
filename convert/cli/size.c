/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/cli/internal.h"

#include "convert/base/temporary.h"
#include "schemas/base/quantity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shares of the requested size: the aim, and the least that is accepted. */
static const double aim = 0.84, enough = 0.6;
static const double first_aim = 0.6; /* lower, because merged events also need bytes */

/* ---- standard input, to be read more than once ---- */

enum status size_path(struct size_run *s, const char **path, const char *scratch, struct error *err)
{
	static char bytes[1 << 16];
	ssize_t n;

	if (!s->is_on || strcmp(*path, "-") != 0)
		return ST_OK;
	*path = s->copy_path;
	if (s->copy_path[0])
		return ST_OK;
	s->copy_fd = temporary_open(scratch);
	if (s->copy_fd < 0)
		return fail(err, ST_IO, NOWHERE, "cannot create a temporary file in %s: %s",
			    scratch, strerror(errno));
	snprintf(s->copy_path, sizeof(s->copy_path), "/proc/self/fd/%d", s->copy_fd);
	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(err, ST_IO, NOWHERE, "cannot be read: %s", strerror(errno));
		TRY(temporary_write(s->copy_fd, bytes, (size_t)n, err));
		atomic_fetch_add(&s->copied, (uint64_t)n);
	}
	return ST_OK;
}

/* ---- durations ---- */

static unsigned length_class(uint64_t ns)
{
	unsigned octave = ns < 8 ? 0 : 61 - (unsigned)__builtin_clzll(ns);

	return octave < 1 ? (unsigned)ns : 8 * octave + (unsigned)(ns >> (octave - 1) & 7);
}

/* Returns the number of events that a threshold keeps. */
static double count_kept(const struct size_file *f, uint64_t min_ns)
{
	uint64_t kept = 0;

	for (unsigned i = length_class(min_ns); i < SIZE_LENGTHS; i++)
		kept += f->counts[i];
	return (double)kept;
}

/* Returns the lowest threshold that keeps at most `most` events. */
static uint64_t find_kept(const struct size_file *f, double most)
{
	unsigned i = SIZE_LENGTHS;

	for (double kept = 0; i && kept + (double)f->counts[i - 1] <= most; i--)
		kept += (double)f->counts[i - 1];
	/* Return the least duration of class i. */
	if (i >= 8 * 57)
		return LOD_MOST_NS;
	return i < 8 ? i : (uint64_t)(8 + i % 8) << (i / 8 - 1);
}

/* ---- attempts ---- */

enum status size_begin(struct size_run *s, const struct trace *trace, struct error *err)
{
	s->trace = trace;
	if (!s->is_on || s->attempt++)
		return ST_OK;
	s->process_count = trace_count(trace, TRACE_PROCESSES) + 1;
	s->min_ns = calloc(s->process_count, sizeof(*s->min_ns));
	s->files = calloc(s->process_count, sizeof(*s->files));
	return s->min_ns && s->files ? ST_OK : fail_memory(err);
}

enum status size_put(void *self, const struct batch *batch, struct error *err)
{
	struct size_run *s = self;

	for (size_t i = 0; i < batch->count; i++) {
		uint32_t process = trace_get_track(s->trace, batch->events[i].track)->process;
		unsigned class = length_class(lod_length_ns(&batch->events[i]));

		s->files[0].counts[class]++;
		if (process && process < s->process_count)
			s->files[process].counts[class]++;
	}
	return ST_OK;
}

void size_note(struct size_run *s, uint32_t process, uint64_t bytes, uint64_t most)
{
	struct size_file *f;

	if (!s->is_on || !s->files || !most)
		return;
	f = &s->files[process < s->process_count ? process : 0];
	/* keep the tightest bound: the one that is nearest, or exceeded most */
	if (f->most && (double)bytes / (double)most <= (double)f->bytes / (double)f->most)
		return;
	f->bytes = bytes;
	f->most = most;
}

/* Returns a higher threshold while no attempt has fitted yet. */
static uint64_t choose_higher(const struct size_file *f, unsigned attempt)
{
	double share = (attempt == 1 ? first_aim : aim) * (double)f->most / (double)f->bytes;
	uint64_t found = find_kept(f, count_kept(f, f->large.min_ns) * share);
	uint64_t least = f->large.min_ns + f->large.min_ns / 2 + 1;

	if (attempt > 2 && least < LOD_MOST_NS / 16)
		least *= UINT64_C(1) << attempt / 2; /* durations do not decide */
	found = found > least ? found : least;
	return found < LOD_MOST_NS ? found : LOD_MOST_NS;
}

/* Returns a threshold between one whose file was too large and one whose file was too small. */
static uint64_t choose_between(const struct size_file *f, unsigned attempt)
{
	double low = (double)(f->large.min_ns ? f->large.min_ns : 1), high = (double)f->fits.min_ns;
	double wanted = (aim * (double)f->most - (double)f->fits.bytes) /
			(double)(f->large.bytes - f->fits.bytes);
	double ratio = high / low, kept, found;

	if (ratio < 1.3) { /* bytes are nearly linear here, as thresholds vary */
		found = high - (high - low) * (wanted < 0.1 ? 0.1 : wanted > 0.9 ? 0.9 : wanted);
	} else if (attempt > 4) {
		found = sqrt(low * high);
	} else {
		kept = count_kept(f, f->fits.min_ns);
		kept += wanted * (count_kept(f, f->large.min_ns) - kept);
		found = (double)find_kept(f, kept);
		kept = pow(ratio, 0.15); /* stay away from both ends */
		found = found < low * kept ? low * kept : found > high / kept ? high / kept : found;
	}
	if (found <= (double)f->large.min_ns + 1)
		return f->large.min_ns + 1;
	return found < high - 1 ? (uint64_t)found : f->fits.min_ns - 1;
}

/* Evaluates the last attempt's file.  Returns true if another attempt is wanted, with the threshold
 * s->min_ns[process]. */
static bool is_wrong(struct size_run *s, uint32_t process)
{
	struct size_file *f = &s->files[process];
	uint64_t *min_ns = &s->min_ns[process];

	if (!f->most)
		return false;
	if (f->bytes > f->most) {
		f->large = (struct size_attempt){ *min_ns, f->bytes };
		if (*min_ns >= f->fits.min_ns) /* `fits` does not fit any more */
			f->fits.bytes = 0;
	} else {
		if (!*min_ns || f->is_settled || (double)f->bytes >= enough * (double)f->most ||
		    s->attempt >= SIZE_ATTEMPTS - 1 || *min_ns - f->large.min_ns < 2)
			return false;
		f->fits = (struct size_attempt){ *min_ns, f->bytes };
	}
	f->is_settled = f->fits.bytes &&
			(s->attempt == SIZE_ATTEMPTS - 1 || f->fits.min_ns - f->large.min_ns < 2);
	if (f->is_settled)
		*min_ns = f->fits.min_ns;
	else if (f->fits.bytes)
		*min_ns = choose_between(f, s->attempt);
	else if (f->bytes > f->most && *min_ns < LOD_MOST_NS)
		*min_ns = s->attempt == SIZE_ATTEMPTS - 1 ? LOD_MOST_NS
							  : choose_higher(f, s->attempt);
	return true;
}

static enum status too_small(const struct size_run *s, const struct size_file *f, bool is_last,
			     struct error *err)
{
	char most[UNIT_TEXT];

	unit_format_size(f->most, most);
	if (is_last)
		return fail(err, ST_USAGE, NOWHERE,
			    "--max-size %s is too small: names, steps, phases and one event per "
			    "track already take %llu bytes",
			    most, (unsigned long long)f->bytes);
	return fail(err, ST_USAGE, NOWHERE,
		    "--max-size %s: after %u attempts a file still has %llu bytes: use a smaller "
		    "size, or filter with --steps, --from/--to or --kinds",
		    most, s->attempt, (unsigned long long)f->bytes);
}

enum status size_again(struct size_run *s, bool *again, struct error *err)
{
	*again = false;
	for (uint32_t i = 0; s->is_on && i < s->process_count; i++) {
		struct size_file *f = &s->files[i];
		bool was_last = s->min_ns[i] == LOD_MOST_NS;

		if (!is_wrong(s, i))
			continue;
		if (f->bytes > f->most && (was_last || s->attempt == SIZE_ATTEMPTS))
			return too_small(s, f, was_last, err);
		*again = true;
	}
	for (uint32_t i = 0; *again && i < s->process_count; i++)
		if (s->files[0].most)
			s->min_ns[i] = s->min_ns[0];
		else if (!s->files[i].most)
			s->min_ns[i] = LOD_LEAVE_OUT;
	for (uint32_t i = 0; *again && i < s->process_count; i++)
		s->files[i].most = s->files[i].bytes = 0;
	s->request = (struct lod_request){ .min_ns = s->min_ns, .count = s->process_count };
	return ST_OK;
}

void size_keep(struct size_run *s, const struct source *lod)
{
	struct lod_totals t, *all = &s->totals;

	s->summed = 0;
	if (!lod)
		return;
	t = lod_totals(lod, 0);
	s->summed = t.merged - t.into + t.dropped;
	all->in += t.in;
	all->kept += t.kept;
	all->merged += t.merged;
	all->into += t.into;
	all->arrows += t.arrows;
	if (!all->from_ns || (t.from_ns && t.from_ns < all->from_ns))
		all->from_ns = t.from_ns;
	if (t.to_ns > all->to_ns)
		all->to_ns = t.to_ns;
}

void size_end(struct size_run *s)
{
	free(s->min_ns);
	free(s->files);
	s->min_ns = NULL;
	s->files = NULL;
	s->process_count = 0;
	s->attempt = 0;
}

void size_release(struct size_run *s)
{
	size_end(s);
	if (s->copy_path[0])
		close(s->copy_fd);
	s->copy_path[0] = '\0';
}

void size_account(const struct size_run *s, struct buf *out)
{
	const struct lod_totals *t = &s->totals;
	char low[LOD_TEXT], high[LOD_TEXT];

	if (!t->in)
		return;
	buf_putf(out,
		 "--max-size: %llu of %llu events are kept, and %llu short ones are merged into "
		 "%llu; "
		 "every event of %s or longer is kept",
		 (unsigned long long)t->kept, (unsigned long long)t->in,
		 (unsigned long long)t->merged, (unsigned long long)t->into,
		 lod_put_time(t->to_ns, high));
	if (t->to_ns != t->from_ns)
		buf_putf(out, " (in some files from %s on)", lod_put_time(t->from_ns, low));
	if (t->arrows)
		buf_putf(out, "; %llu arrows to merged events are omitted",
			 (unsigned long long)t->arrows);
}
