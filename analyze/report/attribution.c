/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/shared.h"

#include "schemas/base/hash.h"

RANK_TABLE_TYPE(owned, &table_ranks, ATTRIBUTION_COLUMNS, .nest = NEST_NEVER);

#define RECORDING_COLUMNS(X)                                                                       \
	X(RECORDING_WHAT = RANK_KEYS, "what", NULL, TEXT, KEY, "command, recorder or recorded")    \
	X(RECORDING_VALUE, "value", NULL, TEXT, KEY, "its text; recorded: one row for each kind")
static RANK_TABLE(recording, &table_ranks, RECORDING_COLUMNS, .nest = NEST_NEVER);

enum { CACHE = 1 << 12 };
struct owner { /* cached row of an owner; row NULL: unused */
	uint32_t gpu, name;
	uint8_t phase, class, origin;
	union value *row;
};
struct attribution {
	struct owner cache[CACHE];
};

enum { CLASS_LEAD = CLASS_COUNT, CLASS_TAIL }; /* follow the values of enum gpu_class */
static const char *const classes[] = {
	[CLASS_COMPUTE] = "compute", [CLASS_COMM] = "exposed_comm", [CLASS_COPY] = "exposed_copy",
	[CLASS_IDLE] = "idle",       [CLASS_LEAD] = "lead",         [CLASS_TAIL] = "tail",
};

static enum status row_of(struct accumulator *f, const struct owner *of, const char *phase,
			  const char *name, union value **row, struct error *err)
{
	union value keys[ATTRIBUTION_NS];

	keys[ATTRIBUTION_CLASS].text = classes[of->class];
	keys[ATTRIBUTION_PHASE].text = phase;
	keys[ATTRIBUTION_NAME].text = name;
	return acc_gpu_row(f, "owned", of->gpu, keys, row, err);
}

static const char *phase_of(const struct accumulator *f, const struct segment *seg)
{
	if (seg->origin == ORIGIN_BEFORE)
		return "before_window";
	if (seg->origin == ORIGIN_UNKNOWN)
		return "unattributed";
	return context_phase(f->context, seg->phase).name;
}

static enum status put_segment(struct accumulator *f, const struct segment *seg, struct error *err)
{
	struct attribution *s = f->state;
	struct owner key = { .gpu = seg->gpu,
			     .name = seg->name,
			     .phase = seg->phase,
			     .class = (uint8_t)owner_class(seg->busy),
			     .origin = seg->origin };
	uint64_t hash = hash_word(hash_word(0, (uint64_t)key.gpu << 32 | key.name),
				  (uint64_t)key.phase << 16 | key.class << 8 | key.origin);
	struct owner *cached = &s->cache[hash % CACHE];

	if (!cached->row || cached->gpu != key.gpu || cached->name != key.name ||
	    cached->phase != key.phase || cached->class != key.class ||
	    cached->origin != key.origin) {
		*cached = key;
		TRY(row_of(f, &key, phase_of(f, seg), trace_text(f->trace, seg->name, NULL),
			   &cached->row, err));
	}
	cached->row[ATTRIBUTION_NS].u64 += seg->end_ns - seg->begin_ns;
	return ST_OK;
}

static enum status attribution_put(struct accumulator *f, const struct sorted_batch *w,
				   struct error *err)
{
	for (size_t i = 0; i < w->segment_count; i++)
		if (w->segments[i].busy)
			TRY(put_segment(f, &w->segments[i], err));
	for (size_t i = 0; i < w->idle_count; i++) {
		const struct idle_segment *p = &w->idle[i];
		static const uint8_t class_of_part[] = {
			[PART_LEAD] = CLASS_LEAD,
			[PART_SPAN] = CLASS_IDLE,
			[PART_TAIL] = CLASS_TAIL,
		};
		struct owner key = { .gpu = p->gpu, .class = class_of_part[p->part] };
		char cause[320];
		union value *row;

		cause_text(f, (enum cause)p->cause, p->phase, cause, sizeof(cause));
		TRY(row_of(f, &key, "", cause, &row, err));
		row[ATTRIBUTION_NS].u64 += p->end_ns - p->begin_ns;
	}
	return ST_OK;
}

static enum status put_recording(struct accumulator *f, uint32_t process, const char *what,
				 const char *value, struct error *err)
{
	union value keys[RECORDING_VALUE + 1], *row;

	keys[RECORDING_WHAT].text = what;
	keys[RECORDING_VALUE].text = value;
	return value[0] ? acc_row(f, "recording", process, keys, &row, err) : ST_OK;
}

/* Notes what was run and what the recorder recorded of it, because --diff warns about runs that
 * were recorded differently. */
static enum status attribution_end(struct accumulator *f, struct error *err)
{
	static const struct {
		uint8_t kind, subkind;
		const char *word;
	} options[] = {
		{ KIND_RANGE, RANGE_PYTHON, "Python frames" },
		{ KIND_RANGE, RANGE_OP, "operators" },
		{ KIND_ALLOC, 0, "memory" },
	};
	uint32_t processes = trace_count(f->trace, TRACE_PROCESSES), process = 1, i;

	while (process <= processes &&
	       !(acc_wants(f, process) && sweep_process(f->sweep, process).has_gpu))
		process++;
	if (process > processes)
		return ST_OK;
	TRY(put_recording(f, process, "command",
			  trace_text(f->trace, trace_get_process(f->trace, process)->command, NULL),
			  err));
	TRY(put_recording(f, process, "recorder",
			  trace_text(f->trace, trace_provenance(f->trace)->format, NULL), err));
	if (trace_find_name(f->trace, "input_dims", strlen("input_dims")))
		TRY(put_recording(f, process, "recorded", "shapes", err));
	for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++)
		for (i = 1; i <= trace_count(f->trace, TRACE_DESCS); i++) {
			const struct event_desc *desc = trace_get_desc(f->trace, i);

			if (desc->kind != options[k].kind ||
			    (desc->kind == KIND_RANGE && desc->subkind != options[k].subkind))
				continue;
			TRY(put_recording(f, process, "recorded", options[k].word, err));
			break;
		}
	return ST_OK;
}

const struct report_type report_attribution = {
	.name = "owned",
	.help = "who owns the time of GPUs",
	.tables = TABLES(&table_owned, &table_recording),
	.state_size = sizeof(struct attribution),
	.put = attribution_put,
	.end = attribution_end,
};
