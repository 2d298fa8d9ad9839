/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/size.h"

#include "schemas/buf.h"
#include "schemas/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECE_BYTES = 1 << 16,
	PATH_BYTES = 4096,
	NAME_SHARE = 8, /* of a file, for names with numbers */
	NAME_MOST = 4 << 20,
	MADE_BYTES = 100,
	PACKED_BYTES = 16, /* of an event: less is a format that packs */
	PACKED_TIMES = 4,
	SEARCH_LAST = 4, /* attempts by what they are foretold to take; then by halving */
};

/* Of the size that was asked for: what is aimed at, and the least that is enough. */
static const double aim = 0.86, enough = 0.6;

/* ---- standard input, to be read more than once ---- */

static int scratch_file(const char *folder)
{
	char path[PATH_BYTES];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || strlen(folder) > sizeof(path) - 32)
		return fd;
	stpcpy(stpcpy(path, folder), "/tacho-stdin-XXXXXX"); /* where O_TMPFILE is not known */
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static enum status copy_piece(int to, const char *piece, ssize_t len, struct error *err)
{
	while (len) {
		ssize_t n = write(to, piece, (size_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(err, ST_IO, NOWHERE, "the scratch file cannot be written: %s",
				    strerror(errno));
		piece += n;
		len -= n;
	}
	return ST_OK;
}

static enum status copy_input(struct size_run *s, struct error *err)
{
	static char piece[PIECE_BYTES];
	ssize_t n;

	while ((n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(err, ST_IO, NOWHERE, "cannot be read: %s", strerror(errno));
		TRY(copy_piece(s->copy_fd, piece, n, err));
		atomic_fetch_add(&s->copied, (uint64_t)n);
	}
	return ST_OK;
}

enum status size_path(struct size_run *s, const char **path, const char *scratch,
		      struct error *err)
{
	if (!s->is_on || strcmp(*path, "-") != 0)
		return ST_OK;
	if (!s->copy_path[0]) {
		int fd = scratch_file(scratch);

		if (fd < 0)
			return fail(err, ST_IO, NOWHERE, "no scratch file in %s: %s", scratch,
				    strerror(errno));
		s->copy_fd = fd;
		snprintf(s->copy_path, sizeof(s->copy_path), "/proc/self/fd/%d", fd);
		TRY(copy_input(s, err));
	}
	*path = s->copy_path;
	return ST_OK;
}

/* ---- attempts ---- */

enum status size_begin(struct size_run *s, const struct trace *trace, struct error *err)
{
	if (!s->is_on || s->attempt++)
		return ST_OK;
	s->process_count = trace_count(trace, TRACE_PROCESSES) + 1;
	s->levels = calloc(s->process_count, sizeof(*s->levels));
	s->files = calloc(s->process_count, sizeof(*s->files));
	if (!s->levels || !s->files)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for --max-size");
	return detail_count_new(&s->count, trace, err);
}

enum status size_put(void *self, const struct event *events, size_t count, struct error *err)
{
	struct size_run *s = self;

	return detail_count_put(s->count, events, count, err);
}

static struct size_file *file_of(const struct size_run *s, uint32_t process)
{
	return &s->files[process < s->process_count ? process : 0];
}

void size_note(struct size_run *s, uint32_t process, uint64_t bytes, uint64_t most)
{
	struct size_file *f = s->is_on && s->files ? file_of(s, process) : NULL;

	/* of several bounds the one that is nearest, or passed by most */
	if (!f || !most || (f->most && (double)bytes / (double)most <=
					       (double)f->bytes / (double)f->most))
		return;
	f->bytes = bytes;
	f->most = most;
}

/*
 * What events cost.  One that stands for others has a name and three numbers of its own, however
 * little others take; where columns are packed these cost less.  A file also has bytes that no
 * event brings: two attempts tell how many.
 */
static struct detail_cost cost_of(const struct size_file *f, double own_bytes)
{
	double each = ((double)f->first_bytes - own_bytes) / (double)(f->first.kept + 1);

	if (each < PACKED_BYTES)
		return (struct detail_cost){ each, each * PACKED_TIMES };
	return (struct detail_cost){ each, each > MADE_BYTES ? each : MADE_BYTES };
}

/* The bytes that are not of events, by halving: what is foretold grows with fewer of them. */
static double find_own(const struct size_file *f)
{
	double low = 0, high = 0.95 * (double)(f->first_bytes < f->bytes ? f->first_bytes : f->bytes);

	for (int i = 0; i < 40; i++) {
		double own = (low + high) / 2;

		if (own + detail_cost(&f->left, cost_of(f, own)) < (double)f->bytes)
			low = own;
		else
			high = own;
	}
	return low;
}

/* Nothing has fitted yet: what was foretold wrongly, and what no level takes away. */
static unsigned choose_higher(const struct size_run *s, uint32_t process)
{
	const struct size_file *f = &s->files[process];
	double own = 0, wrong = 1, most = aim * (double)f->most;
	unsigned fine = s->levels[process];

	if (s->attempt == SIZE_ATTEMPTS - 1)
		return DETAIL_MOST;
	if (s->attempt > 1) {
		own = find_own(f);
		wrong = (double)f->bytes / (own + detail_cost(&f->left, cost_of(f, own)));
		most = most / (wrong > 0 ? wrong : 1) - own;
		most = most > 0.25 * (double)f->most ? most : 0.25 * (double)f->most;
		fine += s->attempt * DETAIL_FINE / 4;
	}
	return detail_count_pick(s->count, process, fine, cost_of(f, own), most);
}

/* Between one that was too large and one that fitted and is small. */
static unsigned choose_between(const struct size_run *s, uint32_t process)
{
	const struct size_file *f = &s->files[process];
	unsigned apart = f->fits.fine - f->large.fine, low = f->large.fine + (apart + 7) / 8;
	unsigned high = f->fits.fine - (apart > 8 ? apart / 8 : 1);
	struct detail_cost cost = cost_of(f, 0);
	struct detail_left left = detail_count_at(s->count, process, f->large.fine);
	double begin = detail_cost(&left, cost), end, wanted;

	if (s->attempt >= SEARCH_LAST)
		return f->large.fine + apart / 2;
	left = detail_count_at(s->count, process, f->fits.fine);
	end = detail_cost(&left, cost);
	wanted = (aim * (double)f->most - (double)f->fits.bytes) /
		 (double)(f->large.bytes - f->fits.bytes);
	wanted = end + wanted * (begin - end);
	while (low < high) {
		unsigned middle = (low + high) / 2;

		left = detail_count_at(s->count, process, middle);
		if (detail_cost(&left, cost) > wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void choose(struct size_run *s, uint32_t process)
{
	struct size_file *f = &s->files[process];
	unsigned fine;

	f->left = detail_count_at(s->count, process, s->levels[process]);
	if (s->attempt == 1) {
		f->first_bytes = f->bytes;
		f->first = f->left;
	}
	if (!f->fits.bytes)
		fine = choose_higher(s, process);
	else if (s->attempt == SIZE_ATTEMPTS - 1 || f->fits.fine - f->large.fine < 2)
		fine = f->fits.fine;
	else
		fine = choose_between(s, process);
	f->is_settled = f->fits.bytes && fine == f->fits.fine;
	s->levels[process] = (uint16_t)fine;
}

/* What the last attempt tells; true: another one is wanted. */
static bool is_wrong(struct size_run *s, uint32_t process)
{
	struct size_file *f = &s->files[process];
	unsigned fine = s->levels[process];

	if (!f->most)
		return false;
	if (f->bytes > f->most) {
		f->large = (struct size_bound){ f->bytes, fine };
		if (fine >= f->fits.fine) /* names that others took: it fits no longer */
			f->fits.bytes = 0;
		return true;
	}
	if (!fine || f->is_settled || (double)f->bytes >= enough * (double)f->most ||
	    s->attempt >= SIZE_ATTEMPTS - 1 || fine - f->large.fine < 2)
		return false;
	f->fits = (struct size_bound){ f->bytes, fine };
	return true;
}

static enum status too_small(const struct size_run *s, const struct size_file *f, bool is_last,
			     struct error *err)
{
	char most[UNIT_TEXT];

	unit_format_size(f->most, most);
	if (is_last)
		return fail(err, ST_USAGE, NOWHERE, "--max-size %s is too small: names, steps, "
			    "phases and one event of each track alone take %llu bytes", most,
			    (unsigned long long)f->bytes);
	return fail(err, ST_USAGE, NOWHERE, "--max-size %s: after %u attempts a file still takes "
		    "%llu bytes: ask for less, or cut it with --steps, --from/--to or --kinds", most,
		    s->attempt, (unsigned long long)f->bytes);
}

enum status size_again(struct size_run *s, bool *again, struct error *err)
{
	*again = false;
	for (uint32_t i = 0; s->is_on && i < s->process_count; i++) {
		struct size_file *f = &s->files[i];
		bool is_last = s->levels[i] == DETAIL_MOST;

		if (!is_wrong(s, i))
			continue;
		if (f->bytes > f->most && (is_last || s->attempt == SIZE_ATTEMPTS))
			return too_small(s, f, is_last, err);
		*again = true;
		if (s->attempt == 1)
			s->name_bytes += (size_t)(f->most / NAME_SHARE);
		choose(s, i);
	}
	for (uint32_t i = 0; *again && i < s->process_count; i++) {
		if (!s->files[i].most && !s->files[0].most)
			s->levels[i] = SIZE_NONE;
		else if (s->files[0].most)
			s->levels[i] = s->levels[0];
		if (i)
			s->files[i].most = s->files[i].bytes = 0;
	}
	if (*again)
		s->files[0].most = s->files[0].bytes = 0;
	s->request = (struct detail_request){ .levels = s->levels, .level_count = s->process_count,
					      .name_bytes = s->name_bytes < NAME_MOST ?
							    s->name_bytes : NAME_MOST };
	return ST_OK;
}

void size_keep(struct size_run *s, const struct source *detail)
{
	struct detail_totals t;

	s->summed = 0;
	if (!detail)
		return;
	t = detail_totals(detail, 0);
	s->summed = t.merged - t.into + t.dropped;
	s->totals.in += t.in;
	s->totals.kept += t.kept;
	s->totals.merged += t.merged;
	s->totals.into += t.into;
	s->totals.arrows += t.arrows;
	if (!s->totals.floor_ns || t.floor_ns < s->totals.floor_ns)
		s->totals.floor_ns = t.floor_ns;
	if (t.highest_ns > s->highest_floor_ns)
		s->highest_floor_ns = t.highest_ns;
}

void size_end(struct size_run *s)
{
	detail_count_free(s->count);
	free(s->levels);
	free(s->files);
	s->count = NULL;
	s->levels = NULL;
	s->files = NULL;
	s->process_count = 0;
	s->name_bytes = 0;
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
	const struct detail_totals *t = &s->totals;
	char low[DETAIL_TEXT], high[DETAIL_TEXT];

	if (!t->in)
		return;
	buf_putf(out, "--max-size: of %llu events %llu are kept and %llu merged into %llu; all of "
		 "%s or longer are there", (unsigned long long)t->in, (unsigned long long)t->kept,
		 (unsigned long long)t->merged, (unsigned long long)t->into,
		 detail_put_time(s->highest_floor_ns, high));
	if (s->highest_floor_ns != t->floor_ns)
		buf_putf(out, " (of some files from %s)", detail_put_time(t->floor_ns, low));
	if (t->arrows)
		buf_putf(out, "; %llu arrows to merged ones are left out",
			 (unsigned long long)t->arrows);
}
