/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti/ids.h"

#include "collector/cupti/lib.h"

#include <stdatomic.h>
#include <stddef.h>

/* 0, 1 and 2 are no addresses: the default stream, the same by its old rules, one for each thread. */
enum { STREAM_PER_THREAD = 2 };

static _Atomic(const struct cupti_lib *) asked;

void cupti_ids_open(const struct cupti_lib *lib)
{
	atomic_store_explicit(&asked, lib, memory_order_release);
}

bool cupti_ids_of_stream(const void *stream, struct cupti_stream_ids *out)
{
	const struct cupti_lib *lib = atomic_load_explicit(&asked, memory_order_acquire);
	uint8_t per_thread = (uintptr_t)stream == STREAM_PER_THREAD;
	void *handle = (uintptr_t)stream > STREAM_PER_THREAD ? (void *)(uintptr_t)stream : NULL;
	void *context;

	if (!lib || !lib->stream_id || !lib->context_id)
		return false;
	context = cuda_current_context();
	return context && lib->context_id(context, &out->context) == CUPTI_OK &&
	       lib->stream_id(context, handle, per_thread, &out->stream) == CUPTI_OK;
}

uint64_t cupti_ids_word(uint32_t context, uint32_t stream)
{
	return (uint64_t)context << 32 | stream;
}
