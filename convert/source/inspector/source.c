/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files of NCCL's and RCCL's inspector plugin, which contain a line with a JSON object for
 * each collective that a communicator of one process completed (inspector_json.cc, output format
 * 4).
 *
 * A collective becomes a kernel with PyTorch's arguments, so it is matched by communicator and
 * sequence number, without clocks.  Verbose files contain the times of the kernel.  Other files
 * contain only its duration and roughly when the line was written, so the collectives of a
 * communicator are placed one after another.
 */
#include "convert/input/input.h"
#include "convert/source/import.h"
#include "convert/source/source.h"
#include "convert/source/spooled.h"
#include "schemas/base/vec.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE_BYTES = 1 << 20,
	COMMUNICATORS_MOST = 1 << 16,
	NAME_BYTES = 128,
	RANKS_MOST = 1 << 24,
};
#define US_MOST ((double)IMPORT_TIME_MOST / 1000)

struct communicator {
	char id[NAME_BYTES];
	uint32_t track; /* 0: not created yet */
	int64_t end_ns; /* end of its latest collective */
	/* Greatest sequence number + 1 for collectives, sends and receives; 0: none was seen. */
	uint64_t next[3];
};
struct inspector {
	struct import to;
	struct communicator *communicators;
	size_t count, cap;
	uint32_t process;
	double ranks;  /* size of the largest communicator, whose rank is the process's */
	bool is_exact; /* some collective had its own times */
	uint64_t lines, damaged;
};

static int inspector_bid(const uint8_t *head, size_t len)
{
	return len && head[0] == '{' && memmem(head, len, "\"header\"", 8) &&
			       (memmem(head, len, "\"coll_perf\"", 11) ||
				memmem(head, len, "\"p2p_perf\"", 10))
		       ? 97
		       : 0;
}

/* ---- members of an object --------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *text_in(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(member(object, key));

	return text ? text : "";
}

/* Returns NAN if the number is missing or outside 0 .. `most`. */
static double number_in(const cJSON *object, const char *key, double most)
{
	const cJSON *value = member(object, key);

	return cJSON_IsNumber(value) && value->valuedouble >= 0 && value->valuedouble <= most
		       ? value->valuedouble
		       : NAN;
}

static enum status put_number(struct inspector *n, const char *key, double value, bool is_arg,
			      struct error *err)
{
	struct attr a = { .type = ATTR_U64 };

	if (isnan(value))
		return ST_OK;
	a.bits = (uint64_t)value;
	return import_attr_named(&n->to, key, strlen(key), &a, is_arg, err);
}

/* ---- who the file is of ----------------------------------------------------------------- */

/* Sets the host and the process from the first line.  The rank is the one in the largest
 * communicator, which is usually that of the whole job. */
static enum status take_process(struct inspector *n, const cJSON *header, const cJSON *metadata,
				struct error *err)
{
	double ranks = number_in(header, "n_ranks", RANKS_MOST);
	double rank = number_in(header, "rank", RANKS_MOST);
	double pid = number_in(metadata, "pid", UINT32_MAX);
	struct process p;

	if (!n->process) {
		const char *host = text_in(metadata, "hostname");

		p = (struct process){ .pid = isnan(pid) ? 0 : (uint32_t)pid, .rank = NO_RANK };
		TRY(import_name(&n->to, host, strlen(host), &p.host, err));
		n->process = trace_process(n->to.trace, &p, err);
		if (!n->process)
			return err->status;
		n->to.process = n->process;
	}
	if (!isnan(ranks) && !isnan(rank) && rank < ranks && ranks > n->ranks) {
		p = *trace_get_process(n->to.trace, n->process);
		p.rank = (uint32_t)rank;
		p.world_size = (uint32_t)ranks;
		trace_set_process(n->to.trace, n->process, &p);
		n->ranks = ranks;
	}
	return ST_OK;
}

static enum status find_communicator(struct inspector *n, const char *id, struct communicator **out,
				     struct error *err)
{
	struct device device = { .process = n->process, .id = 0 };
	struct track track = {
		.type = TRACK_STREAM, .process = n->process, .device = 0, .context = NO_ID
	};

	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->communicators[i].id, id)) {
			*out = &n->communicators[i];
			return ST_OK;
		}
	if (n->count == COMMUNICATORS_MOST)
		return fail(err, ST_CEILING, NOWHERE, "more than %d communicators",
			    COMMUNICATORS_MOST);
	TRY(vec_reserve(&n->communicators, &n->cap, n->count + 1, err));
	*out = &n->communicators[n->count++];
	snprintf((*out)->id, sizeof((*out)->id), "%s", id);
	/* The file does not name the GPU, so all communicators are on device 0. */
	track.id = n->count;
	(*out)->track =
		trace_device(n->to.trace, &device, err) ? trace_track(n->to.trace, &track, err) : 0;
	return (*out)->track ? ST_OK : err->status;
}

/* ---- a collective ----------------------------------------------------------------------- */

enum { SEQ_COLLECTIVE, SEQ_SEND, SEQ_RECV };
struct keys { /* names of the members of a collective or of a send or receive */
	const char *name, *seq, *bytes, *exec, *start, *stop;
};
static const struct keys coll_keys = {
	"coll",          "coll_sn",     "coll_msg_size_bytes", "coll_exec_time_us",
	"coll_start_ts", "coll_stop_ts"
};
static const struct keys p2p_keys = {
	"p2p", "p2p_sn", "p2p_msg_size_bytes", "p2p_exec_time_us", "p2p_start_ts", "p2p_stop_ts"
};

/* Counts the numbers missing between two collectives as lost: the plugin records only the latest
 * collective of each communicator, and none below a minimum size. */
static void note_seq(struct inspector *n, struct communicator *c, int kind, double seq)
{
	uint64_t number = (uint64_t)seq;

	if (c->next[kind] && number > c->next[kind])
		import_lose(&n->to, LOSS_RING, number - c->next[kind]);
	if (number >= c->next[kind])
		c->next[kind] = number + 1;
}

/* Returns in microseconds the earliest begin and the latest end of the kernel on all channels, or
 * else the times of the call.  Returns false if the line has no times. */
static bool own_times(const cJSON *perf, const struct keys *k, double *begin, double *end)
{
	const cJSON *times = member(perf, "event_trace_ts"), *channel;

	*begin = *end = NAN;
	cJSON_ArrayForEach(channel, member(times, "kernel_events"))
	{
		*begin = fmin(*begin, number_in(channel, "kernel_start_ts", US_MOST));
		*end = fmax(*end, number_in(channel, "kernel_stop_ts", US_MOST));
	}
	if (isnan(*begin) || isnan(*end)) {
		*begin = number_in(times, k->start, US_MOST);
		*end = number_in(times, k->stop, US_MOST);
	}
	return *begin > 0 && *end >= *begin;
}

/* Returns false if the line has neither times nor a duration. */
static bool take_times(struct inspector *n, struct communicator *c, const cJSON *perf,
		       const cJSON *metadata, const struct keys *k, struct event *e)
{
	double exec = number_in(perf, k->exec, US_MOST), begin, end;
	double dumped = number_in(metadata, "dump_timestamp_us", US_MOST);
	int64_t begin_ns, length_ns;

	if (own_times(perf, k, &begin, &end)) {
		/* Prefer the duration that the plugin reports; the end is on the device's clock. */
		length_ns = (int64_t)llround((isnan(exec) ? end - begin : exec) * 1000);
		begin_ns = (int64_t)llround(end * 1000) - length_ns;
		n->is_exact = true;
	} else if (!isnan(exec) && !isnan(dumped)) {
		length_ns = (int64_t)llround(exec * 1000);
		begin_ns = (int64_t)llround(dumped * 1000) - length_ns;
		begin_ns = begin_ns < c->end_ns ? c->end_ns : begin_ns;
	} else {
		return false;
	}
	if (!import_times(&n->to, e, begin_ns, length_ns))
		return false;
	c->end_ns = begin_ns + length_ns;
	return true;
}

static enum status put_arguments(struct inspector *n, const cJSON *header, const cJSON *perf,
				 const struct keys *k, bool is_send, struct error *err)
{
	const char *id = text_in(header, "id"), *name = text_in(header, "comm_name");
	double peer = number_in(perf, "p2p_peer", RANKS_MOST);
	double own = number_in(header, "rank", RANKS_MOST);
	char group[2 * NAME_BYTES];

	snprintf(group, sizeof(group), "%.100s%s%.100s", strcmp(name, "unknown") ? name : "",
		 strcmp(name, "unknown") && name[0] ? " " : "", id);
	TRY(import_text(&n->to, "collective", text_in(perf, k->name),
			strlen(text_in(perf, k->name)), err));
	TRY(import_text(&n->to, "group_name", group, strlen(group), err));
	TRY(put_number(n, "group_size", number_in(header, "n_ranks", RANKS_MOST), false, err));
	TRY(put_number(n, "group_rank", own, false, err));
	if (k == &p2p_keys) {
		TRY(put_number(n, "src_rank", is_send ? own : peer, false, err));
		TRY(put_number(n, "dst_rank", is_send ? peer : own, false, err));
	}
	TRY(put_number(n, "bytes", number_in(perf, k->bytes, 0x1p62), false, err));
	return put_number(n, "collective_seq", number_in(perf, k->seq, 0x1p53), true, err);
}

static enum status take_perf(struct inspector *n, const cJSON *line, const cJSON *perf,
			     const struct keys *k, struct error *err)
{
	const cJSON *header = member(line, "header"), *metadata = member(line, "metadata");
	const char *name = text_in(perf, k->name), *id = text_in(header, "id");
	bool is_send = k == &p2p_keys && !strcmp(name, "Send");
	double seq = number_in(perf, k->seq, 0x1p53);
	struct event e = { .kind = KIND_KERNEL };
	struct communicator *c = NULL;
	char kernel[NAME_BYTES];

	if (!name[0] || !id[0] || strlen(id) >= NAME_BYTES || isnan(seq)) {
		n->damaged++;
		return ST_OK;
	}
	TRY(take_process(n, header, metadata, err));
	TRY(find_communicator(n, id, &c, err));
	note_seq(n, c, k == &coll_keys ? SEQ_COLLECTIVE : is_send ? SEQ_SEND : SEQ_RECV, seq);
	import_begin(&n->to);
	if (!take_times(n, c, perf, metadata, k, &e)) {
		import_lose(&n->to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	e.track = c->track;
	snprintf(kernel, sizeof(kernel), "ncclDevKernel_%.100s", name);
	TRY(import_name(&n->to, kernel, strlen(kernel), &e.name, err));
	TRY(put_arguments(n, header, perf, k, is_send, err));
	TRY(import_schema(&n->to, &e, err));
	return import_put(&n->to, &e, err);
}

static enum status take_line(struct inspector *n, const char *text, size_t len, struct error *err)
{
	cJSON *line;
	const cJSON *perf;
	enum status status = ST_OK;

	while (len && strchr(" \t\r", text[len - 1]))
		len--;
	if (!len)
		return ST_OK;
	n->lines++;
	line = cJSON_ParseWithLength(text, len);
	if ((perf = member(line, "coll_perf")) != NULL)
		status = take_perf(n, line, perf, &coll_keys, err);
	else if ((perf = member(line, "p2p_perf")) != NULL)
		status = take_perf(n, line, perf, &p2p_keys, err);
	else
		n->damaged++;
	cJSON_Delete(line);
	return status;
}

/* ---- the file --------------------------------------------------------------------------- */

/* The last line may be cut off because the process ended, so a line without its newline must still
 * parse. */
static enum status read_lines(struct inspector *n, struct input *in, struct error *fault,
			      struct error *err)
{
	const uint8_t *bytes;
	size_t len;

	for (;;) {
		enum status status = input_peek(in, LINE_BYTES, &bytes, &len, fault);
		const uint8_t *end;
		size_t used;

		if (status != ST_OK || !len)
			return ST_OK; /* `fault` contains why the input ended */
		end = memchr(bytes, '\n', len);
		used = end ? (size_t)(end - bytes) : len;
		if (!end && len >= LINE_BYTES) {
			n->damaged++;
			fail(fault, ST_FORMAT, input_at(in), "a line of over %d bytes", LINE_BYTES);
			return ST_OK;
		}
		TRY(take_line(n, (const char *)bytes, used, err));
		input_skip(in, used + (end != NULL));
	}
}

static enum status inspector_read(struct spool_source *s, struct input *in,
				  const struct budget *left, struct error *err)
{
	struct inspector n = { .lines = 0 };
	struct error fault = { .at = NOWHERE };
	enum status status;

	(void)left;
	import_init(&n.to, s->trace, s->spool, 0);
	status = read_lines(&n, in, &fault, err);
	if (status == ST_OK && !n.process)
		status = fault.status != ST_OK
				 ? fail(err, fault.status, fault.at, "%s", fault.text)
				 : fail(err, ST_FORMAT, 0,
					"a file of NCCL's inspector without collectives");
	if (n.damaged)
		import_lose(&n.to, LOSS_DAMAGED, n.damaged);
	s->fault = fault;
	spool_source_clock(s, 0, n.to.first_ns);
	if (status == ST_OK)
		status = import_provenance(
			&n.to, n.is_exact ? "NCCL inspector" : "NCCL inspector, times as written",
			&fault, err);
	import_release(&n.to);
	free(n.communicators);
	return status;
}

static const struct spool_reader reader = {
	.own_bytes = 4 << 20,
	.spools = 1,
	.read = inspector_read,
};

const struct source_type source_inspector = {
	.name = "inspector",
	.help = "NCCL's and RCCL's inspector plugin, JSON lines",
	.bid = inspector_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};
