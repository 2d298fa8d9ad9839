/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile for pprof and viewers that read its files: calls, GPU time, host time and allocated
 * memory, by path.  A sample is a node of the calling-context tree, with the rank as a label.  A
 * location and a function stand for a name and class of ranges.  The file is always compressed,
 * whatever its name.
 */
#include "convert/output/gzip.h"
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/stage/path_sums.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"
#include "schemas/proto/profile.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS_MAX = 1 << 30, GZIP_LEVEL = 6, FRAMES_MAX = UINT16_MAX + 1 };
/* The first entries of the string table: value types and their units. */
enum { TEXT_NONE, TEXT_CALLS, TEXT_COUNT, TEXT_GPU, TEXT_NS, TEXT_HOST, TEXT_MEMORY, TEXT_BYTES };
static const char *const fixed[] = { "",     "calls", "count", "gpu",  "nanoseconds",
				     "host", "alloc", "bytes", "rank", "tacho" };
enum { TEXT_RANK = TEXT_BYTES + 1, TEXT_PROGRAM };

struct pprof_sink {
	struct sink base;
	struct path_sums sums;
	struct buf texts; /* each text ends with a NUL */
	size_t *text_at;
	size_t text_count, text_cap;
	struct hash_index by_text;
	struct map functions; /* number of the function, by class and name */
	uint64_t locations[FRAMES_MAX];
	struct gzip *gzip; /* NULL: the output compresses because of its name */
};

/* Writes compressed bytes.  Readers require gzip; if the name ends in .gz, the output itself
 * compresses. */
static enum status put_packed(void *self, const void *bytes, size_t len, struct error *err)
{
	const struct pprof_sink *s = self;

	return out_write(s->base.out, bytes, len, err);
}

static enum status put_lines(struct pprof_sink *s, size_t least, struct error *err)
{
	if (!s->gzip)
		return sink_flush(&s->base, least, err);
	TRY(buf_status(&s->base.lines, err));
	if (s->base.lines.len < least)
		return ST_OK;
	TRY(gzip_put(s->gzip, s->base.lines.data, s->base.lines.len, err));
	buf_clear(&s->base.lines);
	return ST_OK;
}

static enum status put_part(struct pprof_sink *s, const Tacho__Pprof__Profile *part,
			    struct error *err)
{
	size_t size = tacho__pprof__profile__get_packed_size(part);
	uint8_t *at = buf_reserve(&s->base.lines, size);

	if (at)
		s->base.lines.len += tacho__pprof__profile__pack(part, at);
	return put_lines(s, SINK_LINES_BYTES, err);
}

/* Returns the number of a text in the string table, adding it if it is new. */
static enum status text_number(struct pprof_sink *s, const char *text, size_t len, int64_t *out,
			       struct error *err)
{
	uint64_t hash;
	uint32_t found;
	size_t begin = s->texts.len;

	sink_put_utf8(text, len, false, &s->texts);
	buf_put_byte(&s->texts, '\0');
	TRY(buf_status(&s->texts, err));
	hash = hash_text((const char *)s->texts.data + begin, s->texts.len - begin);
	for (size_t at = hash_first(&s->by_text, hash);
	     (found = hash_item(&s->by_text, &at, hash)) != HASH_NONE;
	     at = hash_next(&s->by_text, at))
		if (!strcmp((const char *)s->texts.data + s->text_at[found],
			    (const char *)s->texts.data + begin)) {
			s->texts.len = begin;
			*out = found;
			return ST_OK;
		}
	TRY(vec_reserve(&s->text_at, &s->text_cap, s->text_count + 1, err));
	s->text_at[s->text_count] = begin;
	*out = (int64_t)s->text_count;
	return hash_add(&s->by_text, hash, (uint32_t)s->text_count++, err);
}

static enum status pprof_open(struct sink *sink, const struct sink_request *req, struct error *err)
{
	struct pprof_sink *s = (struct pprof_sink *)sink;
	const char *name = out_name(sink->out);
	size_t len = name ? strlen(name) : 0;
	int64_t number;

	s->sums.context = req->context;
	buf_init(&s->texts, TEXTS_MAX);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		TRY(text_number(s, fixed[i], strlen(fixed[i]), &number, err));
	if (len >= 3 && !strcmp(name + len - 3, ".gz"))
		return ST_OK;
	return gzip_new(&s->gzip, GZIP_LEVEL, put_packed, s, err);
}

static enum status pprof_put(struct sink *sink, const struct event *e, struct error *err)
{
	struct pprof_sink *s = (struct pprof_sink *)sink;

	if (!event_is_gpu_work(e) && !path_has_range(e) && e->kind != KIND_ALLOC) {
		sink->left_out++;
		return ST_OK;
	}
	sink->written++;
	return path_sums_put(&s->sums, sink->trace, e, err);
}

/* Fills the texts of a function: "net.py(12): forward" is the function `forward`, which begins in
 * line 12 of net.py. */
static enum status function_texts(struct pprof_sink *s, const struct path_node *node,
				  Tacho__Pprof__Function *f, struct error *err)
{
	RELEASED_BY(buf_release) struct buf name;
	const char *text, *line;
	unsigned number = 0;
	int end = 0;

	buf_init(&name, TEXTS_MAX);
	path_frame(s->base.trace, node, &name);
	buf_put_byte(&name, '\0');
	TRY(buf_status(&name, err));
	text = (const char *)name.data;
	line = node->class == RANGE_PYTHON ? strchr(text, '(') : NULL;
	if (line && sscanf(line, "(%9u): %n", &number, &end) == 1 && end && line[end]) {
		TRY(text_number(s, text, (size_t)(line - text), &f->filename, err));
		f->start_line = number;
		text = line + end;
	}
	TRY(text_number(s, text, strlen(text), &f->name, err));
	f->system_name = f->name;
	return ST_OK;
}

/* Returns the location of a node, and writes it when it occurs for the first time. */
static enum status location_of(struct pprof_sink *s, const struct path_node *node, uint64_t *out,
			       struct error *err)
{
	Tacho__Pprof__Profile part = TACHO__PPROF__PROFILE__INIT;
	Tacho__Pprof__Location location = TACHO__PPROF__LOCATION__INIT, *locations = &location;
	Tacho__Pprof__Line line = TACHO__PPROF__LINE__INIT, *lines = &line;
	Tacho__Pprof__Function function = TACHO__PPROF__FUNCTION__INIT, *functions = &function;
	bool is_new;
	uint64_t *number =
		map_put(&s->functions, (uint64_t)node->class << 32 | node->name, &is_new);

	if (!number)
		return fail_memory(err);
	if (is_new)
		*number = s->functions.count;
	*out = *number;
	if (!is_new)
		return ST_OK;
	TRY(function_texts(s, node, &function, err));
	function.id = location.id = line.function_id = *out;
	line.line = function.start_line;
	location.mapping_id = 1;
	location.line = &lines;
	location.n_line = 1;
	part.location = &locations;
	part.function = &functions;
	part.n_location = part.n_function = 1;
	return put_part(s, &part, err);
}

static enum status put_sample(struct pprof_sink *s, uint32_t at, const struct path_sum *sum,
			      struct error *err)
{
	const struct trace *t = s->base.trace;
	Tacho__Pprof__Profile part = TACHO__PPROF__PROFILE__INIT;
	Tacho__Pprof__Sample sample = TACHO__PPROF__SAMPLE__INIT, *samples = &sample;
	Tacho__Pprof__Label label = TACHO__PPROF__LABEL__INIT, *labels = &label;
	int64_t values[] = { (int64_t)sum->calls, (int64_t)sum->gpu_ns,
			     sum->host_ns > 0 ? sum->host_ns : 0, (int64_t)sum->bytes };
	const struct path_node *node = trace_get_path(t, at);

	for (; node->class != PATH_ROOT && node->parent; node = trace_get_path(t, node->parent))
		if (sample.n_location_id < FRAMES_MAX)
			TRY(location_of(s, node, &s->locations[sample.n_location_id++], err));
	if (!sample.n_location_id)
		TRY(location_of(s, node, &s->locations[sample.n_location_id++], err));
	sample.location_id = s->locations;
	sample.value = values;
	sample.n_value = sizeof(values) / sizeof(values[0]);
	label.key = TEXT_RANK;
	label.num = trace_get_process(t, node->name)->rank;
	sample.label = &labels;
	sample.n_label = label.num != NO_RANK;
	part.sample = &samples;
	part.n_sample = 1;
	return put_part(s, &part, err);
}

static enum status put_head(struct pprof_sink *s, struct error *err)
{
	static const int64_t types[][2] = { { TEXT_CALLS, TEXT_COUNT },
					    { TEXT_GPU, TEXT_NS },
					    { TEXT_HOST, TEXT_NS },
					    { TEXT_MEMORY, TEXT_BYTES } };
	Tacho__Pprof__Profile part = TACHO__PPROF__PROFILE__INIT;
	Tacho__Pprof__Mapping mapping = TACHO__PPROF__MAPPING__INIT, *mappings = &mapping;
	Tacho__Pprof__ValueType type[4], *all[4];
	uint64_t first_ns = UINT64_MAX;
	bool has_gpu = false;

	for (size_t i = 0; i < s->sums.cap; i++) {
		has_gpu |= s->sums.items[i].gpu_ns > 0;
		if (s->sums.items[i].first_ns && s->sums.items[i].first_ns < first_ns)
			first_ns = s->sums.items[i].first_ns;
	}
	for (size_t i = 0; i < 4; i++) {
		tacho__pprof__value_type__init(&type[i]);
		type[i].type = types[i][0];
		type[i].unit = types[i][1];
		all[i] = &type[i];
	}
	mapping.id = 1;
	mapping.filename = TEXT_PROGRAM;
	mapping.has_functions = true;
	part.sample_type = all;
	part.n_sample_type = 4;
	part.mapping = &mappings;
	part.n_mapping = 1;
	part.time_nanos = first_ns == UINT64_MAX ? 0 : (int64_t)first_ns;
	part.default_sample_type = has_gpu ? TEXT_GPU : TEXT_HOST;
	return put_part(s, &part, err);
}

static enum status pprof_close(struct sink *sink, struct error *err)
{
	struct pprof_sink *s = (struct pprof_sink *)sink;

	TRY(put_head(s, err));
	for (uint32_t i = 0; i < s->sums.cap; i++) {
		const struct path_sum *sum = &s->sums.items[i];

		if (sum->calls || sum->gpu_ns || sum->bytes || sum->host_ns > 0)
			TRY(put_sample(s, i, sum, err));
	}
	for (size_t i = 0; i < s->text_count; i++) {
		Tacho__Pprof__Profile part = TACHO__PPROF__PROFILE__INIT;
		ProtobufCBinaryData text = { .data = s->texts.data + s->text_at[i] };

		text.len = strlen((const char *)text.data);
		part.string_table = &text;
		part.n_string_table = 1;
		TRY(put_part(s, &part, err));
	}
	TRY(put_lines(s, 0, err));
	return s->gzip ? gzip_finish(s->gzip, err) : ST_OK;
}

static void pprof_release(struct sink *sink)
{
	struct pprof_sink *s = (struct pprof_sink *)sink;

	path_sums_release(&s->sums);
	buf_release(&s->texts);
	free(s->text_at);
	hash_release(&s->by_text);
	map_release(&s->functions);
	gzip_free(s->gzip);
}

const struct sink_type sink_pprof = {
	.name = "pprof",
	.help = "a profile for pprof: calls, GPU time, host time and memory by path",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.needs = NEED_STEP | NEED_LINK,
	.size = sizeof(struct pprof_sink),
	.open = pprof_open,
	.put_event = pprof_put,
	.close = pprof_close,
	.release = pprof_release,
};
