/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/cuspy.h"

#include "schemas/model/records.h"

#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 24 };

/* Copies an argument that is a few words, optionally with capitals: "device_static" becomes "Device
 * Static".  Returns false if it is missing or contains other characters. */
static bool words_of(const struct kineto_event *e, const char *key, bool capitals,
		     char out[WORD_BYTES])
{
	const struct kineto_member *m = kineto_find(&e->args, key);
	bool begins = capitals;

	if (!m || m->value.type != JSON_STRING || !m->value.len || m->value.len >= WORD_BYTES)
		return false;
	for (size_t i = 0; i < m->value.len; i++) {
		char c = m->value.text[i] == '_' ? ' ' : m->value.text[i];
		bool is_small = c >= 'a' && c <= 'z';

		if (!is_small && c != ' ' && (c < 'A' || c > 'Z'))
			return false;
		out[i] = (char)(begins && is_small ? c - 'a' + 'A' : c);
		begins = capitals && c == ' ';
	}
	out[m->value.len] = '\0';
	return true;
}

bool cuspy_name(const struct kineto_event *e, unsigned kind, char out[CUSPY_NAME])
{
	char copy[WORD_BYTES], from[WORD_BYTES] = "Unknown", to[WORD_BYTES] = "Unknown";

	if (kind == KIND_MEMSET && kineto_is(&e->name, "Memset") &&
	    words_of(e, "memory kind", true, to)) {
		snprintf(out, CUSPY_NAME, "Memset (%s)", to);
		return true;
	}
	if (kind != KIND_MEMCPY || !kineto_is(&e->name, "Memcpy") ||
	    !words_of(e, "copy kind", false, copy))
		return false;
	words_of(e, "src kind", true, from);
	words_of(e, "dst kind", true, to);
	snprintf(out, CUSPY_NAME, "Memcpy %s (%s -> %s)", copy, from, to);
	return true;
}

bool cuspy_is_dependency(const struct kineto_event *e)
{
	uint64_t id;

	return e->id.type == JSON_NUMBER && json_u64(e->id.text, e->id.len, &id) &&
	       id >= CUSPY_DEPENDENCIES;
}

void cuspy_counter(const struct kineto_event *e, struct track *track)
{
	static const struct {
		const char *ending;
		uint8_t unit;
	} units[] = { { " (W)", UNIT_WATT },
		      { " (C)", UNIT_CELSIUS },
		      { " (MHz)", UNIT_MHZ },
		      { " (%)", UNIT_PERCENT } };
	static const char before[] = "GPU ", after[] = " Counters";
	const size_t shortest = sizeof(before) - 1 + 1 + sizeof(after) - 1;
	uint64_t device;

	if (e->pid.type != JSON_STRING || e->pid.len < shortest ||
	    memcmp(e->pid.text, before, sizeof(before) - 1) != 0 ||
	    memcmp(e->pid.text + e->pid.len - (sizeof(after) - 1), after, sizeof(after) - 1) != 0 ||
	    !json_u64(e->pid.text + sizeof(before) - 1, e->pid.len - (shortest - 1), &device) ||
	    device >= NO_ID)
		return;
	track->device = (uint32_t)device;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t len = strlen(units[i].ending);

		if (e->name.type == JSON_STRING && e->name.len > len &&
		    !memcmp(e->name.text + e->name.len - len, units[i].ending, len))
			track->unit = units[i].unit;
	}
}

void cuspy_stream(const struct kineto_event *e, struct kineto_place *place)
{
	const struct kineto_member *m = kineto_find(&e->args, "original_stream");
	int64_t stream;

	if (m && m->value.type == JSON_NUMBER && place->has_stream &&
	    json_i64(m->value.text, m->value.len, &stream))
		place->stream = stream;
}
