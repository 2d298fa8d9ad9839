/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report `snapshot`: PyTorch memory snapshots (DEFINITIONS.md 8): unusable memory in segments,
 * memory that waited for another stream, and why an allocation failed.
 *
 * A snapshot lists segments at its end. Their state at a failed allocation is computed by undoing
 * the allocator's later CUDA operations. Owners and growth of memory are in the report `memory`.
 */
#include "analyze/engine/number.h"
#include "analyze/engine/report.h"

#include "convert/stage/segments.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { OOMS_MOST = 64, SENTENCE = 320 };

#define SNAPSHOT_COLUMNS(X)                                                                        \
	X(SNAP_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "device number")                     \
	X(SNAP_AT, "at_ns", NULL, U64, KEY, "time of the snapshot since the Unix epoch")           \
	X(SNAP_STREAM, "stream", "stream", U64, KEY, "stream of the segments")                     \
	X(SNAP_POOL, "pool", "pool", TEXT, KEY, "two numbers of a private pool; null: default")    \
	X(SNAP_CLASS, "size_class", "of size", TEXT, KEY, "small: segments of 2 MiB; else large")  \
	X(SNAP_SEGMENTS, "segments", NULL, U64, SUM, "number of segments that CUDA allocated")     \
	X(SNAP_RESERVED, "reserved_bytes", "reserved", U64, SUM, "bytes of the segments")          \
	X(SNAP_ALLOCATED, "allocated_bytes", "in use", U64, SUM, "bytes of blocks in use")         \
	X(SNAP_REQUESTED, "requested_bytes", NULL, U64, SUM,                                       \
	  "bytes that the program requested for blocks in use")                                    \
	X(SNAP_ROUNDING, "rounding_bytes", "rounding", U64, SUM, "allocated - requested bytes")    \
	X(SNAP_PENDING, "pending_bytes", "pending", U64, SUM,                                      \
	  "bytes of freed blocks that another stream still uses")                                  \
	X(SNAP_INACTIVE, "inactive_bytes", "free", U64, SUM, "bytes of free blocks")               \
	X(SNAP_LARGEST, "largest_inactive_bytes", "largest free", U64, MAX,                        \
	  "bytes of the largest free block")                                                       \
	X(SNAP_FREE_BLOCKS, "free_blocks", NULL, U64, SUM, "number of free blocks")                \
	X(SNAP_FRAGMENTS, "fragmented_pct", "fragm. %", F64, DERIVED,                              \
	  "share of free bytes that are not in the largest free block", .of = "free bytes")
static RANK_TABLE(snapshot, &table_ranks, SNAPSHOT_COLUMNS, .by = "reserved_bytes",
		  .null_texts = "pool", .is_seldom = true);

#define OOM_COLUMNS(X)                                                                             \
	X(OOM_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "device number")                      \
	X(OOM_AT, "at_ns", NULL, U64, KEY, "time of the failure since the Unix epoch")             \
	X(OOM_REQUESTED, "requested_bytes", "asked for", U64, MAX, "bytes requested from CUDA")    \
	X(OOM_FREE, "device_free_bytes", "free on the GPU", U64, MAX, "free bytes of the device")  \
	X(OOM_RESERVED, "reserved_bytes", "reserved", U64, MAX, "bytes held by the allocator")     \
	X(OOM_ALLOCATED, "allocated_bytes", "in use", U64, MAX,                                    \
	  "bytes of blocks in use, each rounded up to a multiple of 512")                          \
	X(OOM_PENDING, "pending_bytes", "awaiting free", U64, MAX,                                 \
	  "bytes of blocks that were freed and that another stream still used")                    \
	X(OOM_LARGEST, "largest_inactive_bytes", "largest free", U64, MAX,                         \
	  "bytes of the longest part of a segment that no block used")                             \
	X(OOM_CAUSE, "cause", "cause", TEXT, MAX,                                                  \
	  "other pool: a free part was long enough; fragmentation: all free parts together were; " \
	  "awaiting free: with pending bytes they were; full: nothing would have been enough")     \
	X(OOM_WHERE, "where", "where", TEXT, MAX, "functions that requested the memory")           \
	X(OOM_SENTENCE, "sentence", NULL, TEXT, MAX, "the failure as a sentence")
enum { OOM_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_ooms = {
	.name = "out_of_memory",
	.under = &table_ranks,
	.null_texts = "where",
	.is_seldom = true,
	.columns = COLUMNS(RANK_COLUMNS, OOM_COLUMNS(COLUMN_ROW)),
};

#define HELD_COLUMNS(X)                                                                            \
	X(HELD_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "device number")                     \
	X(HELD_WHERE, "where", "given up, still used: taken by", TEXT, KEY,                        \
	  "functions that allocated the blocks; null: not recorded")                               \
	X(HELD_COUNT, "blocks", "blocks", U64, SUM, "blocks still used by a stream when freed")    \
	X(HELD_BYTES, "bytes", "bytes", U64, SUM, "bytes of the blocks")                           \
	X(HELD_LONGEST, "longest_ns", "longest", U64, MAX, "longest use after free or to the end") \
	X(HELD_STILL, "at_the_end_bytes", "at the end", U64, SUM, "bytes that never became free")
static RANK_TABLE(held, &table_ranks, HELD_COLUMNS, .by = "bytes", .null_texts = "where",
		  .is_seldom = true);

struct oom {
	uint64_t at_ns, requested, device_free, pending;
	uint32_t process, device, schema;
	size_t operations;          /* number of operations before it */
	struct segment_ranges live; /* ranges that were in use */
};
struct snapshot {
	struct segments segments;
	bool is_one; /* the input is a snapshot */
	uint32_t process;
	struct live_blocks live;
	struct oom ooms[OOMS_MOST];
	size_t oom_count;
	uint64_t last_ns;
};

static enum status snapshot_begin(struct accumulator *f, struct error *err)
{
	struct snapshot *s = f->state;

	(void)err;
	s->is_one = segments_begin(&s->segments, f->trace);
	return ST_OK;
}

static void snapshot_release(struct accumulator *f)
{
	struct snapshot *s = f->state;

	live_release(&s->live);
	segments_release(&s->segments);
	for (size_t i = 0; i < s->oom_count; i++)
		free(s->ooms[i].live.items);
}

/* ---- addresses -------------------------------------------------------------------------- */

/* Computes the size of `whole`, the sum of its parts that `used` leaves free, and the longest of
 * these. */
static void measure(const struct segment_ranges *whole, struct segment_ranges *used,
		    uint64_t *reserved, uint64_t *inactive, uint64_t *largest)
{
	size_t k = 0;

	*reserved = *inactive = *largest = 0;
	if (used->count)
		SORT_BY(used->items, used->count, UP(struct segment_range, begin));
	for (size_t i = 0; i < whole->count; i++) {
		uint64_t at = whole->items[i].begin, end = whole->items[i].end;

		*reserved += end - at;
		while (k < used->count && used->items[k].end <= at)
			k++;
		while (at < end) {
			bool ends = k == used->count || used->items[k].begin >= end;
			uint64_t until = ends ? end : used->items[k].begin;

			if (until > at) {
				*inactive += until - at;
				*largest = until - at > *largest ? until - at : *largest;
			}
			at = ends || used->items[k].end > end ? end : used->items[k].end;
			k += !ends && used->items[k].end <= end;
		}
	}
}

/* ---- events ----------------------------------------------------------------------------- */

static enum status put_held(struct accumulator *f, const struct live_block *b, uint64_t free_ns,
			    bool is_free, struct error *err)
{
	union value keys[HELD_WHERE + 1], *row;

	keys[HELD_DEVICE].u64 = b->device;
	keys[HELD_WHERE].text = trace_attr_text(f->trace, b->schema, "where");
	TRY(acc_row(f, "held", ((struct snapshot *)f->state)->process, keys, &row, err));
	row[HELD_COUNT].u64++;
	row[HELD_BYTES].u64 += b->bytes;
	cell_raise(&row[HELD_LONGEST], free_ns - b->asked_ns);
	row[HELD_STILL].u64 += is_free ? 0 : b->bytes;
	return ST_OK;
}

static enum status put_free(struct accumulator *f, const struct event *e, uint32_t device,
			    struct error *err)
{
	struct snapshot *s = f->state;
	struct live_block *b = live_find(&s->live, e->address, device);

	if (!b)
		return ST_OK;
	if (b->asked_ns)
		TRY(put_held(f, b, e->begin_ns, true, err));
	live_remove(&s->live, b);
	return ST_OK;
}

static enum status put_oom(struct accumulator *f, const struct event *e, uint32_t device,
			   struct error *err)
{
	struct snapshot *s = f->state;
	struct oom *o = &s->ooms[s->oom_count];

	if (s->oom_count == OOMS_MOST)
		return ST_OK;
	*o = (struct oom){ .at_ns = e->begin_ns,
			   .requested = segment_number(f->trace, e, "bytes"),
			   .device_free = segment_number(f->trace, e, "device_free"),
			   .process = s->process,
			   .device = device,
			   .schema = e->schema,
			   .operations = s->segments.operation_count };
	s->oom_count++;
	for (size_t i = 0; i < s->live.count; i++) {
		const struct live_block *b = &s->live.items[i];

		if (b->device != device)
			continue;
		uint64_t bytes = (b->bytes + SEGMENT_GRAIN - 1) / SEGMENT_GRAIN * SEGMENT_GRAIN;

		o->pending += b->asked_ns ? bytes : 0;
		TRY(vec_reserve(&o->live.items, &o->live.cap, o->live.count + 1, err));
		o->live.items[o->live.count++] =
			(struct segment_range){ .begin = b->address, .end = b->address + bytes };
	}
	return ST_OK;
}

static enum status put_segment(struct accumulator *f, const struct event *e, uint32_t device,
			       struct error *err)
{
	struct snapshot *s = f->state;
	union value keys[SNAP_CLASS + 1], *row;
	uint64_t bytes = segment_number(f->trace, e, "bytes");
	uint64_t allocated = segment_number(f->trace, e, "allocated_bytes");
	uint64_t requested = segment_number(f->trace, e, "requested_bytes");

	keys[SNAP_DEVICE].u64 = device;
	keys[SNAP_AT].u64 = e->begin_ns;
	keys[SNAP_STREAM].u64 = trace_attr_number(f->trace, e->schema, "stream");
	keys[SNAP_POOL].text = trace_attr_text(f->trace, e->schema, "pool");
	keys[SNAP_CLASS].text = trace_attr_text(f->trace, e->schema, "size_class");
	TRY(acc_row(f, "snapshot", s->process, keys, &row, err));
	row[SNAP_SEGMENTS].u64++;
	row[SNAP_RESERVED].u64 += bytes;
	row[SNAP_ALLOCATED].u64 += allocated;
	row[SNAP_REQUESTED].u64 += requested;
	row[SNAP_ROUNDING].u64 += allocated - requested;
	row[SNAP_PENDING].u64 += segment_number(f->trace, e, "pending_bytes");
	row[SNAP_INACTIVE].u64 += segment_number(f->trace, e, "inactive_bytes");
	cell_raise(&row[SNAP_LARGEST], segment_number(f->trace, e, "largest_inactive_bytes"));
	row[SNAP_FREE_BLOCKS].u64 += segment_number(f->trace, e, "free_blocks");
	return ST_OK;
}

static enum status put_mark(struct accumulator *f, const struct event *e, uint32_t device,
			    struct error *err)
{
	struct snapshot *s = f->state;
	enum segment_mark mark;
	struct live_block *b;

	TRY(segments_put(&s->segments, f->trace, e, &mark, err));
	if (mark == MARK_SEGMENT)
		return put_segment(f, e, device, err);
	if (mark == MARK_OOM)
		return put_oom(f, e, device, err);
	b = mark == MARK_FREE_REQUESTED
		    ? live_find(&s->live, segment_number(f->trace, e, "address"), device)
		    : NULL;
	if (b)
		b->asked_ns = e->begin_ns;
	return ST_OK;
}

static enum status snapshot_put(struct accumulator *f, const struct sorted_batch *w,
				struct error *err)
{
	struct snapshot *s = f->state;

	for (size_t i = 0; s->is_one && i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];
		const struct track *k = trace_get_track(f->trace, e->track);

		if (!acc_wants(f, k->process))
			continue;
		s->process = k->process;
		s->last_ns = e->begin_ns;
		if (e->kind == KIND_ALLOC)
			TRY(live_put(&s->live, e, k->device, err));
		else if (e->kind == KIND_FREE)
			TRY(put_free(f, e, k->device, err));
		else if (e->kind == KIND_MARK)
			TRY(put_mark(f, e, (uint32_t)k->id, err));
	}
	return ST_OK;
}

/* ---- out of memory ---------------------------------------------------------------------- */

static void put_sentence(const struct oom *o, const union value *row, uint64_t inactive,
			 bool is_expandable, char out[SENTENCE])
{
	static const char *const advice[] = {
		"one part is long enough, but belongs to another stream, pool or size class",
		"together they are enough, but the memory is fragmented",
		"they would be enough with the freed blocks that other streams still use",
		"together they are not enough, so the program must use less memory"
	};
	const char *cause = row[OOM_CAUSE].text;
	size_t which = cause[0] == 'o' ? 0 : cause[1] == 'r' ? 1 : cause[0] == 'a' ? 2 : 3;

	char left[NUMBER_TEXT], asked[NUMBER_TEXT], held[NUMBER_TEXT], unused[NUMBER_TEXT],
		part[NUMBER_TEXT];

	snprintf(out, SENTENCE,
		 "GPU %u has %s left, and %s were requested. PyTorch holds %s, of which %s are "
		 "free, in parts of at most %s: %s.%s",
		 o->device, bytes_text(left, (double)o->device_free),
		 bytes_text(asked, (double)o->requested),
		 bytes_text(held, (double)row[OOM_RESERVED].u64),
		 bytes_text(unused, (double)inactive),
		 bytes_text(part, (double)row[OOM_LARGEST].u64), advice[which],
		 which == 1 && !is_expandable
			 ? " Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
			 : "");
}

static enum status end_oom(struct accumulator *f, struct oom *o, struct error *err)
{
	const struct snapshot *s = f->state;
	const struct process *p = trace_get_process(f->trace, o->process);
	struct segment_ranges then;
	uint64_t reserved = 0, inactive = 0, largest = 0;
	union value keys[OOM_AT + 1], *row;
	char sentence[SENTENCE];
	enum status status = segments_at(&s->segments, o->operations, o->device, &then, err);

	if (status == ST_OK)
		measure(&then, &o->live, &reserved, &inactive, &largest);
	free(then.items);
	TRY(status);
	keys[OOM_DEVICE].u64 = o->device;
	keys[OOM_AT].u64 = o->at_ns;
	TRY(acc_row(f, "out_of_memory", o->process, keys, &row, err));
	row[OOM_REQUESTED].u64 = o->requested;
	row[OOM_FREE].u64 = o->device_free;
	row[OOM_RESERVED].u64 = reserved;
	row[OOM_ALLOCATED].u64 = reserved - inactive;
	row[OOM_PENDING].u64 = o->pending;
	row[OOM_LARGEST].u64 = largest;
	TRY(acc_text(f, "out_of_memory", &row[OOM_CAUSE],
		     largest >= o->requested                                  ? "other pool"
		     : o->device_free + inactive >= o->requested              ? "fragmentation"
		     : o->device_free + inactive + o->pending >= o->requested ? "awaiting free"
									      : "full",
		     err));
	if (trace_attr_text(f->trace, o->schema, "where"))
		TRY(acc_text(f, "out_of_memory", &row[OOM_WHERE],
			     trace_attr_text(f->trace, o->schema, "where"), err));
	put_sentence(o, row, inactive,
		     trace_attr_number(f->trace, p->schema, "expandable_segments"), sentence);
	return acc_text(f, "out_of_memory", &row[OOM_SENTENCE], sentence, err);
}

static enum status snapshot_end(struct accumulator *f, struct error *err)
{
	struct snapshot *s = f->state;

	for (size_t i = 0; i < s->live.count; i++)
		if (s->live.items[i].asked_ns)
			TRY(put_held(f, &s->live.items[i], s->last_ns, false, err));
	for (size_t i = 0; i < s->oom_count; i++)
		TRY(end_oom(f, &s->ooms[i], err));
	return ST_OK;
}

static enum status snapshot_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "snapshot");
	union value *row;

	for (size_t i = 0; (row = table_at(t, i)); i++)
		row[SNAP_FRAGMENTS].f64 =
			row[SNAP_INACTIVE].u64
				? percent_of(row[SNAP_INACTIVE].u64 - row[SNAP_LARGEST].u64,
					     row[SNAP_INACTIVE].u64)
				: NAN;
	return ST_OK;
}

const struct report_type report_snapshot = {
	.name = "snapshot",
	.help = "PyTorch memory snapshots: fragmentation, rounding, why memory ran out",
	.tables = TABLES(&table_snapshot, &table_ooms, &table_held),
	.state_size = sizeof(struct snapshot),
	.begin = snapshot_begin,
	.put = snapshot_put,
	.end = snapshot_end,
	.release = snapshot_release,
	.finish = snapshot_finish,
};
