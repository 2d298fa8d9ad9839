/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/join.h - records that belong to a call by its correlation id.
 *
 * An external correlation record gives the call an id that some tool pushed; it stands before or
 * after the call, in its buffer or in an earlier one.  A CUDA event has no time of its own unless it
 * was asked for at a price: it gets that of its call.  What waits has a ceiling, and is counted when
 * it is pushed out.  State is static; the writer's thread only.
 */
#ifndef COLLECTOR_CUPTI_JOIN_H
#define COLLECTOR_CUPTI_JOIN_H

#include "collector/cupti/plan.h"

/* Something waits. */
bool cupti_join_any(void);

/* CUpti_ActivityExternalCorrelation.  False: the call has another one, of a kind that goes first. */
bool cupti_join_note_external(const uint8_t *record);
bool cupti_join_external(uint32_t correlation, uint64_t *id);

bool cupti_join_has_time(const struct cupti_family *f, const uint8_t *record);
/* The record is copied, to wait; false: it pushed another one out. */
bool cupti_join_note_event(const struct cupti_family *f, const uint8_t *record);
/* The call came already, in a buffer that overtook this one: when it began; else 0. */
uint64_t cupti_join_known_call(uint32_t correlation);
/* A call came: put() for each that waits for it. */
void cupti_join_call(uint32_t correlation, uint64_t begin_ns,
		     void (*put)(const uint8_t *record, uint64_t begin_ns, void *arg), void *arg);
/* Nobody waits any more; returns the events that did. */
uint64_t cupti_join_end(void);
void cupti_join_forget(void);

#endif
