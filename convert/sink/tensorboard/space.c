/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/tensorboard/internal.h"

#include "convert/output/output.h"
#include "convert/spool/scratch.h"

#include <stdlib.h>

enum {
	TAIL_BYTES = 1 << 20, /* bytes of a plane in memory before the disk is used */
	LINES_BYTES = 64 << 20,
	SMALL_BYTES = 64 << 20,
	SHARE = 4, /* part of the budget: other inputs and outputs need the rest */
};

/* ---- the pile ---- */

static enum status pile_put(struct tb_pile *p, const struct buf *bytes, struct error *err)
{
	TRY(buf_status(bytes, err));
	p->len += bytes->len;
	buf_put(&p->tail, bytes->data, bytes->len);
	TRY(buf_status(&p->tail, err));
	if (p->tail.len < TAIL_BYTES)
		return ST_OK;
	if (!p->scratch)
		TRY(scratch_open(&p->scratch, p->folder, err));
	TRY(scratch_write(p->scratch, p->tail.data, p->tail.len, err));
	buf_clear(&p->tail);
	return ST_OK;
}

/* Copies `len` bytes from offset `at` of the pile to the output. */
static enum status pile_copy(struct tb_space *s, uint64_t at, uint64_t len, struct error *err)
{
	struct tb_pile *p = &s->pile;
	uint64_t stored = p->len - p->tail.len;
	uint8_t bytes[16 * 1024];

	while (len && at < stored) {
		uint64_t want = stored - at < len ? stored - at : len;
		size_t n = want < sizeof(bytes) ? (size_t)want : sizeof(bytes);

		TRY(scratch_read(p->scratch, p->begin + at, bytes, n, err));
		TRY(out_write(s->out, bytes, n, err));
		at += n;
		len -= n;
	}
	return len ? out_write(s->out, p->tail.data + (at - stored), (size_t)len, err) : ST_OK;
}

/* ---- which line an event is of ---- */

static uint32_t add_line(struct tb_space *s, const struct tb_line *line)
{
	buf_put(&s->lines, line, sizeof(*line));
	return (uint32_t)(s->lines.len / sizeof(*line)); /* index + 1 */
}

static const struct tb_line *line_at(const struct tb_space *s, size_t i)
{
	return (const struct tb_line *)(const void *)s->lines.data + i;
}

/* Adds the lines of one plane: one for each track of that type and device, in their order in the
 * trace.  Counters share one line. */
static void add_lines(struct tb_space *s, enum tb_plane plane, enum track_type type,
		      uint32_t device)
{
	bool is_shared = type == TRACK_COUNTER;
	uint32_t count = trace_count(s->trace, TRACE_TRACKS), group = 0;

	for (uint32_t id = 1; id <= count; id++) {
		const struct track *k = trace_get_track(s->trace, id);
		struct tb_line line = { .track = is_shared ? 0 : id,
					.device = device,
					.plane = (uint8_t)plane,
					.kind = is_shared ? TB_LINE_COUNTERS : TB_LINE_EVENTS };

		if (k->process != s->process || k->type != type ||
		    (type != TRACK_THREAD && k->device != device))
			continue;
		if (!group || !is_shared)
			group = add_line(s, &line);
		s->groups[2 * id + (plane == TB_PLANE_CUSTOM)] = group;
	}
}

/* Returns the least device >= `from` that has a track in the process, or NO_ID. */
static uint32_t next_device(const struct tb_space *s, uint32_t from)
{
	uint32_t count = trace_count(s->trace, TRACE_TRACKS), best = NO_ID;

	for (uint32_t id = 1; id <= count; id++) {
		const struct track *k = trace_get_track(s->trace, id);

		if (k->process == s->process && k->device >= from && k->device < best &&
		    (k->type == TRACK_STREAM || k->type == TRACK_COUNTER ||
		     k->type == TRACK_ALLOCATOR))
			best = k->device;
	}
	return best;
}

static enum status plan_lines(struct tb_space *s, struct error *err)
{
	struct tb_line memory = { .device = NO_ID, .plane = TB_PLANE_HOST, .kind = TB_LINE_MEMORY };
	struct tb_line input = { .plane = TB_PLANE_GPU, .kind = TB_LINE_INPUT };
	uint32_t d;

	for (d = next_device(s, 0); d != NO_ID; d = next_device(s, d + 1)) {
		add_lines(s, TB_PLANE_GPU, TRACK_STREAM, d);
		add_lines(s, TB_PLANE_GPU, TRACK_COUNTER, d);
		input.device = d;
		if (d < TB_DEVICES && !s->is_xspace)
			s->input.groups[d] = add_line(s, &input);
	}
	for (uint32_t id = 1; id <= trace_count(s->trace, TRACE_TRACKS); id++)
		s->has_gpu |=
			s->groups[2 * id] && trace_get_track(s->trace, id)->type == TRACK_STREAM;
	add_lines(s, TB_PLANE_HOST, TRACK_THREAD, NO_ID);
	s->memory_group = add_line(s, &memory);
	add_lines(s, TB_PLANE_HOST, TRACK_COUNTER, NO_ID);
	for (d = next_device(s, 0); d != NO_ID; d = next_device(s, d + 1))
		add_lines(s, TB_PLANE_CUSTOM, TRACK_STREAM, d);
	add_lines(s, TB_PLANE_CUSTOM, TRACK_STREAM, NO_ID);
	return buf_status(&s->lines, err);
}

/* ---- events ---- */

enum status tb_space_put(struct tb_space *s, const struct event *e, struct error *err)
{
	const struct track *k = trace_get_track(s->trace, e->track);
	uint32_t group = s->groups[2 * e->track];

	TRY(tb_steps_put(&s->steps, e, err));
	if (k->type == TRACK_STREAM && (int64_t)k->id >= XLINE_DERIVED_FIRST &&
	    (int64_t)k->id < XLINE_DERIVED_FIRST + XLINE_DERIVED_COUNT)
		return ST_OK; /* XProf derived these lines, and will derive them again */
	if (k->type == TRACK_ALLOCATOR)
		group = s->memory_group;
	else if (k->type == TRACK_STREAM && (!event_is_gpu_work(e) || k->device == NO_ID))
		group = s->groups[2 * e->track + 1];
	else if (k->type == TRACK_COUNTER && s->in_use_name && k->name == s->in_use_name)
		TRY(spool_put(s->spool, s->memory_group - 1, e, 1, err));
	if (k->type == TRACK_STREAM && event_is_gpu_work(e))
		TRY(tb_input_put_work(s, e, err));
	return group ? spool_put(s->spool, group - 1, e, 1, err) : ST_OK;
}

/* ---- writing ---- */

struct line_bytes {       /* a line of the current plane */
	uint64_t at, len; /* offset and length of its events in the pile */
	uint32_t line;    /* index of the line; NO_ID: "Steps" */
	size_t head_len;  /* bytes of its head in the writer's `heads` */
};
struct writer {
	struct tb_space *s;
	struct line_bytes *done, now;
	size_t done_count, done_cap;
	uint64_t size;                /* bytes of the finished lines */
	bool is_open;                 /* a plane is being built */
	struct buf heads, head, tail; /* finished lines' heads; a head; the rest */
};

static enum status check_size(struct tb_space *s, uint64_t more, struct error *err)
{
	s->bytes += more;
	if (s->bytes < s->limit_bytes)
		return ST_OK;
	return fail(err, ST_CEILING, NOWHERE,
		    "%.60s: its XSpace would exceed 2 GiB, which no reader opens: filter with "
		    "--steps, --from/--to, --kinds or --max-size",
		    s->host);
}

/* Ends a line, whose bytes begin at l.at in the pile.  A line without bytes is left out. */
static enum status end_line(struct writer *w, struct line_bytes l, struct error *err)
{
	struct tb_space *s = w->s;
	size_t begin = w->heads.len;

	l.len = s->pile.len - l.at;
	if (!l.len)
		return ST_OK;
	buf_clear(&w->head);
	tb_put_line_head(s, l.line == NO_ID ? NULL : line_at(s, l.line), &w->head);
	pb_put_key(&w->heads, PLANE_LINES, PB_BYTES);
	buf_put_varint(&w->heads, w->head.len + l.len);
	buf_put(&w->heads, w->head.data, w->head.len);
	l.head_len = w->heads.len - begin;
	w->size += l.head_len + l.len;
	TRY(vec_reserve(&w->done, &w->done_cap, w->done_count + 1, err));
	w->done[w->done_count++] = l;
	return buf_status(&w->heads, err);
}

static enum status end_plane(struct writer *w, struct error *err)
{
	struct tb_space *s = w->s;
	const struct tb_line *line = line_at(s, w->now.line);
	struct line_bytes steps = { .line = NO_ID };
	const uint8_t *head;
	uint64_t size;

	TRY(end_line(w, w->now, err));
	steps.at = s->pile.len; /* each GPU has a line with the steps */
	for (size_t i = 0; line->plane == TB_PLANE_GPU && !s->is_xspace && i < s->steps.list.count;
	     i++) {
		buf_clear(&s->event);
		TRY(tb_step_put(s, i, err));
		TRY(pile_put(&s->pile, &s->event, err));
	}
	TRY(end_line(w, steps, err));
	buf_clear(&w->tail);
	TRY(tb_put_plane_stats(s, line, &w->tail, err));
	buf_put(&w->tail, s->names.entries.data, s->names.entries.len);
	buf_clear(&w->head);
	TRY(tb_put_plane_head(s, line, &w->head, err));
	size = w->head.len + w->size + w->tail.len;
	TRY(check_size(s, size + VARINT_MAX + 1, err));
	buf_clear(&s->event);
	pb_put_key(&s->event, SPACE_PLANES, PB_BYTES);
	buf_put_varint(&s->event, size);
	buf_put(&s->event, w->head.data, w->head.len);
	TRY(buf_status(&s->event, err));
	TRY(out_write(s->out, s->event.data, s->event.len, err));
	head = w->heads.data;
	for (size_t i = 0; i < w->done_count; i++) {
		const struct line_bytes *l = &w->done[i];

		TRY(out_write(s->out, head, l->head_len, err));
		TRY(pile_copy(s, l->at, l->len, err));
		head += l->head_len;
	}
	TRY(buf_status(&w->tail, err));
	return out_write(s->out, w->tail.data, w->tail.len, err);
}

static enum status begin_line(struct writer *w, uint32_t group, struct error *err)
{
	struct tb_space *s = w->s;
	struct tb_pile *p = &s->pile;
	const struct tb_line *next = line_at(s, group), *now = line_at(s, w->now.line);

	if (w->is_open && now->plane == next->plane && now->device == next->device) {
		TRY(end_line(w, w->now, err));
	} else {
		if (w->is_open)
			TRY(end_plane(w, err));
		buf_clear(&p->tail);
		p->len = 0;
		p->begin = p->scratch ? scratch_size(p->scratch) : 0;
		tb_names_clear(&s->names);
		buf_clear(&w->heads);
		w->size = w->done_count = 0;
	}
	w->is_open = true;
	s->steps.at = 0;
	w->now = (struct line_bytes){ .at = p->len, .line = group };
	return ST_OK;
}

static enum status write_planes(struct writer *w, struct error *err)
{
	struct tb_space *s = w->s;
	struct batch batch;
	enum status status;
	uint32_t group;

	while ((status = spool_next(s->spool, &group, &batch, err)) == ST_OK) {
		if (!w->is_open || group != w->now.line)
			TRY(begin_line(w, group, err));
		buf_clear(&s->event);
		for (size_t i = 0; i < batch.count; i++) {
			TRY(tb_event_put(s, line_at(s, group), &batch.events[i], err));
			if (s->event.len < TAIL_BYTES / 8)
				continue;
			TRY(pile_put(&s->pile, &s->event, err));
			buf_clear(&s->event);
		}
		TRY(pile_put(&s->pile, &s->event, err));
		if (s->bytes + s->pile.len >= s->limit_bytes)
			return check_size(s, s->pile.len, err);
	}
	if (status != ST_END)
		return status;
	return w->is_open ? end_plane(w, err) : ST_OK;
}

static bool has_plane(const struct tb_space *s, uint32_t device)
{
	for (size_t i = 0; i < s->lines.len / sizeof(struct tb_line); i++)
		if (line_at(s, i)->plane == TB_PLANE_GPU && line_at(s, i)->device == device)
			return true;
	return false;
}

/* Writes the planes of GPUs that did nothing, because XProf divides by the number of planes. */
static enum status write_idle_planes(struct writer *w, struct error *err)
{
	struct tb_space *s = w->s;
	struct tb_line line = { .plane = TB_PLANE_GPU };

	for (uint32_t id = 1; s->is_xspace && id <= trace_count(s->trace, TRACE_DEVICES); id++) {
		const struct device *d = trace_get_device(s->trace, id);

		line.device = d->id;
		if (d->process != s->process || has_plane(s, d->id))
			continue;
		tb_names_clear(&s->names);
		buf_clear(&w->head);
		buf_clear(&w->tail);
		TRY(tb_put_plane_head(s, &line, &w->tail, err));
		TRY(tb_put_plane_stats(s, &line, &w->tail, err));
		buf_put(&w->tail, s->names.entries.data, s->names.entries.len);
		pb_put_bytes(&w->head, SPACE_PLANES, w->tail.data, w->tail.len);
		TRY(buf_status(&w->head, err));
		TRY(out_write(s->out, w->head.data, w->head.len, err));
	}
	return ST_OK;
}

static void writer_release(struct writer *w)
{
	free(w->done);
	buf_release(&w->heads);
	buf_release(&w->head);
	buf_release(&w->tail);
}

enum status tb_space_write(struct tb_space *s, const char *host, uint64_t origin_ns,
			   struct error *err)
{
	RELEASED_BY(writer_release) struct writer w = { .s = s };

	s->host = host;
	s->origin_ns = origin_ns;
	buf_init(&w.heads, SMALL_BYTES);
	buf_init(&w.head, SMALL_BYTES);
	buf_init(&w.tail, (size_t)INT32_MAX);
	TRY(tb_steps_finish(&s->steps, err));
	/* This plane comes first, because readers recognize the writer by the first bytes. */
	TRY(tb_put_environment(s, &w.head, err));
	TRY(out_write(s->out, w.head.data, w.head.len, err));
	buf_clear(&w.head);
	TRY(write_planes(&w, err));
	return write_idle_planes(&w, err);
}

/* ---- the whole ---- */

void tb_space_free(struct tb_space *s)
{
	if (!s)
		return;
	spool_close(s->spool);
	scratch_close(s->pile.scratch);
	buf_release(&s->pile.tail);
	buf_release(&s->lines);
	buf_release(&s->event);
	buf_release(&s->scratch);
	steps_release(&s->steps.list);
	free(s->steps.groups);
	free(s->input.loading);
	tb_names_release(&s->names);
	free(s->groups);
	free(s);
}

enum status tb_space_open(struct tb_space **out, const struct sink_request *req,
			  uint64_t limit_bytes, struct error *err)
{
	struct tb_space *s = calloc(1, sizeof(*s));
	size_t tracks = (size_t)trace_count(req->trace, TRACE_TRACKS) + 1;
	const struct process *process;
	struct budget share = *req->budget;
	enum status status;

	share.opening /= SHARE;
	*out = NULL;
	if (!s)
		return fail_memory(err);
	s->trace = req->trace;
	s->out = req->out;
	s->context = req->context;
	s->process = req->process;
	s->all_args = req->all_args;
	process = trace_get_process(s->trace, s->process);
	s->is_xspace = trace_find_attr(s->trace, process->schema, XSTAT_PROFILE_START) &&
		       !trace_find_attr(s->trace, process->schema, XSTAT_CONVERTED_BY);
	s->limit_bytes = limit_bytes;
	s->in_use_name = trace_find_name(s->trace, "bytes_in_use", 12);
	s->pile.folder = req->budget->scratch;
	buf_init(&s->pile.tail, 4 * TAIL_BYTES);
	buf_init(&s->lines, LINES_BYTES);
	buf_init(&s->event, SMALL_BYTES);
	buf_init(&s->scratch, SMALL_BYTES);
	s->steps.context = req->context;
	tb_names_init(&s->names, s->trace);
	s->groups = calloc(2 * tracks, sizeof(*s->groups));
	status = s->groups ? plan_lines(s, err) : fail_memory(err);
	if (status == ST_OK)
		status = spool_open(&s->spool, s->trace, &share, err);
	if (status != ST_OK) {
		tb_space_free(s);
		return status;
	}
	*out = s;
	return ST_OK;
}
