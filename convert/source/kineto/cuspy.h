/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuspy.h - reads what Cuspy, PyTorch's own CUPTI profiler (torch/profiler/_cuspy/trace.py), writes
 * differently from Kineto.
 *
 * A copy is named "Memcpy" and a fill "Memset"; directions and kinds of memory are arguments.  The
 * counters of a GPU have the pid "GPU 0 Counters", their unit in the name and their value under an
 * empty key.  Arrows between nodes of a CUDA graph have ids from 2^40 on.  If a stream was spread
 * over several rows of the viewer, the argument original_stream contains its real number.
 */
#pragma once

#include "convert/source/kineto/args.h"

enum { CUSPY_NAME = 96 };
#define CUSPY_DEPENDENCIES ((uint64_t)1 << 40) /* least id of an arrow between graph nodes */
/* Builds the name that Kineto would write, such as "Memcpy HtoD (Pinned -> Device)".  Returns false
 * if the event's name needs no replacement. */
bool cuspy_name(const struct kineto_event *e, unsigned kind, char out[CUSPY_NAME]);
/* Returns whether an arrow connects two nodes of a graph, so that it does not follow from a
 * correlation id. */
bool cuspy_is_dependency(const struct kineto_event *e);
/* Sets the device and the unit of a counter's track if its pid and name contain them. */
void cuspy_counter(const struct kineto_event *e, struct track *track);
/* Replaces a row of the viewer by the stream to which the row belongs. */
void cuspy_stream(const struct kineto_event *e, struct kineto_place *place);
