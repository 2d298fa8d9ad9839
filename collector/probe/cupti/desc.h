/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desc.h - makes the event descriptor of a record: its track, name and argument schema.
 *
 * CUPTI has no names for copies, sets, waits and graph launches, and none is made up: kind and
 * arguments describe them.  Writer thread only.
 */
#ifndef COLLECTOR_PROBE_CUPTI_DESC_H
#define COLLECTOR_PROBE_CUPTI_DESC_H

#include "collector/probe/cupti/layout.h"

struct writer;

/* Of the library: cuptiGetVersion(). */
void cupti_desc_open(uint32_t api_version);
/* Needs an open log.  0: a ceiling is reached.  *track gets the descriptor's track. */
uint32_t cupti_desc_make(struct writer *w, const struct cupti_layout *p, const uint8_t *record,
			 uint32_t *track);
/* Streams that the program gave a name meanwhile. */
void cupti_desc_name_streams(struct writer *w);
/* A call that the table of cupti/calls.h leaves out, or a query that was not answered yet. */
bool cupti_desc_is_noise(const struct cupti_layout *p, const uint8_t *record);

#endif
