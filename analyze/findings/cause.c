/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about one cause of idle time, which need only texts and no code of their own. */
#include "analyze/findings/rule.h"

#include <stdarg.h>
#include <stdio.h>

static const char *where_of(const struct facts_owner *o)
{
	return o->range[0] ? o->range : o->call;
}

enum { NAME_SHOWN = 60 };

const char *cut_text(char out[CUT_TEXT], const char *name, size_t most)
{
	size_t len = strlen(name);

	if (len <= most)
		return name;
	for (len = most; len && ((unsigned char)name[len] & 0xc0) == 0x80; len--)
		;
	snprintf(out, CUT_TEXT, "%.*s\xe2\x80\xa6", (int)len, name);
	return out;
}

/* Shortens the name of a Python frame to its end, which has the file and the function. */
static const char *end_of_frame(const char *name, size_t most, char out[NAME_SHOWN + 4])
{
	size_t len = strlen(name);

	if (len <= most)
		return name;
	name += len - most;
	while (((unsigned char)*name & 0xc0) == 0x80)
		name++;
	snprintf(out, NAME_SHOWN + 4, "\xe2\x80\xa6%s", name);
	return out;
}

/* Writes "; most of it in aten::item at train.py: 12". */
const char *owner_text(const struct facts_owner *o, char out[OWNER_TEXT])
{
	const char *range = where_of(o);
	char a[CUT_TEXT], b[NAME_SHOWN + 4];

	if (!range[0] && !o->python[0])
		out[0] = '\0';
	else if (!o->python[0])
		snprintf(out, OWNER_TEXT, "; most of it in %s", cut_text(a, range, NAME_SHOWN));
	else
		snprintf(out, OWNER_TEXT, "; most of it in %s at %s",
			 range[0] ? cut_text(a, range, 40) : "the host",
			 end_of_frame(o->python, 45, b));
	return out;
}

/* Writes " in aten::item". A long name keeps its end, which is most specific. */
const char *owner_brief(const struct facts_owner *o, char out[OWNER_BRIEF])
{
	const char *range = where_of(o)[0] ? where_of(o) : o->python;
	size_t len = strlen(range);
	bool is_long = len > OWNER_BRIEF_NAME;

	out[0] = '\0';
	if (len)
		snprintf(out, OWNER_BRIEF, " in %s%s", is_long ? "\xe2\x80\xa6" : "",
			 is_long ? range + len - OWNER_BRIEF_NAME + 1 : range);
	return out;
}

/* Copies `words` to `out` with {} and {in} replaced. */
static void fill(char *out, size_t cap, const char *words, const char *span, const char *in)
{
	size_t len = 0;

	out[0] = '\0';
	while (*words && len + 1 < cap) {
		size_t part = strcspn(words, "{");
		if (part) {
			len += (size_t)snprintf(out + len, cap - len, "%.*s", (int)part, words);
			words += part;
			continue;
		}
		len += (size_t)snprintf(out + len, cap - len, "%s", words[1] == '}' ? span : in);
		words += strcspn(words, "}");
		words += *words == '}';
	}
}

bool rule_look(const struct facts *f, const struct rule *r, struct finding *out)
{
	char span[SPAN_TEXT], in[OWNER_TEXT], brief[OWNER_BRIEF];

	if (r->look)
		return r->look(f, out);
	out->saving_ns = facts_wait(f, (struct gap_query){ .cause = r->cause, .kind = "plain" }).ns;
	if (out->saving_ns <= 0)
		return false;
	struct facts_owner o = facts_owner(f, r->cause);
	span_text(span, out->saving_ns);
	fill(out->evidence, FINDING_TEXT, r->evidence, span, owner_text(&o, in));
	owner_brief(&o, brief);
	fill(out->brief, BRIEF_TEXT, r->brief, span, brief[0] ? brief : " in the loop");
	return true;
}

bool rule_saves(struct finding *out, double saving_ns)
{
	out->saving_ns = saving_ns;
	return saving_ns > 0;
}

void rule_tell(struct finding *out, const char *fmt, ...)
{
	size_t len = strlen(out->evidence);
	va_list args;

	va_start(args, fmt);
	vsnprintf(out->evidence + len, FINDING_TEXT - len, fmt, args);
	va_end(args);
}

void rule_brief(struct finding *out, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(out->brief, BRIEF_TEXT, fmt, args);
	va_end(args);
}
