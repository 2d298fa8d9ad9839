/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes events as XEvents.  Names and details are those by which XProf recognises an event: a
 * kernel has kernel_details, a copy is named MemcpyHToD, its size is read from "num_bytes:N\n", and
 * tf_op names the range that launched it.
 */
#include "convert/sink/tensorboard/internal.h"

#include "schemas/model/args.h"
#include "schemas/model/records.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

enum { PS = 1000, FLOW_GPU = 9 /* XProf's category of a launch */, FLOW_OUT = 2, FLOW_IN = 1 };

uint64_t tb_const_u64(const struct tb_space *s, const struct event *e, const char *key)
{
	return trace_attr_number(s->trace, e->schema, key);
}

bool tb_arg_bits(const struct tb_space *s, const struct event *e, const char *key, uint64_t *bits)
{
	return e->args && event_arg(s->trace, e, trace_find_name(s->trace, key, strlen(key)), bits);
}

/* ---- names ---- */

static const char *copy_name(unsigned kind)
{
	switch (kind) {
	case 1:
	case 3:
		return "MemcpyHToD";
	case 2:
	case 4:
		return "MemcpyDToH";
	case 10:
		return "MemcpyDToD (P2P)";
	case 9:
		return "MemcpyHToH";
	}
	return "MemcpyDToD";
}

static void put_made_name(struct tb_space *s, const struct event *e)
{
	switch (e->kind) {
	case KIND_MEMSET:
		buf_put_text(&s->scratch, "Memset");
		return;
	case KIND_GRAPH:
		buf_putf(&s->scratch, "CudaGraphExec:%llu",
			 (unsigned long long)tb_const_u64(s, e, "graph"));
		return;
	case KIND_STEP:
		buf_putf(&s->scratch, "ProfilerStep#%llu", (unsigned long long)e->number);
		return;
	case KIND_COUNTER:
		buf_put_text(&s->scratch,
			     trace_text(s->trace, trace_get_track(s->trace, e->track)->name, NULL));
		return;
	}
	buf_put_text(&s->scratch, kind_word(e->kind)[0] ? kind_word(e->kind) : "unknown");
}

/* ---- what is the same for all events of a name and schema ---- */

/* Attributes that XProf's tools read from an event itself, and their names as stats. */
static const struct kept {
	const char *key, *stat;
} kept[] = {
	{ "tf_op", "tf_op" },           { "hlo_op", "hlo_op" },  { "hlo_module", "hlo_module" },
	{ "program_id", "program_id" }, { "name_stat", "name" }, { "is_eager", "is_eager" },
	{ "equation", "equation" },     { "shape", "shape" },
};

static const char *kept_as(const struct tb_space *s, const struct attr *a)
{
	const char *key = trace_text(s->trace, a->key, NULL);

	if (s->is_xspace) /* tb_put_own_stats() writes them */
		return NULL;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strcmp(key, kept[i].key) == 0)
			return kept[i].stat;
	return NULL;
}

/* Appends an attribute of any type as a stat. */
static void put_attr(struct tb_space *s, struct buf *b, uint32_t field, uint64_t key,
		     const struct attr *a, uint64_t bits)
{
	static const uint8_t types[] = {
		[ATTR_U64] = XSTAT_UINT64, [ATTR_I64] = XSTAT_INT64, [ATTR_F64] = XSTAT_DOUBLE
	};

	if (a->type < sizeof(types))
		tb_stat(b, field, key, types[a->type], bits);
	else
		tb_stat(b, field, key, XSTAT_REF, tb_name(&s->names, (uint32_t)bits));
}

static double occupancy(const struct tb_space *s, const struct event *e)
{
	const struct attr *a = trace_find_attr(s->trace, e->schema, "occ_pct");
	double real = 0;

	if (a && a->type == ATTR_F64)
		memcpy(&real, &a->bits, sizeof(real));
	else if (!a)
		real = (double)tb_const_u64(s, e, "occupancy_percent");
	return isfinite(real) ? real : 0;
}

#define U(key) (unsigned long long)tb_const_u64(s, e, key)
/* Appends "a,b,c"; each number is at least 1. */
static void put_dims(struct tb_space *s, const struct event *e, const char *const keys[3])
{
	for (size_t i = 0; i < 3; i++) {
		uint64_t v = tb_const_u64(s, e, keys[i]);

		buf_putf(&s->scratch, "%s%llu", i ? "," : "", (unsigned long long)(v ? v : 1));
	}
}

/* Appends the details of a kernel that XProf reads, as a text that is made once per schema. */
static void put_kernel_details(struct tb_space *s, const struct event *e, struct buf *b)
{
	static const char *const grid[] = { "grid_x", "grid_y", "grid_z" };
	static const char *const block[] = { "block_x", "block_y", "block_z" };
	uint64_t key = tb_key(&s->names, "kernel_details"), shared;
	const struct tb_row *row = tb_find(&s->names, TB_DETAILS, e->schema, 0);

	if (!row) {
		shared = tb_const_u64(s, e, "static_shared");
		buf_clear(&s->scratch);
		buf_putf(&s->scratch,
			 "regs:%llu static_shared:%llu dynamic_shared:%llu grid:", U("registers"),
			 (unsigned long long)(shared ? shared : tb_const_u64(s, e, "shared")),
			 U("dynamic_shared"));
		put_dims(s, e, grid);
		buf_put_text(&s->scratch, " block:");
		put_dims(s, e, block);
		buf_putf(&s->scratch, " occ_pct:%g", occupancy(s, e));
		row = tb_add(&s->names, TB_DETAILS, e->schema, 0,
			     tb_new_stat(&s->names, buf_text(&s->scratch), s->scratch.len));
	}
	tb_stat(b, XEVENT_STATS, key, XSTAT_REF, row->id);
}

static void put_word(struct tb_space *s, struct buf *b, const char *stat, const char *word)
{
	tb_stat_text(b, EVENT_META_STATS, tb_key(&s->names, stat), word, strlen(word));
}

/* Appends stats that only people read to the metadata of the event's name. */
static void put_metadata(struct tb_space *s, const struct event *e, struct buf *b)
{
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

	if (e->kind == KIND_RANGE && !s->is_xspace)
		put_word(s, b, XSTAT_CLASS_NAME, range_class_word(e->subkind));
	else if (!s->is_xspace && !event_is_gpu_work(e) && e->kind != KIND_API &&
		 e->kind != KIND_STEP && e->kind != KIND_COUNTER)
		put_word(s, b, XSTAT_KIND_NAME, kind_word(e->kind));
	for (uint32_t i = 0; s->all_args && !s->is_xspace && i < schema->const_count; i++) {
		const struct attr *a = &schema->consts[i];

		if (!kept_as(s, a))
			put_attr(s, b, EVENT_META_STATS, tb_name(&s->names, a->key), a, a->bits);
	}
}

/* Returns the row of an event's name, schema and kind, adding it if it is new. */
static enum status find_row(struct tb_space *s, const struct event *e, struct tb_row *out,
			    struct error *err)
{
	uint64_t what = (uint64_t)e->schema << 16 | (uint64_t)e->kind << 8 | e->subkind;
	uint64_t name = e->kind == KIND_STEP && !e->name ? ~e->number : e->name, id;
	struct tb_row *row;
	struct buf stats;
	enum status status;
	uint32_t at = (uint32_t)s->names.constants.len;
	size_t len;

	if (e->kind == KIND_COUNTER)
		name |= (uint64_t)e->track << 32;
	row = tb_find(&s->names, TB_EVENT, name, what);
	if (row) {
		*out = *row;
		return ST_OK;
	}
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

	if (e->kind == KIND_KERNEL && !trace_find_attr(s->trace, e->schema, "kernel_details"))
		put_kernel_details(s, e, &s->names.constants);
	for (uint32_t i = 0; i < schema->const_count; i++) {
		const char *stat = kept_as(s, &schema->consts[i]);

		if (stat)
			put_attr(s, &s->names.constants, XEVENT_STATS, tb_key(&s->names, stat),
				 &schema->consts[i], schema->consts[i].bits);
	}
	buf_init(&stats, 1 << 20);
	put_metadata(s, e, &stats);
	const char *text = trace_text(s->trace, e->name, &len);

	buf_clear(&s->scratch);
	if (e->kind == KIND_MEMCPY)
		buf_put_text(&s->scratch, copy_name(e->subkind));
	else if (len && e->kind != KIND_MEMSET)
		buf_put(&s->scratch, text, len);
	else
		put_made_name(s, e);
	id = tb_new_event(&s->names, buf_text(&s->scratch), s->scratch.len, &stats);
	status = buf_status(&stats, err);
	buf_release(&stats);
	row = tb_add(&s->names, TB_EVENT, name, what, id);
	row->at = at;
	row->len = (uint32_t)s->names.constants.len - at;
	*out = *row;
	return status;
}

/* ---- stats of one event ---- */

static void put_copy(struct tb_space *s, const struct event *e)
{
	struct buf *b = &s->scratch;
	bool is_copy = e->kind == KIND_MEMCPY;
	uint64_t key = tb_key(&s->names, is_copy ? "memcpy_details" : "Memset_details");

	buf_clear(b);
	if (is_copy)
		buf_putf(b,
			 "num_bytes:%llu\nkind_src:%s kind_dst:%s size:%llu dest:%llu async:%llu",
			 (unsigned long long)e->bytes,
			 memory_words(tb_const_u64(s, e, "src_kind"))->xprof,
			 memory_words(tb_const_u64(s, e, "dst_kind"))->xprof,
			 (unsigned long long)e->bytes, U("dst_device"), U("async"));
	else
		buf_putf(b, "kind:%s num_bytes:%llu async:%llu",
			 memory_words(tb_const_u64(s, e, "memory_kind"))->xprof,
			 (unsigned long long)e->bytes, U("async"));
	tb_stat_text(&s->event, XEVENT_STATS, key, buf_text(b), b->len);
}

/* Returns the id of an arrow, which is unique among all files of a run, because viewers show them
 * together. */
static uint64_t flow_of(const struct tb_space *s, const struct event *e)
{
	uint64_t id = e->correlation + (s->call_at << 32);

	return (id & ((UINT64_C(1) << 56) - 1)) << 2 | (uint64_t)FLOW_GPU << 58;
}

/* Appends a part of XProf's form scope/name:type.  Each sequence of characters that its pattern
 * does not accept becomes one dot. */
static void put_op_part(struct buf *b, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool good = isalnum((unsigned char)text[i]) || strchr("_/>-", text[i]);

		if (good && text[i])
			buf_put_byte(b, (uint8_t)text[i]);
		else if (!b->len || b->data[b->len - 1] != '.')
			buf_put_byte(b, '.');
	}
}

static void put_type(struct buf *b, const char *text, size_t len)
{
	size_t at = len;

	while (at && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_'))
		at--;
	if (at == len || isdigit((unsigned char)text[at])) {
		buf_put_text(b, "range");
		return;
	}
	for (; at < len; at++)
		buf_put_byte(b, (uint8_t)tolower((unsigned char)text[at]));
}

void tb_put_op(struct tb_space *s, const struct event *e)
{
	uint64_t key = tb_key(&s->names, "tf_op");
	uint32_t owner = trace_owner(s->trace, e->path);
	const struct tb_row *row = tb_find(&s->names, TB_SCOPE, owner, e->phase);
	struct buf *b = &s->scratch;
	const char *text, *phase = "other";
	size_t len;

	if (!row) {
		if (s->context && e->phase < context_phase_count(s->context))
			phase = context_phase(s->context, e->phase).name;
		text = trace_text(s->trace, owner, &len);
		if (!len) {
			text = "no_range";
			len = strlen(text);
		}
		buf_clear(b);
		put_op_part(b, phase, strlen(phase));
		buf_put_byte(b, '/');
		put_op_part(b, text, len);
		buf_put_byte(b, ':');
		put_type(b, text, len);
		row = tb_add(&s->names, TB_SCOPE, owner, e->phase,
			     tb_new_stat(&s->names, buf_text(b), b->len));
	}
	tb_stat(&s->event, XEVENT_STATS, key, XSTAT_REF, row->id);
}

/* Returns whether a member of the event contains the attribute, so that it is not written twice. */
static bool is_member(const struct tb_space *s, const struct event *e, const char *key)
{
	return key[0] == '.' ||
	       (event_is_gpu_work(e) && (kind_field(e->kind, key, strlen(key)) ||
					 (e->kind == KIND_KERNEL && !strcmp(key, "occ_pct"))));
}

static uint64_t own_key(struct tb_space *s, uint32_t key)
{
	size_t len, end = strlen(XSPACE_KEY_SUFFIX);
	const char *text = trace_text(s->trace, key, &len);
	char name[64];

	if (strcmp(text, "total_allocated") == 0)
		return tb_key(&s->names, "bytes_allocated");
	if (len <= end || len - end >= sizeof(name) || strcmp(text + len - end, XSPACE_KEY_SUFFIX))
		return tb_name(&s->names, key);
	snprintf(name, sizeof(name), "%.*s", (int)(len - end), text);
	return tb_key(&s->names, name);
}

void tb_put_own_stats(struct tb_space *s, const struct event *e)
{
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

	for (uint32_t i = 0; i < schema->const_count + schema->arg_count; i++) {
		bool is_const = i < schema->const_count;
		const struct attr *a =
			is_const ? &schema->consts[i] : &schema->args[i - schema->const_count];

		if ((is_const || e->args) && !is_member(s, e, trace_text(s->trace, a->key, NULL)))
			put_attr(s, &s->event, XEVENT_STATS, own_key(s, a->key), a,
				 is_const ? a->bits : e->args[i - schema->const_count]);
	}
}

static void put_work(struct tb_space *s, const struct event *e)
{
	struct buf *b = &s->event;
	size_t step = tb_steps_find(&s->steps, e->begin_ns);
	uint64_t correlation = tb_key(&s->names, "correlation_id"), group, flow;

	tb_stat(b, XEVENT_STATS, correlation, XSTAT_UINT64, e->correlation);
	if (s->is_xspace) {
		if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
			put_copy(s, e);
		return;
	}
	group = tb_key(&s->names, "group_id");
	flow = tb_key(&s->names, "flow");
	if (step < s->steps.list.count)
		tb_stat(b, XEVENT_STATS, group, XSTAT_INT64, s->steps.groups[step]);
	if (e->correlation)
		tb_stat(b, XEVENT_STATS, flow, XSTAT_UINT64, FLOW_IN | flow_of(s, e));
	if (e->kind == KIND_GRAPH)
		tb_stat(b, XEVENT_STATS, tb_key(&s->names, "cuda_graph_exec_id"), XSTAT_UINT64,
			tb_const_u64(s, e, "graph"));
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		put_copy(s, e);
	if (!trace_find_attr(s->trace, e->schema, "tf_op"))
		tb_put_op(s, e);
}

/* Without a GPU, XProf reads steps from the host's plane by their stat step_name, which marks get.
 */
static void put_host_step(struct tb_space *s, const struct event *e, uint64_t number, bool is_mark)
{
	char text[DECIMAL_MAX + 1];
	size_t len = put_u64_text(text, number);

	tb_stat(&s->event, XEVENT_STATS, tb_key(&s->names, "group_id"), XSTAT_INT64,
		tb_steps_group(&s->steps, number, e->begin_ns));
	if (is_mark && !s->has_gpu)
		tb_stat_text(&s->event, XEVENT_STATS, tb_key(&s->names, "step_name"), text, len);
}

static void put_stats(struct tb_space *s, const struct event *e)
{
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);
	bool all = s->all_args || (e->flags & EVENT_STANDS_FOR); /* arguments say which */
	struct buf *b = &s->event;

	if (s->is_xspace)
		tb_put_own_stats(s, e);
	if (event_is_gpu_work(e)) {
		put_work(s, e);
	} else if (e->kind == KIND_API && e->correlation && s->is_xspace) {
		tb_stat(b, XEVENT_STATS, tb_key(&s->names, "correlation_id"), XSTAT_UINT64,
			e->correlation);
	} else if (e->kind == KIND_API && e->correlation) {
		uint64_t correlation = tb_key(&s->names, "correlation_id");
		uint64_t flow = tb_key(&s->names, "flow");

		tb_stat(b, XEVENT_STATS, correlation, XSTAT_UINT64, e->correlation);
		tb_stat(b, XEVENT_STATS, flow, XSTAT_UINT64, FLOW_OUT | flow_of(s, e));
	} else if (e->kind == KIND_STEP) {
		uint64_t root = tb_key(&s->names, "_r"), number = tb_key(&s->names, "step_num");

		tb_stat(b, XEVENT_STATS, root, XSTAT_INT64, 1);
		tb_stat(b, XEVENT_STATS, number, XSTAT_INT64, e->number);
		if (!s->is_xspace)
			put_host_step(s, e, e->number, true);
	} else if (e->kind == KIND_RANGE && !s->has_gpu && !s->is_xspace && e->step &&
		   !(e->step & STEP_GAP)) {
		put_host_step(s, e, e->step - 1, s->context && context_is_mark(s->context, e));
	} else if (e->kind == KIND_COUNTER) {
		tb_stat_f64(b, XEVENT_STATS, tb_key(&s->names, "value"), e->value);
	}
	/* Write the arguments that differ between events.  Those already written, and members
	 * (".x"), are left out. */
	for (uint32_t i = 0; all && !s->is_xspace && e->args && i < schema->arg_count; i++) {
		const struct attr *a = &schema->args[i];
		const char *text = trace_text(s->trace, a->key, NULL);

		if (text[0] != '.' && strcmp(text, "flow") != 0 && strcmp(text, "group_id") != 0)
			put_attr(s, b, XEVENT_STATS, tb_name(&s->names, a->key), a, e->args[i]);
	}
}

/* ---- the event ---- */

static void put_times(struct tb_space *s, const struct event *e)
{
	uint64_t begin_ns = e->begin_ns > s->origin_ns ? e->begin_ns - s->origin_ns : 0;
	/* An import keeps the part of a time below a nanosecond in arguments. */
	const char *key = ".offset_ps";
	uint64_t bits;

	uint64_t offset_ps = e->schema && tb_arg_bits(s, e, key, &bits) && bits < PS ? bits : 0;
	uint64_t duration_ps = (e->end_ns - e->begin_ns) * PS, finer = 0;

	if (e->schema && tb_arg_bits(s, e, ".duration_ps", &finer) && finer < PS) {
		uint64_t end_ps = (offset_ps + finer) % PS; /* part of the end below a nanosecond */

		duration_ps =
			duration_ps + end_ps >= offset_ps ? duration_ps + end_ps - offset_ps : 0;
	}
	pb_put_u64(&s->event, XEVENT_OFFSET_PS, begin_ns * PS + offset_ps);
	pb_put_u64(&s->event, XEVENT_DURATION_PS, duration_ps);
}

/* Appends the stats of a wait.  XProf counts an event if it belongs to a step and has a correlation
 * id. */
static void put_input(struct tb_space *s, const struct event *e)
{
	size_t step = tb_steps_find(&s->steps, e->begin_ns);

	tb_stat(&s->event, XEVENT_STATS, tb_key(&s->names, "correlation_id"), XSTAT_UINT64, 0);
	if (step < s->steps.list.count)
		tb_stat(&s->event, XEVENT_STATS, tb_key(&s->names, "group_id"), XSTAT_INT64,
			s->steps.groups[step]);
}

enum status tb_event_put(struct tb_space *s, const struct tb_line *line, const struct event *e,
			 struct error *err)
{
	static const char *const texts[] = { "MemoryAllocation", "MemoryDeallocation",
					     "MemcpyHToD" };
	bool is_memory = line->kind == TB_LINE_MEMORY, is_input = line->kind == TB_LINE_INPUT;
	unsigned text = is_input ? 2 : e->kind == KIND_FREE;
	struct tb_row row = { 0 }, *made;
	size_t at;

	if (is_memory || is_input) {
		made = tb_find(&s->names, TB_EVENT, UINT64_MAX, text);
		if (!made) {
			buf_clear(&s->scratch);
			if (is_input) /* the name that people see */
				pb_put_text(&s->scratch, EVENT_META_DISPLAY_NAME,
					    "waiting for input");
			made = tb_add(&s->names, TB_EVENT, UINT64_MAX, text,
				      tb_new_event(&s->names, texts[text], strlen(texts[text]),
						   &s->scratch));
		}
		row.id = made->id;
	} else {
		TRY(find_row(s, e, &row, err));
	}
	at = pb_begin(&s->event, LINE_EVENTS);
	pb_put_u64(&s->event, XEVENT_METADATA_ID, row.id);
	put_times(s, e);
	if (row.len)
		buf_put(&s->event, s->names.constants.data + row.at, row.len);
	if (is_memory)
		tb_put_memory(s, e);
	else if (is_input)
		put_input(s, e);
	else
		put_stats(s, e);
	pb_end(&s->event, at);
	TRY(tb_names_status(&s->names, err));
	return buf_status(&s->event, err);
}

enum status tb_step_put(struct tb_space *s, size_t row, struct error *err)
{
	const struct step_row *step = &s->steps.list.rows[row];
	size_t at = pb_begin(&s->event, LINE_EVENTS);
	char text[DECIMAL_MAX + 1];
	size_t len = put_u64_text(text, step->number);
	uint64_t id = tb_new_event(&s->names, text, len, NULL);
	uint64_t group = tb_key(&s->names, "group_id"), name = tb_key(&s->names, "step_name");

	pb_put_u64(&s->event, XEVENT_METADATA_ID, id);
	pb_put_u64(&s->event, XEVENT_OFFSET_PS, (step->begin_ns - s->origin_ns) * PS);
	pb_put_u64(&s->event, XEVENT_DURATION_PS, (step->end_ns - step->begin_ns) * PS);
	tb_stat(&s->event, XEVENT_STATS, group, XSTAT_INT64, s->steps.groups[row]);
	tb_stat_text(&s->event, XEVENT_STATS, name, text, len);
	pb_end(&s->event, at);
	TRY(tb_names_status(&s->names, err));
	return buf_status(&s->event, err);
}
