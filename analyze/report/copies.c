/* SPDX-License-Identifier: Apache-2.0 */
/* The report `copies`: copies by direction, and fills. */
#include "analyze/report/shared.h"

#include "schemas/model/records.h"

#include <math.h>
#include <stdio.h>

#define COPY_COLUMNS(X)                                                                            \
	X(COPY_DIRECTION = RANK_KEYS, "direction", "direction", TEXT, KEY,                         \
	  "direction: HtoD, DtoH, ... or memset")                                                  \
	X(COPY_FROM, "from", "from", TEXT, KEY, "kind of memory of the source; null: unknown")     \
	X(COPY_TO, "to", "to", TEXT, KEY, "kind of memory of the target; null: unknown")           \
	X(COPY_COUNT, "count", "copies", U64, SUM, "copies that began")                            \
	X(COPY_BYTES, "bytes", "bytes", U64, SUM, "bytes copied or filled")                        \
	X(COPY_TOTAL, "total_ns", "total", U64, SUM, "total duration, overlaps counted twice")     \
	X(COPY_RATE, "gb_per_s", "GB/s", F64, DERIVED, "bytes / total, in 10^9 bytes a second")    \
	X(COPY_EXPOSED, "exposed_ns", "exposed", U64, SUM,                                         \
	  "time of copies in which neither compute nor communication ran")
static RANK_TABLE(copies, &table_ranks, COPY_COLUMNS, .by = "total_ns", .null_texts = "from to");

enum { WORD_MAX = 64 };
struct direction {
	char direction[WORD_MAX], from[WORD_MAX], to[WORD_MAX];
};

/* Parses "Memcpy HtoD (Pageable -> Device)". Other names become the direction as they are. */
static void direction_parse(const char *name, struct direction *d)
{
#define WORD "%63[A-Za-z0-9_]" /* WORD_MAX - 1 letters and digits */
	if (strncmp(name, "Memcpy ", 7) != 0)
		snprintf(d->direction, sizeof(d->direction), "%.*s", WORD_MAX - 1, name);
	else if (sscanf(name + 7, WORD " (" WORD " -> " WORD, d->direction, d->from, d->to) < 3)
		d->from[0] = '\0';
#undef WORD
}

static void direction_of(const struct accumulator *f, uint32_t name, unsigned kind,
			 unsigned subkind, struct direction *d)
{
	const char *word = copy_kind_word(subkind);

	*d = (struct direction){ "", "", "" };
	if (kind == KIND_MEMSET) {
		snprintf(d->direction, sizeof(d->direction), "memset");
		return;
	}
	direction_parse(trace_text(f->trace, name, NULL), d);
	if (word[0] || !d->direction[0])
		snprintf(d->direction, sizeof(d->direction), "%s", word[0] ? word : "unknown");
}

void copy_text(const struct accumulator *f, const struct event *e, char out[COPY_TEXT])
{
	struct direction d;

	direction_of(f, e->name, e->kind, e->subkind, &d);
	snprintf(out, COPY_TEXT, "%s%s%s%s%s", d.direction, d.from[0] ? " " : "", d.from,
		 d.to[0] ? " " : "", d.to);
}

struct copies { /* cache of the last row, because similar copies follow each other */
	union value *row;
	uint32_t process, name;
	uint8_t kind, subkind;
};

static enum status find(struct accumulator *f, uint32_t process, uint32_t name, uint8_t kind,
			uint8_t subkind, struct error *err)
{
	struct copies *c = f->state;
	union value keys[RANK_KEYS + 3];
	struct direction d;

	if (c->row && c->process == process && c->name == name && c->kind == kind &&
	    c->subkind == subkind)
		return ST_OK;
	direction_of(f, name, kind, subkind, &d);
	keys[COPY_DIRECTION].text = d.direction;
	keys[COPY_FROM].text = d.from[0] ? d.from : NULL;
	keys[COPY_TO].text = d.to[0] ? d.to : NULL;
	*c = (struct copies){ .process = process, .name = name, .kind = kind, .subkind = subkind };
	return acc_row(f, "copies", process, keys, &c->row, err);
}

static enum status copies_put(struct accumulator *f, const struct sorted_batch *w,
			      struct error *err)
{
	const struct batch_events *copies = &w->by[BATCH_COPIES];
	struct copies *c = f->state;

	for (size_t i = 0; i < copies->count; i++) {
		const struct event *e = copies->items[i];

		TRY(find(f, acc_process(f, e->track), e->name, e->kind, e->subkind, err));
		c->row[COPY_COUNT].u64++;
		c->row[COPY_BYTES].u64 += e->bytes;
		c->row[COPY_TOTAL].u64 += e->end_ns - e->begin_ns;
	}
	for (size_t i = 0; i < w->segment_count; i++) {
		const struct segment *seg = &w->segments[i];

		if (seg->busy != BUSY_COPY)
			continue;
		TRY(find(f, sweep_gpu(f->sweep, seg->gpu).process, seg->name, seg->kind,
			 seg->subkind, err));
		c->row[COPY_EXPOSED].u64 += seg->end_ns - seg->begin_ns;
	}
	return ST_OK;
}

static enum status copies_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "copies");
	union value *row;

	for (size_t i = 0; (row = table_at(t, i)); i++)
		row[COPY_RATE].f64 = row[COPY_TOTAL].u64 ? (double)row[COPY_BYTES].u64 /
								   (double)row[COPY_TOTAL].u64
							 : NAN;
	return ST_OK;
}

const struct report_type report_copies = {
	.name = "copies",
	.help = "copies by direction and fills: bytes, rate, exposed time",
	.tables = TABLES(&table_copies),
	.state_size = sizeof(struct copies),
	.put = copies_put,
	.finish = copies_finish,
};
