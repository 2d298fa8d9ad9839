/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what we set of CUPTI that is not ours but the process's, and set back.
 *
 * Only the thread that has the turn (client.h).
 */
#ifndef COLLECTOR_PROBE_CUPTI_PROCESS_H
#define COLLECTOR_PROBE_CUPTI_PROCESS_H

#include "collector/probe/cupti/lib.h"

/* Buffers come zeroed, threads have the kernel's ids.  False: they have not. */
bool cupti_process_set(const struct cupti_lib *lib);
/* As it was before the first set since the last reset: others read their records by it. */
void cupti_process_reset(const struct cupti_lib *lib);
/*
 * PyTorch's profiler gives CUPTI a clock of its own, which counts ticks, and nobody can take it
 * away: it is replaced by CLOCK_REALTIME.  The profiler sets it again at the begin of each of its
 * sessions, so that does no harm.  Where the rate is that of other clocks, the distance is all that
 * is needed, and the clock stays.  False: it was not CLOCK_REALTIME.
 */
bool cupti_process_set_clock(const struct cupti_lib *lib);

#endif
