/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tacho-convert: traces in, another format out.  The roof: here alone is something printed, the
 * environment read, an exit code made.
 */
#include "convert/cut.h"
#include "convert/input.h"
#include "convert/main_report.h"
#include "convert/main_help.h"
#include "convert/main_open.h"
#include "convert/main_scalars.h"
#include "convert/name_rules.h"
#include "convert/options.h"
#include "convert/out.h"
#include "convert/progress.h"
#include "convert/progress_account.h"
#include "convert/pump.h"
#include "convert/sink.h"
#include "schemas/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Processes of one input whose files are written side by side in one pass over it. */
enum { LANES = 8, TEXT_CEILING = 1 << 20 };

struct own_options {
	const char *type, *args;
};
static const struct option own_rows[] = {
	{"type", 't', OPTION_TEXT, "FORMAT", "what to write, see below",
	 offsetof(struct own_options, type), NULL},
	{"args", 0, OPTION_TEXT, "lean|full", "arguments: those that the format's readers know, or all",
	 offsetof(struct own_options, args), "lean"},
	{.name = NULL},
};

/* One file being written; in a folder a lane writes one after the other. */
struct lane {
	struct out *out;
	struct sink *sink; /* NULL: waits for its first event, which names the file */
	struct run *run;
	struct trace *trace;
	uint32_t process;
};

struct run {
	struct own_options own;
	struct open_options open;
	struct common_options common;
	struct cut cut;
	const struct sink_type *type;
	struct name_rules *rules;
	const struct source *step; /* stage of the inputs that are being read; NULL none */
	struct budget budget;
	struct input_paths paths;
	bool is_folder, is_decided; /* whether -o is a folder */
	struct lane lanes[LANES];
	struct out *scalars; /* beside TensorBoard's traces; NULL none */
	struct buf names; /* of files in the folder so far, each with its NUL */
	enum status worst; /* of inputs that failed while the run went on */
	struct account account;
	uint64_t files;
	struct report_papers report; /* of a type that carries it */
	pthread_mutex_t lock;   /* for `reading`, which the progress line looks at */
	struct input *reading;
	_Atomic uint64_t events; /* that passed, for the progress line */
};

static void say(const char *file, const struct error *err)
{
	fputs("tacho-convert: ", stderr);
	if (file)
		fprintf(stderr, "%s: ", file);
	if (err->at != NOWHERE)
		fprintf(stderr, "byte %llu: ", (unsigned long long)err->at);
	fprintf(stderr, "%s\n", err->text);
	if (err->status == ST_CEILING)
		fputs("tacho-convert: --memory SIZE raises ceilings\n", stderr);
}

/* An input's fault: told at once; the run goes on. */
static void note_fault(void *self, const char *file, const struct error *err)
{
	struct run *r = self;

	say(file, err);
	if (r->worst == ST_OK)
		r->worst = err->status;
}

/* ---- progress ---- */

static void look(void *self, struct progress_now *now)
{
	struct run *r = self;

	now->events = atomic_load(&r->events);
	pthread_mutex_lock(&r->lock);
	if (r->reading)
		input_progress(r->reading, &now->done_bytes, &now->all_bytes);
	pthread_mutex_unlock(&r->lock);
}

static void set_reading(struct run *r, struct input *in)
{
	pthread_mutex_lock(&r->lock);
	r->reading = in;
	pthread_mutex_unlock(&r->lock);
}

static void show(void *self, const char *text)
{
	fputs(text, stderr);
}

static void passed(void *self, uint64_t events)
{
	atomic_store(&((struct run *)self)->events, events);
}

/* ---- names of files in a folder ---- */

/* A file of this process that no other of the run has the name of. */
static enum status begin_file(struct lane *l, uint64_t ns, struct error *err)
{
	struct run *r = l->run;
	size_t at = r->names.len;

	TRY(sink_put_new_name(r->type, l->trace, l->process, ns, &r->names, err));
	return out_begin(l->out, (const char *)r->names.data + at, err);
}

/* ---- lanes ---- */

static enum status lane_start(struct lane *l, uint64_t ns, struct error *err)
{
	struct run *r = l->run;
	struct sink_request request = {
		.trace = l->trace,
		.budget = &r->budget,
		.process = l->process,
		.step = r->step,
		.rules = r->rules,
		.all_args = strcmp(r->own.args, "full") == 0,
		.out = l->out,
		.papers = r->report.papers,
		.paper_count = r->report.count,
		.names = &r->names,
	};

	if (r->is_folder && !r->type->is_folder)
		TRY(begin_file(l, ns, err));
	r->files++;
	return r->type->open(&l->sink, &request, err);
}

static enum status lane_put(void *self, const struct event *events, size_t count,
			    struct error *err)
{
	struct lane *l = self;
	struct run *r = l->run;
	size_t first = 0;

	if (!l->sink) {
		while (l->process && first < count &&
		       trace_get_track(l->trace, events[first].track)->process != l->process)
			first++;
		if (first == count)
			return ST_OK;
		TRY(lane_start(l, events[first].begin_ns, err));
	}
	for (size_t i = 0; i < count; i++)
		r->account.unknown_kind += events[i].kind == KIND_UNKNOWN &&
			(!l->process ||
			 trace_get_track(l->trace, events[i].track)->process == l->process);
	return l->sink->type->put(l->sink, events, count, err);
}

/* After the last event of its process. */
static enum status lane_finish(struct lane *l, struct error *err)
{
	struct run *r = l->run;

	if (!l->sink)
		TRY(lane_start(l, 0, err));
	if (l->sink->type->close)
		TRY(l->sink->type->close(l->sink, err));
	r->account.events_out += l->sink->written;
	r->account.left_out += l->sink->left_out;
	l->sink->type->free(l->sink);
	l->sink = NULL;
	return ST_OK;
}

static enum status lane_open(struct run *r, size_t i, struct trace *trace, uint32_t process,
			     struct error *err)
{
	struct lane *l = &r->lanes[i];

	*l = (struct lane){.out = l->out, .run = r, .trace = trace, .process = process};
	return l->out ? ST_OK : out_open(&l->out, r->common.output, r->is_folder, err);
}

static enum status pump_lanes(struct run *r, struct source *top, size_t count, bool *source_failed,
			      struct error *err)
{
	struct consumer consumers[LANES] = {{NULL, NULL}};
	enum status status;

	for (size_t i = 0; i < count; i++)
		consumers[i] = (struct consumer){lane_put, &r->lanes[i]};
	status = pump(top, consumers, count, passed, r, source_failed, err);
	if (status != ST_OK && !*source_failed)
		return status;
	for (size_t i = 0; i < count; i++) {
		struct error own;
		enum status st = lane_finish(&r->lanes[i], &own);

		if (st == ST_OK)
			continue;
		*source_failed = false;
		*err = own;
		return st;
	}
	return status;
}

/* ---- inputs ---- */

struct loaded { /* inputs that share a trace */
	struct input **inputs;
	size_t count;
	const char *last; /* path of the last of them */
	struct trace *trace;
	struct pipeline pipeline;
};

static void unload(struct run *r, struct loaded *l)
{
	set_reading(r, NULL);
	for (size_t i = 0; i < LANES; i++) { /* of a run that failed */
		if (r->lanes[i].sink)
			r->lanes[i].sink->type->free(r->lanes[i].sink);
		r->lanes[i].sink = NULL;
	}
	pipeline_close(&l->pipeline);
	trace_free(l->trace);
	for (size_t i = 0; l->inputs && i < l->count; i++)
		input_close(l->inputs[i]);
	free(l->inputs);
}

static enum status load(struct run *r, struct loaded *l, size_t first, size_t count,
			struct error *err)
{
	struct pipeline_request how = {
		.cut = cut_is_empty(&r->cut) ? NULL : &r->cut,
		.rules = r->rules,
		.budget = &r->budget,
		.needs = r->type->needs,
		.fault = note_fault,
		.self = r,
	};

	*l = (struct loaded){.inputs = calloc(count, sizeof(struct input *))};
	if (!l->inputs)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %zu inputs", count);
	for (size_t i = first; i < first + count; i++) {
		const char *path = r->paths.paths[i];
		enum status st = input_open(&l->inputs[l->count], path, r->budget.scratch, err);

		l->last = st == ST_OK || count == 1 ? path : l->last;
		if (st == ST_OK)
			l->count++;
		else if (count == 1)
			return st;
		else if (!l->count && i + 1 == first + count) /* no other is left */
			return fail(err, st, NOWHERE, "%s: %s", path, err->text);
		else
			note_fault(r, path, err);
	}
	if (count == 1)
		set_reading(r, l->inputs[0]);
	TRY(trace_new(&l->trace, options_trace_ceiling(&r->common), err));
	TRY(pipeline_open(&l->pipeline, l->trace, l->inputs, l->count, &how, err));
	r->step = l->pipeline.step;
	return ST_OK;
}

/* ---- a sink that draws all inputs on one timeline ---- */

static enum status convert_whole(struct run *r, struct error *err, const char **file)
{
	struct loaded l;
	bool source_failed = false;
	enum status status = load(r, &l, 0, r->paths.count, err);
	const char *only = l.count <= 1 ? l.last : NULL;

	*file = status == ST_OK ? NULL : only;
	if (status == ST_OK) {
		r->is_folder = r->type->is_folder;
		status = lane_open(r, 0, l.trace, 0, err);
		if (status == ST_OK)
			status = pump_lanes(r, l.pipeline.top, 1, &source_failed, err);
		account_add(&r->account, l.trace);
	}
	if (source_failed) {
		note_fault(r, only, err);
		status = ST_OK;
	}
	unload(r, &l);
	return status;
}

/* ---- a sink that writes a file for each process ---- */

static bool is_one_output(const struct run *r)
{
	return r->type->scope == SINK_WHOLE ||
	       (r->type->scope == SINK_EITHER && !out_names_folder(r->common.output));
}

/* The first process from `from` on that has a file; 0: none. */
static uint32_t next_process(const struct run *r, const struct trace *t, uint32_t from)
{
	for (; from <= trace_count(t, TRACE_PROCESSES); from++)
		if (!r->cut.has_ranks ||
		    cut_wants_rank(&r->cut, trace_get_process(t, from)->rank))
			return from;
	return 0;
}

static enum status decide_folder(struct run *r, const struct trace *t, struct error *err)
{
	const char *o = r->common.output;
	uint32_t first = next_process(r, t, 1);
	bool many = r->paths.count > 1 || (first && next_process(r, t, first + 1)) ||
		    r->type->is_folder;

	if (r->is_decided)
		return ST_OK;
	r->is_decided = true;
	r->is_folder = many || out_names_folder(o);
	if (r->type->is_folder && (!o || strcmp(o, "-") == 0))
		return fail(err, ST_USAGE, NOWHERE, "%s writes a folder: -o FOLDER is needed",
			    r->type->name);
	if (many && (!o || strcmp(o, "-") == 0))
		return fail(err, ST_USAGE, NOWHERE, "%s writes a file for each process, and there "
			    "are several: -o FOLDER is needed", r->type->name);
	return ST_OK;
}

/* One pass over the input for up to LANES processes; *from moves behind them, 0 at the end. */
static enum status convert_some(struct run *r, struct loaded *l, uint32_t *from,
				bool *source_failed, struct error *err)
{
	uint32_t process = next_process(r, l->trace, *from);
	size_t count = 0, most = r->is_folder ? LANES : 1;

	if (!process && trace_count(l->trace, TRACE_PROCESSES)) { /* all are cut out */
		r->account.lost[LOSS_CUT_OUT] += trace_provenance(l->trace)->events;
		*from = 0;
		return ST_OK;
	}
	do {
		TRY(lane_open(r, count++, l->trace, process, err));
		process = process ? next_process(r, l->trace, process + 1) : 0;
	} while (process && count < most);
	*from = process;
	return pump_lanes(r, l->pipeline.top, count, source_failed, err);
}

static enum status convert_input(struct run *r, size_t i, bool *input_failed, struct error *err)
{
	struct loaded l;
	uint32_t from = 1;
	enum status status, fault = ST_OK;

	do {
		if (from > 1 && strcmp(r->paths.paths[i], "-") == 0)
			return fail(err, ST_USAGE, NOWHERE, "standard input is read only once, and "
				    "holds more than %d processes: give a file", LANES);
		status = load(r, &l, i, 1, err);
		*input_failed = status != ST_OK;
		if (status == ST_OK)
			status = decide_folder(r, l.trace, err);
		if (status == ST_OK)
			status = convert_some(r, &l, &from, input_failed, err);
		if (*input_failed && l.pipeline.top) { /* what was read is written all the same */
			fault = status;
			status = ST_OK;
		}
		if (l.trace && !from)
			account_add(&r->account, l.trace);
		unload(r, &l);
	} while (status == ST_OK && from);
	*input_failed |= fault != ST_OK;
	return status == ST_OK ? fault : status;
}

static enum status convert_each(struct run *r, struct error *err)
{
	for (size_t i = 0; i < r->paths.count; i++) {
		bool input_failed = false;
		enum status status = convert_input(r, i, &input_failed, err);

		if (status != ST_OK && !input_failed)
			return status;
		if (status != ST_OK)
			note_fault(r, r->paths.paths[i], err);
	}
	return ST_OK;
}

/* ---- the end of a run ---- */

static enum status commit(struct run *r, const char *account, uint64_t *bytes, struct error *err)
{
	if (r->common.strict && r->worst != ST_OK)
		return fail(err, r->worst, NOWHERE, "nothing was written, because of --strict");
	if (r->common.strict && r->account.lost_all)
		return fail(err, ST_FORMAT, NOWHERE, "nothing was written, because of --strict: %s",
			    account);
	for (size_t i = 0; i < LANES; i++) {
		if (!r->lanes[i].out)
			continue;
		TRY(out_commit(r->lanes[i].out, err));
		*bytes += out_stored(r->lanes[i].out);
	}
	if (!r->scalars)
		return ST_OK;
	TRY(out_commit(r->scalars, err));
	*bytes += out_stored(r->scalars);
	return ST_OK;
}

static void release(struct run *r)
{
	for (size_t i = 0; i < LANES; i++)
		out_free(r->lanes[i].out);
	out_free(r->scalars);
	report_papers_release(&r->report);
	buf_release(&r->names);
	name_rules_free(r->rules);
	input_paths_free(&r->paths);
}

/* One line: what came in, what went out, and why they differ; where it is. */
static void put_account(const struct run *r, const char *account, uint64_t bytes)
{
	const char *o = r->common.output;

	if (r->common.quiet || !r->files)
		return;
	fprintf(stderr, "tacho-convert: %s", account);
	if (r->is_folder && !r->type->is_folder)
		fprintf(stderr, "; %llu %s in %s", (unsigned long long)r->files,
			r->files == 1 ? "file" : "files", o);
	else if (o && strcmp(o, "-") != 0)
		fprintf(stderr, "; %s", o);
	fprintf(stderr, ", %.*f %s\n", bytes < 100000 ? 0 : 1,
		bytes < 100000 ? (double)bytes : (double)bytes / 1e6,
		bytes < 100000 ? "bytes" : "MB");
}

static enum status put_scalars(struct run *r, struct error *err)
{
	struct scalars_request how = {
		.paths = r->paths.paths,
		.count = r->paths.count,
		.rules = r->rules,
		.cut = &r->cut,
		.memory_bytes = (size_t)r->common.memory_bytes,
		.scratch = r->budget.scratch,
		.folder = r->common.output,
	};

	enum status status = scalars_write(&r->scalars, &how, err);

	if (status == ST_OK || r->common.strict)
		return status;
	out_free(r->scalars); /* the traces are good without */
	r->scalars = NULL;
	note_fault(r, "scalars and summary are left out", err);
	return ST_OK;
}

static enum status make_report(struct run *r, struct error *err)
{
	return report_papers_make(&r->report, &(struct report_request){
		.paths = r->paths.paths, .count = r->paths.count, .rules = r->rules, .cut = &r->cut,
		.memory_bytes = (size_t)r->common.memory_bytes, .scratch = r->budget.scratch,
	}, err);
}

static enum status convert(struct run *r, char *const *operands, size_t count)
{
	struct error err = {.at = NOWHERE};
	const char *file = NULL;
	uint64_t bytes = 0;
	struct progress_ticker *ticker = NULL;
	struct buf account;
	size_t passed_over = 0;
	enum status status = source_paths_find(&r->paths, operands, count, r->budget.scratch,
					       &passed_over, &err);

	if (passed_over && !r->common.quiet)
		fprintf(stderr, "tacho-convert: passed over %zu JSON files that are no traces\n",
			passed_over);
	if (!r->common.quiet && isatty(STDERR_FILENO))
		ticker = progress_start(&(struct progress_hooks){look, show}, r);
	if (status == ST_OK)
		status = name_rules_new(&r->rules, NULL, 0, &err);
	if (status == ST_OK && r->type->wants_report)
		status = make_report(r, &err);
	if (status == ST_OK && is_one_output(r))
		status = convert_whole(r, &err, &file);
	else if (status == ST_OK)
		status = convert_each(r, &err);
	if (status == ST_OK && r->type == &sink_tensorboard && r->files)
		status = put_scalars(r, &err);
	progress_stop(ticker);
	if (status == ST_OK && !r->files && r->account.lost[LOSS_CUT_OUT])
		status = fail(&err, ST_USAGE, NOWHERE, "--ranks %.60s: the input has no such rank",
			      r->cut.ranks);
	buf_init(&account, TEXT_CEILING);
	account_put(&r->account, r->type->name, &account);
	if (status == ST_OK)
		status = commit(r, buf_text(&account), &bytes, &err);
	if (status != ST_OK)
		say(file, &err);
	else
		put_account(r, buf_text(&account), bytes);
	buf_release(&account);
	return status != ST_OK ? status : r->worst;
}

/* ---- the command line ---- */

static enum status find_type(struct run *r, struct error *err)
{
	struct buf known;

	r->type = r->own.type ? sink_find(r->own.type) : NULL;
	if (r->type)
		return ST_OK;
	buf_init(&known, TEXT_CEILING);
	for (size_t i = 0; sink_at(i); i++)
		buf_putf(&known, "%s%s", i ? ", " : "", sink_at(i)->name);
	if (r->own.type)
		fail(err, ST_USAGE, NOWHERE, "-t %.40s: no such format, there are %s", r->own.type,
		     buf_text(&known));
	else
		fail(err, ST_USAGE, NOWHERE, "-t FORMAT is missing, one of %s", buf_text(&known));
	buf_release(&known);
	return ST_USAGE;
}

static enum status check_options(struct run *r, int operands, struct error *err)
{
	TRY(find_type(r, err));
	if (strcmp(r->own.args, "lean") != 0 && strcmp(r->own.args, "full") != 0)
		return fail(err, ST_USAGE, NOWHERE, "--args %s: neither lean nor full",
			    r->own.args);
	if (!operands)
		return fail(err, ST_USAGE, NOWHERE, "no INPUT is given; - is standard input");
	if (r->type->is_binary && !r->common.output && !r->open.open && isatty(STDOUT_FILENO))
		return fail(err, ST_USAGE, NOWHERE, "a %s is nothing for a terminal: use -o OUT",
			    r->type->name);
	TRY(open_check(&r->open, r->type->name, r->common.output, err));
	TRY(options_check(&r->common, err));
	return cut_parse(&r->cut, err);
}

static enum status read_options(const struct option_set *sets, int argc, char **argv,
				int *operands, struct error *err)
{
	TRY(option_defaults(sets, err));
	TRY(option_environment(sets, environ, err));
	return option_arguments(sets, argc, argv, operands, err);
}

int main(int argc, char **argv)
{
	static struct run r = {.lock = PTHREAD_MUTEX_INITIALIZER};
	const struct option_set sets[] = {
		{own_rows, &r.own}, {open_rows, &r.open}, {common_options, &r.common}, {cut_options, &r.cut}, {NULL, NULL},
	};
	const char *tmp = getenv("TMPDIR");
	struct error err;
	int operands;
	enum status status = read_options(sets, argc, argv, &operands, &err);

	if (status == ST_OK && (r.common.help || r.common.version)) {
		r.common.help ? help_print(sets) : help_print_version();
		return fflush(stdout) == 0 ? 0 : status_exit(ST_IO);
	}
	if (status == ST_OK)
		status = check_options(&r, operands, &err);
	if (status != ST_OK) {
		say(NULL, &err);
		if (status == ST_USAGE)
			fputs("tacho-convert: --help lists what there is\n", stderr);
		return status_exit(status);
	}
	buf_init(&r.names, TEXT_CEILING);
	r.budget = options_budget(&r.common, tmp && tmp[0] ? tmp : "/tmp");
	status = open_begin(&r.open, &r.common.output, r.budget.scratch);
	if (status == ST_OK)
		status = convert(&r, argv + 1, (size_t)operands);
	status = open_end(&r.open, r.common.output, status, r.files != 0, r.common.quiet);
	release(&r);
	return status_exit(status);
}
