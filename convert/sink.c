/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink.h"

#include "schemas/buf.h"

#include <string.h>

static const struct sink_type *const sinks[] = {
#define X(name) &sink_##name,
	SINK_LIST(X)
#undef X
};

const struct sink_type *sink_find(const char *name)
{
	for (size_t i = 0; i < sizeof(sinks) / sizeof(*sinks); i++)
		if (strcmp(sinks[i]->name, name) == 0)
			return sinks[i];
	return NULL;
}

const struct sink_type *sink_at(size_t i)
{
	return i < sizeof(sinks) / sizeof(*sinks) ? sinks[i] : NULL;
}

/* What a process was called by its host may have slashes, blanks, anything. */
static void put_host(const char *host, struct buf *out)
{
	const char *slash = strrchr(host, '/');

	if (slash)
		host = slash + 1;
	for (host = host[0] ? host : "host"; *host; host++) {
		bool is_up = *host == '.' && host[1] == '.'; /* the folder above, says out_begin() */

		buf_put_byte(out, (uint8_t)(*host > ' ' && *host < 0x7F && !is_up ? *host : '_'));
	}
}

static void put_part(const char *part, const struct trace *t, const struct process *p, uint64_t ns,
		     struct buf *out)
{
	if (strncmp(part, "{host}", 6) == 0)
		put_host(trace_text(t, p->host, NULL), out);
	else if (strncmp(part, "{pid}", 5) == 0)
		buf_put_u64_text(out, p->pid);
	else if (strncmp(part, "{ns}", 4) == 0)
		buf_put_u64_text(out, ns);
	else if (p->rank != NO_RANK)
		buf_putf(out, "r%u", p->rank);
	else
		buf_putf(out, "p%u", p->pid);
}

void sink_put_file_name(const struct sink_type *type, const struct trace *trace, uint32_t process,
			uint64_t ns, struct buf *out)
{
	const struct process *p = trace_get_process(trace, process);

	for (const char *at = type->file_name; *at; at++) {
		const char *end = *at == '{' ? strchr(at, '}') : NULL;

		if (end)
			put_part(at, trace, p, ns, out);
		else
			buf_put_byte(out, (uint8_t)*at);
		at = end ? end : at;
	}
}

static bool is_taken(const struct buf *all, size_t at)
{
	const char *names = (const char *)all->data;

	for (size_t i = 0; i < at; i += strlen(names + i) + 1)
		if (strcmp(names + i, names + at) == 0)
			return true;
	return false;
}

enum status sink_put_new_name(const struct sink_type *type, const struct trace *trace,
			      uint32_t process, uint64_t ns, struct buf *names, struct error *err)
{
	bool has_ns = strstr(type->file_name, "{ns}") != NULL;
	size_t at = names->len;
	unsigned attempt = 0;

	do {
		names->len = at;
		if (attempt && !has_ns)
			buf_putf(names, "%u.", attempt + 1);
		sink_put_file_name(type, trace, process, ns + (has_ns ? attempt : 0), names);
		buf_put_byte(names, 0);
		attempt++;
	} while (names->status == ST_OK && is_taken(names, at));
	return buf_status(names, err);
}
