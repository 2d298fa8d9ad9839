/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/pump.h"

static enum status push(const struct batch *batch, const struct consumer *consumers, size_t count,
			struct error *err)
{
	for (size_t i = 0; i < count; i++)
		TRY(consumers[i].put(consumers[i].self, batch, err));
	return ST_OK;
}

enum status pump(struct source *source, const struct consumer *consumers, size_t count,
		 pump_progress progress, void *self, bool *source_failed, struct error *err)
{
	struct batch batch;
	struct error fault = { 0 };
	uint64_t events = 0;
	enum status status;

	*source_failed = false;
	while ((status = source_next(source, &batch, &fault)) == ST_OK) {
		TRY(push(&batch, consumers, count, err));
		events += batch.count;
		if (progress)
			progress(self, events);
	}
	TRY(push(&batch, consumers, count, err));
	if (status == ST_END)
		return ST_OK;
	*source_failed = true;
	return fail(err, status, fault.at, "%s", fault.text);
}
