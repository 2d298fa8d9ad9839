/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti_tables.h - devices, contexts and streams, as CUPTI's records tell of them.
 *
 * A device is a row of the log's devices, with Kineto's keys; contexts and streams are told as JSON
 * in the process's attributes.  What came is kept, and put into each log that is opened later.
 * State is static; the writer's thread only.
 */
#ifndef COLLECTOR_CUPTI_TABLES_H
#define COLLECTOR_CUPTI_TABLES_H

#include "collector/cupti_lib.h"

struct writer;

/* One record of CUPTI_DEVICE, CUPTI_CONTEXT or CUPTI_STREAM. */
void cupti_tables_take(const struct cupti_lib *lib, uint32_t kind, const uint8_t *record);
/* Into the log that is open, as far as it has not got them. */
void cupti_tables_put(struct writer *w);
/* The device of a context; that of the only device when it is not known; else NO_ID. */
uint32_t cupti_tables_device(uint32_t context);
void cupti_tables_note(uint32_t device, uint32_t context);
void cupti_tables_forget(void);

#endif
