/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuspy.h - what Cuspy, PyTorch's own CUPTI profiler (torch/profiler/_cuspy/trace.py), writes in
 * another way than Kineto.
 *
 * A copy is named "Memcpy" and a fill "Memset"; directions and kinds of memory are arguments.  The
 * counters of a GPU have the pid "GPU 0 Counters", their unit in the name and their value under an
 * empty key.  Arrows between nodes of a CUDA graph have ids from 2^40 on.  Where a stream was
 * spread over several rows of the viewer, its own number is the argument original_stream.
 */
#pragma once

#include "convert/source/kineto/args.h"

enum { CUSPY_NAME = 96 };
#define CUSPY_DEPENDENCIES ((uint64_t)1 << 40) /* ids of arrows between nodes begin there */
/* The name that Kineto would write: "Memcpy HtoD (Pinned -> Device)".  false: it has one. */
bool cuspy_name(const struct kineto_event *e, unsigned kind, char out[CUSPY_NAME]);
/* Whether an arrow joins two nodes of a graph, and is not drawn from a correlation id. */
bool cuspy_is_dependency(const struct kineto_event *e);
/* Sets the device and the unit of a counter's track where pid and name say them. */
void cuspy_counter(const struct kineto_event *e, struct track *track);
/* Replaces a row of the viewer by the stream that it shows a part of. */
void cuspy_stream(const struct kineto_event *e, struct kineto_place *place);
