/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks for flame-graph viewers: "frame;frame;frame 1234", one line per path, in ns, sorted
 * by text.  The number is the GPU time of the path of the launch, with the GPU work as the last
 * frame; if there is no GPU work, it is the self time of host ranges.
 */
#include "convert/sink/sink.h"
#include "convert/stage/path_sums.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS_MAX = 1 << 30 };

struct folded_line {
	const char *text;
	uint64_t at, ns; /* at: offset of the text in `texts` */
};
struct folded_sink {
	struct sink base;
	struct path_sums sums;
	bool is_alone; /* only one process: stacks do not begin with its rank */
	struct buf texts;
	struct folded_line *lines;
	size_t line_count, line_cap;
};

static enum status folded_open(struct sink *sink, const struct sink_request *req, struct error *err)
{
	struct folded_sink *s = (struct folded_sink *)sink;

	(void)err;
	s->sums.context = req->context;
	s->is_alone = trace_count(sink->trace, TRACE_PROCESSES) < 2 || req->is_alone;
	buf_init(&s->texts, TEXTS_MAX);
	return ST_OK;
}

static enum status folded_put(struct sink *sink, const struct event *e, struct error *err)
{
	struct folded_sink *s = (struct folded_sink *)sink;

	if (!event_is_gpu_work(e) && !path_has_range(e)) {
		sink->left_out++;
		return ST_OK;
	}
	sink->written++;
	return path_sums_put(&s->sums, sink->trace, e, err);
}

/* Writes the lines.  Paths that differ only in the classes of their ranges share one line. */
static enum status folded_close(struct sink *sink, struct error *err)
{
	struct folded_sink *s = (struct folded_sink *)sink;
	bool has_gpu = false;

	for (size_t i = 0; i < s->sums.cap && !has_gpu; i++)
		has_gpu = s->sums.items[i].gpu_ns > 0;
	for (uint32_t i = 0; i < s->sums.cap; i++) {
		const struct path_sum *sum = &s->sums.items[i];
		uint64_t at = s->texts.len;

		if (has_gpu ? !sum->gpu_ns : sum->host_ns <= 0)
			continue;
		path_put_text(sink->trace, i, s->is_alone ? 0 : PATH_WITH_PROCESS, &s->texts);
		buf_put_byte(&s->texts, '\0');
		TRY(vec_reserve(&s->lines, &s->line_cap, s->line_count + 1, err));
		s->lines[s->line_count++] = (struct folded_line){
			.at = at, .ns = has_gpu ? sum->gpu_ns : (uint64_t)sum->host_ns
		};
	}
	TRY(buf_status(&s->texts, err));
	for (size_t i = 0; i < s->line_count; i++) /* `texts` does not move any more */
		s->lines[i].text = (const char *)s->texts.data + s->lines[i].at;
	SORT_BY(s->lines, s->line_count, UP(struct folded_line, text), UP(struct folded_line, at));
	for (size_t i = 0, next; i < s->line_count; i = next) {
		uint64_t ns = 0;

		for (next = i;
		     next < s->line_count && !strcmp(s->lines[next].text, s->lines[i].text); next++)
			ns += s->lines[next].ns;
		sink_put_utf8(s->lines[i].text, strlen(s->lines[i].text), false, &sink->lines);
		buf_putf(&sink->lines, " %llu\n", (unsigned long long)ns);
		TRY(sink_flush(sink, SINK_LINES_BYTES, err));
	}
	return sink_flush(sink, 0, err);
}

static void folded_release(struct sink *sink)
{
	struct folded_sink *s = (struct folded_sink *)sink;

	path_sums_release(&s->sums);
	buf_release(&s->texts);
	free(s->lines);
}

const struct sink_type sink_folded = {
	.name = "folded",
	.help = "folded stacks for flame graphs: GPU time by path, or host time without a GPU",
	.scope = SINK_WHOLE,
	.needs = NEED_STEP | NEED_LINK,
	.size = sizeof(struct folded_sink),
	.open = folded_open,
	.put_event = folded_put,
	.close = folded_close,
	.release = folded_release,
};
