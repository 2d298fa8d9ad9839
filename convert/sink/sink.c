/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/sink.h"

#include "schemas/base/buf.h"
#include "schemas/base/utf8.h"

#include <string.h>

static void put_part(const char *part, const struct trace *t, const struct process *p, uint64_t ns,
		     struct buf *out)
{
	if (strncmp(part, "{host}", 6) == 0) { /* its name may have slashes, blanks, anything */
		const char *host = trace_text(t, p->host, NULL), *slash = strrchr(host, '/');

		if (slash)
			host = slash + 1;
		for (host = host[0] ? host : "host"; *host; host++) {
			bool is_up = *host == '.' && host[1] == '.'; /* the folder above */

			buf_put_byte(out, (uint8_t)(*host > ' ' && *host < 0x7F && !is_up ? *host
											  : '_'));
		}
	} else if (strncmp(part, "{pid}", 5) == 0) {
		buf_put_u64_text(out, p->pid);
	} else if (strncmp(part, "{ns}", 4) == 0) {
		buf_put_u64_text(out, ns);
	} else if (p->rank != NO_RANK) {
		buf_putf(out, "r%u", p->rank);
	} else {
		buf_putf(out, "p%u", p->pid);
	}
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

bool sink_is_name_taken(const struct buf *all, size_t at)
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
	} while (names->status == ST_OK && sink_is_name_taken(names, at));
	return buf_status(names, err);
}

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
