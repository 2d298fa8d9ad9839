/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.h - the main loop of both tools: pulls a batch and pushes it to every consumer.
 *
 *	inputs -> source -> merge -> context -> filter -> lod -> PUMP -> sink, sink, reports
 *
 * pipeline_open() builds everything to the left of the pump, always in this order, without the
 * stages that no consumer needs.  One pass feeds any number of consumers.  Consumers are
 * independent and never change a batch.
 *
 * Not every run is one stream.  Reports and sinks of scope SINK_PER_PROCESS read their inputs
 * separately and in parallel, each with its own trace, so 1,024 ranks cost 1,024 times as much as
 * one.  Only a sink that shows all ranks on one timeline needs the merge.
 */
#pragma once

#include "convert/stage/align/align.h"
#include "convert/stage/filter/filter.h"
#include "convert/stage/context/context.h"

struct input;
struct lod_request;

enum need {                /* what a consumer needs; see struct event and struct batch */
	    NEED_STEP = 1, /* step, phase, owner of host events; intervals and marks */
	    NEED_LINK = 2, /* the same for GPU work, and launches; implies NEED_STEP */
};

struct pipeline_request {
	const struct filter *filter;    /* borrowed */
	const struct name_rules *rules; /* borrowed */
	const struct budget *budget;    /* borrowed */
	unsigned needs;                 /* of all consumers together */
	input_fault fault;              /* of one input of many; NULL only with a single one */
	enum align_mode align;          /* of many inputs */
	/* Takes a sentence about the clocks of the inputs; may be NULL. */
	void (*report)(void *self, const char *line);
	void *self;                    /* passed to `fault` and `report` */
	const struct lod_request *lod; /* levels and name_bytes; NULL: all detail */
};
struct pipeline {
	struct source *top;      /* pull here */
	struct context *context; /* NULL: not needed; owned by `top` */
	struct source *lod;      /* NULL: all detail; owned by `top` */
};
/*
 * Inputs are borrowed until pipeline_close().  The fault of a single input is returned, here or by
 * the source.  If there are many, each fault goes to `fault` and the other inputs are read; it is
 * returned here only if no input is left.
 */
enum status pipeline_open(struct pipeline *out, struct trace *trace, struct input *const *inputs,
			  size_t count, const struct pipeline_request *how, struct error *err);
void pipeline_close(struct pipeline *p); /* accepts a zeroed one */

struct consumer {
	/* The batch is borrowed for the call.  The last one has no events, but may have intervals.
	 */
	enum status (*put)(void *self, const struct batch *batch, struct error *err);
	void *self;
};
typedef void (*pump_progress)(void *self, uint64_t events);
/*
 * Runs until the source ends; then every consumer gets the batch that came with ST_END, which has
 * no events.  A consumer's fault ends the run at once.  A fault of the source is returned after
 * everything that came before it was delivered: consumers are complete and may be closed normally.
 * *source_failed says which of the two it was.  `progress` may be NULL.
 */
enum status pump(struct source *source, const struct consumer *consumers, size_t count,
		 pump_progress progress, void *self, bool *source_failed, struct error *err);
