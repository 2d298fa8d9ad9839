/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/ids.h - by which numbers CUPTI's records know a stream that the program has an address of.
 *
 * Asked on the program's own thread while the handle is valid, with its context current: nobody can
 * tell later.  Any thread, no lock.
 */
#ifndef COLLECTOR_CUPTI_IDS_H
#define COLLECTOR_CUPTI_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct cupti_lib;

struct cupti_stream_ids {
	uint32_t context, stream;
};

/* `lib` stays for good; NULL: nothing is to be asked any more. */
void cupti_ids_open(const struct cupti_lib *lib);
/* False: CUPTI is not loaded yet or does not say. */
bool cupti_ids_of_stream(const void *stream, struct cupti_stream_ids *out);
/* One word for both, as nvtx/names.h keeps it. */
uint64_t cupti_ids_word(uint32_t context, uint32_t stream);

#endif
