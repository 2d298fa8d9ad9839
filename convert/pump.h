/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.h - the one loop of the house: pull a batch, push it to everybody.
 *
 *	inputs -> source -> merge -> step -> link -> cut -> detail -> PUMP -> sink, sink, reports
 *
 * pipeline_open() builds all that stands left of the pump, in this one order, for both tools;
 * stages that nobody needs are left out.  One pass feeds any number of consumers while the batch
 * is warm; consumers never see each other and never write.
 *
 * Not every run is one stream.  Reports and sinks of scope SINK_PER_PROCESS take their inputs one
 * by one, side by side on the cores, each with a trace of its own: nothing is merged, so 1,024
 * ranks cost 1,024 times one.  Only a sink that draws all ranks on one timeline pays for merge.
 */
#ifndef CONVERT_PUMP_H
#define CONVERT_PUMP_H

#include "convert/align.h"
#include "convert/cut.h"
#include "convert/link.h"
#include "convert/name_rules.h"
#include "convert/step.h"

struct input;
struct detail_request;

enum need { /* what a consumer wants filled in; see struct event */
	NEED_STEP = 1, /* step, phase, owner of host events; stretches and marks */
	NEED_LINK = 2, /* the same of GPU work, and link_launch(); implies NEED_STEP */
};

/* An input has ended early, or could not be opened, while others go on. */
typedef void (*input_fault)(void *self, const char *path, const struct error *why);

struct pipeline_request {
	const struct cut *cut;          /* borrowed */
	const struct name_rules *rules; /* borrowed */
	const struct budget *budget;    /* borrowed */
	unsigned needs;                 /* all consumers' together */
	input_fault fault;              /* of one input of many; NULL only with a single one */
	enum align_mode align;          /* of many inputs */
	void (*tell)(void *self, const char *line); /* what was found of their clocks; or NULL */
	void *self;                     /* of `fault` and `tell` */
	const struct detail_request *detail; /* its levels and name_bytes; NULL: all detail */
};
struct pipeline {
	struct source *top;               /* pull here */
	struct source *step, *link;       /* NULL where nobody needs them; owned by `top` */
	struct source *detail;            /* likewise */
};
/*
 * Inputs are borrowed until pipeline_close().  A single input's fault is returned, here or by the
 * source.  Of many inputs each tells its own fault to `fault`, and the rest is read; it is returned
 * here only when no input is left.
 */
enum status pipeline_open(struct pipeline *out, struct trace *trace, struct input *const *inputs,
			  size_t count, const struct pipeline_request *how, struct error *err);
void pipeline_close(struct pipeline *p); /* accepts a zeroed one */

struct consumer {
	/* `events` is borrowed for the call.  count 0 is possible: stretches only. */
	enum status (*put)(void *self, const struct event *events, size_t count,
			   struct error *err);
	void *self;
};
typedef void (*pump_progress)(void *self, uint64_t events);
/*
 * Until the source ends; after ST_END every consumer is called once more with count 0 (the last
 * stretches).  A consumer's fault ends the run at once.  A fault of the source ends it after what
 * it had was delivered: it is returned, and consumers are complete and may be closed well.
 * *source_failed tells the two apart.  `progress` may be NULL.
 */
enum status pump(struct source *source, const struct consumer *consumers, size_t count,
		 pump_progress progress, void *self, bool *source_failed, struct error *err);

#endif
