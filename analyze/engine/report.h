/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - a report accumulates each input by itself, and then finishes over all of them.
 *
 * 	input 0 -> pump -> sweep -> accumulator \
 * 	input 1 -> pump -> sweep -> accumulator  > tables, merged by key -> finish -> format
 * 	input n -> pump -> sweep -> accumulator /
 *
 * Inputs (ranks, windows of a rank) are accumulated independently, in parallel, and their events
 * are never merged. So there is no idle time between two windows, the clocks of hosts need not
 * agree, and a thousand ranks cost a thousand times as much as one.
 *
 * All reports of a run share one pass, one sweep and one link stage; none includes another. A
 * report keeps what fits into a memory ceiling, and its notes state what it left out.
 *
 * To add a report: write report/NAME.c that exports `const struct report_type report_NAME` and add
 * X(NAME) to report_list.h. copies.c is the shortest example; CONTRIBUTING.md lists what else a
 * report needs. To add a format: see format.h.
 */
#pragma once

#include "analyze/cause/cause.h"
#include "analyze/timeline/sweep.h" /* for event, trace, step and link too */
#include "convert/stage/step_list.h"
#include "analyze/engine/table.h"
#include "convert/stage/pump.h"

/* Pictures of steps and of memory over time, which only some formats show. */
enum pictures {
	PICTURES_NONE,
	PICTURES_CELLS, /* a letter for each part of a step */
	PICTURES_FINE,  /* the same, and finer data for charts */
};

struct accumulator { /* one report over one input; used by one thread */
	const struct report_type *type;
	struct trace *trace;           /* the trace of this input; borrowed */
	const struct context *context; /* names of phases, step threads, totals; borrowed */
	const struct batch *batch;     /* the batch that put() processes; borrowed */
	const struct name_rules *rules;
	struct sweep *sweep;
	struct causes *causes;
	const struct step_list *steps; /* by process id; resolved before end() */
	const uint32_t *process_of;    /* process of each track; has track_end items */
	uint32_t track_end;
	const char *path;             /* path of the input */
	const struct filter *filter;  /* borrowed; NULL: everything */
	bool per_step;                /* whether --per-step is set */
	const struct edit_set *edits; /* the edits of --what-if; borrowed */
	size_t edit_count;
	const struct peaks_file *peaks; /* the file of --peaks; borrowed; NULL: use data sheets */
	enum pictures pictures;         /* the pictures to make; none if there are several inputs */
	bool is_single;        /* the only input is a single GPU: nothing can be matched with it */
	struct tables *tables; /* where results are stored; borrowed */
	void *state;           /* type->state_size bytes, zeroed; freed by the engine */
	bool is_second;        /* an earlier report owns the state */
};

/* A cache from an event's name to its row, for the process that had the name last.  It pays because
 * names repeat very often and the process of a name hardly changes. */
struct name_rows {
	struct name_row {
		union value *row;
		uint32_t process;
	} * rows;
	size_t cap;
	uint32_t process; /* of the latest event */
};

/* The events of a batch by kind, so that an accumulator visits only those that it counts.  The
 * engine sorts each batch once and keeps its order.  To add a list: a row here and its case in
 * engine/accumulate.c. */
enum batch_list {
	BATCH_KERNELS,     /* kernels and graphs without EVENT_BEGAN_EARLIER */
	BATCH_COLLECTIVES, /* those kernels that communicate */
	BATCH_COPIES,      /* copies and fills that began in the window */
	BATCH_CALLS,       /* runtime and driver calls */
	BATCH_ANNOTATIONS, /* ranges that may name a phase: pushed, annotations, NVTX */
	BATCH_SHAPED,      /* ranges whose arguments may describe the collective launched in them */
	BATCH_MEMORY,      /* allocations and frees, and the samples of all counters */
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
		*idle; /* idle parts of gaps with their causes; may end before these segments */
	size_t idle_count;
};

struct report_type {
	const char *name;                       /* the argument of --report */
	const char *help;                       /* one line */
	const struct table_type *const *tables; /* the tables that it fills; ends with NULL */
	const struct report_type *const *with;  /* reports whose tables are shown too, or NULL */
	size_t state_size;
	const size_t *owned; /* offsets of the state's arrays, which the engine frees: OWNED() */
	bool needs_owners;   /* it uses the owners of idle gaps: ranges and Python frames */
	bool shares_state;   /* reports with the same `put` share a state; the first calls it */

	/* Called for each input, on its thread. Each may be NULL. */
	enum status (*begin)(struct accumulator *f, struct error *err);
	enum status (*put)(struct accumulator *f, const struct sorted_batch *w, struct error *err);
	enum status (*end)(struct accumulator *f, struct error *err);
	/* Frees the other parts of the state. It is called after errors too. */
	void (*release)(struct accumulator *f);

	/* Called once, after all inputs are merged and before any finish(), if some ranks have rows
	 * of NCCL's inspector. Copies figures from these rows to rows of other inputs with the same
	 * rank. */
	enum status (*join)(struct tables *all, struct error *err);
	/* Called once, after all inputs are merged: fills DERIVED columns. */
	enum status (*finish)(struct tables *all, struct error *err);
};

/* Make the lists of tables and of reports for report_type. */
#define TABLES(...)  ((const struct table_type *const[]){ __VA_ARGS__, NULL })
#define REPORTS(...) ((const struct report_type *const[]){ __VA_ARGS__, NULL })
/* Makes the list of offsets of the pointers to arrays in a state. */
#define OWNED(...) ((const size_t[]){ __VA_ARGS__, SIZE_MAX })

extern const struct report_type report_base; /* inputs, ranks, losses, trust: part of each run */

/* All tables are below `ranks` and begin with its key columns (DEFINITIONS.md 8). */
enum { RANK_KEYS = 3 };
#define RANK_COLUMNS                                                                               \
	{ "rank", "rank", CELL_U64, KEY, NULL, "rank in the job; null: the file has none" },       \
		{ "host", NULL, CELL_TEXT, KEY, NULL, "name of the host" },                        \
	{                                                                                          \
		"pid", NULL, CELL_U64, KEY, NULL, "process id given by the operating system"       \
	}
extern const struct table_type table_ranks;

/* This suffix marks the host in rows of NCCL's inspector until all inputs are read. Then the rows
 * of a rank that also has a trace are removed, because its collectives are in that trace; the
 * others lose the mark. */
#define BESIDE_MARK      "\x1f"
#define INSPECTOR_FORMAT "NCCL inspector" /* prefix of the format's name in those inputs */
static inline bool row_is_beside(const union value *row)
{
	return row[1].text && strstr(row[1].text, BESIDE_MARK);
}

/* RANK_TABLE_TYPE defines the table `id` below the table `above`, with RANK_COLUMNS and the columns
 * of an X list; the other arguments are further members. RANK_TABLE also defines the enum of its
 * cells' places, if no header does. TABLE_TYPE and TABLE define tables at the top, without
 * RANK_COLUMNS. */
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

/* Returns whether the filter keeps the rank of a process. */
static inline bool acc_wants(const struct accumulator *f, uint32_t process)
{
	return !f->filter || !f->filter->has_ranks ||
	       filter_wants_rank(f->filter, trace_get_process(f->trace, process)->rank);
}
/* Returns whether a process is not a rank of the job but a data loader's worker, a shell or a
 * launcher that the profiler recorded too: its rank is unknown and no event bounds a window of it,
 * while other processes have both. */
bool acc_is_helper(const struct accumulator *f, uint32_t process);
/* Returns the process of a track; cheap enough to call for each event. */
static inline uint32_t acc_process(const struct accumulator *f, uint32_t track)
{
	return f->process_of[track < f->track_end ? track : 0];
}
/* Fills keys[0 .. RANK_KEYS) for this process. */
void acc_rank(const struct accumulator *f, uint32_t process, union value *keys);
/* Finds or makes the row of `table` for this process. The caller fills the table's other keys from
 * keys[RANK_KEYS] on. */
enum status acc_row(struct accumulator *f, const char *table, uint32_t process, union value *keys,
		    union value **row, struct error *err);
/* Like acc_row(), for a table that is limited to TABLE_NAMES rows per input. If it is full,
 * keys[name] becomes TABLE_OTHER. */
enum status acc_bounded_row(struct accumulator *f, const char *table, uint32_t process,
			    union value *keys, size_t name, union value **row, struct error *err);
/* Like acc_row(), for a GPU: sets the first of the table's other keys to the device. */
enum status acc_gpu_row(struct accumulator *f, const char *table, size_t gpu, union value *keys,
			union value **row, struct error *err);
/* Returns in *place where `r` caches the row of an event's name; the caller sets **place if it is
 * NULL. */
enum status acc_name_row(struct accumulator *f, struct name_rows *r, const struct event *e,
			 union value ***place, struct error *err);
/* Copies `text` into the tables and stores it in a cell. */
enum status acc_text(struct accumulator *f, const char *table, union value *cell, const char *text,
		     struct error *err);

/* Writes the name of a cause, such as "data" or "host:forward". */
void cause_text(const struct accumulator *f, enum cause cause, unsigned phase, char *out,
		size_t cap);

/* Grows an array to one item for each GPU seen so far; `items` is the address of the array's
 * pointer. New items are zeroed. */
enum status acc_gpus(const struct accumulator *f, void *items, size_t *count, size_t size,
		     struct error *err);

/* Raises a MAX cell to `value` if that is greater. */
static inline void cell_raise(union value *most, uint64_t value)
{
	if (value > most->u64)
		most->u64 = value;
}

/* Returns 100 * part / whole, or 0 if `whole` is 0. */
double percent_of(uint64_t part, uint64_t whole);
/* For finish(): sets column `share` of each row to its `part` as a percentage of the sum over the
 * rows with the same first `keys` columns. */
void finish_shares(struct tables *all, const char *table, size_t keys, size_t part, size_t share);
