/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "convert/stage/context/context.h"
#include "convert/stage/filter/filter.h"
#include "tests/unit/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4000 };

/* A trace being written down and what the stage said of it. */
struct play {
	struct trace *trace;
	struct name_rules *rules;
	uint32_t processes[2];
	uint32_t main, other, autograd, gpu, pool; /* tracks of the first process */
	struct event *events;
	size_t count, cap, batch;

	struct event *out;
	size_t out_count;
	const char *phases[256];
	struct phase_interval last; /* not written yet */
	char intervals[TEXT_MAX];   /* "0-10 forward~ 5" */
	char marks[TEXT_MAX];
	size_t out_of_order;
};

static struct error error;

static uint32_t name_of(struct play *p, const char *text)
{
	return trace_name(p->trace, text, strlen(text), &error);
}

static uint32_t track_of(struct play *p, unsigned process, enum track_type type, uint64_t id,
			 const char *name)
{
	struct track k = { .type = type,
			   .process = p->processes[process],
			   .device = NO_ID,
			   .context = NO_ID,
			   .id = id,
			   .name = name_of(p, name) };

	return trace_track(p->trace, &k, &error);
}

static void play_open(struct play *p)
{
	struct process process = { .pid = 1, .rank = 0 };

	memset(p, 0, sizeof(*p));
	p->batch = 3;
	CHECK_OK(trace_new(&p->trace, 64 << 20, &error), &error);
	CHECK_OK(name_rules_new(&p->rules, NULL, 0, &error), &error);
	p->processes[0] = trace_process(p->trace, &process, &error);
	process = (struct process){ .pid = 2, .rank = 1 };
	p->processes[1] = trace_process(p->trace, &process, &error);
	p->main = track_of(p, 0, TRACK_THREAD, 100, "python3");
	p->other = track_of(p, 0, TRACK_THREAD, 101, "worker");
	p->autograd = track_of(p, 0, TRACK_THREAD, 102, "pt_autograd_0");
	p->gpu = track_of(p, 0, TRACK_STREAM, 7, "stream 7");
	p->pool = track_of(p, 0, TRACK_ALLOCATOR, 101, "");
}

static void play_close(struct play *p)
{
	free(p->events);
	free(p->out);
	name_rules_free(p->rules);
	trace_free(p->trace);
}

static struct event *put(struct play *p, uint8_t kind, uint8_t subkind, uint32_t track,
			 const char *name, uint64_t begin_ns, uint64_t end_ns)
{
	struct event_desc desc = {
		.track = track, .name = name_of(p, name), .kind = kind, .subkind = subkind
	};
	struct event *e;

	trace_desc(p->trace, &desc, &error);
	if (p->count == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 64;
		p->events = realloc(p->events, p->cap * sizeof(*p->events));
	}
	e = &p->events[p->count++];
	*e = (struct event){ .begin_ns = begin_ns,
			     .end_ns = end_ns,
			     .track = track,
			     .name = desc.name,
			     .kind = kind,
			     .subkind = subkind };
	return e;
}

static void op(struct play *p, uint32_t track, uint64_t begin_ns, uint64_t end_ns)
{
	put(p, KIND_RANGE, RANGE_OP, track, "aten::mm", begin_ns, end_ns);
}

static void call(struct play *p, uint32_t track, uint64_t begin_ns, uint64_t end_ns)
{
	put(p, KIND_API, API_RUNTIME, track, "cudaLaunchKernel", begin_ns, end_ns);
}

static void note(struct play *p, uint32_t track, const char *name, uint64_t begin_ns,
		 uint64_t end_ns)
{
	put(p, KIND_RANGE, RANGE_ANNOTATION, track, name, begin_ns, end_ns);
}

static void put_in_order(struct play *p)
{
	for (size_t i = 1; i < p->count; i++) {
		struct event e = p->events[i];
		size_t at = i;

		for (; at && event_before(&e, &p->events[at - 1]); at--)
			p->events[at] = p->events[at - 1];
		p->events[at] = e;
	}
}

static void text_add(char *text, const char *more)
{
	if (strlen(text) + strlen(more) < TEXT_MAX)
		strcat(text, more);
}

static void write_last(struct play *p, const struct context *c)
{
	const struct phase_interval *one = &p->last;
	char line[200];

	if (!one->end_ns)
		return;
	snprintf(line, sizeof(line), "%s%u-%u %s%s %s%u", p->intervals[0] ? ", " : "",
		 (unsigned)one->begin_ns, (unsigned)one->end_ns, context_phase(c, one->phase).name,
		 one->inferred ? "~" : "", one->step & STEP_GAP ? "gap" : "",
		 (unsigned)(one->step & ~STEP_GAP));
	text_add(p->intervals, line);
}

/* Joins the parts of one interval again. */
static void take_intervals(struct play *p, const struct context *c, const struct batch *b,
			   uint64_t given_ns)
{
	for (size_t i = 0; i < b->interval_count; i++) {
		const struct phase_interval *one = &b->intervals[i];
		struct phase_interval *last = &p->last;

		p->out_of_order += one->end_ns > given_ns || one->begin_ns >= one->end_ns;
		if (last->end_ns == one->begin_ns && last->phase == one->phase &&
		    last->step == one->step && last->inferred == one->inferred &&
		    !one->begins_step) {
			last->end_ns = one->end_ns;
			continue;
		}
		write_last(p, c);
		*last = *one;
	}
}

static void take_marks(struct play *p, const struct batch *b)
{
	const struct step_mark *list = b->marks;
	char line[100];

	for (size_t i = 0; i < b->mark_count; i++) {
		snprintf(line, sizeof(line), "%s%u: %u-%u", p->marks[0] ? ", " : "",
			 (unsigned)list[i].number, (unsigned)list[i].begin_ns,
			 (unsigned)list[i].end_ns);
		text_add(p->marks, line);
	}
}

/* When the first event begins that was not given yet: intervals end there at the latest. */
static uint64_t play_given(const struct play *p)
{
	return p->out_count < p->count ? p->events[p->out_count].begin_ns : UINT64_MAX;
}

static struct context *play_context(struct play *p)
{
	struct context_request how = { .rules = p->rules };
	struct context *c = NULL;
	struct source *below;

	put_in_order(p);
	array_source_open(&below, p->events, p->count, p->batch);
	CHECK_OK(context_open(&c, below, p->trace, &how, &error), &error);
	p->out = calloc(p->count + 1, sizeof(*p->out));
	return c;
}

/* Leaves the results in p. */
static bool play_run(struct play *p)
{
	struct context *c = play_context(p);
	struct source *s = context_source(c);
	struct batch b;

	while (source_next(s, &b, &error) == ST_OK) {
		if (!CHECK(b.count && p->out_count + b.count <= p->count))
			break;
		memcpy(p->out + p->out_count, b.events, b.count * sizeof(*b.events));
		p->out_count += b.count;
		take_marks(p, &b);
		take_intervals(p, c, &b, play_given(p));
	}
	take_marks(p, &b);
	take_intervals(p, c, &b, UINT64_MAX);
	write_last(p, c);
	for (unsigned i = 0; i < context_phase_count(c); i++)
		p->phases[i] = context_phase(c, i).name;
	source_close(s);
	CHECK_U64(p->out_of_order, 0);
	return CHECK_U64(p->out_count, p->count);
}

static const char *phase_at(const struct play *p, uint64_t begin_ns, uint32_t track)
{
	for (size_t i = 0; i < p->out_count; i++)
		if (p->out[i].begin_ns == begin_ns && p->out[i].track == track)
			return p->phases[p->out[i].phase];
	return "no such event";
}

/* Rules 1, 2, 4 and 5, one after the other. */
void test_step_rules(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#5", 10, 100);
	note(&p, p.main, "## forward ##", 20, 40);
	op(&p, p.main, 25, 30);
	note(&p, p.main, "## sparse_data_dist ##", 50, 70);
	note(&p, p.main, "inside", 52, 60);
	note(&p, p.main, "zero_grad", 65, 68);
	call(&p, p.main, 75, 80);
	op(&p, p.other, 82, 95);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "train.py(3): forward", 5, 99);
	put(&p, KIND_KERNEL, 0, p.gpu, "sgemm", 90, 120);
	if (play_run(&p)) {
		CHECK_STR(p.intervals,
			  "5-10 other 0, 10-20 other 6, 20-40 forward 6, 40-50 other 6, "
			  "50-65 ## sparse_data_dist ## 6, 65-68 optimizer 6, "
			  "68-70 ## sparse_data_dist ## 6, 70-75 other 6, 75-80 forward~ 6, "
			  "80-100 other 6, 100-120 other gap6");
		CHECK_STR(p.marks, "5: 10-100");
		CHECK_STR(phase_at(&p, 25, p.main), "forward");
		CHECK_STR(phase_at(&p, 52, p.main), "## sparse_data_dist ##");
		CHECK_STR(phase_at(&p, 75, p.main), "forward");
		CHECK_STR(phase_at(&p, 82, p.other), "other");
	}
	play_close(&p);
}

/* Validation and checkpoint before all; else the one begun last, of equal begin the shorter. */
void test_step_rule_one(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#0", 0, 1000);
	note(&p, p.main, "validation", 100, 200);
	note(&p, p.main, "forward", 110, 120);
	note(&p, p.main, "checkpoint", 150, 160);
	note(&p, p.main, "backward", 190, 230);
	note(&p, p.main, "forward", 300, 340);
	note(&p, p.main, "backward", 300, 320);
	note(&p, p.main, "forward", 400, 440); /* partly over each other */
	note(&p, p.main, "optimizer", 420, 460);
	note(&p, p.main, "forward", 450, 455);
	note(&p, p.main, "forward", 500, 520); /* equal: the later in the file */
	note(&p, p.main, "backward", 500, 520);
	note(&p, p.main, "optimizer", 510, 510); /* never open */
	note(&p, p.main, "b", 600, 620);
	note(&p, p.main, "a", 600, 640); /* the outermost, which ends last, ... */
	note(&p, p.main, "c", 610, 660); /* ... or begins first */
	if (play_run(&p))
		CHECK_STR(p.intervals,
			  "0-100 other 1, 100-150 validation 1, 150-160 checkpoint 1, "
			  "160-200 validation 1, 200-230 backward 1, 230-300 other 1, "
			  "300-320 backward 1, 320-340 forward 1, 340-400 other 1, "
			  "400-420 forward 1, 420-450 optimizer 1, 450-455 forward 1, "
			  "455-460 optimizer 1, 460-500 other 1, 500-520 backward 1, "
			  "520-600 other 1, 600-640 a 1, 640-660 c 1, 660-1000 other 1");
	play_close(&p);
}

/* Backward is what the autograd threads do while S does nothing. */
void test_step_holes(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#0", 0, 1000);
	op(&p, p.main, 100, 200);
	op(&p, p.autograd, 150, 220); /* reaches into the hole */
	op(&p, p.autograd, 240, 250); /* the pause between the two is backward too */
	op(&p, p.autograd, 245, 260);
	op(&p, p.main, 300, 400);     /* 260-300 is not */
	op(&p, p.autograd, 310, 350); /* no hole */
	op(&p, p.autograd, 420, 520); /* out of the hole, over an op, into the next */
	call(&p, p.main, 450, 500);
	op(&p, p.autograd, 540, 540); /* of length 0: no activity */
	op(&p, p.main, 600, 610);
	op(&p, p.autograd, 620, 630);
	op(&p, p.main, 640, 640);              /* of length 0: the hole goes on */
	note(&p, p.main, "forward", 650, 660); /* nor does a range end it */
	note(&p, p.main, "## mine ##", 660, 670);
	note(&p, p.autograd, "nccl:all_reduce", 680, 690);
	op(&p, p.main, 700, 710);
	op(&p, p.autograd, 720, 730);
	op(&p, p.main, 740, 750); /* begins with the next activity: that is not in the hole */
	op(&p, p.autograd, 740, 745);
	call(&p, p.autograd, 800, 810); /* the last hole has no end */
	call(&p, p.autograd, 850, 860);
	if (play_run(&p)) {
		CHECK_STR(p.intervals,
			  "0-100 other 1, 100-200 forward~ 1, 200-260 backward~ 1, "
			  "260-300 other 1, 300-400 forward~ 1, 400-420 other 1, "
			  "420-450 backward~ 1, 450-500 forward~ 1, 500-520 backward~ 1, "
			  "520-600 other 1, 600-610 forward~ 1, 610-620 other 1, "
			  "620-650 backward~ 1, 650-660 forward 1, 660-670 ## mine ## 1, "
			  "670-690 backward~ 1, 690-700 other 1, 700-710 forward~ 1, "
			  "710-720 other 1, 720-730 backward~ 1, 730-740 other 1, "
			  "740-750 forward~ 1, 750-800 other 1, 800-860 backward~ 1, "
			  "860-1000 other 1");
		CHECK_STR(phase_at(&p, 640, p.main), "backward");
		CHECK_STR(phase_at(&p, 540, p.autograd), "backward"); /* by its thread */
	}
	play_close(&p);
}

/* An event whose instant is decided later waits, and all behind it. */
void test_step_pending(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#0", 0, 400);
	op(&p, p.autograd, 100, 110);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "wait", 120, 130);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.other, "poll", 125, 126);
	put(&p, KIND_KERNEL, 0, p.gpu, "sgemm", 127, 140);
	op(&p, p.autograd, 150, 160);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "wait", 170, 180);
	note(&p, p.main, "forward", 175, 178);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.other, "poll", 176, 177);
	op(&p, p.main, 200, 210);
	if (play_run(&p)) {
		CHECK_STR(p.intervals, "0-100 other 1, 100-160 backward~ 1, 160-175 other 1, "
				       "175-178 forward 1, 178-200 other 1, "
				       "200-210 forward~ 1, 210-400 other 1");
		CHECK_STR(phase_at(&p, 120, p.main), "backward");
		CHECK_STR(phase_at(&p, 125, p.other), "backward");
		CHECK_STR(phase_at(&p, 127, p.gpu), "other"); /* link's */
		CHECK_STR(phase_at(&p, 170, p.main), "other");
		CHECK_STR(phase_at(&p, 176, p.other), "forward");
	}
	play_close(&p);
}

/* A hole longer than the queue: its open end counts as other, and later activity begins anew. */
void test_step_queue_full(void)
{
	struct play p;
	uint64_t backward = 0;

	play_open(&p);
	p.batch = 1000;
	note(&p, p.main, "ProfilerStep#0", 0, 200000);
	op(&p, p.autograd, 10, 20);
	for (uint64_t i = 30; i < 80030; i++)
		put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "f", i, i + 1);
	op(&p, p.autograd, 90000, 90010);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "f", 90020, 90021);
	op(&p, p.autograd, 90030, 90040);
	if (play_run(&p)) {
		for (size_t i = 0; i < p.out_count; i++)
			backward += p.out[i].phase == PHASE_BACKWARD;
		CHECK_STR(p.intervals, "0-10 other 1, 10-20 backward~ 1, 20-90000 other 1, "
				       "90000-90040 backward~ 1, 90040-200000 other 1");
		CHECK_U64(backward, 4);
		CHECK_STR(phase_at(&p, 90020, p.main), "backward");
	}
	play_close(&p);
}

/* A launch: its own thread's phase, else its being an autograd thread, else S. */
void test_step_launches(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#3", 0, 100);
	note(&p, p.main, "forward", 10, 50);
	call(&p, p.main, 10, 12);
	call(&p, p.other, 20, 22);
	note(&p, p.other, "load_batch", 24, 30);
	note(&p, p.other, "unmapped", 24, 40);
	call(&p, p.other, 25, 26);
	call(&p, p.other, 30, 31); /* the range has ended */
	call(&p, p.autograd, 32, 33);
	note(&p, p.autograd, "nccl:all_reduce", 34, 40);
	call(&p, p.autograd, 35, 36);
	note(&p, p.autograd, "optimizer", 41, 49);
	call(&p, p.autograd, 42, 43);
	put(&p, KIND_ALLOC, 0, p.pool, "alloc", 25, 25);
	if (play_run(&p)) {
		CHECK_STR(phase_at(&p, 10, p.main), "forward");
		CHECK_STR(phase_at(&p, 20, p.other), "forward");
		CHECK_STR(phase_at(&p, 25, p.other), "data");
		CHECK_STR(phase_at(&p, 30, p.other), "forward");
		CHECK_STR(phase_at(&p, 32, p.autograd), "backward");
		CHECK_STR(phase_at(&p, 35, p.autograd), "backward");
		CHECK_STR(phase_at(&p, 42, p.autograd), "optimizer");
		CHECK_STR(phase_at(&p, 25, p.pool), "data"); /* of the thread that used it */
	}
	play_close(&p);
}

static const char *owner_at(const struct play *p, uint64_t begin_ns, uint8_t kind)
{
	for (size_t i = 0; i < p->out_count; i++)
		if (p->out[i].begin_ns == begin_ns && p->out[i].kind == kind)
			return trace_text(p->trace, trace_owner(p->trace, p->out[i].path), NULL);
	return "no such event";
}

void test_step_owners(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#3", 0, 100);
	call(&p, p.main, 5, 6);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "outer.py", 10, 50);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "inner.py", 12, 40);
	call(&p, p.main, 13, 14);
	op(&p, p.main, 15, 30);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "inmost.py", 16, 28);
	put(&p, KIND_RANGE, RANGE_OP, p.main, "aten::addmm", 17, 19);
	call(&p, p.main, 17, 18);
	call(&p, p.main, 19, 20); /* addmm has ended */
	put(&p, KIND_RANGE, RANGE_OP, p.main, "longer", 29, 45);
	call(&p, p.main, 31, 32);
	call(&p, p.main, 46, 47);
	op(&p, p.other, 24, 60);
	put(&p, KIND_ALLOC, 0, p.pool, "alloc", 25, 25);
	if (play_run(&p)) {
		CHECK_STR(owner_at(&p, 5, KIND_API), "");
		CHECK_STR(owner_at(&p, 13, KIND_API), "inner.py");
		CHECK_STR(owner_at(&p, 17, KIND_API), "aten::addmm");
		CHECK_STR(owner_at(&p, 19, KIND_API), "aten::mm");
		CHECK_STR(owner_at(&p, 31, KIND_API), "longer");
		CHECK_STR(owner_at(&p, 46, KIND_API), "outer.py");
		CHECK_STR(owner_at(&p, 25, KIND_ALLOC), "aten::mm");
	}
	play_close(&p);
}

static struct event *numbered(struct play *p, uint32_t track, const char *name, uint64_t begin_ns,
			      uint64_t end_ns, uint64_t number, uint64_t fwd_thread)
{
	struct attr thread = { .key = name_of(p, "fwd_thread"),
			       .type = ATTR_U64,
			       .bits = fwd_thread };
	struct arg_schema schema = { .consts = &thread, .const_count = 1 };
	struct event *e = put(p, KIND_RANGE, RANGE_OP, track, name, begin_ns, end_ns);

	e->number = number;
	e->schema = trace_schema(p->trace, &schema, &error);
	return e;
}

/* The frames of the path of the event that begins then, the outermost first. */
static const char *path_at(const struct play *p, uint64_t begin_ns)
{
	static char text[400];
	char more[400];
	uint32_t path = 0;

	text[0] = '\0';
	for (size_t i = 0; i < p->out_count; i++)
		path = p->out[i].begin_ns == begin_ns ? p->out[i].path : path;
	while (trace_get_path(p->trace, path)->parent) {
		const struct path_node *node = trace_get_path(p->trace, path);
		const char *name = node->class == PATH_BACKWARD ? "<"
				   : node->class == PATH_RECOMPUTE
					   ? "again"
					   : trace_text(p->trace, node->name, NULL);

		snprintf(more, sizeof(more), "%s%s%.300s", name, text[0] ? " " : "", text);
		memcpy(text, more, sizeof(text));
		path = node->parent;
	}
	return text;
}

/* The forward operator that started last with a number is the one that the backward belongs to. */
void test_step_backward(void)
{
	struct play p;

	play_open(&p);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "nn.Module: Net_0", 1, 90);
	numbered(&p, p.main, "aten::to", 5, 9, 7, 0);
	numbered(&p, p.main, "aten::linear", 10, 30, 7, 0);
	numbered(&p, p.main, "aten::addmm", 12, 20, 7, 0);
	numbered(&p, p.other, "aten::copy", 13, 14, 8, 0);
	numbered(&p, p.main, "aten::relu", 31, 35, 8, 0);
	/* Two threads have an 8: only after the 7 is it known which of them is meant. */
	numbered(&p, p.autograd, "engine", 100, 108, 7, 1);
	numbered(&p, p.autograd, "AddmmBackward0", 101, 107, 7, 1);
	call(&p, p.autograd, 103, 104);
	numbered(&p, p.autograd, "engine", 110, 118, 8, 1);
	call(&p, p.autograd, 113, 114);
	numbered(&p, p.autograd, "engine", 120, 160, 9, 1);
	call(&p, p.autograd, 121, 122);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.autograd, "nn.Module: Net_0", 125, 150);
	numbered(&p, p.autograd, "aten::mm", 130, 140, 11, 0);
	call(&p, p.autograd, 131, 132);
	if (play_run(&p)) {
		CHECK_STR(path_at(&p, 103),
			  "nn.Module: Net_0 aten::linear aten::addmm < engine AddmmBackward0");
		CHECK_STR(path_at(&p, 113), "nn.Module: Net_0 aten::relu < engine");
		CHECK_STR(path_at(&p, 121), "< engine"); /* the forward was not recorded */
		CHECK_STR(path_at(&p, 131), "nn.Module: Net_0 again nn.Module: Net_0 aten::mm");
	}
	play_close(&p);
}

/* Without modules the numbers of what is run again tell it, but not where all of a node have some,
 * as in a backward that is differentiated itself. */
void test_step_recompute(void)
{
	struct play p;

	play_open(&p);
	numbered(&p, p.main, "aten::mm", 5, 9, 7, 0);
	numbered(&p, p.autograd, "MmBackward0", 100, 120, 7, 1);
	numbered(&p, p.autograd, "aten::zeros", 101, 102, 0, 0); /* has none anywhere */
	numbered(&p, p.autograd, "aten::relu", 103, 106, 20, 0);
	call(&p, p.autograd, 104, 105);
	numbered(&p, p.autograd, "aten::sum", 107, 108, 0, 0);
	numbered(&p, p.autograd, "aten::tanh", 109, 112, 21, 0);
	call(&p, p.autograd, 110, 111);
	numbered(&p, p.main, "aten::mm", 121, 122, 30, 0);
	numbered(&p, p.autograd, "MmBackward0", 130, 140, 30, 1);
	numbered(&p, p.autograd, "aten::mm", 131, 138, 31, 0);
	numbered(&p, p.autograd, "aten::copy_", 132, 133, 0, 0); /* not the node's own */
	call(&p, p.autograd, 134, 135);
	numbered(&p, p.autograd, "CheckpointFunctionBackward", 150, 160, 30, 1);
	numbered(&p, p.autograd, "aten::mm", 151, 158, 32, 0);
	call(&p, p.autograd, 154, 155);
	if (play_run(&p)) {
		CHECK_STR(path_at(&p, 104), "aten::mm < MmBackward0 aten::relu");
		CHECK_STR(path_at(&p, 110), "aten::mm < MmBackward0 again aten::tanh");
		CHECK_STR(path_at(&p, 134), "aten::mm < MmBackward0 aten::mm");
		CHECK_STR(path_at(&p, 154), "aten::mm < CheckpointFunctionBackward again aten::mm");
	}
	play_close(&p);
}

/* Between two marks, marks over each other, marks of other threads. */
void test_step_marks(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#7", 100, 200);
	note(&p, p.other, "ProfilerStep#90", 120, 700);
	note(&p, p.main, "ProfilerStep#8", 230, 300);
	note(&p, p.main, "ProfilerStep#9", 290, 400);
	note(&p, p.main, "ProfilerStep#10", 400, 400);
	op(&p, p.main, 50, 60);
	op(&p, p.other, 210, 215);
	if (play_run(&p)) {
		CHECK_STR(p.intervals, "50-60 forward~ 0, 60-100 other 0, 100-200 other 8, "
				       "200-230 other gap8, 230-290 other 9, "
				       "290-400 other 10, 400-700 other gap11");
		CHECK_STR(p.marks, "7: 100-200, 8: 230-300, 9: 290-400, 10: 400-400");
		CHECK_U64(p.out[0].step, 0);
		for (size_t i = 0; i < p.out_count; i++)
			if (p.out[i].begin_ns == 210)
				CHECK_U64(p.out[i].step, 8 | STEP_GAP);
	}
	play_close(&p);
}

/* Of what begins behind a mark it is told, where it is asked, what is within a hundredth of it. */
void test_step_grace(void)
{
	static const uint64_t begins[] = { 200, 200, 1200, 1205, 1210 };
	struct filter filter = { .steps = "7" };
	struct source *s = NULL;
	struct event *kept;
	struct play p;
	size_t count;

	play_open(&p);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.other, "main.py", 200, 3000); /* longer than the mark */
	note(&p, p.main, "ProfilerStep#7", 200, 1200);
	note(&p, p.main, "ProfilerStep#8", 1300, 1399);
	op(&p, p.other, 1200, 1205);
	op(&p, p.other, 1205, 1206);
	call(&p, p.main, 1210, 1220);
	call(&p, p.main, 1211, 1212);
	op(&p, p.autograd, 1300, 1350);
	op(&p, p.autograd, 1400, 1410); /* of a mark of 99 there is no hundredth */
	CHECK_OK(filter_parse(&filter, &error), &error);
	CHECK_OK(filter_open(&s, context_source(play_context(&p)), p.trace, &filter, &error),
		 &error);
	kept = events_of(s, &count);
	CHECK_U64(count, 5);
	for (size_t i = 0; kept && i < count && i < 5; i++)
		CHECK_U64(kept[i].begin_ns, begins[i]);
	free(kept);
	source_close(s);
	play_close(&p);
}

/* A count that begins again: two steps of one number, one right behind the other. */
void test_step_again(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#7", 100, 200);
	note(&p, p.main, "ProfilerStep#7", 200, 300);
	note(&p, p.main, "ProfilerStep#7", 290, 400);
	op(&p, p.main, 150, 160);
	if (play_run(&p)) {
		CHECK_STR(p.intervals, "100-150 other 8, 150-160 forward~ 8, 160-200 other 8, "
				       "200-290 other 8, 290-400 other 8");
		CHECK_STR(p.marks, "7: 100-200, 7: 200-300, 7: 290-400");
	}
	play_close(&p);
}

/* tacho_step() before ProfilerStep#N; the own ones have their number in the record. */
void test_step_own_marks(void)
{
	struct play p;

	play_open(&p);
	note(&p, p.other, "ProfilerStep#1", 0, 500);
	put(&p, KIND_STEP, 0, p.main, "step", 10, 20)->number = 41;
	put(&p, KIND_STEP, 0, p.main, "step", 20, 30)->number = UINT64_MAX;
	put(&p, KIND_RANGE, RANGE_PHASE, p.main, "data", 12, 14);
	put(&p, KIND_RANGE, RANGE_PHASE, p.main, "zero_grad", 14, 15);
	put(&p, KIND_RANGE, RANGE_PHASE, p.main, "warm up", 15, 16);
	put(&p, KIND_RANGE, RANGE_NVTX, p.main, "forward", 22, 23);
	p.events[1].flags = EVENT_BEGAN_EARLIER;
	if (play_run(&p)) {
		CHECK_STR(p.intervals,
			  "0-10 other 0, 10-12 other 42, 12-14 data 42, 14-15 optimizer 42, "
			  "15-16 warm up 42, 16-20 other 42, 20-22 other 43, 22-23 forward 43, "
			  "23-30 other 43, 30-500 other gap43");
		CHECK_STR(p.marks, "41: 10-20, 42: 20-30");
	}
	play_close(&p);
}

/* Without marks S is who launches most, of equals who begins first; no step is made up. */
void test_step_without_marks(void)
{
	struct play p;
	struct context *c;
	struct batch b;

	play_open(&p);
	op(&p, p.autograd, 5, 8);
	op(&p, p.main, 31, 35);
	op(&p, p.other, 30, 40);
	trace_add_launches(p.trace, p.autograd, 1);
	trace_add_launches(p.trace, p.main, 2);
	trace_add_launches(p.trace, p.other, 2);
	trace_add_launches(p.trace, p.gpu, 9);
	c = play_context(&p);
	CHECK_OK(source_next(context_source(c), &b, &error), &error);
	CHECK_U64(context_step_thread(c, p.processes[0]), p.other);
	CHECK_U64(context_step_thread(c, p.processes[1]), 0);
	CHECK_U64(context_step_thread(c, 99), 0);
	source_close(context_source(c));
	free(p.out);
	if (play_run(&p)) {
		CHECK_STR(p.intervals, "5-8 backward~ 0, 8-30 other 0, 30-40 forward~ 0");
		CHECK_STR(p.marks, "");
	}
	play_close(&p);
}

static uint32_t step_thread_of(struct play *p)
{
	struct context *c = play_context(p);
	struct batch b;
	uint32_t thread;

	CHECK_OK(source_next(context_source(c), &b, &error), &error);
	thread = context_step_thread(c, p->processes[0]);
	source_close(context_source(c));
	free(p->out);
	return thread;
}

/* Most launches of training are the engine's: its thread is never S while another launches or
 * waits. */
void test_step_beside_autograd(void)
{
	struct play p;

	play_open(&p);
	trace_add_launches(p.trace, p.autograd, 9);
	call(&p, p.autograd, 50, 60);
	op(&p, p.main, 10, 20);
	CHECK_U64(step_thread_of(&p), p.autograd);
	put(&p, KIND_API, API_RUNTIME, p.main, "cudaStreamSynchronize", 70, 80);
	CHECK_U64(step_thread_of(&p), p.main);
	trace_add_launches(p.trace, p.other, 1);
	CHECK_U64(step_thread_of(&p), p.other);
	trace_add_launches(p.trace, p.main, 2);
	if (play_run(&p))
		CHECK_STR(p.intervals, "10-20 forward~ 0, 20-50 other 0, 50-60 backward~ 0, "
				       "60-70 other 0, 70-80 forward~ 0");
	play_close(&p);
}

/* Where the engine runs on the thread that called it, its operators are backward there. */
void test_step_runs_backward(void)
{
	static const char engine[] = "autograd::engine::evaluate_function: MmBackward0";
	struct play p;

	play_open(&p);
	trace_add_launches(p.trace, p.main, 9);
	trace_add_launches(p.trace, p.other, 2);
	op(&p, p.main, 10, 20);
	put(&p, KIND_RANGE, RANGE_OP, p.main, engine, 30, 50);
	put(&p, KIND_RANGE, RANGE_OP, p.main, "MmBackward0", 32, 48);
	op(&p, p.main, 35, 60);
	put(&p, KIND_RANGE, RANGE_OP, p.main, engine, 52, 55);
	call(&p, p.other, 40, 41);
	CHECK_U64(step_thread_of(&p), p.other); /* as far as is known */
	note(&p, p.main, "Optimizer.step#SGD.step", 70, 80);
	if (play_run(&p)) {
		CHECK_STR(p.intervals,
			  "10-20 forward~ 0, 20-30 other 0, 30-50 backward~ 0, 50-52 forward~ 0, "
			  "52-55 backward~ 0, 55-60 forward~ 0, 60-70 other 0, 70-80 optimizer 0");
		CHECK_STR(phase_at(&p, 40, p.other), "backward");
	}
	play_close(&p);
}

/* Python functions that get input are data until they launch kernels, whatever range they are in.
 */
void test_step_gets_input(void)
{
	static const char loader[] = "torch/utils/data/dataloader.py(628): __next__";
	struct play p;

	play_open(&p);
	note(&p, p.main, "ProfilerStep#0", 0, 200);
	note(&p, p.main, "train", 10, 100);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "main.py(3): train", 10, 100);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, loader, 20, 40);
	op(&p, p.main, 25, 30);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.other, loader, 41, 45);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "video.py(129): preprocess", 50, 90);
	note(&p, p.main, "validation", 55, 60);
	put(&p, KIND_API, API_RUNTIME, p.main, "cudaMemcpyAsync", 65, 67);
	call(&p, p.other, 68, 69);
	call(&p, p.main, 70, 72);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "$t.py:5 _load_image", 80, 85);
	op(&p, p.main, 120, 130);
	if (play_run(&p)) {
		CHECK_STR(p.intervals,
			  "0-10 other 1, 10-20 train 1, 20-40 data~ 1, 40-50 train 1, "
			  "50-55 data~ 1, 55-60 validation 1, 60-70 data~ 1, 70-80 train 1, "
			  "80-85 data~ 1, 85-100 train 1, 100-120 other 1, 120-130 forward~ 1, "
			  "130-200 other 1");
		CHECK_STR(phase_at(&p, 65, p.main), "data");
	}
	play_close(&p);
}

/* S is known before anything of its first events is said, though its first mark comes late. */
void test_step_late_mark(void)
{
	struct play p;

	play_open(&p);
	put(&p, KIND_RANGE, RANGE_ANNOTATION, p.other, "ProfilerStep#2", 900, 990);
	op(&p, p.main, 10, 20);
	op(&p, p.other, 30, 40);
	note(&p, p.main, "ProfilerStep#1", 500, 600);
	if (play_run(&p)) {
		CHECK_STR(p.intervals, "10-20 forward~ 0, 20-500 other 0, 500-600 other 2, "
				       "600-990 other gap2");
		CHECK_STR(p.marks, "1: 500-600");
	}
	play_close(&p);
}

/* More names than there are ids: the last id is for the rest. */
void test_step_many_rows(void)
{
	struct play p;
	char name[40];

	play_open(&p);
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "annotation %u", i);
		note(&p, p.main, name, i * 10, i * 10 + 5);
		call(&p, p.main, i * 10 + 1, i * 10 + 2);
	}
	if (play_run(&p)) {
		CHECK_STR(phase_at(&p, 11, p.main), "annotation 1");
		CHECK_STR(phase_at(&p, 2411, p.main), "annotation 241");
		CHECK_STR(phase_at(&p, 2421, p.main), "more annotations");
		CHECK_STR(phase_at(&p, 2991, p.main), "more annotations");
	}
	play_close(&p);
}

/* What stood before a fault is given, then the fault, once. */
void test_step_fault(void)
{
	struct play p;
	struct context_request how = { 0 };
	struct context *c = NULL;
	struct source *below, *s;
	struct batch b;

	play_open(&p);
	how.rules = p.rules;
	op(&p, p.autograd, 10, 20);
	op(&p, p.autograd, 30, 40);
	put(&p, KIND_RANGE, RANGE_PYTHON, p.main, "f", 50, 60);
	array_source_fail(&below, p.events, p.count, 2, ST_TRUNCATED);
	CHECK_OK(context_open(&c, below, p.trace, &how, &error), &error);
	s = context_source(c);
	while (source_next(s, &b, &error) == ST_OK)
		p.out_count += b.count;
	CHECK_U64(p.out_count, 3);
	CHECK_U64(error.status, ST_TRUNCATED);
	CHECK_U64(source_next(s, &b, &error), ST_END);
	source_close(s);
	CHECK_U64((uint64_t)array_sources_open(), 0);
	play_close(&p);
}
