/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

enum {
	EXTERNALS = 8192,
	CALLS = 8192,
	EVENTS = 4096,
	EVENT_TRIES = 16,
	EVENT_BYTES = LAYOUT_WORDS * 8
};

struct external {
	uint64_t id;
	uint32_t correlation; /* 0: none */
	uint32_t kind;
};
struct waiting {
	uint32_t correlation; /* 0: none */
	_Alignas(8) uint8_t record[EVENT_BYTES];
};
struct call {
	uint64_t begin_ns;
	uint32_t correlation;
};
static struct {
	struct external externals[EXTERNALS]; /* the newest of each place */
	struct waiting events[EVENTS];
	struct call calls[CALLS]; /* the newest of each place */
	uint64_t event_count;
	bool has_externals, has_events;
} correlations;

bool cupti_correlation_any(void)
{
	return correlations.has_externals || correlations.has_events;
}

bool cupti_correlation_note_external(const uint8_t *record)
{
	uint32_t words[3];
	uint64_t id = read_word(record, 8);

	memcpy(words, record + 4, 4);      /* externalKind */
	memcpy(words + 1, record + 16, 4); /* correlationId */
	struct external *e = &correlations.externals[words[1] % EXTERNALS];
	correlations.has_externals = true;
	if (e->correlation == words[1] && e->kind < words[0])
		return false;
	words[2] = e->correlation == words[1] && e->kind != words[0];
	*e = (struct external){ id, words[1], words[0] };
	return !words[2];
}

bool cupti_correlation_external(uint32_t correlation, uint64_t *id)
{
	const struct external *e = &correlations.externals[correlation % EXTERNALS];

	if (!correlation || e->correlation != correlation)
		return false;
	*id = e->id;
	return true;
}

bool cupti_correlation_has_time(const struct cupti_family *f, const uint8_t *record)
{
	return read_number(record, &f->layouts[0]->begin) != 0;
}

bool cupti_correlation_note_event(const struct cupti_family *f, const uint8_t *record)
{
	size_t size = f->size < EVENT_BYTES ? f->size : EVENT_BYTES, i;
	uint32_t correlation = (uint32_t)read_word(record, f->correlation_at);
	struct waiting *w = NULL;

	correlations.has_events = true;
	if (!f->correlation_at || !correlation)
		return false;
	for (i = 0; i < EVENT_TRIES; i++) {
		w = &correlations.events[(correlation + i) % EVENTS];
		if (!w->correlation)
			break;
	}
	correlations.event_count += !w->correlation;
	memset(w->record, 0, sizeof(w->record));
	memcpy(w->record, record, size);
	w->correlation = correlation;
	return i < EVENT_TRIES;
}

uint64_t cupti_correlation_find_call(uint32_t correlation)
{
	const struct call *c = &correlations.calls[correlation % CALLS];

	return correlation && c->correlation == correlation ? c->begin_ns : 0;
}

void cupti_correlation_call(uint32_t correlation, uint64_t begin_ns,
			    void (*put)(const uint8_t *record, uint64_t begin_ns, void *arg),
			    void *arg)
{
	correlations.calls[correlation % CALLS] = (struct call){ begin_ns, correlation };
	for (size_t i = 0; i < EVENT_TRIES && correlations.event_count && begin_ns && correlation;
	     i++) {
		struct waiting *w = &correlations.events[(correlation + i) % EVENTS];

		if (w->correlation != correlation)
			continue;
		w->correlation = 0;
		correlations.event_count--;
		put(w->record, begin_ns, arg);
	}
}

uint64_t cupti_correlation_end(void)
{
	uint64_t count = correlations.event_count;

	for (size_t i = 0; i < EVENTS && count; i++)
		correlations.events[i].correlation = 0;
	correlations.event_count = 0;
	return count;
}

void cupti_correlation_forget(void)
{
	memset(&correlations, 0, sizeof(correlations));
}
