/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/sink.h"

#include "convert/output/output.h"
#include "schemas/base/utf8.h"
#include "schemas/model/records.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_CEILING = 256 << 20 };

enum status sink_open(struct sink **out, const struct sink_type *type,
		      const struct sink_request *req, struct error *err)
{
	struct sink *s = calloc(1, type->size);
	enum status status;

	*out = NULL;
	if (!s)
		return fail_memory(err);
	s->type = type;
	s->trace = req->trace;
	s->out = req->out;
	s->process = req->process;
	buf_init(&s->lines, LINES_CEILING);
	status = type->open(s, req, err);
	if (status == ST_OK)
		*out = s;
	else
		sink_free(s);
	return status;
}

enum status sink_put(struct sink *s, const struct batch *batch, struct error *err)
{
	for (size_t i = 0;
	     s->type->draws_arrows && i < batch->count && !(s->has_launches && s->has_launched);
	     i++) {
		const struct event *e = &batch->events[i];

		s->has_launches |= e->correlation && e->kind == KIND_API;
		s->has_launched |= e->correlation && event_is_gpu_work(e);
	}
	if (s->type->put)
		return s->type->put(s, batch, err);
	for (size_t i = 0; i < batch->count; i++) {
		const struct event *e = &batch->events[i];

		if (!s->process || trace_get_track(s->trace, e->track)->process == s->process)
			TRY(s->type->put_event(s, e, err));
	}
	return ST_OK;
}

enum status sink_close(struct sink *s, struct error *err)
{
	return s->type->close ? s->type->close(s, err) : sink_flush(s, 0, err);
}

void sink_free(struct sink *s)
{
	if (!s)
		return;
	if (s->type->release)
		s->type->release(s);
	buf_release(&s->lines);
	free(s);
}

enum status sink_flush(struct sink *s, size_t least, struct error *err)
{
	TRY(buf_status(&s->lines, err));
	if (s->lines.len < least)
		return ST_OK;
	TRY(out_write(s->out, s->lines.data, s->lines.len, err));
	buf_clear(&s->lines);
	return ST_OK;
}

/* ---- names of files ---- */

static void put_part(const char *part, const struct trace *t, const struct process *p, uint64_t ns,
		     unsigned attempt, struct buf *out)
{
	if (strncmp(part, "{host}", 6) == 0) { /* may contain slashes, blanks, anything */
		const char *host = trace_text(t, p->host, NULL), *slash = strrchr(host, '/');

		if (slash)
			host = slash + 1;
		for (host = host[0] ? host : "host"; *host; host++) {
			bool is_up = *host == '.' && host[1] == '.'; /* parent folder */
			bool is_good = *host > ' ' && *host < 0x7F && !is_up;

			buf_put_byte(out, (uint8_t)(is_good ? *host : '_'));
		}
	} else if (strncmp(part, "{pid}", 5) == 0) {
		buf_put_u64_text(out, p->pid);
	} else if (strncmp(part, "{ns}", 4) == 0) {
		buf_put_u64_text(out, ns + attempt - 1);
	} else if (strncmp(part, "{rank}", 6) == 0) {
		buf_putf(out, p->rank != NO_RANK ? "r%u" : "p%u",
			 p->rank != NO_RANK ? p->rank : p->pid);
	} else if (attempt > 1) {
		buf_putf(out, part[1] == '.' ? ".%u" : "%u.", attempt);
	}
}

enum status sink_put_name(const char *folder, const char *form, const struct trace *trace,
			  uint32_t process, uint64_t ns, struct buf *names, struct error *err)
{
	const struct process *p = trace_get_process(trace, process);
	size_t at = names->len;
	bool is_taken = true;

	for (unsigned attempt = 1; is_taken && names->status == ST_OK; attempt++) {
		names->len = at;
		buf_put_text(names, folder);
		for (const char *part = form; *part; part++) {
			const char *end = *part == '{' ? strchr(part, '}') : NULL;

			if (end)
				put_part(part, trace, p, ns, attempt, names);
			else
				buf_put_byte(names, (uint8_t)*part);
			part = end ? end : part;
		}
		buf_put_byte(names, 0);
		is_taken = false;
		for (size_t i = 0; names->status == ST_OK && i < at && !is_taken;
		     i += strlen((const char *)names->data + i) + 1)
			is_taken = strcmp((const char *)names->data + i,
					  (const char *)names->data + at) == 0;
	}
	return buf_status(names, err);
}

/* ---- texts ---- */

bool sink_put_utf8(const char *text, size_t len, bool keeps_nul, struct buf *out)
{
	size_t from = 0;
	bool is_repaired = false;

	for (size_t at = 0; at < len;) {
		size_t n = text[at] || keeps_nul ? utf8_sequence(text + at, len - at) : 0;

		if (!n) {
			buf_put(out, text + from, at - from);
			buf_put(out, "\xef\xbf\xbd", 3);
			from = at + 1;
			is_repaired = true;
		}
		at += n ? n : 1;
	}
	buf_put(out, text + from, len - from);
	return is_repaired;
}

const char *sink_kind_word(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return range_class_word(e->subkind);
	return e->kind == KIND_API && e->subkind == API_DRIVER ? "driver" : kind_word(e->kind);
}
