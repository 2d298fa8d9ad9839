/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as XEvents.  Names and details are those by which XProf tells what an event is: a kernel
 * has kernel_details, a copy is MemcpyHToD, its bytes are read from "num_bytes:N\n", tf_op says
 * which range launched it.
 */
#include "convert/sink/tensorboard/space.h"
#include "schemas/model/records.h"
#include "schemas/proto/xspace.h"

#include <math.h>

enum { PS = 1000, FLOW_GPU = 9 /* XProf's category of a launch */, FLOW_OUT = 2, FLOW_IN = 1 };

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

static void put_name(struct tb_space *s, const struct event *e)
{
	size_t len;
	const char *text = trace_text(s->trace, e->name, &len);

	buf_clear(&s->scratch);
	if (e->kind == KIND_MEMCPY)
		buf_put_text(&s->scratch, copy_name(e->subkind));
	else if (len && e->kind != KIND_MEMSET)
		buf_put(&s->scratch, text, len);
	else
		put_made_name(s, e);
}

/* ---- what is the same for all events of a name and shape ---- */

/* What XProf's tools read from an event itself, spelled as in the trace's tables. */
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

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strcmp(key, kept[i].key) == 0)
			return kept[i].stat;
	return NULL;
}

/* An attribute of whatever type. */
static enum status put_attr(struct tb_space *s, struct buf *b, uint32_t field, uint64_t key,
			    const struct attr *a, uint64_t bits, struct error *err)
{
	uint64_t ref;
	double real;

	switch (a->type) {
	case ATTR_U64:
		tb_stat_u64(b, field, key, bits);
		return ST_OK;
	case ATTR_I64:
		tb_stat_i64(b, field, key, (int64_t)bits);
		return ST_OK;
	case ATTR_F64:
		memcpy(&real, &bits, sizeof(real));
		tb_stat_f64(b, field, key, real);
		return ST_OK;
	}
	ref = tb_name(&s->names, (uint32_t)bits, err);
	if (!ref)
		return err->status;
	tb_stat_ref(b, field, key, ref);
	return ST_OK;
}

static double occupancy(const struct tb_space *s, const struct event *e)
{
	const struct attr *a = tb_const_attr(s, e, "occ_pct");
	double real = 0;

	if (a && a->type == ATTR_F64)
		memcpy(&real, &a->bits, sizeof(real));
	else if (!a)
		real = (double)tb_const_u64(s, e, "occupancy_percent");
	return isfinite(real) ? real : 0;
}

#define U(key) (unsigned long long)tb_const_u64(s, e, key)
/* "a,b,c", each at least 1. */
static void put_dims(struct tb_space *s, const struct event *e, const char *const keys[3])
{
	for (size_t i = 0; i < 3; i++) {
		uint64_t v = tb_const_u64(s, e, keys[i]);

		buf_putf(&s->scratch, "%s%llu", i ? "," : "", (unsigned long long)(v ? v : 1));
	}
}

/* What XProf reads of a kernel, as a text that is made once for each schema. */
static enum status put_kernel_details(struct tb_space *s, const struct event *e, struct buf *b,
				      struct error *err)
{
	static const char *const grid[] = { "grid_x", "grid_y", "grid_z" };
	static const char *const block[] = { "block_x", "block_y", "block_z" };
	struct tb_row *row = tb_find(&s->names, TB_DETAILS, e->schema, 0);

	TB_KEY_OR_FAIL(key, "kernel_details");
	if (!row) {
		uint64_t shared = tb_const_u64(s, e, "static_shared");

		buf_clear(&s->scratch);
		buf_putf(&s->scratch,
			 "regs:%llu static_shared:%llu dynamic_shared:%llu grid:", U("registers"),
			 (unsigned long long)(shared ? shared : tb_const_u64(s, e, "shared")),
			 U("dynamic_shared"));
		put_dims(s, e, grid);
		buf_put_text(&s->scratch, " block:");
		put_dims(s, e, block);
		buf_putf(&s->scratch, " occ_pct:%g", occupancy(s, e));
		TRY(tb_add(&s->names, TB_DETAILS, e->schema, 0,
			   tb_new_stat(&s->names, buf_text(&s->scratch), s->scratch.len, err), &row,
			   err));
	}
	tb_stat_ref(b, XEVENT_STATS, key, row->id);
	return ST_OK;
}

static enum status put_constants(struct tb_space *s, const struct event *e, struct buf *b,
				 struct error *err)
{
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

	if (e->kind == KIND_KERNEL)
		TRY(put_kernel_details(s, e, b, err));
	for (uint32_t i = 0; i < schema->const_count; i++) {
		const char *stat = kept_as(s, &schema->consts[i]);

		if (!stat)
			continue;
		TB_KEY_OR_FAIL(key, stat);
		TRY(put_attr(s, b, XEVENT_STATS, key, &schema->consts[i], schema->consts[i].bits,
			     err));
	}
	return buf_status(b, err);
}

/* What only people look at stands with the name. */
static enum status put_metadata(struct tb_space *s, const struct event *e, struct buf *b,
				struct error *err)
{
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

	if (e->kind == KIND_RANGE) {
		TB_KEY_OR_FAIL(key, XSTAT_CLASS_NAME);
		tb_stat_text(b, EVENT_META_STATS, key, range_class_word(e->subkind),
			     strlen(range_class_word(e->subkind)));
	} else if (!event_is_gpu_work(e) && e->kind != KIND_API && e->kind != KIND_STEP &&
		   e->kind != KIND_COUNTER) {
		TB_KEY_OR_FAIL(key, XSTAT_KIND_NAME);
		tb_stat_text(b, EVENT_META_STATS, key, kind_word(e->kind),
			     strlen(kind_word(e->kind)));
	}
	for (uint32_t i = 0; s->all_args && i < schema->const_count; i++) {
		const struct attr *a = &schema->consts[i];
		uint64_t key;

		if (kept_as(s, a))
			continue;
		key = tb_name(&s->names, a->key, err);
		if (!key)
			return err->status;
		TRY(put_attr(s, b, EVENT_META_STATS, key, a, a->bits, err));
	}
	return buf_status(b, err);
}

/* The row of an event's name, shape and kind. */
static enum status find_row(struct tb_space *s, const struct event *e, struct tb_row *out,
			    struct error *err)
{
	uint64_t what = (uint64_t)e->schema << 16 | (uint64_t)e->kind << 8 | e->subkind;
	uint64_t name = e->kind == KIND_STEP && !e->name ? ~e->number : e->name;
	struct tb_row *row;
	struct buf stats;
	enum status st;
	uint32_t at;

	if (e->kind == KIND_COUNTER)
		name |= (uint64_t)e->track << 32;
	row = tb_find(&s->names, TB_EVENT, name, what);
	if (row) {
		*out = *row;
		return ST_OK;
	}
	at = (uint32_t)s->names.constants.len;
	TRY(put_constants(s, e, &s->names.constants, err));
	buf_init(&stats, 1 << 20);
	st = put_metadata(s, e, &stats, err);
	put_name(s, e);
	if (st == ST_OK)
		st = tb_add(
			&s->names, TB_EVENT, name, what,
			tb_new_event(&s->names, buf_text(&s->scratch), s->scratch.len, &stats, err),
			&row, err);
	buf_release(&stats);
	if (st != ST_OK)
		return st;
	row->at = at;
	row->len = (uint32_t)s->names.constants.len - at;
	*out = *row;
	return ST_OK;
}

/* ---- stats of one event ---- */

static const char *memory_word(uint64_t kind)
{
	static const char *const words[] = { "unknown",       "pageable",      "pinned",
					     "device",        "array",         "managed",
					     "device_static", "managed_static" };

	return words[kind < sizeof(words) / sizeof(words[0]) ? kind : 0];
}

static enum status put_copy(struct tb_space *s, const struct event *e, struct error *err)
{
	struct buf *b = &s->scratch;
	bool is_copy = e->kind == KIND_MEMCPY;

	TB_KEY_OR_FAIL(key, is_copy ? "memcpy_details" : "Memset_details");
	buf_clear(b);
	if (is_copy)
		buf_putf(b,
			 "num_bytes:%llu\nkind_src:%s kind_dst:%s size:%llu dest:%llu async:%llu",
			 (unsigned long long)e->bytes, memory_word(tb_const_u64(s, e, "src_kind")),
			 memory_word(tb_const_u64(s, e, "dst_kind")), (unsigned long long)e->bytes,
			 U("dst_device"), U("async"));
	else
		buf_putf(b, "kind:%s num_bytes:%llu async:%llu",
			 memory_word(tb_const_u64(s, e, "memory_kind")),
			 (unsigned long long)e->bytes, U("async"));
	tb_stat_text(&s->event, XEVENT_STATS, key, buf_text(b), b->len);
	return ST_OK;
}

/* The ids of arrows differ between all files of a run, which viewers show together. */
static uint64_t flow_of(const struct tb_space *s, const struct event *e)
{
	uint64_t id = e->correlation + (s->call_at << 32);

	return (id & ((UINT64_C(1) << 56) - 1)) << 2 | (uint64_t)FLOW_GPU << 58;
}

static enum status put_work(struct tb_space *s, const struct event *e, struct error *err)
{
	size_t step = tb_steps_find(&s->steps, e->begin_ns);

	TB_KEY_OR_FAIL(correlation, "correlation_id");
	TB_KEY_OR_FAIL(group, "group_id");
	TB_KEY_OR_FAIL(flow, "flow");
	tb_stat_u64(&s->event, XEVENT_STATS, correlation, e->correlation);
	if (step < s->steps.list.count)
		tb_stat_i64(&s->event, XEVENT_STATS, group, (int64_t)s->steps.groups[step]);
	if (e->correlation)
		tb_stat_u64(&s->event, XEVENT_STATS, flow, FLOW_IN | flow_of(s, e));
	if (e->kind == KIND_GRAPH) {
		TB_KEY_OR_FAIL(graph, "cuda_graph_exec_id");
		tb_stat_u64(&s->event, XEVENT_STATS, graph, tb_const_u64(s, e, "graph"));
	}
	if (e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET)
		TRY(put_copy(s, e, err));
	return tb_const_attr(s, e, "tf_op") ? ST_OK : tb_put_op(s, e, err);
}

/* Numbers that differ each time; what was written already, and members (".x"), are not again. */
static enum status put_varying(struct tb_space *s, const struct event *e, struct error *err)
{
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);

	bool all = s->all_args || (e->flags & EVENT_STANDS_FOR); /* what it says, it says there */

	for (uint32_t i = 0; all && e->args && i < schema->arg_count; i++) {
		const struct attr *a = &schema->args[i];
		const char *text = trace_text(s->trace, a->key, NULL);
		uint64_t key;

		if (text[0] == '.' || strcmp(text, "flow") == 0 || strcmp(text, "group_id") == 0)
			continue;
		key = tb_name(&s->names, a->key, err);
		if (!key)
			return err->status;
		TRY(put_attr(s, &s->event, XEVENT_STATS, key, a, e->args[i], err));
	}
	return ST_OK;
}

static enum status put_stats(struct tb_space *s, const struct event *e, struct error *err)
{
	struct buf *b = &s->event;

	if (event_is_gpu_work(e)) {
		TRY(put_work(s, e, err));
	} else if (e->kind == KIND_API && e->correlation) {
		TB_KEY_OR_FAIL(correlation, "correlation_id");
		TB_KEY_OR_FAIL(flow, "flow");
		tb_stat_u64(b, XEVENT_STATS, correlation, e->correlation);
		tb_stat_u64(b, XEVENT_STATS, flow, FLOW_OUT | flow_of(s, e));
	} else if (e->kind == KIND_STEP) {
		TB_KEY_OR_FAIL(root, "_r");
		TB_KEY_OR_FAIL(number, "step_num");
		TB_KEY_OR_FAIL(group, "group_id");
		tb_stat_i64(b, XEVENT_STATS, root, 1);
		tb_stat_i64(b, XEVENT_STATS, number, (int64_t)e->number);
		tb_stat_i64(b, XEVENT_STATS, group,
			    (int64_t)tb_steps_group(&s->steps, e->number, e->begin_ns));
	} else if (e->kind == KIND_COUNTER) {
		TB_KEY_OR_FAIL(key, "value");
		tb_stat_f64(b, XEVENT_STATS, key, e->value);
	}
	return put_varying(s, e, err);
}

/* ---- the event ---- */

/* What an import kept that is finer than a nanosecond. */
static uint64_t finer_ps(const struct tb_space *s, const struct event *e, const char *key)
{
	uint64_t bits;

	return e->schema && tb_arg_bits(s, e, key, &bits) && bits < PS ? bits : 0;
}

static void put_times(struct tb_space *s, const struct event *e)
{
	uint64_t begin_ns = e->begin_ns > s->origin_ns ? e->begin_ns - s->origin_ns : 0;
	uint64_t offset_ps = finer_ps(s, e, ".offset_ps");
	uint64_t duration_ps = (e->end_ns - e->begin_ns) * PS, finer = 0;

	if (e->schema && tb_arg_bits(s, e, ".duration_ps", &finer) && finer < PS) {
		uint64_t end_ps = (offset_ps + finer) % PS; /* of the end that was rounded down */

		duration_ps =
			duration_ps + end_ps >= offset_ps ? duration_ps + end_ps - offset_ps : 0;
	}
	pb_put_u64(&s->event, XEVENT_OFFSET_PS, begin_ns * PS + offset_ps);
	pb_put_u64(&s->event, XEVENT_DURATION_PS, duration_ps);
}

static enum status memory_row(struct tb_space *s, bool is_free, uint64_t *id, struct error *err)
{
	const char *text = is_free ? "MemoryDeallocation" : "MemoryAllocation";
	struct tb_row *row = tb_find(&s->names, TB_EVENT, UINT64_MAX, is_free);

	if (!row)
		TRY(tb_add(&s->names, TB_EVENT, UINT64_MAX, is_free,
			   tb_new_event(&s->names, text, strlen(text), NULL, err), &row, err));
	*id = row->id;
	return ST_OK;
}

enum status tb_event_put(struct tb_space *s, const struct tb_line *line, const struct event *e,
			 struct error *err)
{
	struct tb_row row = { 0 };
	size_t at;

	if (line->kind == TB_LINE_MEMORY)
		TRY(memory_row(s, e->kind == KIND_FREE, &row.id, err));
	else
		TRY(find_row(s, e, &row, err));
	at = pb_begin(&s->event, LINE_EVENTS);
	pb_put_u64(&s->event, XEVENT_METADATA_ID, row.id);
	put_times(s, e);
	if (row.len)
		buf_put(&s->event, s->names.constants.data + row.at, row.len);
	TRY(line->kind == TB_LINE_MEMORY ? tb_put_memory(s, e, err) : put_stats(s, e, err));
	pb_end(&s->event, at);
	return buf_status(&s->event, err);
}

enum status tb_step_put(struct tb_space *s, size_t row, struct error *err)
{
	const struct step_row *step = &s->steps.list.rows[row];
	size_t at = pb_begin(&s->event, LINE_EVENTS);
	char text[DECIMAL_MAX + 1];
	size_t len = put_u64_text(text, step->number);
	uint64_t id = tb_new_event(&s->names, text, len, NULL, err);

	TB_KEY_OR_FAIL(group, "group_id");
	TB_KEY_OR_FAIL(name, "step_name");
	if (!id)
		return err->status;
	pb_put_u64(&s->event, XEVENT_METADATA_ID, id);
	pb_put_u64(&s->event, XEVENT_OFFSET_PS, (step->begin_ns - s->origin_ns) * PS);
	pb_put_u64(&s->event, XEVENT_DURATION_PS, (step->end_ns - step->begin_ns) * PS);
	tb_stat_i64(&s->event, XEVENT_STATS, group, (int64_t)s->steps.groups[row]);
	tb_stat_text(&s->event, XEVENT_STATS, name, text, len);
	pb_end(&s->event, at);
	return buf_status(&s->event, err);
}
