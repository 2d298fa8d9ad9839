/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of PyTorch's trace validator (torch/profiler/_trace_validator.py), for events in the
 * order of their begins. Memory is bounded: the state for an id is stored by its low bits. As ids
 * grow, an id is overwritten by one that is KEPT younger, long after its use. */
#include "analyze/report/check/internal.h"

#include "analyze/engine/number.h"
#include "schemas/model/args.h"
#include "schemas/model/records.h"

#include <stdlib.h>

enum { KEPT = 1 << 16 };
/* Flags of an event's name. */
enum { NAME_ASKED = 1, NAME_RECORDS = 2, NAME_COMMS = 4, NAME_BACKWARD = 8 };
/* The fields of record_param_comms since PyTorch 2.2, by their names in records.def. */
#define COMMS_FIELDS(X) X(collective) X(element_type) X(in_elements) X(out_elements) X(group_size)

struct kept {
	uint64_t id, value;
	uint32_t process; /* 0: unused */
};
struct stream { /* work so far of a track */
	/* begin and end of the last work; latest end before it */
	uint64_t begin_ns, end_ns, earlier_end_ns;
};
struct rules {
	const struct trace *trace;
	struct kept *unlaunched; /* work that began before its call, by correlation */
	struct kept *records;    /* calls that record an event, by correlation */
	/* records that were waited for before they came; value: number of waits */
	struct kept *awaited;
	struct kept *backward;  /* name of the last backward operator, by sequence number */
	struct stream *streams; /* indexed by track */
	uint64_t *first_call;   /* correlation of the first call, by process */
	uint8_t *names;         /* flags, by name */
	uint32_t wait_key, kind_key;
	uint32_t name_count, track_count;
};

struct rules *rules_new(const struct trace *t)
{
	struct rules *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->trace = t;
	r->name_count = trace_count(t, TRACE_NAMES);
	r->track_count = trace_count(t, TRACE_TRACKS);
	r->unlaunched = calloc((size_t)4 * KEPT, sizeof(*r->unlaunched));
	r->streams = calloc((size_t)r->track_count + 1, sizeof(*r->streams));
	r->first_call = calloc((size_t)trace_count(t, TRACE_PROCESSES) + 1, sizeof(*r->first_call));
	r->names = calloc((size_t)r->name_count + 1, 1);
	r->wait_key = trace_find_name(t, "wait_correlation", 16);
	r->kind_key = trace_find_name(t, "kind_text", 9);
	if (!r->unlaunched || !r->streams || !r->first_call || !r->names) {
		rules_free(r);
		return NULL;
	}
	r->records = r->unlaunched + KEPT;
	r->awaited = r->records + KEPT;
	r->backward = r->awaited + KEPT;
	return r;
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	free(r->unlaunched);
	free(r->streams);
	free(r->first_call);
	free(r->names);
	free(r);
}

static struct kept *place_of(struct kept *all, uint64_t id)
{
	return &all[id & (KEPT - 1)];
}

static bool is_of(const struct kept *k, uint64_t id, uint32_t process)
{
	return k->process == process && k->id == id;
}

static unsigned ask_name(const char *text, size_t len)
{
	static const char backward[] = "autograd::engine::evaluate_function:";
	static const char comms[] = "record_param_comms";
	static const char *const records[] = { "cudaEventRecord", "cuEventRecord",
					       "hipEventRecord" };
	unsigned says = NAME_ASKED;

	if (len >= sizeof(backward) - 1 && !memcmp(text, backward, sizeof(backward) - 1))
		says |= NAME_BACKWARD;
	if (len == sizeof(comms) - 1 && !memcmp(text, comms, len))
		says |= NAME_COMMS;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		if (len >= strlen(records[i]) && !memcmp(text, records[i], strlen(records[i])))
			says |= NAME_RECORDS;
	return says;
}

static unsigned says_of(struct rules *r, uint32_t name)
{
	size_t len;

	if (name <= r->name_count && r->names[name])
		return r->names[name];
	const char *text = trace_text(r->trace, name, &len);
	unsigned says = ask_name(text, len);
	if (name <= r->name_count)
		r->names[name] = (uint8_t)says;
	return says;
}

/* Counts GPU work that begins before its call, which shows that the clocks of host and GPU
 * disagree. */
static void put_order(struct rules *r, const struct batch *b, const struct event *e,
		      uint32_t process, uint64_t *at)
{
	struct kept *u = place_of(r->unlaunched, e->correlation);
	const struct launch *l = batch_launch(b, e);

	if (!e->correlation || e->flags & EVENT_BEGAN_EARLIER)
		return;
	if (event_is_gpu_work(e) && l)
		at[FACT_early_work] += e->begin_ns < l->begin_ns;
	else if (event_is_gpu_work(e))
		*u = (struct kept){ .id = e->correlation, .process = process };
	else if (e->kind == KIND_API && is_of(u, e->correlation, process)) {
		at[FACT_early_work]++;
		u->process = 0;
	}
}

/* Checks that a stream or the host waits for something that was recorded before. */
static void put_wait(struct rules *r, const struct event *e, uint32_t process, uint64_t *at)
{
	uint64_t record = 0;
	const struct attr *a = event_arg(r->trace, e, r->wait_key, &record);

	at[FACT_stream_waits]++;
	if (!a || (int64_t)record <= 0) {
		at[FACT_waits_unknown]++;
		return;
	}
	const struct kept *k = place_of(r->records, record);
	/* The wait may be valid if the record is older than the first call of the file, or if a
	 * younger record has overwritten it. */
	if (is_of(k, record, process) || (k->process == process && k->id > record) ||
	    record < r->first_call[process] || !r->first_call[process])
		return;
	struct kept *awaited = place_of(r->awaited, record);
	if (!is_of(awaited, record, process))
		*awaited = (struct kept){ .id = record, .process = process };
	awaited->value++;
	at[FACT_waits_unknown]++;
}

/* Checks whether a kernel of a stream runs when a wait for the stream begins. Only for Kineto's
 * records: CUPTI's records begin with the host call, which waits because a kernel runs. */
static void put_stream_sync(struct rules *r, const struct event *e, uint64_t *at)
{
	const struct arg_schema *s = trace_get_schema(r->trace, e->schema);
	const struct stream *of = e->track <= r->track_count ? &r->streams[e->track] : NULL;
	bool is_kinetos = false;

	for (uint32_t i = 0; r->kind_key && i < s->const_count; i++)
		is_kinetos |= s->consts[i].key == r->kind_key;
	if (!is_kinetos || !of)
		return;
	uint64_t end_ns = of->earlier_end_ns;
	if (of->begin_ns < e->begin_ns && of->end_ns > end_ns)
		end_ns = of->end_ns;
	at[FACT_stream_syncs]++;
	at[FACT_syncs_early] += end_ns > e->begin_ns;
}

static void put_kernel(struct rules *r, const struct event *e)
{
	struct stream *of = e->track <= r->track_count ? &r->streams[e->track] : NULL;

	if (!of)
		return;
	if (e->begin_ns > of->begin_ns && of->end_ns > of->earlier_end_ns)
		of->earlier_end_ns = of->end_ns;
	if (e->begin_ns > of->begin_ns || e->end_ns > of->end_ns)
		of->end_ns = e->end_ns;
	of->begin_ns = e->begin_ns;
}

static void put_comms(struct rules *r, const struct event *e, uint64_t *at)
{
	const struct arg_schema *s = trace_get_schema(r->trace, e->schema);
	unsigned found = 0, of = 0;

#define X(field)                                                                                   \
	for (uint32_t i = 0; i < s->const_count; i++)                                              \
		if (!strcmp(trace_text(r->trace, s->consts[i].key, NULL), #field))                 \
			found |= 1u << of;                                                         \
	of++;
	COMMS_FIELDS(X)
#undef X
	at[FACT_comms]++;
	at[FACT_comms_short] += found != (1u << of) - 1;
}

/* Counts sequence numbers with two kinds of backward operators. A sequence number links a backward
 * operator to its forward one, so it must be unique. */
static void put_backward(struct rules *r, const struct event *e, uint32_t process, uint64_t *at)
{
	struct kept *k = place_of(r->backward, e->correlation);

	if (!e->correlation)
		return;
	if (!is_of(k, e->correlation, process)) {
		*k = (struct kept){ .id = e->correlation, .value = e->name, .process = process };
		at[FACT_sequences]++;
	} else if (k->value && k->value != e->name) {
		at[FACT_sequences_shared]++;
		k->value = 0; /* counted already */
	}
}

void rules_put(struct rules *r, const struct batch *b, const struct event *e, uint32_t process,
	       uint64_t *at)
{
	put_order(r, b, e, process, at);
	if (e->kind == KIND_KERNEL) {
		put_kernel(r, e);
	} else if (e->kind == KIND_API) {
		if (e->correlation && !r->first_call[process])
			r->first_call[process] = e->correlation;
		if (says_of(r, e->name) & NAME_RECORDS) {
			/* A call that records an event. Waits name it by its correlation. */
			struct kept *awaited = place_of(r->awaited, e->correlation);

			if (is_of(awaited, e->correlation, process)) {
				at[FACT_waits_unknown] -= awaited->value;
				at[FACT_waits_ahead] += awaited->value;
				awaited->process = 0;
			}
			*place_of(r->records, e->correlation) =
				(struct kept){ .id = e->correlation, .process = process };
		}
	} else if (e->kind == KIND_SYNC) {
		if (e->subkind == SYNC_STREAM_WAIT || e->subkind == SYNC_EVENT)
			put_wait(r, e, process, at);
		else if (e->subkind == SYNC_STREAM)
			put_stream_sync(r, e, at);
	} else if (e->kind == KIND_RANGE && e->subkind != RANGE_PYTHON) {
		unsigned says = says_of(r, e->name);

		if (says & NAME_COMMS)
			put_comms(r, e, at);
		if (says & NAME_BACKWARD)
			put_backward(r, e, process, at);
	}
}

/* ---- verdicts --------------------------------------------------------------------------- */

/* Judges a rule that `bad` of `all` records violate, as described by `what`. */
static enum verdict judge_rule(struct judge *j, uint64_t bad, uint64_t all, const char *what)
{
	return conclude(j,
			!bad         ? VERDICT_GOOD
			: is_part(j) ? VERDICT_UNKNOWN
				     : VERDICT_DOUBT,
			bad, "%s of %s %s", count_text((char[NUMBER_TEXT]){ 0 }, bad),
			count_text((char[NUMBER_TEXT]){ 0 }, all), what);
}

enum verdict judge_order(struct judge *j)
{
	return judge_rule(j, fact(j, FACT_early_work), trusted(j, "gpu_events"),
			  "GPU events begin before the call that launched them");
}

enum verdict judge_waits(struct judge *j)
{
	uint64_t none = fact(j, FACT_waits_unknown), ahead = fact(j, FACT_waits_ahead);

	return judge_rule(
		j, none + ahead, fact(j, FACT_stream_waits),
		!ahead  ? "waits for a CUDA event refer to an event that was not recorded"
		: !none ? "waits for a CUDA event refer to an event that was recorded later"
			: "waits for a CUDA event refer to an event that was recorded later or not "
			  "at all");
}

enum verdict judge_stream_syncs(struct judge *j)
{
	return judge_rule(j, fact(j, FACT_syncs_early), fact(j, FACT_stream_syncs),
			  "stream synchronizations begin while a kernel of the stream runs");
}

enum verdict judge_comms(struct judge *j)
{
	return judge_rule(j, fact(j, FACT_comms_short), fact(j, FACT_comms),
			  "records of collectives lack the name, data type, sizes or group size");
}

enum verdict judge_sequences(struct judge *j)
{
	return judge_rule(
		j, fact(j, FACT_sequences_shared), fact(j, FACT_sequences),
		"sequence numbers belong to several backward operators with different names");
}
