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

enum need {                /* what a consumer reads of struct event and struct batch */
	    NEED_STEP = 1, /* step, phase, owner of host events; intervals and marks */
	    NEED_LINK = 2, /* also step, phase, owner of GPU work; launches */
};

struct pipeline_request {
	const struct filter *filter;    /* borrowed */
	const struct name_rules *rules; /* borrowed */
	const struct budget *budget;    /* borrowed */
	unsigned needs;                 /* bits of enum need: the union over all consumers */
	input_fault fault; /* called when one of many inputs fails; NULL only with a single input */
	/* Called after input `index` of many was opened, with the trace's provenance: what was
	 * found in it, and the events of all so far; may be NULL. */
	void (*opened)(void *self, size_t index);
	enum align_mode align; /* how clocks of many inputs are aligned */
	/* Receives a sentence about the clocks of the inputs; may be NULL. */
	void (*report)(void *self, const char *line);
	void *self;                    /* passed to these functions */
	const struct lod_request *lod; /* thresholds; NULL: all events are kept */
};
struct pipeline {
	struct source *top;      /* the last stage; pull batches from it */
	struct context *context; /* owned by `top`; NULL: no consumer needs it */
	struct source *lod;      /* owned by `top`; NULL: all events are kept */
};
/*
 * Opens the inputs and the stages that are needed.  Inputs are borrowed until pipeline_close().  If
 * a single input is invalid, its error is returned, here or later by the source.  If one of many
 * is, its error goes to `fault` and the other inputs are read; an error is returned here only if no
 * input is left.
 */
enum status pipeline_open(struct pipeline *out, struct trace *trace, struct input *const *inputs,
			  size_t count, const struct pipeline_request *how, struct error *err);
void pipeline_close(struct pipeline *p); /* accepts a zeroed one */

struct consumer {
	/* Receives a batch, which is borrowed for the call.  The last batch has no events, but may
	 * have intervals. */
	enum status (*put)(void *self, const struct batch *batch, struct error *err);
	void *self;
};
typedef void (*pump_progress)(void *self, uint64_t events);
/*
 * Passes batches to the consumers until the source ends.  The last batch, which came with ST_END,
 * has no events.  An error of a consumer ends the run at once.  An error of the source is returned
 * after everything before it was delivered, so consumers are complete and may be closed normally.
 * *source_failed is set if the error came from the source.  `progress` may be NULL.
 */
enum status pump(struct source *source, const struct consumer *consumers, size_t count,
		 pump_progress progress, void *self, bool *source_failed, struct error *err);
