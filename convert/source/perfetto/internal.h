/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - converts Perfetto's trace packets of any program to events in a spool.
 *
 * A file is read twice, because what events refer to (descriptors, clocks, the mark of our own
 * files) may follow them: the first pass reads this, and the second one the events.  Field numbers
 * are those of Perfetto's protos, each next to the code that reads it.
 */
#pragma once

#include "convert/source/kineto/args.h"
#include "schemas/base/map.h"
#include "schemas/base/pb.h"

/* frames.c: the packets of a file, including those that it contains compressed. */
struct pftrace_reader;
typedef enum status (*pftrace_take)(struct pftrace_reader *r, const struct bytes *packet,
				    struct error *err);
/* Takes complete packets from *packets, possibly not the last ones, and advances packets->at. */
typedef enum status (*pftrace_run)(struct pftrace_reader *r, struct bytes *packets,
				   struct error *err);
/* Calls r->take for each packet, which is borrowed for the call.  Damage that ends the input is
 * stored in *fault; unreadable packets are counted in r->damaged. */
enum status pftrace_packets(struct pftrace_reader *r, struct input *in, struct error *fault,
			    struct error *err);
/* Calls r->take for each packet that `packed` contains, in zlib's format or gzip's. */
enum status pftrace_unpack(struct pftrace_reader *r, struct bytes packed, struct error *err);

/* Kinds of ids that a sequence interns. */
enum pftrace_space {
	PFTRACE_CATEGORY, /* this and the next three: name ids */
	PFTRACE_NAME,
	PFTRACE_KEY,
	PFTRACE_TEXT,
	PFTRACE_SPEC, /* stage or queue of GPU work: name ids */
	PFTRACE_KERNEL,
	PFTRACE_ARG_NAME,
	PFTRACE_CONTEXT, /* GPU context: pid */
	PFTRACE_SPACES,
	PFTRACE_COUNTERS = PFTRACE_SPACES, /* counters of a GPU: tracks */
};
enum { PFTRACE_BOOTTIME = 6, PFTRACE_LOCAL_CLOCKS = 64, PFTRACE_DEFAULT_COUNTERS = 8 };
struct pftrace_clock { /* a clock in a snapshot; 64 to 127 belong to a sequence */
	uint32_t id;
	bool is_incremental;
	int64_t time, unit_ns; /* time: in units; unit_ns 0: unknown */
	int64_t trace_ns;      /* the trace's time then; incremental: at the latest packet */
};
struct pftrace_ref {
	enum { PFTRACE_FLOW, PFTRACE_FLOW_END, PFTRACE_SAMPLE, PFTRACE_SAMPLE_TRACK } is;
	bool is_double; /* of a sample and its track */
	uint64_t id;    /* id of the arrow or the track */
	double value;
};
struct pftrace_sequence {
	uint64_t id;
	struct map names[PFTRACE_SPACES];
	struct map sums;              /* sums of incremental counters: bits of a double by track */
	struct pftrace_clock *clocks; /* PFTRACE_LOCAL_CLOCKS, or NULL */
	uint64_t track;               /* default track of events */
	struct pftrace_ref counters[PFTRACE_DEFAULT_COUNTERS]; /* default counter tracks */
	unsigned counter_count;
	uint32_t clock;      /* default clock of packets; 0: the trace's */
	uint64_t generation; /* grows when the same bytes may get another meaning */
	int64_t event_ns;    /* time of the latest event with a time delta; -1: unknown */
	bool has_state;      /* no packet was lost since the state was cleared */
};

/* Data from a track's descriptors, and the track created for it. */
enum pftrace_form { PFTRACE_PLAIN, PFTRACE_PROCESS, PFTRACE_THREAD, PFTRACE_COUNTER };
struct pftrace_track {
	uint64_t uuid, parent;
	uint32_t machine, form, pid;
	uint64_t tid;
	uint32_t name, description; /* name ids */
	bool has_parent, is_derived, is_incremental, is_unordered, is_gpu, has_stream, is_forward;
	uint8_t unit, is_sampled;      /* enum unit; a GPU counter had a sample */
	uint32_t gpu;                  /* 1 + the number of a counter's GPU */
	int64_t multiplier, sample_ns; /* of a counter, 0: 1; time of its latest sample */
	uint32_t process;              /* id in the trace; 0: the rest is not resolved yet */
	uint32_t row;                  /* index of the track to whose thread or row it belongs */
	uint32_t device, context;
	uint64_t stream;
	struct track made; /* the last track created for it, and its id */
	uint32_t made_id;
	uint32_t open; /* 1 + index of the innermost open slice */
};
struct pftrace_process {
	uint32_t machine, pid;
	uint32_t command, rank, host, own_pid; /* own_pid: the real pid, if `pid` is not */
	uint32_t id;                           /* id in the trace; 0: not created yet */
};
struct pftrace_open {          /* a slice that has not ended */
	int64_t begin_ns;      /* if it is out of range, the spool does not have the slice */
	uint32_t launcher;     /* the track if it launches work, otherwise 0 */
	uint32_t name, shared; /* shared: id of the event in the spool, which has the name; or 0 */
	uint32_t below;        /* 1 + index of the slice around it, or of the next unused */
};

/* The parts of a packet: numbers, then messages. */
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
	uint32_t unread;                   /* field of a message that is not read; 0: none */
	uint64_t numbers[PFTRACE_NUMBERS]; /* 0 if missing */
	struct bytes messages[PFTRACE_PARTS - PFTRACE_NUMBERS];
};
#define PFTRACE_HAS(p, part)     ((p)->has >> PFTRACE_##part & 1)
#define PFTRACE_MESSAGE(p, part) ((p)->messages[PFTRACE_##part - PFTRACE_NUMBERS])

enum { PFTRACE_NEAR = 64, PFTRACE_GPUS = 64, PFTRACE_FIELDS = 1024, PFTRACE_LIST_MOST = 256 };
struct pftrace_reading { /* a reading of a clock: its distance from `ns` to `end_ns` */
	uint32_t machine, clock;
	int64_t ns, shift_ns, end_ns;
	uint64_t span_ns; /* length of times that need no other reading; 0: unknown */
};
struct pftrace_template;                /* defined in event_fast.c; pftrace_sames: same_fast.c */
struct pftrace_own {                    /* members of an event that Tacho writes as annotations */
	uint64_t number, bytes, thread; /* thread: of an allocation; 0: unknown */
	bool has_number, has_bytes, has_result;
	uint8_t flags;
};

struct pftrace_reader { /* exists while the source opens */
	struct import to;
	struct spool_source *s;
	pftrace_take take; /* for packets of this pass */
	pftrace_run run;   /* a faster equivalent of `take`, or NULL */
	struct budget budget;
	struct spool *pairs; /* NULL: no pairs so far */
	struct kineto_args args;
	struct kineto_event element; /* name and args, as input of kineto_args_take() */
	struct buf values;           /* its numbers, arrays and objects, as JSON */
	struct pftrace_own own;      /* of the current event */
	uint64_t damaged;
	bool is_own, is_unpacking; /* is_own: Tacho wrote the file */
	bool is_cut, is_synthetic; /* attributes of our own files */
	uint32_t host;             /* name id of the file's name */
	uint32_t world_size;       /* 0: unknown */

	struct pftrace_sequence *sequences;
	struct map sequence_ids;
	size_t sequence_count, sequence_cap;
	uint32_t near_sequences[PFTRACE_NEAR]; /* cache of indices, by sequence id */
	uint64_t interned;                     /* number of interned ids of all sequences */

	struct pftrace_track *tracks;
	struct map track_ids;
	size_t track_count, track_cap, process_count, process_cap;
	uint32_t near_tracks[PFTRACE_NEAR]; /* cache of indices, by a hash of the uuid */
	struct pftrace_process *processes;
	struct map process_ids;
	struct map sequence_threads; /* sequence to the thread of its legacy descriptor */

	struct pftrace_reading *readings;
	size_t reading_count, reading_cap, open_count, open_cap;
	struct pftrace_reading last_reading; /* the latest one used */
	bool is_clock_known;                 /* whether its clock has a reading */

	struct pftrace_open *opens; /* 1 + the index is the place in the spool */
	uint32_t unused_open;
	struct map flows, classes; /* ids of arrows that have begun; cached classes of categories */
	/* Parts of the current event; more are counted as lost. */
	struct bytes annotations[PFTRACE_LIST_MOST];
	struct pftrace_ref refs[PFTRACE_LIST_MOST];
	unsigned annotation_count, ref_count;
	uint8_t uses[PFTRACE_LIST_MOST]; /* enum pftrace_use of each annotation */
	struct pftrace_templates *templates;
	struct pftrace_sames *sames;
	uint32_t gpu_names[PFTRACE_GPUS];
	uint64_t unread[PFTRACE_FIELDS]; /* number of unread messages by field; 0: other fields */
};

/* clocks.c: adds a snapshot of the first pass; ends the first pass. */
enum status pftrace_clocks_add(struct pftrace_reader *r, uint32_t machine, struct bytes snapshot,
			       struct error *err);
void pftrace_clocks_to_epoch(struct pftrace_reader *r);
/* Sets the clocks of a sequence from a snapshot, in the second pass. */
enum status pftrace_clocks_set(struct pftrace_reader *r, struct pftrace_sequence *q,
			       uint32_t machine, struct bytes snapshot, struct error *err);
/* Sets *out to a packet's time, since the epoch if known.  Returns false if it is unknown. */
bool pftrace_time(struct pftrace_reader *r, struct pftrace_sequence *q,
		  const struct pftrace_packet *p, int64_t *out);
/* tracks.c: descriptors, tracks and processes. */
enum status pftrace_describe(struct pftrace_reader *r, uint32_t machine, struct bytes descriptor,
			     struct error *err);
/* Reads the default thread of a sequence, which old writers use instead of tracks. */
enum status pftrace_describe_sequence(struct pftrace_reader *r, uint32_t machine, uint64_t sequence,
				      struct bytes thread, struct error *err);
enum status pftrace_track_add(struct pftrace_reader *r, uint64_t uuid, struct pftrace_track **out,
			      struct error *err);
enum status pftrace_process_find(struct pftrace_reader *r, uint32_t machine, uint32_t pid,
				 struct pftrace_process **out, struct error *err);
enum status pftrace_process_need(struct pftrace_reader *r, uint32_t machine, uint32_t pid,
				 uint32_t *process, struct error *err);
/* Returns the process for GPU work without one: the only process, or else a separate one. */
enum status pftrace_process_of_gpu(struct pftrace_reader *r, uint32_t *process, struct error *err);
/* Finds the trace's track of an event on `t`, and sets e->track.  Device, context and stream in
 * arguments take precedence over names of rows. */
enum status pftrace_place(struct pftrace_reader *r, struct pftrace_track *t, struct event *e,
			  const struct kineto_place *place, struct error *err);
enum status pftrace_resolve(struct pftrace_reader *r, struct pftrace_track *t, struct error *err);

/*
 * args.c: converts the arguments of an event to members of r->element, as if they were JSON, so
 * that they mean the same as Kineto's.  Keys and texts are borrowed until pftrace_args_end();
 * numbers, arrays and objects are in r->values.
 */
void pftrace_args_begin(struct pftrace_reader *r);
void pftrace_arg(struct pftrace_reader *r, struct json key, struct json value);
/* Adds a number, array or object that is in r->values from `at` to its end. */
void pftrace_arg_made(struct pftrace_reader *r, struct json key, enum json_type type, size_t at);
/* Adds an annotation and returns its enum pftrace_use. */
uint8_t pftrace_arg_annotation(struct pftrace_reader *r, struct pftrace_sequence *q, unsigned kind,
			       struct bytes annotation);
/* Converts all members to arguments of the event. */
enum status pftrace_args_end(struct pftrace_reader *r, struct event *e, struct kineto_place *place,
			     struct error *err);

/* classify.c: sets kind and subkind of a slice; *is_known: they express its category. */
enum status pftrace_classify(struct pftrace_reader *r, uint32_t category, uint32_t name,
			     struct event *e, bool *is_known, struct error *err);
/* Sets the subkind of a copy or a wait from its name. */
void pftrace_name_subkind(const struct pftrace_reader *r, struct event *e);
/* Replaces a name such as "step 12", which Tacho gives unnamed steps, by the number. */
void pftrace_step_name(const struct pftrace_reader *r, struct event *e);

/* event.c, gpu.c: return only errors of memory, limits and disks; damage is counted. */
enum status pftrace_take_event(struct pftrace_reader *r, struct pftrace_sequence *q,
			       const struct pftrace_packet *p, struct error *err);
/* Puts an event, or counts it as lost if its times are out of range. */
enum status pftrace_put(struct pftrace_reader *r, struct event *e, int64_t begin_ns, int64_t end_ns,
			struct error *err);
enum status pftrace_end_events(struct pftrace_reader *r, struct error *err);
enum status pftrace_end_samples(struct pftrace_reader *r, struct error *err);
enum status pftrace_take_stage(struct pftrace_reader *r, struct pftrace_sequence *q,
			       const struct pftrace_packet *p, struct error *err);
/* Reads interned descriptors of GPU counters, or the one in an event (`iid` 0). */
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
/* Returns the name for an id of the sequence, or 0 if there is none. */
static inline uint32_t pftrace_name(const struct pftrace_sequence *q, enum pftrace_space space,
				    uint64_t iid)
{
	const uint64_t *value = map_find(&q->names[space], iid);

	return value ? (uint32_t)*value : 0;
}
/* Interns a text as a name of the trace; an empty text does not change *name. */
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
enum status pftrace_lose(struct pftrace_reader *r, enum loss why); /* returns ST_OK */
