/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate - writes logs and Kineto files of a simulated job, and their expected figures.
 *
 * usage: generate --out FOLDER [--events N] [--ranks R] [--seed S] [--slow-rank K] [--kineto] ...
 *
 * Writes FOLDER/r<rank>.tacho (or .json with --kineto) and FOLDER/truth.json.  The files are marked
 * as synthetic.
 */
#include "samples/generate_model.h"

#include "schemas/base/buf.h"
#include "schemas/base/json_text.h"
#include "schemas/log/writer.h"
#include "schemas/base/option.h"
#include "schemas/model/records.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { TABLES_CEILING = 64 << 20, WRITER_CEILING = 128 << 20, PIECE_BYTES = 1 << 20 };

struct options {
	const char *out;
	uint64_t events, ops, ranks, seed, slow_rank, slow_percent, per_host, skew_ns, drift_ns;
	bool kineto;
};

static const struct option rows[] = {
	{ "out", 'o', OPTION_TEXT, "FOLDER", "where to write", offsetof(struct options, out),
	  "synthetic" },
	{ "events", 'n', OPTION_COUNT, "N", "events of each rank, at least",
	  offsetof(struct options, events), "100000" },
	{ "ops", 0, OPTION_COUNT, "N", "operators of a forward pass, and of a backward pass",
	  offsetof(struct options, ops), "96" },
	{ "ranks", 'r', OPTION_COUNT, "R", "how many files", offsetof(struct options, ranks), "1" },
	{ "seed", 's', OPTION_COUNT, "S", "another seed, another job",
	  offsetof(struct options, seed), "1" },
	{ "slow-rank", 0, OPTION_COUNT, "K", "this rank is slower; the others wait for it",
	  offsetof(struct options, slow_rank), "4294967295" },
	{ "slow-percent", 0, OPTION_COUNT, "P", "by so much",
	  offsetof(struct options, slow_percent), "20" },
	{ "ranks-per-host", 0, OPTION_COUNT, "N", "and so many hosts",
	  offsetof(struct options, per_host), "8" },
	{ "skew-ns", 0, OPTION_COUNT, "NS", "the clock of host H is wrong by H times this",
	  offsetof(struct options, skew_ns), "0" },
	{ "drift-ns", 0, OPTION_COUNT, "NS", "and gains H times this in a second",
	  offsetof(struct options, drift_ns), "0" },
	{ "kineto", 0, OPTION_FLAG, NULL, "Chrome JSON as Kineto writes it, instead of logs",
	  offsetof(struct options, kineto), NULL },
	{ 0 },
};

struct target { /* the file of one rank */
	FILE *file;
	const struct trace *trace;
	struct log_writer *log; /* NULL: Kineto JSON */
	struct buf bytes;
	uint64_t count;
};

static enum status flush_bytes(struct target *t, size_t over, struct error *err)
{
	TRY(buf_status(&t->bytes, err));
	if (t->bytes.len < over)
		return ST_OK;
	if (fwrite(t->bytes.data, 1, t->bytes.len, t->file) != t->bytes.len)
		return fail(err, ST_IO, NOWHERE, "cannot write: %s", strerror(errno));
	buf_clear(&t->bytes);
	return ST_OK;
}

static enum status put_log(void *self, const struct event *e, uint32_t desc, struct error *err)
{
	struct target *t = self;

	TRY(log_writer_put(t->log, e, desc, 0, &t->bytes, err));
	return flush_bytes(t, PIECE_BYTES, err);
}

static void put_us(struct buf *b, uint64_t ns)
{
	buf_putf(b, "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void put_kineto_args(struct buf *b, const struct event *e, const struct track *k)
{
	buf_put_text(b, ", \"args\": {\"External id\": 0");
	if (k->type == TRACK_STREAM)
		buf_putf(b, ", \"device\": %u, \"context\": %u, \"stream\": %llu", k->device,
			 k->context, (unsigned long long)k->id);
	if (e->kind != KIND_RANGE)
		buf_putf(b, ", \"correlation\": %llu", (unsigned long long)e->correlation);
	else if (e->number)
		buf_putf(b, ", \"Sequence number\": %llu", (unsigned long long)e->number);
	if (e->kind == KIND_MEMCPY)
		buf_putf(b, ", \"bytes\": %llu", (unsigned long long)e->bytes);
	buf_put_text(b, "}}");
}

static enum status put_kineto(void *self, const struct event *e, uint32_t desc, struct error *err)
{
	static const char *const cats[KIND_END] = {
		[KIND_KERNEL] = "kernel",
		[KIND_MEMCPY] = "gpu_memcpy",
		[KIND_API] = "cuda_runtime",
	};
	struct target *t = self;
	const struct track *k = trace_get_track(t->trace, e->track);
	struct buf *b = &t->bytes;
	const char *name;
	size_t len;

	buf_putf(b, "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", t->count++ ? ",\n" : "\n",
		 e->kind == KIND_RANGE ? range_class_word(e->subkind) : cats[e->kind]);
	name = trace_text(t->trace, e->name, &len);
	json_put_text(b, name, len);
	if (k->type == TRACK_STREAM)
		buf_putf(b, ", \"pid\": %u, \"tid\": %llu", k->device, (unsigned long long)k->id);
	else
		buf_putf(b, ", \"pid\": %u, \"tid\": %llu",
			 trace_get_process(t->trace, k->process)->pid, (unsigned long long)k->id);
	buf_put_text(b, ", \"ts\": ");
	put_us(b, e->begin_ns);
	buf_put_text(b, ", \"dur\": ");
	put_us(b, e->end_ns - e->begin_ns);
	put_kineto_args(b, e, k);
	return flush_bytes(t, PIECE_BYTES, err);
}

static void put_kineto_head(struct buf *b, const struct model_request *req)
{
	buf_putf(b,
		 "{\n\"schemaVersion\": 1, \"synthetic\": 1,\n\"distributedInfo\": {\"backend\": "
		 "\"nccl\", \"rank\": %u, \"world_size\": %u},\n\"traceEvents\": [",
		 req->rank, req->ranks);
}

static enum status write_rank(const struct options *o, const struct model_request *req,
			      struct target *t, struct trace *trace, struct model_truth *truth,
			      struct error *err)
{
	if (o->kineto) {
		put_kineto_head(&t->bytes, req);
		TRY(model_run(req, trace, put_kineto, t, truth, err));
		buf_put_text(&t->bytes, "\n]}\n");
	} else {
		TRY(log_writer_new(&t->log, trace, WRITER_CEILING, err));
		TRY(log_writer_begin(t->log, &t->bytes, err));
		TRY(model_run(req, trace, put_log, t, truth, err));
		TRY(log_writer_end(t->log, &t->bytes, err));
	}
	return flush_bytes(t, 0, err);
}

static enum status make_rank(const struct options *o, const struct model_request *req,
			     struct model_truth *truth, struct error *err)
{
	struct target t = { 0 };
	struct trace *trace = NULL;
	char path[512];
	enum status st;

	snprintf(path, sizeof(path), "%s/r%u.%s", o->out, req->rank, o->kineto ? "json" : "tacho");
	TRY(trace_new(&trace, TABLES_CEILING, err));
	t.trace = trace;
	t.file = fopen(path, "wb");
	buf_init(&t.bytes, TABLES_CEILING);
	if (t.file)
		st = write_rank(o, req, &t, trace, truth, err);
	else
		st = fail(err, ST_IO, NOWHERE, "cannot create %s: %s", path, strerror(errno));
	if (t.file && fclose(t.file) != 0 && st == ST_OK)
		st = fail(err, ST_IO, NOWHERE, "cannot write %s: %s", path, strerror(errno));
	log_writer_free(t.log);
	buf_release(&t.bytes);
	trace_free(trace);
	return st;
}

static void print_truth(FILE *f, uint32_t rank, const struct model_truth *t)
{
	const struct {
		const char *key;
		uint64_t value;
	} figures[] = {
		{ "rank", rank },
		{ "steps", t->steps },
		{ "events", t->events },
		{ "kernels", t->kernels },
		{ "copies", t->copies },
		{ "span_ns", t->span_ns },
		{ "compute_ns", t->compute_ns },
		{ "comm_ns", t->comm_ns },
		{ "exposed_comm_ns", t->exposed_comm_ns },
		{ "copy_ns", t->copy_ns },
		{ "exposed_copy_ns", t->exposed_copy_ns },
		{ "wall_ns", t->wall_ns },
		{ "data_ns", t->data_ns },
		{ "forward_ns", t->forward_ns },
		{ "backward_ns", t->backward_ns },
		{ "optimizer_ns", t->optimizer_ns },
		{ "wait_ns", t->wait_ns },
	};

	fprintf(f, "%s{", rank ? ",\n" : "");
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		fprintf(f, "%s\"%s\": %llu", i ? ", " : "", figures[i].key,
			(unsigned long long)figures[i].value);
	fprintf(f, "}");
}

static struct model_request request_of(const struct options *o, uint64_t rank,
				       struct model_pace *pace)
{
	uint64_t host = rank / (o->per_host ? o->per_host : 1);

	return (struct model_request){
		.seed = o->seed,
		.rank = (uint32_t)rank,
		.ranks = (uint32_t)o->ranks,
		.events = o->events,
		.ops = o->ops,
		.slow_rank = (uint32_t)o->slow_rank,
		.slow_percent = (uint32_t)o->slow_percent,
		.pace = pace,
		.ranks_per_host = (uint32_t)o->per_host,
		.skew_ns = (int64_t)(host * o->skew_ns),
		.drift_ns = (int64_t)(host * o->drift_ns),
	};
}

static enum status put_nowhere(void *self, const struct event *e, uint32_t desc, struct error *err)
{
	return ST_OK;
}

/* Runs the slow rank without output, to find the times until which the other ranks wait. */
static enum status make_pace(const struct options *o, struct model_pace *pace, struct error *err)
{
	struct model_request req = request_of(o, o->slow_rank, pace);
	struct model_truth truth;
	struct trace *trace = NULL;
	enum status st;

	TRY(trace_new(&trace, TABLES_CEILING, err));
	st = model_run(&req, trace, put_nowhere, NULL, &truth, err);
	trace_free(trace);
	return st;
}

static enum status make_all(const struct options *o, struct error *err)
{
	char path[512];
	struct model_pace pace = { 0 };
	bool paced = o->slow_rank < o->ranks;
	enum status st = ST_OK;
	FILE *f;

	if (mkdir(o->out, 0777) != 0 && errno != EEXIST)
		return fail(err, ST_IO, NOWHERE, "cannot make %s: %s", o->out, strerror(errno));
	snprintf(path, sizeof(path), "%s/truth.json", o->out);
	f = fopen(path, "w");
	if (!f)
		return fail(err, ST_IO, NOWHERE, "cannot create %s: %s", path, strerror(errno));
	fprintf(f, "[\n");
	if (paced)
		st = make_pace(o, &pace, err);
	for (uint32_t rank = 0; rank < o->ranks && st == ST_OK; rank++) {
		struct model_request req = request_of(o, rank, paced ? &pace : NULL);
		struct model_truth truth;

		st = make_rank(o, &req, &truth, err);
		if (st == ST_OK)
			print_truth(f, rank, &truth);
	}
	model_pace_release(&pace);
	fprintf(f, "\n]\n");
	if (fclose(f) != 0 && st == ST_OK)
		st = fail(err, ST_IO, NOWHERE, "cannot write %s: %s", path, strerror(errno));
	return st;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	const struct option_set sets[] = { { rows, &o }, { NULL, NULL } };
	struct error err = { 0 };
	int operands = 0;
	enum status st = option_defaults(sets, &err);

	if (st == ST_OK)
		st = option_arguments(sets, argc, argv, &operands, &err);
	if (st == ST_OK && operands)
		st = fail(&err, ST_USAGE, NOWHERE, "%s: unexpected", argv[1]);
	if (st == ST_OK)
		st = make_all(&o, &err);
	if (st != ST_OK)
		fprintf(stderr, "generate: %s\n", err.text);
	return status_exit(st);
}
