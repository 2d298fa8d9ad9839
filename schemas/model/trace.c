/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/model/trace.h"

#include "schemas/base/sort.h"
#include "schemas/model/event.h"
#include "schemas/model/intern.h"

#include <stdlib.h>
#include <string.h>

struct name_row {
	const char *text;
	size_t len;
};
struct process_row {
	struct process process;
	uint64_t lost[LOSS_END]; /* [0]: counts for reasons of a newer writer */
};

enum { LOST_SPANS = 256 };

struct trace {
	struct arena arena;
	struct intern tables[TRACE_TABLE_COUNT];
	uint64_t lost[LOSS_END];
	struct lost_span lost_spans[LOST_SPANS];
	size_t lost_span_count;
	struct provenance provenance;
};

const char *loss_text(enum loss why)
{
	static const char *const texts[LOSS_END] = {
#define X(name, number, text) [number] = text,
		LOSS_LIST(X)
#undef X
	};

	if ((unsigned)why >= LOSS_END || !texts[why])
		return "unknown";
	return texts[why];
}

/* ---- members that identify a row of each table ---- */

static bool name_same(const void *row, const void *wanted)
{
	const struct name_row *a = row, *b = wanted;

	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static uint64_t process_hash(const void *row)
{
	const struct process *p = row; /* first member of struct process_row */

	return hash_word(hash_word(p->host, p->pid), p->rank);
}

static bool process_same(const void *row, const void *wanted)
{
	const struct process *a = row, *b = wanted;

	return a->host == b->host && a->pid == b->pid && a->rank == b->rank;
}

static uint64_t device_hash(const void *row)
{
	const struct device *d = row;

	return hash_word(d->process, d->id);
}

static bool device_same(const void *row, const void *wanted)
{
	const struct device *a = row, *b = wanted;

	return a->process == b->process && a->id == b->id;
}

static uint64_t track_hash(const void *row)
{
	const struct track *k = row; /* first member of struct track_row */
	uint64_t hash = hash_word(k->id, (uint64_t)k->device << 32 | k->context);

	if (k->type == TRACK_COUNTER)
		hash = hash_word(hash, k->name);
	return hash_word(hash, (uint64_t)k->process << 32 | (uint32_t)k->type);
}

static bool track_same(const void *row, const void *wanted)
{
	const struct track *a = row, *b = wanted;

	return a->id == b->id && a->device == b->device && a->context == b->context &&
	       a->process == b->process && a->type == b->type &&
	       (a->type != TRACK_COUNTER || a->name == b->name);
}

static bool attrs_same(const struct attr *a, const struct attr *b, uint32_t count, bool with_bits)
{
	for (uint32_t i = 0; i < count; i++)
		if (a[i].key != b[i].key || a[i].type != b[i].type || a[i].unit != b[i].unit ||
		    (with_bits && a[i].bits != b[i].bits))
			return false;
	return true;
}

static bool schema_same(const void *row, const void *wanted)
{
	const struct arg_schema *a = row, *b = wanted;

	return a->const_count == b->const_count && a->arg_count == b->arg_count &&
	       attrs_same(a->consts, b->consts, a->const_count, true) &&
	       attrs_same(a->args, b->args, a->arg_count, false);
}

static uint64_t attr_hash(uint64_t hash, const struct attr *a)
{
	return hash_word(hash, a->key | (uint64_t)a->type << 32 | (uint64_t)a->unit << 40);
}

static bool desc_same(const void *row, const void *wanted)
{
	const struct event_desc *a = row, *b = wanted;

	return a->track == b->track && a->name == b->name && a->schema == b->schema &&
	       a->kind == b->kind && a->subkind == b->subkind;
}

static bool path_same(const void *row, const void *wanted)
{
	const struct path_node *a = row, *b = wanted;

	return a->parent == b->parent && a->name == b->name && a->class == b->class;
}

/* ---- life of a trace ---- */

enum status trace_new(struct trace **out, size_t ceiling, struct error *err)
{
	static const uint32_t row_bytes[TRACE_TABLE_COUNT] = {
		[TRACE_NAMES] = sizeof(struct name_row),
		[TRACE_PROCESSES] = sizeof(struct process_row),
		[TRACE_DEVICES] = sizeof(struct device),
		[TRACE_TRACKS] = sizeof(struct track_row),
		[TRACE_SCHEMAS] = sizeof(struct arg_schema),
		[TRACE_PATHS] = sizeof(struct path_node),
		[TRACE_DESCS] = sizeof(struct event_desc),
		[TRACE_WINDOWS] = sizeof(struct window),
		[TRACE_ANCHORS] = sizeof(struct anchor),
	};
	struct trace *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a trace");
	arena_init(&t->arena, ceiling);
	for (unsigned i = 0; i < TRACE_TABLE_COUNT; i++)
		t->tables[i].row_bytes = row_bytes[i];
	return ST_OK;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < TRACE_TABLE_COUNT; i++)
		intern_release(&t->tables[i]);
	arena_release(&t->arena);
	free(t);
}

/* ---- functions that find or add a row ---- */

uint32_t trace_name(struct trace *t, const char *text, size_t len, struct error *err)
{
	struct name_row row = { len ? text : "", len };
	uint64_t hash = hash_text(row.text, len);
	uint32_t id = intern_find(&t->tables[TRACE_NAMES], hash, name_same, &row);

	if (id)
		return id;
	row.text = arena_text(&t->arena, row.text, len);
	if (!row.text) {
		intern_refuse(&t->arena, len < SIZE_MAX ? len + 1 : len, err);
		return 0;
	}
	return intern_add(&t->tables[TRACE_NAMES], &t->arena, hash, &row, err);
}

uint32_t trace_process(struct trace *t, const struct process *p, struct error *err)
{
	uint64_t hash = process_hash(p);
	uint32_t id = intern_find(&t->tables[TRACE_PROCESSES], hash, process_same, p);
	struct process_row row = { .process = *p };

	return id ? id : intern_add(&t->tables[TRACE_PROCESSES], &t->arena, hash, &row, err);
}

uint32_t trace_device(struct trace *t, const struct device *d, struct error *err)
{
	uint64_t hash = device_hash(d);
	uint32_t id = intern_find(&t->tables[TRACE_DEVICES], hash, device_same, d);
	struct device *row = intern_row(&t->tables[TRACE_DEVICES], id);

	if (!row)
		return intern_add(&t->tables[TRACE_DEVICES], &t->arena, hash, d, err);
	if (!row->name)
		row->name = d->name;
	if (!row->schema)
		row->schema = d->schema;
	return id;
}

uint32_t trace_track(struct trace *t, const struct track *k, struct error *err)
{
	uint64_t hash = track_hash(k);
	uint32_t id = intern_find(&t->tables[TRACE_TRACKS], hash, track_same, k);
	struct track_row *found = intern_row(&t->tables[TRACE_TRACKS], id);
	struct track_row row = { .track = *k };

	if (!found)
		return intern_add(&t->tables[TRACE_TRACKS], &t->arena, hash, &row, err);
	if (!found->track.name)
		found->track.name = k->name;
	return id;
}

/* Copies member by member, because the padding in the caller's attributes is undefined. */
static const struct attr *attrs_copy(struct trace *t, const struct attr *attrs, uint32_t count,
				     bool with_bits, struct error *err)
{
	size_t bytes = (size_t)count * sizeof(*attrs);
	struct attr *copy = arena_take(&t->arena, bytes, _Alignof(struct attr));

	if (!copy) {
		intern_refuse(&t->arena, bytes, err);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		copy[i].key = attrs[i].key;
		copy[i].type = attrs[i].type;
		copy[i].unit = attrs[i].unit;
		copy[i].bits = with_bits ? attrs[i].bits : 0;
	}
	return copy;
}

uint32_t trace_schema(struct trace *t, const struct arg_schema *s, struct error *err)
{
	uint64_t hash = (uint64_t)s->arg_count << 32 | s->const_count;

	for (uint32_t i = 0; i < s->const_count; i++)
		hash = hash_word(attr_hash(hash, &s->consts[i]), s->consts[i].bits);
	for (uint32_t i = 0; i < s->arg_count; i++)
		hash = attr_hash(hash, &s->args[i]);
	uint32_t id = intern_find(&t->tables[TRACE_SCHEMAS], hash, schema_same, s);
	struct arg_schema row = { .const_count = s->const_count, .arg_count = s->arg_count };

	if (id)
		return id;
	row.consts = attrs_copy(t, s->consts, s->const_count, true, err);
	if (!row.consts)
		return 0;
	row.args = attrs_copy(t, s->args, s->arg_count, false, err);
	if (!row.args)
		return 0;
	return intern_add(&t->tables[TRACE_SCHEMAS], &t->arena, hash, &row, err);
}

uint32_t trace_desc(struct trace *t, const struct event_desc *s, struct error *err)
{
	uint64_t hash = hash_word((uint64_t)s->track << 32 | s->name,
				  (uint64_t)s->schema << 16 | (uint64_t)s->kind << 8 | s->subkind);
	uint32_t id = intern_find(&t->tables[TRACE_DESCS], hash, desc_same, s);

	return id ? id : intern_add(&t->tables[TRACE_DESCS], &t->arena, hash, s, err);
}

static bool class_is_range(unsigned class)
{
	return class == RANGE_OP || class == RANGE_ANNOTATION || class == RANGE_PHASE ||
	       class == RANGE_NVTX;
}

/* Finds or adds a node.  A range is its own owner; other nodes get the owner of `owns`. */
static uint32_t path_put(struct trace *t, struct path_node node, const struct path_node *owns)
{
	struct intern *paths = &t->tables[TRACE_PATHS];
	uint32_t parent = node.parent;
	unsigned class = node.class;
	uint64_t hash = hash_word((uint64_t)parent << 32 | node.name, class);
	uint32_t id = intern_find(paths, hash, path_same, &node);
	const struct path_node *above = trace_get_path(t, parent);

	if (id)
		return id;
	if (paths->count >= PATHS_MAX && class != PATH_OTHER && parent)
		return above->class == PATH_OTHER ? parent : trace_path(t, parent, 0, PATH_OTHER);
	node.depth = (uint16_t)(parent ? above->depth + 1 : 0);
	node.has_range = owns->has_range || class_is_range(class);
	node.pass = class == PATH_BACKWARD    ? PASS_BACKWARD
		    : class == PATH_RECOMPUTE ? PASS_RECOMPUTE
					      : above->pass;
	node.owner = class_is_range(class) || (class == RANGE_PYTHON && !owns->has_range)
			     ? node.name
			     : owns->owner;
	return intern_add(paths, &t->arena, hash, &node, NULL);
}

uint32_t trace_path(struct trace *t, uint32_t parent, uint32_t name, unsigned class)
{
	struct path_node node = { .parent = parent, .name = name, .class = (uint8_t) class };

	return path_put(t, node, trace_get_path(t, parent));
}

uint32_t trace_path_mark(struct trace *t, uint32_t parent, uint32_t open, enum path_class class)
{
	struct path_node node = { .parent = parent, .class = (uint8_t) class };
	const struct path_node *owns = trace_get_path(t, open);

	node.name = owns->owner;
	return path_put(t, node, owns);
}

uint32_t trace_window(struct trace *t, const struct window *w, struct error *err)
{
	return intern_append(&t->tables[TRACE_WINDOWS], &t->arena, w, err);
}

uint32_t trace_anchor(struct trace *t, const struct anchor *a, struct error *err)
{
	return intern_append(&t->tables[TRACE_ANCHORS], &t->arena, a, err);
}

/* ---- changes of existing rows ---- */

void trace_set_track_name(struct trace *t, uint32_t track, uint32_t name)
{
	struct track_row *row = intern_row(&t->tables[TRACE_TRACKS], track);

	if (!row)
		return;
	row->track.name = name;
	if (row->track.type == TRACK_COUNTER)
		intern_reindex(&t->tables[TRACE_TRACKS], track_hash);
}

void trace_set_process(struct trace *t, uint32_t process, const struct process *p)
{
	struct process_row *row = intern_row(&t->tables[TRACE_PROCESSES], process);

	if (!row)
		return;
	bool same = process_same(&row->process, p);
	row->process = *p;
	if (!same)
		intern_reindex(&t->tables[TRACE_PROCESSES], process_hash);
}

void trace_add_launches(struct trace *t, uint32_t track, uint64_t count)
{
	struct track_row *row = intern_row(&t->tables[TRACE_TRACKS], track);

	if (row)
		row->launches += count;
}

void trace_join_windows(struct trace *t)
{
	struct intern *all = &t->tables[TRACE_WINDOWS];
	uint32_t count = all->count, kept = 0;
	struct window *w = malloc((count + 1) * sizeof(*w));

	if (!w)
		return;
	for (uint32_t i = 0; i < count; i++)
		w[i] = *trace_get_window(t, i + 1);
	SORT_BY(w, count, UP(struct window, process), UP(struct window, begin_ns));
	for (uint32_t i = 0; i < count; i++) {
		struct window *last = kept ? &w[kept - 1] : NULL;

		if (!last || last->process != w[i].process || last->end_ns != w[i].begin_ns) {
			w[kept++] = w[i];
			continue;
		}
		last->end_ns = w[i].end_ns;
		last->own_ns += w[i].own_ns;
		last->cut_short |= w[i].cut_short;
	}
	for (uint32_t i = 0; kept < count && i < kept; i++)
		trace_set_window(t, i + 1, &w[i]);
	all->count = kept;
	free(w);
}

void trace_set_window(struct trace *t, uint32_t window, const struct window *w)
{
	struct window *row = intern_row(&t->tables[TRACE_WINDOWS], window);

	if (row)
		*row = *w;
}

/* ---- look-ups ---- */

uint32_t trace_count(const struct trace *t, enum trace_table table)
{
	return (unsigned)table < TRACE_TABLE_COUNT ? t->tables[table].count : 0;
}

const char *trace_text(const struct trace *t, uint32_t name, size_t *len)
{
	const struct name_row *row = intern_row(&t->tables[TRACE_NAMES], name);

	if (len)
		*len = row ? row->len : 0;
	return row ? row->text : "";
}

const void *trace_row(const struct trace *t, enum trace_table table, uint32_t id)
{
	static const union {
		struct process_row process;
		struct device device;
		struct track_row track;
		struct arg_schema schema;
		struct event_desc desc;
		struct window window;
		struct anchor anchor;
	} none; /* all zeros, large enough for a row of any table */
	const void *row = intern_row(&t->tables[table], id);

	return row ? row : &none;
}

uint64_t trace_launches(const struct trace *t, uint32_t track)
{
	return ((const struct track_row *)trace_row(t, TRACE_TRACKS, track))->launches;
}

uint32_t trace_find_device(const struct trace *t, uint32_t process, uint32_t id)
{
	struct device wanted = { .process = process, .id = id };

	return intern_find(&t->tables[TRACE_DEVICES], device_hash(&wanted), device_same, &wanted);
}

uint32_t trace_find_name(const struct trace *t, const char *text, size_t len)
{
	struct name_row wanted = { len ? text : "", len };

	return intern_find(&t->tables[TRACE_NAMES], hash_text(wanted.text, len), name_same,
			   &wanted);
}

const struct attr *trace_find_attr(const struct trace *t, uint32_t schema, const char *key)
{
	const struct arg_schema *s = trace_get_schema(t, schema);
	uint32_t name = s->const_count ? trace_find_name(t, key, strlen(key)) : 0, i;

	if (!name)
		return NULL;
	for (i = 0; i < s->const_count; i++)
		if (s->consts[i].key == name)
			return &s->consts[i];
	return NULL;
}

const char *trace_attr_text(const struct trace *t, uint32_t schema, const char *key)
{
	const struct attr *a = trace_find_attr(t, schema, key);

	return a && a->type >= ATTR_TEXT ? trace_text(t, (uint32_t)a->bits, NULL) : NULL;
}

uint64_t trace_attr_number(const struct trace *t, uint32_t schema, const char *key)
{
	const struct attr *a = trace_find_attr(t, schema, key);

	return a && a->type <= ATTR_I64 ? a->bits : 0;
}

/* ---- losses and provenance ---- */

/* Returns the counts of `process`, or those of the input as a whole if there is no such process. */
static const uint64_t *trace_losses(const struct trace *t, uint32_t process)
{
	const struct process_row *row = intern_row(&t->tables[TRACE_PROCESSES], process);

	return row ? row->lost : t->lost;
}

void trace_lose(struct trace *t, uint32_t process, enum loss why, uint64_t count)
{
	struct process_row *row = intern_row(&t->tables[TRACE_PROCESSES], process);
	uint64_t *lost = row ? row->lost : t->lost;

	lost[(unsigned)why < LOSS_END ? (unsigned)why : 0] += count;
}

void trace_lose_between(struct trace *t, uint64_t begin_ns, uint64_t end_ns)
{
	struct lost_span *last = &t->lost_spans[LOST_SPANS - 1];

	if (begin_ns >= end_ns)
		return;
	if (t->lost_span_count < LOST_SPANS) {
		t->lost_spans[t->lost_span_count++] = (struct lost_span){ begin_ns, end_ns };
		return;
	}
	last->begin_ns = begin_ns < last->begin_ns ? begin_ns : last->begin_ns;
	last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
}

size_t trace_lost_spans(const struct trace *t, const struct lost_span **out)
{
	*out = t->lost_spans;
	return t->lost_span_count;
}

uint64_t trace_lost(const struct trace *t, uint32_t process, enum loss why)
{
	unsigned reason = (unsigned)why < LOSS_END ? (unsigned)why : 0;
	uint64_t sum = t->lost[reason];

	if (process)
		return trace_losses(t, process)[reason];
	for (uint32_t id = 1; id <= t->tables[TRACE_PROCESSES].count; id++)
		sum += trace_losses(t, id)[reason];
	return sum;
}

uint64_t trace_lost_total(const struct trace *t, uint32_t process)
{
	uint64_t sum = 0;

	for (unsigned why = 0; why < LOSS_END; why++)
		if (why != LOSS_DERIVED && why != LOSS_CUT_OUT && why != LOSS_ORDER &&
		    why != LOSS_UNREAD)
			sum += trace_lost(t, process, (enum loss)why);
	return sum;
}

struct provenance *trace_provenance(struct trace *t)
{
	return &t->provenance;
}
