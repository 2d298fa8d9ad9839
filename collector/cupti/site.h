/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/site.h - the slow half of a row: track, name and shape of a record, as a site of the log.
 *
 * Copies, sets, waits and graph launches have no name of CUPTI's, and none is made up: their kind
 * and their shape say all.  The writer's thread only.
 */
#ifndef COLLECTOR_CUPTI_SITE_H
#define COLLECTOR_CUPTI_SITE_H

#include "collector/cupti/plan.h"

struct writer;

/* The log is open.  0: a ceiling.  *track gets that of the site. */
uint32_t cupti_site_make(struct writer *w, const struct cupti_plan *p, const uint8_t *record,
			 uint32_t *track);
/* Streams that the program gave a name meanwhile. */
void cupti_site_name_streams(struct writer *w);
/* A call that the table of cupti/calls.h leaves out. */
bool cupti_site_is_noise(const struct cupti_plan *p, const uint8_t *record);

#endif
