/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - a report accumulates each input by itself, and then finishes over all of them.
 *
 *	input 0 -> pump -> sweep -> accumulator \
 *	input 1 -> pump -> sweep -> accumulator  > tables, merged by key -> finish -> format
 *	input n -> pump -> sweep -> accumulator /
 *
 * Inputs (ranks, windows of a rank) are accumulated independently, in parallel, and their events
 * are never merged.  So there is no idle time between two windows, the clocks of hosts need not
 * agree, and a thousand ranks cost a thousand times as much as one.
 *
 * All reports of a run share one pass, one sweep and one link stage; none includes another.  A
 * report keeps what fits into a memory ceiling, and its notes state what it left out.
 *
 * To add a report: write report/NAME.c that exports `const struct report_type report_NAME` and add
 * X(NAME) to report_list.h; copies.c is the shortest of those that are there, and CONTRIBUTING.md
 * says what else a report needs.  To add a format: see format.h.
 */
#pragma once

#include "analyze/cause/cause.h"
#include "analyze/timeline/sweep.h" /* and with it event, trace, step, link */
#include "convert/stage/step_list.h"
#include "analyze/engine/table.h"
#include "convert/stage/pump.h"

/* Pictures of steps and of memory over time, which only pages show. */
enum pictures {
	PICTURES_NONE,
	PICTURES_CELLS, /* a letter for each part of a step */
	PICTURES_FINE,  /* those, and finer ones for charts */
};

struct accumulator { /* one report over one input; one thread */
	const struct report_type *type;
	struct trace *trace;           /* of this input; borrowed */
	const struct context *context; /* phases' names, step threads, totals; borrowed */
	const struct batch *batch;     /* during put(): the one whose events are put; borrowed */
	const struct name_rules *rules;
	struct sweep *sweep;
	struct causes *causes;
	const struct step_list *steps; /* by process id; resolved before end() */
	const uint32_t *process_of;    /* by track, track_end of them */
	uint32_t track_end;
	const char *path;             /* of the input */
	const struct filter *filter;  /* borrowed; NULL: everything */
	bool per_step;                /* --per-step */
	const struct edit_set *edits; /* of --what-if, `edit_count` of them; borrowed */
	size_t edit_count;
	const struct peaks_file *peaks; /* of --peaks; borrowed, NULL: data sheets */
	enum pictures pictures;         /* that are wanted: none unless it is the only input */
	bool is_single;        /* all there is is one GPU: no other can be matched with it */
	struct tables *tables; /* where results go; borrowed */
	void *state;           /* type->state_size bytes, zeroed; freed by the engine */
	bool is_second;        /* the state is that of a report before it */
};

/* A cache from an event's name to its row, for the process used last: names repeat a million
 * times, processes hardly change. */
struct name_rows {
	union value **rows;
	size_t cap;
	uint32_t process;
};

/*
 * The events of a batch by kind, so that an accumulator visits only those that it counts.  The
 * engine sorts each batch once and keeps its order.  To add a list: a row here and its case in
 * engine/accumulate.c.
 */
enum batch_list {
	BATCH_KERNELS,     /* kernels and graphs that began: not EVENT_BEGAN_EARLIER */
	BATCH_COLLECTIVES, /* of those the kernels that communicate */
	BATCH_COPIES,      /* copies and fills that began */
	BATCH_CALLS,       /* runtime and driver calls */
	BATCH_ANNOTATIONS, /* ranges that may name a phase: pushed, annotations, NVTX */
	BATCH_SHAPED,      /* ranges that may say which collective is launched in them */
	BATCH_MEMORY,      /* memory taken and given back, and the samples of all counters */
	BATCH_LISTS,
};
struct batch_events {
	const struct event *const *items;
	size_t count;
};

/* One batch, which the sweep and the list of steps have already processed. */
struct sorted_batch {
	const struct batch *in; /* intervals and marks are clipped to the filter's bounds */
	struct batch_events by[BATCH_LISTS];
	const struct segment *segments;
	size_t segment_count;
	const struct idle_segment
		*idle; /* of gaps, with their causes; not those of these segments */
	size_t idle_count;
};

struct report_type {
	const char *name;                       /* as in --report NAME */
	const char *help;                       /* one line */
	const struct table_type *const *tables; /* what it fills; ends with NULL */
	const struct report_type *const *with;  /* reports whose tables it shows too; or NULL */
	size_t state_size;
	const size_t *owned; /* of its state: arrays that the engine frees, as OWNED() lists them */
	bool needs_owners;   /* of idle gaps: ranges and Python frames */
	bool shares_state;   /* with others that have the same `put`, which the first calls */

	/* Called for each input, on its thread; each may be NULL. */
	enum status (*begin)(struct accumulator *f, struct error *err);
	enum status (*put)(struct accumulator *f, const struct sorted_batch *w, struct error *err);
	enum status (*end)(struct accumulator *f, struct error *err);
	void (*release)(struct accumulator *f); /* what else state holds; also after a fault */

	/*
	 * Called once, after all inputs are merged and before any finish(), if some ranks have rows
	 * of NCCL's inspector: gives what these know to rows of other inputs of the same rank.
	 */
	enum status (*join)(struct tables *all, struct error *err);
	/* Called once, after all inputs are merged: fills DERIVED columns. */
	enum status (*finish)(struct tables *all, struct error *err);
};

/* Lists of tables and of reports for report_type. */
#define TABLES(...)  ((const struct table_type *const[]){ __VA_ARGS__, NULL })
#define REPORTS(...) ((const struct report_type *const[]){ __VA_ARGS__, NULL })
/* Offsets of the pointers to arrays in a state. */
#define OWNED(...) ((const size_t[]){ __VA_ARGS__, SIZE_MAX })

extern const struct report_type report_base; /* inputs, ranks, losses, trust: part of each run */

/* Every table hangs below `ranks`: these are the first columns of each (DEFINITIONS.md 8). */
enum { RANK_KEYS = 3 };
#define RANK_COLUMNS                                                                               \
	{ "rank", "rank", CELL_U64, KEY, NULL, "the rank in the job; null: the file has none" },   \
		{ "host", NULL, CELL_TEXT, KEY, NULL, "the host's name" },                         \
	{                                                                                          \
		"pid", NULL, CELL_U64, KEY, NULL, "the process id on the host"                     \
	}
extern const struct table_type table_ranks;

/*
 * The host of rows that NCCL's inspector wrote ends so until all inputs are read.  Those of a rank
 * that has a trace are then gone, as they say its collectives again; others are rows like any.
 */
#define BESIDE_MARK      "\x1f"
#define INSPECTOR_FORMAT "NCCL inspector" /* the begin of that of their inputs */
static inline bool row_is_beside(const union value *row)
{
	return row[1].text && strstr(row[1].text, BESIDE_MARK);
}

/*
 * The table `id` below the one at `above`, with RANK_COLUMNS and those of an X list; what else it
 * is follows.  RANK_TABLE also makes the places of its cells, where they are not those of a header.
 * TABLE_TYPE and TABLE are of tables that stand at the top, without RANK_COLUMNS.
 */
#define RANK_TABLE_TYPE(id, above, LIST, ...)                                                      \
	const struct table_type table_##id = { .name = #id,                                        \
					       .under = above,                                     \
					       .columns = COLUMNS(RANK_COLUMNS, LIST(COLUMN_ROW)), \
					       __VA_ARGS__ }
#define RANK_TABLE(id, above, LIST, ...)                                                           \
	RANK_TABLE_TYPE(id, above, LIST, __VA_ARGS__);                                             \
	enum { LIST(COLUMN_PLACE) }
#define TABLE_TYPE(id, LIST, ...)                                                                  \
	const struct table_type table_##id = { .name = #id,                                        \
					       .columns = COLUMNS(LIST(COLUMN_ROW)),               \
					       __VA_ARGS__ }
#define TABLE(id, LIST, ...)                                                                       \
	TABLE_TYPE(id, LIST, __VA_ARGS__);                                                         \
	enum { LIST(COLUMN_PLACE) }

/* Whether the user asked for the rank of a process. */
static inline bool acc_wants(const struct accumulator *f, uint32_t process)
{
	return !f->filter || !f->filter->has_ranks ||
	       filter_wants_rank(f->filter, trace_get_process(f->trace, process)->rank);
}
/*
 * Whether a process is none of the job's ranks but a loader's worker, a shell or a launcher that a
 * profiler recorded beside it: no rank is known, and no event bounds a window of it, as in others.
 */
bool acc_is_helper(const struct accumulator *f, uint32_t process);
/* The process of a track; cheap enough to call for each event. */
static inline uint32_t acc_process(const struct accumulator *f, uint32_t track)
{
	return f->process_of[track < f->track_end ? track : 0];
}
/* Fills keys[0 .. RANK_KEYS) for this process. */
void acc_rank(const struct accumulator *f, uint32_t process, union value *keys);
/* The row of `table` with the keys of this process and, from keys[RANK_KEYS] on, its own. */
enum status acc_row(struct accumulator *f, const char *table, uint32_t process, union value *keys,
		    union value **row, struct error *err);
/* The same for a table that is limited to TABLE_NAMES rows per input; beyond, keys[name] becomes
 * TABLE_OTHER. */
enum status acc_bounded_row(struct accumulator *f, const char *table, uint32_t process,
			    union value *keys, size_t name, union value **row, struct error *err);
/* The same for a GPU, whose device is the first of the table's own keys. */
enum status acc_gpu_row(struct accumulator *f, const char *table, size_t gpu, union value *keys,
			union value **row, struct error *err);
/* Where `r` caches the row of an event's name; *place is NULL until the caller sets it. */
enum status acc_name_row(struct accumulator *f, struct name_rows *r, const struct event *e,
			 union value ***place, struct error *err);
/* Copies `text` into the tables and stores it in a cell. */
enum status acc_text(struct accumulator *f, const char *table, union value *cell, const char *text,
		     struct error *err);

/* Writes the name of a cause, such as "data" or "host:forward". */
void cause_text(const struct accumulator *f, enum cause cause, unsigned phase, char *out,
		size_t cap);

/* Grows an array to one item for each GPU seen so far; `items` is the address of its pointer.  New
 * items are zeroed. */
enum status acc_gpus(const struct accumulator *f, void *items, size_t *count, size_t size,
		     struct error *err);

/* Raises a MAX cell to `value` if that is greater. */
static inline void cell_raise(union value *most, uint64_t value)
{
	if (value > most->u64)
		most->u64 = value;
}

/* 100 * part / whole; 0 if whole is 0. */
double percent_of(uint64_t part, uint64_t whole);
/*
 * For finish(): sets column `share` of each row to its `part` as a percentage of the sum over the
 * rows with the same first `keys` columns.
 */
void finish_shares(struct tables *all, const char *table, size_t keys, size_t part, size_t share);
