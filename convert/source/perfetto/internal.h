/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - turns Perfetto's trace packets of any program into events in a spool.
 *
 * A file is read twice, because what events refer to (descriptors, clocks, the mark of our own
 * files) may follow them: the first pass takes it, and the second one the events.
 * Field numbers are those of Perfetto's protos, each beside the code that reads it.
 */
#pragma once

#include "convert/source/kineto/args.h"
#include "schemas/base/map.h"
#include "schemas/base/pb.h"

/* frames.c: the packets of a file, and of those that it holds compressed. */
struct pftrace_reader;
typedef enum status (*pftrace_take)(struct pftrace_reader *r, const struct bytes *packet,
				    struct error *err);
/* Takes those that are whole, but perhaps not the last ones, and moves packets->at. */
typedef enum status (*pftrace_run)(struct pftrace_reader *r, struct bytes *packets,
				   struct error *err);
/* Calls r->take for each packet, which is borrowed.  Damage that ends the input goes to *fault;
 * packets that cannot be had are counted in r->damaged. */
enum status pftrace_packets(struct pftrace_reader *r, struct input *in, struct error *fault,
			    struct error *err);
/* The same for compressed packets: zlib's format or gzip's. */
enum status pftrace_unpack(struct pftrace_reader *r, struct bytes packed, struct error *err);

/* What numbers of a sequence stand for. */
enum pftrace_space {
	PFTRACE_CATEGORY, /* names of the trace */
	PFTRACE_NAME,
	PFTRACE_KEY,
	PFTRACE_TEXT,
	PFTRACE_SPEC, /* of GPU work: its stage or its queue */
	PFTRACE_KERNEL,
	PFTRACE_ARG_NAME,
	PFTRACE_CONTEXT, /* of a GPU: a pid */
	PFTRACE_SPACES,
	PFTRACE_COUNTERS = PFTRACE_SPACES, /* of a GPU: tracks */
};
enum { PFTRACE_BOOTTIME = 6, PFTRACE_LOCAL_CLOCKS = 64, PFTRACE_DEFAULT_COUNTERS = 8 };
struct pftrace_clock { /* in a snapshot; those from 64 to 127 are of a sequence */
	uint32_t id;
	bool is_incremental;
	int64_t time, unit_ns; /* time: in units; unit_ns 0: unknown */
	int64_t trace_ns;      /* when that was; of an incremental one, when it was last read */
};
struct pftrace_ref {
	enum { PFTRACE_FLOW, PFTRACE_FLOW_END, PFTRACE_SAMPLE, PFTRACE_SAMPLE_TRACK } is;
	bool is_double; /* of a sample, and of its track */
	uint64_t id;    /* of the arrow or the track */
	double value;
};
struct pftrace_sequence {
	uint64_t id;
	struct map names[PFTRACE_SPACES];
	struct map sums;              /* of incremental counters: bits of a double by track */
	struct pftrace_clock *clocks; /* PFTRACE_LOCAL_CLOCKS, or NULL */
	uint64_t track;               /* of events that name none */
	struct pftrace_ref counters[PFTRACE_DEFAULT_COUNTERS]; /* of values that name no track */
	unsigned counter_count;
	uint32_t clock;      /* of packets that name none; 0: the trace's */
	uint64_t generation; /* grows when packets of the same bytes may mean something else */
	int64_t event_ns;    /* of the last event whose time counts from the one before; or -1 */
	bool has_state;      /* since the last loss */
};

/* What a track's descriptors say, and what became of it here. */
enum pftrace_form { PFTRACE_PLAIN, PFTRACE_PROCESS, PFTRACE_THREAD, PFTRACE_COUNTER };
struct pftrace_track {
	uint64_t uuid, parent;
	uint32_t machine, form, pid;
	uint64_t tid;
	uint32_t name, description; /* names of the trace */
	bool has_parent, is_derived, is_incremental, is_unordered, is_gpu, has_stream, is_forward;
	uint8_t unit, is_sampled;      /* enum unit; a GPU has given a sample */
	uint32_t gpu;                  /* 1 + the number of the GPU whose counter it is */
	int64_t multiplier, sample_ns; /* of a counter; 0: 1; a GPU's last sample, if any */
	uint32_t process;              /* of the trace, 0: not resolved yet; then also: */
	uint32_t row; /* the place of the track whose thread or row this is part of */
	uint32_t device, context;
	uint64_t stream;
	struct track made; /* the last that was made of it, and its id */
	uint32_t made_id;
	uint32_t open; /* 1 + the place of the innermost open slice */
};
struct pftrace_process {
	uint32_t machine, pid;
	uint32_t command, rank, host, own_pid; /* own_pid: of the system, where `pid` is not it */
	uint32_t id;                           /* of the trace, 0: not made yet */
};
struct pftrace_open { /* a slice that has not ended */
	int64_t begin_ns;
	uint32_t place;          /* in the spool; NO_ID: its time is out of range */
	uint32_t launcher, name; /* the track, if it launches work; else 0 */
	uint32_t below; /* of the same track, 1 + its place; of an unused one: the next unused */
};

/* What a packet says: numbers, then messages. */
enum pftrace_part {
	PFTRACE_TIME = 1,
	PFTRACE_SEQUENCE,
	PFTRACE_FLAGS,
	PFTRACE_CLEARED,
	PFTRACE_DROPPED,
	PFTRACE_CLOCK,
	PFTRACE_MACHINE,
	PFTRACE_NUMBERS,
	PFTRACE_SNAPSHOT = PFTRACE_NUMBERS,
	PFTRACE_EVENT,
	PFTRACE_INTERNED,
	PFTRACE_THREAD_OF,
	PFTRACE_PACKED,
	PFTRACE_GPU_COUNTER,
	PFTRACE_GPU_STAGE,
	PFTRACE_DEFAULTS,
	PFTRACE_TRACK,
	PFTRACE_ATTRIBUTES,
	PFTRACE_GPU_INFO,
	PFTRACE_PARTS,
};
struct pftrace_packet {
	uint32_t has;                      /* a bit for each part */
	uint32_t unread;                   /* the field of another message, 0: none */
	uint64_t numbers[PFTRACE_NUMBERS]; /* 0 where it says none */
	struct bytes messages[PFTRACE_PARTS - PFTRACE_NUMBERS];
};
#define PFTRACE_HAS(p, part)     ((p)->has >> PFTRACE_##part & 1)
#define PFTRACE_MESSAGE(p, part) ((p)->messages[PFTRACE_##part - PFTRACE_NUMBERS])

enum { PFTRACE_NEAR = 64, PFTRACE_GPUS = 64, PFTRACE_FIELDS = 1024, PFTRACE_LIST_MOST = 256 };
struct pftrace_reading { /* of a clock: from `ns` to `end_ns` it is so far from the trace's */
	uint32_t machine, clock;
	int64_t ns, shift_ns, end_ns;
	uint64_t span_ns; /* of the last one: to the end of times that it decides alone; may be 0 */
};
struct pftrace_template; /* this and its table: event_fast.c, the next one: same_fast.c */
struct pftrace_own {     /* members of an event that our writer makes annotations of */
	uint64_t number, bytes, thread; /* thread: of an allocation, 0: unknown */
	bool has_number, has_bytes, has_result;
	uint8_t flags;
};

struct pftrace_reader { /* used while the source opens */
	struct import to;
	struct spool_source *s;
	pftrace_take take; /* of this pass */
	pftrace_run run;   /* takes what `take` would, or NULL */
	struct budget budget;
	struct spool *pairs; /* NULL: there was none */
	struct kineto_args args;
	struct kineto_event element; /* what kineto_args_take() wants: name, args */
	struct buf values;           /* its numbers, arrays and objects, as JSON */
	struct pftrace_own own;      /* of the event at hand */
	uint64_t damaged;
	bool is_own, is_unpacking; /* our writer made the file; within compressed packets */
	bool is_cut, is_synthetic; /* it says that its input was so */
	uint32_t host;             /* a name: the file's */
	uint32_t world_size;       /* 0: unknown */

	struct pftrace_sequence *sequences;
	struct map sequence_ids;
	size_t sequence_count, sequence_cap;
	uint32_t near_sequences[PFTRACE_NEAR]; /* those found last, by their ids */
	uint64_t interned;                     /* numbers of all sequences */

	struct pftrace_track *tracks;
	struct map track_ids;
	size_t track_count, track_cap, process_count, process_cap;
	uint32_t near_tracks[PFTRACE_NEAR]; /* the same of tracks, by a hash */
	struct pftrace_process *processes;
	struct map process_ids;
	struct map sequence_threads; /* sequence to the thread of its old descriptor */

	struct pftrace_reading *readings;
	size_t reading_count, reading_cap, open_count, open_cap;
	struct pftrace_reading last_reading; /* that was used */
	bool is_clock_known;                 /* its clock */

	struct pftrace_open *opens;
	uint32_t unused_open;
	struct map flows, classes; /* ids of arrows that have begun; of categories what they mean */
	/* Of the event at hand; more than that are counted as lost. */
	struct bytes annotations[PFTRACE_LIST_MOST];
	struct pftrace_ref refs[PFTRACE_LIST_MOST];
	unsigned annotation_count, ref_count;
	uint8_t uses[PFTRACE_LIST_MOST]; /* of annotations: enum pftrace_use */
	struct pftrace_templates *templates;
	struct pftrace_sames *sames;
	uint32_t gpu_names[PFTRACE_GPUS];
	uint64_t unread[PFTRACE_FIELDS]; /* messages by their field; 0: of another */
};

/* clocks.c: a snapshot of the first pass, and their end. */
enum status pftrace_clocks_add(struct pftrace_reader *r, uint32_t machine, struct bytes snapshot,
			       struct error *err);
void pftrace_clocks_to_epoch(struct pftrace_reader *r);
/* The same snapshot in the second pass sets the clocks of its sequence. */
enum status pftrace_clocks_set(struct pftrace_reader *r, struct pftrace_sequence *q,
			       uint32_t machine, struct bytes snapshot, struct error *err);
/* When the packet was, since the epoch where that is known; false: nobody can say. */
bool pftrace_time(struct pftrace_reader *r, struct pftrace_sequence *q,
		  const struct pftrace_packet *p, int64_t *out);
/* tracks.c */
enum status pftrace_describe(struct pftrace_reader *r, uint32_t machine, struct bytes descriptor,
			     struct error *err);
/* The process and thread of all events of a sequence that name no track, as old writers have it. */
enum status pftrace_describe_sequence(struct pftrace_reader *r, uint32_t machine, uint64_t sequence,
				      struct bytes thread, struct error *err);
enum status pftrace_track_add(struct pftrace_reader *r, uint64_t uuid, struct pftrace_track **out,
			      struct error *err);
enum status pftrace_process_find(struct pftrace_reader *r, uint32_t machine, uint32_t pid,
				 struct pftrace_process **out, struct error *err);
enum status pftrace_process_need(struct pftrace_reader *r, uint32_t machine, uint32_t pid,
				 uint32_t *process, struct error *err);
/* Where GPU work lies whose process is unknown: the only one, else one of its own. */
enum status pftrace_process_of_gpu(struct pftrace_reader *r, uint32_t *process, struct error *err);
/* The track of an event of `kind` that lies on `t`; arguments that say device, context or stream
 * count more than names of rows. */
enum status pftrace_place(struct pftrace_reader *r, struct pftrace_track *t, struct event *e,
			  const struct kineto_place *place, struct error *err);
enum status pftrace_resolve(struct pftrace_reader *r, struct pftrace_track *t, struct error *err);

/*
 * args.c: makes members of r->element, as if they were JSON, from the arguments of an event, so
 * that they mean the same as Kineto's.  Keys and texts are borrowed until pftrace_args_end();
 * numbers, arrays and objects are in r->values.
 */
void pftrace_args_begin(struct pftrace_reader *r);
void pftrace_arg(struct pftrace_reader *r, struct json key, struct json value);
/* A number, array or object that stands in r->values from `at` to its end. */
void pftrace_arg_made(struct pftrace_reader *r, struct json key, enum json_type type, size_t at);
/* Returns its enum pftrace_use. */
uint8_t pftrace_arg_annotation(struct pftrace_reader *r, struct pftrace_sequence *q, unsigned kind,
			       struct bytes annotation);
/* All members are there: they become arguments of the event. */
enum status pftrace_args_end(struct pftrace_reader *r, struct event *e, struct kineto_place *place,
			     struct error *err);

/* classify.c: kind and subkind of a slice; *is_known: they say what its category said. */
enum status pftrace_classify(struct pftrace_reader *r, uint32_t category, uint32_t name,
			     struct event *e, bool *is_known, struct error *err);
/* What the name of a copy or a wait says of its subkind. */
void pftrace_name_subkind(const struct pftrace_reader *r, struct event *e);
/* "step 12" is our writer's name of a step that has none. */
void pftrace_step_name(const struct pftrace_reader *r, struct event *e);

/* event.c, gpu.c: errors are of memory, ceilings and disks; damage is counted. */
enum status pftrace_take_event(struct pftrace_reader *r, struct pftrace_sequence *q,
			       const struct pftrace_packet *p, struct error *err);
/* Counted as lost where the times are out of range. */
enum status pftrace_put(struct pftrace_reader *r, struct event *e, int64_t begin_ns, int64_t end_ns,
			struct error *err);
enum status pftrace_end_events(struct pftrace_reader *r, struct error *err);
enum status pftrace_end_samples(struct pftrace_reader *r, struct error *err);
enum status pftrace_take_stage(struct pftrace_reader *r, struct pftrace_sequence *q,
			       const struct pftrace_packet *p, struct error *err);
/* Interned descriptors of GPU counters, or the one in an event: `iid` 0. */
enum status pftrace_describe_counters(struct pftrace_reader *r, const struct pftrace_sequence *q,
				      uint64_t iid, struct bytes descriptor, uint64_t gpu,
				      struct error *err);
enum status pftrace_take_counter(struct pftrace_reader *r, struct pftrace_sequence *q,
				 const struct pftrace_packet *p, struct error *err);

static inline enum status pftrace_track_find(struct pftrace_reader *r, uint64_t uuid,
					     struct pftrace_track **out, struct error *err)
{
	uint32_t near = r->near_tracks[uuid * HASH_A >> 32 & (PFTRACE_NEAR - 1)];

	if (near >= r->track_count || r->tracks[near].uuid != uuid)
		return pftrace_track_add(r, uuid, out, err);
	*out = &r->tracks[near];
	return ST_OK;
}
/* The name that a number of the sequence stands for, 0: none. */
static inline uint32_t pftrace_name(const struct pftrace_sequence *q, enum pftrace_space space,
				    uint64_t iid)
{
	const uint64_t *value = map_find(&q->names[space], iid);

	return value ? (uint32_t)*value : 0;
}
/* A text as a name of the trace; an empty one leaves it alone. */
enum status pftrace_text(struct pftrace_reader *r, struct bytes text, uint32_t *name,
			 struct error *err);
static inline struct json pftrace_json(struct bytes text)
{
	return (struct json){ .type = JSON_STRING,
			      .text = (const char *)text.at,
			      .len = bytes_left(&text) };
}
static inline struct json pftrace_named(const struct pftrace_reader *r, uint32_t name)
{
	struct json out = { .type = JSON_STRING };

	out.text = trace_text(r->to.trace, name, &out.len);
	return out;
}
enum status pftrace_lose(struct pftrace_reader *r, enum loss why); /* ST_OK */
