/* SPDX-License-Identifier: Apache-2.0 */
/* Events for LTTng-UST that say what ours say; included more than once, as its headers want it. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tacho_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/lttng_events.h"

#if !defined(TESTS_BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TESTS_BENCH_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, push, LTTNG_UST_TP_ARGS(uint32_t, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)))
LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, pop, LTTNG_UST_TP_ARGS(uint32_t, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)))
LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, push_text, LTTNG_UST_TP_ARGS(const char *, name),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, step, LTTNG_UST_TP_ARGS(uint64_t, number),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, number, number)))
LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, counter, LTTNG_UST_TP_ARGS(uint32_t, name, double, value),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)
						       lttng_ust_field_float(double, value, value)))
#endif

#include <lttng/tracepoint-event.h>
