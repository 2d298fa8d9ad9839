/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of memory (DEFINITIONS.md 8): live bytes at a peak by owner and by call path, and growth
 * over the steps by call path. */
#include "analyze/report/gauge.h"

#include "convert/stage/path_sums.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

enum { OWNERS_SHOWN = 16, PATHS_SHOWN = 32 /* by each of two orders */ };

#define MEMORY_OWNER_COLUMNS(X)                                                                    \
	X(MOWNER_PEAK = MEM_WHAT + 1, "bytes", NULL, U64, KEY, "highest level of an input")        \
	X(MOWNER_NS, "at_ns", NULL, U64, KEY, "time of the peak since the Unix epoch")             \
	X(MOWNER_NAME, "owner", "owner", TEXT, KEY,                                                \
	  "innermost range or functions that allocated the bytes; null: allocated before the "     \
	  "window or outside any range")                                                           \
	X(MOWNER_LIVE, "live_bytes", "live bytes", U64, SUM, "bytes not freed at the peak")
MEMORY_TABLE(memory_owners, &table_memory_peaks, MEMORY_OWNER_COLUMNS, .member = "owners",
	     .by = "live_bytes");

#define MEMORY_PATH_COLUMNS(X)                                                                     \
	X(MPATH_PEAK = MEM_WHAT + 1, "bytes", NULL, U64, KEY, "highest level of an input")         \
	X(MPATH_NS, "at_ns", NULL, U64, KEY, "time of the peak since the Unix epoch")              \
	X(MPATH_PATH, "path", "path", TEXT, KEY,                                                   \
	  "call path of the allocation, as in `stacks`; in a memory snapshot functions")           \
	X(MPATH_LIVE, "live_bytes", "live bytes", U64, SUM, "bytes not freed at the peak")         \
	X(MPATH_FIRST, "second_step_bytes", NULL, U64, SUM,                                        \
	  "bytes not freed when the second step began; needs three steps")                         \
	X(MPATH_LAST, "last_step_bytes", NULL, U64, SUM, "bytes not freed as the last step began") \
	X(MPATH_STEPS, "steps", NULL, U64, MAX, "steps from the second to the last; 0: none")      \
	X(MPATH_GROWTH, "growth_bytes_per_step", "growth a step", F64, DERIVED,                    \
	  "(last_step_bytes - second_step_bytes) / steps")
MEMORY_TABLE(memory_paths, &table_memory_peaks, MEMORY_PATH_COLUMNS, .member = "paths",
	     .by = "live_bytes");

struct path_bytes { /* sums over nodes with the same path */
	uint64_t hash, at_peak, first, last, grown;
	size_t owner; /* index of one of them */
	bool is_shown;
};

static void put_path(const struct accumulator *f, const struct gauge_owner *o, struct buf *text)
{
	buf_clear(text);
	if (o->path)
		path_put_text(f->trace, o->path, 0, text);
	else
		buf_put_text(text, trace_text(f->trace, o->name, NULL));
	if (!text->len)
		buf_put_text(text, "(no range)");
}

/* Fills `all` with the bytes of owners, joined by path; returns the number of paths. */
static size_t paths_take(const struct accumulator *f, const struct gauge *g, struct path_bytes *all,
			 struct buf *text)
{
	size_t count = 0;

	for (size_t i = 0; i < g->owner_count; i++) {
		struct gauge_owned o = gauge_owned(g, &g->owners[i]);

		put_path(f, &g->owners[i], text);
		all[i] = (struct path_bytes){ hash_text(buf_text(text), text->len),
					      o.at_peak,
					      o.first,
					      o.last,
					      0,
					      i,
					      false };
	}
	SORT_BY(all, g->owner_count, UP(struct path_bytes, hash), UP(struct path_bytes, owner));
	for (size_t i = 0; i < g->owner_count; i++) {
		if (count && all[count - 1].hash == all[i].hash) {
			all[count - 1].at_peak += all[i].at_peak;
			all[count - 1].first += all[i].first;
			all[count - 1].last += all[i].last;
		} else {
			all[count++] = all[i];
		}
	}
	for (size_t i = 0; i < count; i++)
		all[i].grown = all[i].last > all[i].first ? all[i].last - all[i].first : 0;
	return count;
}

/* Writes the paths with most bytes at the peak, and those that grew most. */
static enum status end_paths(struct accumulator *f, const struct gauge *g, uint32_t process,
			     union value *keys, struct error *err)
{
	const struct sort_key *const orders[] = {
		SORT_KEYS(DOWN(struct path_bytes, at_peak), UP(struct path_bytes, owner)),
		SORT_KEYS(DOWN(struct path_bytes, grown), UP(struct path_bytes, owner)),
	};
	bool has_growth = g->step_count > 2 && !f->steps[process].is_inferred;
	RELEASED_BY(vec_release) struct path_bytes *all = NULL;
	RELEASED_BY(buf_release) struct buf text;
	union value *row;

	buf_init(&text, (size_t)1 << 20);
	TRY(vec_new(&all, g->owner_count + 1, err));
	size_t count = paths_take(f, g, all, &text);
	for (int k = 0; k < 1 + has_growth; k++) {
		sort_rows(all, count, sizeof(*all), orders[k]);
		for (size_t i = 0; i < count && i < PATHS_SHOWN; i++)
			all[i].is_shown |= (k ? all[i].grown : all[i].at_peak) > 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (!all[i].is_shown)
			continue;
		put_path(f, &g->owners[all[i].owner], &text);
		keys[MPATH_PATH].text = buf_text(&text);
		TRY(buf_status(&text, err));
		TRY(acc_row(f, "memory_paths", process, keys, &row, err));
		row[MPATH_LIVE].u64 += all[i].at_peak;
		row[MPATH_FIRST].u64 += has_growth ? all[i].first : 0;
		row[MPATH_LAST].u64 += has_growth ? all[i].last : 0;
		row[MPATH_STEPS].u64 = has_growth ? g->step_count - 2 : 0;
	}
	return ST_OK;
}

enum status memory_owners_end(struct accumulator *f, struct gauge *g, uint32_t process,
			      bool is_known, union value *keys, struct error *err)
{
	uint64_t rest = g->peak.bytes;
	size_t count = 0;
	union value *row;

	TRY(end_paths(f, g, process, keys, err));
	for (size_t i = 0; i < g->owner_count; i++)
		g->owners[i].bytes = gauge_owned(g, &g->owners[i]).at_peak;
	SORT_BY(g->owners, g->owner_count, UP(struct gauge_owner, name));
	for (size_t i = 0; i < g->owner_count; i++)
		if (count && g->owners[count - 1].name == g->owners[i].name)
			g->owners[count - 1].bytes += g->owners[i].bytes;
		else
			g->owners[count++] = g->owners[i];
	SORT_BY(g->owners, count, DOWN(struct gauge_owner, bytes), UP(struct gauge_owner, name));
	for (size_t i = 0; i < count && i < OWNERS_SHOWN; i++) {
		const struct gauge_owner *o = &g->owners[i];

		if (!o->bytes || !o->name)
			continue;
		keys[MOWNER_NAME].text = trace_text(f->trace, o->name, NULL);
		TRY(acc_row(f, "memory_owners", process, keys, &row, err));
		row[MOWNER_LIVE].u64 += o->bytes;
		rest -= o->bytes < rest ? o->bytes : rest;
	}
	if (!rest || !is_known)
		return ST_OK;
	keys[MOWNER_NAME].text = "";
	TRY(acc_row(f, "memory_owners", process, keys, &row, err));
	row[MOWNER_LIVE].u64 += rest;
	return ST_OK;
}

void memory_owners_finish(struct tables *all)
{
	union value *row;

	for (size_t i = 0; (row = table_at(tables_find(all, "memory_paths"), i)); i++) {
		double grown = (double)row[MPATH_LAST].u64 - (double)row[MPATH_FIRST].u64;

		row[MPATH_GROWTH].f64 =
			row[MPATH_STEPS].u64 ? grown / (double)row[MPATH_STEPS].u64 : NAN;
	}
}
