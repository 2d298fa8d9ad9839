/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/align/align.h"

#include "convert/stage/align/read.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_LISTED = 8, LINE_BYTES = 512, HOSTS_MOST = 4096 };

struct host {
	uint32_t name;
	const char *path;  /* path of the host's input that is read */
	uint64_t error_ns; /* error of its anchors; UINT64_MAX: no anchors */
	struct ended *ended;
	size_t count;
	struct aligned fit; /* maps its clock to that of the first host */
	bool is_fit, is_applied;
};
struct align {
	const struct align_request *how;
	struct host *hosts;
	size_t count;
	uint32_t *
		host_of; /* by input: index into `hosts` + 1; 0: no single host, or unknown epoch */
};

bool align_mode_find(const char *word, enum align_mode *out)
{
	static const char *const words[] = { "anchors", "collectives", "none" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], word)) {
			*out = (enum align_mode)i;
			return true;
		}
	return false;
}

static void report(const struct align *a, const char *line)
{
	if (a->how->report)
		a->how->report(a->how->self, line);
}

/* ---- hosts ------------------------------------------------------------------------------ */

/* Returns the name of the host on which all processes of an input ran; 0: it is unknown, or there
 * are several. */
static uint32_t host_name(const struct align *a, const struct run_input *in)
{
	uint32_t name = 0;

	for (uint32_t i = in->first_process; i < in->end_process; i++) {
		const struct process *p = trace_get_process(a->how->trace, i);

		if (!p->host || (name && p->host != name))
			return 0;
		name = p->host;
	}
	return name;
}

/* Finds the hosts of the inputs and the error of their anchors. */
static void hosts_take(struct align *a)
{
	char line[LINE_BYTES];
	size_t unknown = 0;

	for (size_t i = 0; i < a->how->count; i++) {
		const struct run_input *in = &a->how->inputs[i];
		uint32_t name = host_name(a, in);
		struct host *h = a->hosts;

		unknown += !in->epoch_known;
		if (!name || !in->epoch_known)
			continue;
		while (h < a->hosts + a->count && h->name != name)
			h++;
		if (h == a->hosts + HOSTS_MOST)
			continue;
		if (h == a->hosts + a->count) {
			*h = (struct host){ .name = name, .path = in->path };
			h->error_ns = UINT64_MAX;
			a->count++;
		}
		a->host_of[i] = (uint32_t)(h - a->hosts) + 1;
		for (uint32_t p = in->first_process; p < in->end_process; p++) {
			uint64_t error_ns = align_anchor_error(a->how->trace, p);

			if (error_ns != UINT64_MAX &&
			    (h->error_ns == UINT64_MAX || error_ns > h->error_ns))
				h->error_ns = error_ns;
		}
	}
	if (!unknown || a->how->count == 1)
		return;
	snprintf(line, sizeof(line),
		 "the times of %zu of %zu inputs do not count from the Unix epoch, so these inputs "
		 "are not aligned",
		 unknown, a->how->count);
	report(a, line);
}

static const char *host_text(const struct align *a, const struct host *h)
{
	return trace_text(a->how->trace, h->name, NULL);
}

/* ---- fits ------------------------------------------------------------------------------- */

/* Fits the clock of `h` to that of the first host, by way of a host whose clock is already fitted.
 */
static enum status fit_through(struct host *h, const struct host *fitted, struct error *err)
{
	struct ended *moved;
	struct aligned own;

	TRY(vec_new(&moved, fitted->count + 1, err));
	for (size_t i = 0; i < fitted->count; i++)
		moved[i] =
			(struct ended){ fitted->ended[i].key,
					clock_fit_at(&fitted->fit.fit, fitted->ended[i].end_ns) };
	enum status status = align_pairs(h->ended, h->count, moved, fitted->count, &own, err);
	free(moved);
	if (status != ST_OK || own.pairs < ALIGN_PAIRS)
		return status;
	h->fit = own;
	h->is_fit = true;
	return ST_OK;
}

/* Returns by how much the refinement shifts times at most, from its first pair to its last. */
static uint64_t moves_ns(const struct host *h)
{
	double end = (double)h->fit.fit.offset_ns + h->fit.fit.drift * (double)h->fit.span_ns;
	uint64_t first = (uint64_t)llabs(h->fit.fit.offset_ns);
	uint64_t last = (uint64_t)(end < 0 ? -end : end);

	return first > last ? first : last;
}

/* Returns the error of the first host's anchors plus that of this host's; 0: unknown. */
static uint64_t error_of(const struct align *a, const struct host *h)
{
	const struct host *first = &a->hosts[0];

	if (first->error_ns == UINT64_MAX || h->error_ns == UINT64_MAX)
		return 0;
	return first->error_ns + h->error_ns;
}

static void put_line(struct align *a, struct host *h)
{
	char line[LINE_BYTES], drift[64] = "", why[128] = "";
	const struct clock_fit *fit = &h->fit.fit;

	if (fit->drift != 0)
		snprintf(drift, sizeof(drift), ", drift %+.3f us/s", 0 - fit->drift * 1e6);
	if (!h->is_applied && h->error_ns == UINT64_MAX)
		snprintf(
			why, sizeof(why),
			"; not applied, because the log has no clock anchors that limit the error");
	else if (!h->is_applied)
		snprintf(why, sizeof(why),
			 "; not applied, because the clock anchors allow an error of only %.1f us",
			 (double)error_of(a, h) / 1e3);
	snprintf(line, sizeof(line),
		 "clock of %.80s: %+.1f us from that of %.80s, by %zu collectives%s; remaining "
		 "error %.1f us%s",
		 host_text(a, h), (double)(0 - fit->offset_ns) / 1e3, host_text(a, &a->hosts[0]),
		 h->fit.pairs, drift, (double)fit->error_ns / 1e3,
		 h->is_applied ? "; corrected" : why);
	report(a, line);
}

static void decide(struct align *a)
{
	size_t fit = 0, applied = 0;
	uint64_t left_ns = 0;
	char line[LINE_BYTES];

	for (struct host *h = a->hosts + 1; h < a->hosts + a->count; h++) {
		h->is_applied = h->is_fit && (a->how->mode == ALIGN_COLLECTIVES ||
					      moves_ns(h) <= error_of(a, h));
		if (!h->is_fit)
			continue;
		applied += h->is_applied;
		if (h->fit.fit.error_ns > left_ns)
			left_ns = h->fit.fit.error_ns;
		if (fit++ < HOSTS_LISTED)
			put_line(a, h);
	}
	if (!fit) {
		report(a, "the clocks of the hosts cannot be compared: no all-reduce or barrier "
			  "was recorded on several hosts");
		return;
	}
	snprintf(line, sizeof(line),
		 "clocks of %zu hosts: %zu compared with the first, %zu corrected; remaining error "
		 "at most %.1f us%s",
		 a->count, fit, applied, (double)left_ns / 1e3,
		 applied < fit ? "; use --align=collectives to correct all of them" : "");
	report(a, line);
}

/* ---- what it is used for ---------------------------------------------------------------- */

static void move_windows(const struct align *a, const struct run_input *in)
{
	for (uint32_t i = 1; i <= trace_count(a->how->trace, TRACE_WINDOWS); i++) {
		struct window w = *trace_get_window(a->how->trace, i);

		if (w.process < in->first_process || w.process >= in->end_process)
			continue;
		w.begin_ns = clock_fit_at(&in->fit, w.begin_ns);
		w.end_ns = w.end_ns ? clock_fit_at(&in->fit, w.end_ns) : 0;
		trace_set_window(a->how->trace, i, &w);
	}
}

static enum status align_hosts(struct align *a, struct error *err)
{
	for (struct host *h = a->hosts; h < a->hosts + a->count; h++) {
		struct error own = { .at = NOWHERE };
		char line[LINE_BYTES];

		if (align_read(h->path, a->how->rules, a->how->budget, &h->ended, &h->count,
			       &own) == ST_OK)
			continue;
		snprintf(line, sizeof(line), "the clock of %.80s cannot be compared: %.200s",
			 host_text(a, h), own.text);
		report(a, line);
	}
	bool found = true;

	a->hosts[0].is_fit = true;
	while (found) {
		found = false;
		for (struct host *h = a->hosts + 1; h < a->hosts + a->count; h++) {
			if (h->is_fit)
				continue;
			for (size_t k = 0; k < a->count && !h->is_fit; k++)
				if (a->hosts[k].is_fit)
					TRY(fit_through(h, &a->hosts[k], err));
			found |= h->is_fit;
		}
	}
	decide(a);
	for (size_t i = 0; i < a->how->count; i++) {
		const struct host *h = a->host_of[i] ? &a->hosts[a->host_of[i] - 1] : NULL;

		if (!h || !h->is_applied)
			continue;
		a->how->inputs[i].fit = h->fit.fit;
		move_windows(a, &a->how->inputs[i]);
	}
	return ST_OK;
}

static void align_release(struct align *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->hosts[i].ended);
	free(a->hosts);
	free(a->host_of);
}

enum status align_fit(const struct align_request *how, struct error *err)
{
	RELEASED_BY(align_release) struct align a = { .how = how };

	if (how->mode == ALIGN_NONE || how->count < 2)
		return ST_OK;
	TRY(vec_new(&a.hosts, how->count < HOSTS_MOST ? how->count : HOSTS_MOST, err));
	TRY(vec_new(&a.host_of, how->count, err));
	hosts_take(&a);
	return a.count > 1 ? align_hosts(&a, err) : ST_OK;
}
