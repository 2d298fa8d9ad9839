/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes counters of the program itself, such as loss or accuracy, as scalars: the chart
 * counters/NAME has the last sample of each step.  A sample outside of all steps is numbered by its
 * place among such samples.
 */
#include "convert/sink/tensorboard/internal.h"

#include "convert/output/output.h"
#include "convert/output/tfevents.h"
#include "schemas/base/utf8.h"
#include "schemas/model/records.h"

#include <ctype.h>
#include <math.h>

enum { FILE_BYTES = 256 << 20, TAG_BYTES = 512, ROWS_MOST = 1 << 20 };

enum status tb_scalars_put(struct tb_scalars *s, struct trace *t, const struct event *e,
			   struct error *err)
{
	struct tb_scalar *last = s->count ? &s->rows[s->count - 1] : NULL;
	const struct track *k = trace_get_track(t, e->track);
	uint32_t step = e->step & STEP_GAP ? 0 : e->step;

	/* Counters of GPUs and memory do not come from the program and are part of the report. */
	if (e->kind != KIND_COUNTER || k->type != TRACK_COUNTER || k->device != NO_ID ||
	    k->unit != UNIT_NONE || !isfinite(e->value))
		return ST_OK;
	/* Programs write their counters in turns, so the row to replace is among the last few. */
	for (size_t back = 0; step && last && back < TB_TURN && back < s->count; back++, last--) {
		if (last->track != e->track || last->step != step)
			continue;
		last->value = e->value;
		last->at_ns = e->begin_ns;
		return ST_OK;
	}
	if (s->count == ROWS_MOST) {
		trace_lose(t, trace_get_track(t, e->track)->process, LOSS_NO_PLACE, 1);
		return ST_OK;
	}
	TRY(vec_reserve(&s->rows, &s->cap, s->count + 1, err));
	s->rows[s->count++] = (struct tb_scalar){ e->begin_ns, e->value, e->track, step };
	return ST_OK;
}

static void put_tag(const struct trace *t, uint32_t track, struct buf *tag)
{
	const char *name = trace_text(t, trace_get_track(t, track)->name, NULL);
	char bytes[4];

	buf_clear(tag);
	buf_put_text(tag, "counters/");
	while (*name) {
		uint32_t c = utf8_next(&name);

		buf_put(tag, bytes, utf8_put(bytes, utf8_is_control(c) ? '_' : c));
	}
}

/* Makes a name for a file in the same folder as the report's file, such that it sorts after that.
 */
static void put_file_name(const struct trace *t, uint32_t process, bool is_alone, uint64_t at_ns,
			  struct buf *name)
{
	const struct process *p = trace_get_process(t, process);
	const char *host = trace_text(t, p->host, NULL);

	if (!is_alone && p->rank != NO_RANK)
		buf_putf(name, "r%u/", p->rank);
	else if (!is_alone)
		buf_putf(name, "p%u/", p->pid);
	buf_putf(name, "events.out.tfevents.%010llu.", (unsigned long long)(at_ns / 1000000000u));
	for (host = *host ? host : "host"; *host; host++)
		buf_put_byte(name, (uint8_t)(isalnum((unsigned char)*host) || *host == '-' ? *host
											   : '_'));
	buf_putf(name, ".%u.1", p->pid);
}

enum status tb_scalars_write(const struct tb_scalars *s, const struct tb_space *space,
			     const struct sink_request *req, struct error *err)
{
	const struct trace *t = space->trace;
	RELEASED_BY(vec_release) uint64_t *outside = NULL;
	RELEASED_BY(buf_release) struct buf file = { .ceiling = FILE_BYTES };
	RELEASED_BY(buf_release) struct buf name = { .ceiling = TAG_BYTES };
	RELEASED_BY(buf_release) struct buf tag = { .ceiling = TAG_BYTES };

	TRY(vec_new(&outside, (size_t)trace_count(t, TRACE_TRACKS) + 1, err));
	put_file_name(t, space->process, req->is_alone, s->rows[0].at_ns, &name);
	tfevents_put_version(&file, s->rows[0].at_ns);
	for (size_t i = 0; i < s->count; i++) {
		const struct tb_scalar *r = &s->rows[i];
		uint64_t number = r->step ? tb_steps_group(&space->steps, r->step - 1, r->at_ns)
					  : outside[r->track]++;

		put_tag(t, r->track, &tag);
		tfevents_put_scalar(&file, r->at_ns,
				    number < INT64_MAX ? (int64_t)number : INT64_MAX,
				    buf_text(&tag), r->value);
	}
	TRY(buf_status(&name, err));
	TRY(buf_status(&file, err));
	TRY(out_begin(space->out, buf_text(&name), err));
	return out_write(space->out, file.data, file.len, err);
}
