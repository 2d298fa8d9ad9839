/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the program: their records, the subscriber's callbacks, external correlation. */
#include "tests/fake/fake_inside.h"

#include <string.h>
#include <unistd.h>

enum { DEPTH = 16, EXTERNALS = 8 };

struct calls { /* of a thread */
	struct {
		unsigned kind; /* of the record that is due at the end; 0 none */
		uint64_t begin_ns;
		uint64_t data; /* the subscriber's, from ENTER to LEAVE */
	} open[DEPTH];
	struct {
		uint64_t ids[16];
		unsigned depth;
	} external[EXTERNALS];
};
static _Thread_local struct calls calls;

/* ---- external correlation: a stack for each kind and thread ---- */

int fake_push_external(unsigned kind, uint64_t id)
{
	if (!kind || kind >= EXTERNALS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (calls.external[kind].depth == 16)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	calls.external[kind].ids[calls.external[kind].depth++] = id;
	return CUPTI_SUCCESS;
}

int fake_pop_external(unsigned kind, uint64_t *id)
{
	if (!kind || kind >= EXTERNALS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!calls.external[kind].depth)
		return CUPTI_ERROR_QUEUE_EMPTY;
	calls.external[kind].depth--;
	if (id)
		*id = calls.external[kind].ids[calls.external[kind].depth];
	return CUPTI_SUCCESS;
}

static void put_externals(const struct fake_fact *f)
{
	unsigned kind;

	for (kind = 1; kind < EXTERNALS; kind++) {
		unsigned depth = calls.external[kind].depth;
		RECORD(ExternalCorrelation, e);

		if (!depth)
			continue;
		e.externalKind = (CUpti_ExternalCorrelationKind)kind;
		e.externalId = calls.external[kind].ids[depth - 1];
		e.correlationId = f->correlation;
		e.reserved = 0;
		PUT(39, e);
	}
}

/* ---- calls ---- */

static void call_back(const struct fake_fact *f, CUpti_ApiCallbackSite site)
{
	CUpti_CallbackFunc callback = fake_state.callback;
	CUpti_CallbackData data;
	uint32_t result = f->result;

	if (!callback || f->cbid >= 1024 || !fake_state.wanted[f->domain][f->cbid])
		return;
	memset(&data, 0, sizeof(data));
	data.callbackSite = site;
	data.functionName = fake_callback_name(f->domain, f->cbid);
	data.functionReturnValue = site == CUPTI_API_EXIT ? &result : NULL;
	data.correlationData = &calls.open[f->depth % DEPTH].data;
	data.correlationId = f->correlation;
	callback(fake_state.callback_data, (CUpti_CallbackDomain)f->domain, f->cbid, &data);
}

/* What CUPTI leaves behind in each call, whether a kind is on or not. */
static void cost(void)
{
	uint64_t until_ns = fake_realtime() + (uint64_t)OPTION(after_us) * 1000;

	fake_counts.slowed++;
	while (fake_realtime() < until_ns)
		;
}

void fake_call_enter(const struct fake_fact *f)
{
	unsigned kind = f->domain == FAKE_DRIVER ? 4 : 5;
	bool on = fake_is_on(kind), muted = f->cbid < 1024 && fake_state.muted[f->domain][f->cbid];

	if (!f->depth && OPTION(after_us))
		cost();
	call_back(f, CUPTI_API_ENTER);
	if (f->depth >= DEPTH)
		return;
	calls.open[f->depth].kind = on && !muted ? kind : 0;
	calls.open[f->depth].begin_ns = fake_now();
	/* before 12.8 also for calls that are filtered */
	if (!f->depth && fake_is_on(39) && (fake_is_on(4) || fake_is_on(5)) &&
	    (!muted || fake_version() < 26))
		put_externals(f);
}

void fake_call_leave(const struct fake_fact *f)
{
	RECORD(API, a);

	if (f->depth < DEPTH && calls.open[f->depth].kind &&
	    fake_is_on(calls.open[f->depth].kind)) {
		a.cbid = f->cbid;
		a.start = calls.open[f->depth].begin_ns;
		a.end = fake_now();
		a.processId = (uint32_t)getpid();
		a.threadId = fake_thread_id();
		a.correlationId = f->correlation;
		a.returnValue = f->result;
		PUT(calls.open[f->depth].kind, a);
	}
	if (f->depth < DEPTH)
		calls.open[f->depth].kind = 0;
	call_back(f, CUPTI_API_EXIT);
}
