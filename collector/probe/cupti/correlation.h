/* SPDX-License-Identifier: Apache-2.0 */
/*
 * correlation.h - records that belong to a call by its correlation id.
 *
 * An external correlation record gives the call an id that some tool pushed; it stands before or
 * after the call, in its buffer or in an earlier one.  A CUDA event has no time of its own unless
 * it was asked for at a price: it gets that of its call.  What waits has a ceiling, and is counted
 * when it is pushed out.  State is static; the writer's thread only.
 */
#ifndef COLLECTOR_PROBE_CUPTI_CORRELATION_H
#define COLLECTOR_PROBE_CUPTI_CORRELATION_H

#include "collector/probe/cupti/layout.h"

/* Something waits. */
bool cupti_correlation_any(void);

/* CUpti_ActivityExternalCorrelation.  False: the call has another one, of a kind that goes first.
 */
bool cupti_correlation_note_external(const uint8_t *record);
bool cupti_correlation_external(uint32_t correlation, uint64_t *id);

bool cupti_correlation_has_time(const struct cupti_family *f, const uint8_t *record);
/* The record is copied, to wait; false: it pushed another one out. */
bool cupti_correlation_note_event(const struct cupti_family *f, const uint8_t *record);
/* The call came already, in a buffer that overtook this one: when it began; else 0. */
uint64_t cupti_correlation_find_call(uint32_t correlation);
/* A call came: put() for each that waits for it. */
void cupti_correlation_call(uint32_t correlation, uint64_t begin_ns,
			    void (*put)(const uint8_t *record, uint64_t begin_ns, void *arg),
			    void *arg);
/* Gives up all CUDA events that wait for their call; returns how many there were. */
uint64_t cupti_correlation_end(void);
void cupti_correlation_forget(void);

#endif
