/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/collective.h"

#include "schemas/base/hash.h"
#include "schemas/base/vec.h"
#include "schemas/base/sort.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RECENT = 4096, /* ranges remembered per thread: the GPU may be that many behind it */
	NESTED = 16,   /* ranges searched backwards from the launch */
	WORD_MAX = 96,
	RANKS_SHOWN = 48,
	PAIR_TEXT = 24, /* longest suffix of a pair: " 4294967295>4294967295" */
};

/* ---- operations ------------------------------------------------------------------------- */

static const struct operation_row {
	const char *word;
	double a, b;
} operations[OPERATION_COUNT] = {
#define X(name, word, a, b) { word, a, b },
	OPERATION_LIST(X)
#undef X
};

/* The first part that occurs in a name decides its operation.  Names are compared in lower case,
 * and only by their letters and digits. */
static const struct {
	const char *part;
	enum operation operation;
} parts[] = {
	{ "allreduce", OPERATION_ALL_REDUCE },
	{ "reducescatter", OPERATION_REDUCE_SCATTER },
	{ "allgather", OPERATION_ALL_GATHER },
	{ "alltoall", OPERATION_ALL_TO_ALL },
	{ "all2all", OPERATION_ALL_TO_ALL },
	{ "a2a", OPERATION_ALL_TO_ALL },
	{ "crossdevicereduce", OPERATION_ALL_REDUCE },
	{ "broadcast", OPERATION_BROADCAST },
	{ "bcast", OPERATION_BROADCAST },
	{ "sendrecv", OPERATION_SEND_RECV },
	{ "barrier", OPERATION_BARRIER },
	{ "gather", OPERATION_GATHER },
	{ "scatter", OPERATION_SCATTER },
	{ "reduce", OPERATION_REDUCE },
	{ "send", OPERATION_SEND },
	{ "recv", OPERATION_RECV },
	/* Mixture of experts: tokens are sent to their experts and back. */
	{ "dispatch", OPERATION_ALL_TO_ALL },
	{ "combine", OPERATION_ALL_TO_ALL },
};

const char *operation_word(enum operation operation)
{
	return operations[operation < OPERATION_COUNT ? operation : 0].word;
}

enum operation operation_find(const char *word)
{
	for (int i = 0; i < OPERATION_COUNT; i++)
		if (!strcmp(operations[i].word, word))
			return (enum operation)i;
	return OPERATION_OTHER;
}

double operation_factor(enum operation operation, uint64_t ranks)
{
	const struct operation_row *o = &operations[operation];

	return ranks ? o->a * ((double)ranks + o->b) / (double)ranks : 0;
}

bool operation_is_point(enum operation operation)
{
	return operation == OPERATION_SEND_RECV || operation == OPERATION_SEND ||
	       operation == OPERATION_RECV;
}

static enum operation operation_in(const char *text)
{
	char letters[WORD_MAX];
	size_t len = 0;

	for (; *text && *text != '(' && len + 1 < sizeof(letters); text++)
		if (isalnum((unsigned char)*text))
			letters[len++] = (char)tolower((unsigned char)*text);
	letters[len] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(letters, parts[i].part))
			return parts[i].operation;
	return OPERATION_OTHER;
}

/* ---- types of elements ------------------------------------------------------------------ */

/* PyTorch's name of each element type, its spelling in NCCL's kernel names, and its size. */
static const struct {
	const char *name, *in_kernel;
	unsigned bytes;
} types[] = {
	{ "Float", "_f32", 4 },      { "BFloat16", "_bf16", 2 },    { "Half", "_f16", 2 },
	{ "Double", "_f64", 8 },     { "Long", "_i64", 8 },         { "Long", "_u64", 8 },
	{ "Int", "_i32", 4 },        { "Int", "_u32", 4 },          { "Char", "_int8_t", 1 },
	{ "Byte", "_uint8_t", 1 },   { "Byte", "_u8", 1 },          { "Char", "_i8", 1 },
	{ "Short", NULL, 2 },        { "Bool", NULL, 1 },           { "Float", "_float", 4 },
	{ "Half", "_half", 2 },      { "Double", "_double", 8 },    { "BFloat16", "_bfloat16", 2 },
	{ "ComplexFloat", NULL, 8 }, { "ComplexDouble", NULL, 16 },
};

static unsigned type_bytes(const char *type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, type))
			return types[i].bytes;
	return strncmp(type, "Float8", 6) == 0 ? 1 : 0;
}

/* Returns the element type in a kernel's name; "": unknown.  Only kernels that reduce have their
 * true type in it: those that only move data have bytes, whatever is sent. */
static const char *type_in(const char *kernel, enum operation operation)
{
	size_t len;
	const char *end = strchr(kernel, '('), *at;

	if (operation != OPERATION_ALL_REDUCE && operation != OPERATION_REDUCE_SCATTER &&
	    operation != OPERATION_REDUCE)
		return "";
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		at = types[i].in_kernel ? strstr(kernel, types[i].in_kernel) : NULL;
		len = at ? strlen(types[i].in_kernel) : 0;
		if (at && (!end || at < end) && !isalnum((unsigned char)at[len]))
			return types[i].name;
	}
	return "";
}

/* ---- fields ----------------------------------------------------------------------------- */

/* clang-format off */
#define FIELD_LIST(X)                                                                              \
	X(collective) X(in_elements) X(out_elements) X(element_type) X(group_size) X(group_name)   \
	X(group_ranks) X(comms_id) X(collective_seq) X(bytes) X(src_rank) X(dst_rank)
/* clang-format on */
enum field {
#define X(name) FIELD_##name,
	FIELD_LIST(X)
#undef X
		FIELD_COUNT,
};

struct recent { /* a range that describes a collective */
	uint64_t begin_ns, end_ns;
	struct collective is;
	bool is_named; /* found by the range's name: only the operation is known */
};
struct thread {
	struct recent *at; /* in order of `begin_ns` */
	size_t count, cap;
};
struct by_name {
	const char *type; /* element type in a kernel's name; NULL: not looked up yet */
	enum operation operation;
	enum operation range; /* operation of a range with this name */
};
struct collectives {
	struct trace *trace;
	uint32_t keys[FIELD_COUNT]; /* interned names of the fields; 0: no event has the field */
	struct thread *threads;     /* by track */
	uint8_t *speaks; /* by schema; 0: not looked up; 1: no; 2: has the field `collective` */
	struct by_name *names; /* by interned name */
	uint32_t track_count, schema_count, name_count;
};

enum status collectives_new(struct collectives **out, struct trace *trace, struct error *err)
{
	static const char *const names[] = {
#define X(name) #name,
		FIELD_LIST(X)
#undef X
	};
	struct collectives *c = calloc(1, sizeof(*c));

	*out = c;
	if (c) {
		c->track_count = trace_count(trace, TRACE_TRACKS);
		c->schema_count = trace_count(trace, TRACE_SCHEMAS);
		c->name_count = trace_count(trace, TRACE_NAMES);
		c->threads = calloc((size_t)c->track_count + 1, sizeof(*c->threads));
		c->speaks = calloc((size_t)c->schema_count + 1, 1);
		c->names = calloc((size_t)c->name_count + 1, sizeof(*c->names));
	}
	if (!c || !c->threads || !c->speaks || !c->names) {
		collectives_free(c);
		*out = NULL;
		return fail(err, ST_MEMORY, NOWHERE, "no memory for collectives");
	}
	c->trace = trace;
	for (size_t i = 0; i < FIELD_COUNT; i++)
		c->keys[i] = trace_find_name(trace, names[i], strlen(names[i]));
	return ST_OK;
}

void collectives_free(struct collectives *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->threads && i <= c->track_count; i++)
		free(c->threads[i].at);
	free(c->threads);
	free(c->speaks);
	free(c->names);
	free(c);
}

/* The fields among an event's arguments: their bits, their types, and whether they are present. */
struct said {
	uint64_t bits[FIELD_COUNT];
	uint8_t type[FIELD_COUNT];
	bool has[FIELD_COUNT];
};

static void take_attr(const struct collectives *c, const struct attr *a, uint64_t bits,
		      struct said *s)
{
	for (int i = 0; i < FIELD_COUNT; i++)
		if (a->key == c->keys[i]) {
			s->bits[i] = bits;
			s->type[i] = a->type;
			s->has[i] = true;
		}
}

static const char *text_of(const struct collectives *c, const struct said *s, enum field field)
{
	if (!s->has[field] || (s->type[field] != ATTR_TEXT && s->type[field] != ATTR_JSON))
		return "";
	return trace_text(c->trace, (uint32_t)s->bits[field], NULL);
}

static uint64_t number_of(const struct said *s, enum field field)
{
	bool is = s->has[field] && (s->type[field] == ATTR_U64 || s->type[field] == ATTR_I64);

	return is ? s->bits[field] : 0;
}

static uint64_t count_ranks(const char *list)
{
	uint64_t count = 0;
	bool inside = false;

	if (strstr(list, "..")) /* the writer of the trace shortened the list */
		return 0;
	for (; *list; list++) {
		count += isdigit((unsigned char)*list) && !inside;
		inside = isdigit((unsigned char)*list);
	}
	return count;
}

/* Appends sender and receiver to the group.  Calls of each such pair have an order of their own. */
static void take_pair(const struct said *s, struct collective *out)
{
	uint64_t from = number_of(s, FIELD_src_rank), to = number_of(s, FIELD_dst_rank);
	size_t len = strlen(out->group);

	if (!operation_is_point(out->operation) || !s->has[FIELD_src_rank] ||
	    !s->has[FIELD_dst_rank] || from == to || from > UINT32_MAX || to > UINT32_MAX)
		return;
	len = len < GROUP_TEXT - PAIR_TEXT ? len : GROUP_TEXT - PAIR_TEXT;
	snprintf(out->group + len, PAIR_TEXT, "%s%u>%u", len ? " " : "", (unsigned)from,
		 (unsigned)to);
	/* The send of one rank and the receive of the other are one operation. */
	out->operation = OPERATION_SEND_RECV;
	out->is_pair = true;
}

bool group_is_pair(const char *group)
{
	size_t len = strlen(group), to = len, from;

	while (to && isdigit((unsigned char)group[to - 1]))
		to--;
	for (from = to ? to - 1 : 0; from && isdigit((unsigned char)group[from - 1]);)
		from--;
	return to && to < len && group[to - 1] == '>' && from < to - 1 &&
	       (!from || group[from - 1] == ' ');
}

static bool schema_has(const struct arg_schema *s, uint32_t key)
{
	for (uint32_t i = 0; i < s->const_count; i++)
		if (s->consts[i].key == key)
			return true;
	for (uint32_t i = 0; i < s->arg_count; i++)
		if (s->args[i].key == key)
			return true;
	return false;
}

/* Returns whether events with this schema have the field `collective`.  The result is cached. */
static bool schema_speaks(struct collectives *c, uint32_t schema)
{
	uint32_t key = c->keys[FIELD_collective];

	if (!key || !schema)
		return false;
	if (schema > c->schema_count)
		return schema_has(trace_get_schema(c->trace, schema), key);
	if (!c->speaks[schema])
		c->speaks[schema] = 1 + schema_has(trace_get_schema(c->trace, schema), key);
	return c->speaks[schema] == 2;
}

/* Fills `out` from the event's arguments.  Returns false if they do not name a collective. */
static bool understand(const struct collectives *c, const struct event *e, struct collective *out)
{
	struct said s;
	const struct arg_schema *schema = trace_get_schema(c->trace, e->schema);

	memset(&s, 0, sizeof(s));
	for (uint32_t i = 0; i < schema->const_count; i++)
		take_attr(c, &schema->consts[i], schema->consts[i].bits, &s);
	for (uint32_t i = 0; e->args && i < schema->arg_count; i++)
		take_attr(c, &schema->args[i], e->args[i], &s);
	if (!s.has[FIELD_collective])
		return false;
	out->operation = operation_in(text_of(c, &s, FIELD_collective));
	out->type = text_of(c, &s, FIELD_element_type);
	/* The group is written as "0 [0, 1, 2, 3]".  A long list keeps its beginning and a hash of
	 * the whole, so that different lists stay different. */
	const char *name = text_of(c, &s, FIELD_group_name);
	const char *ranks = text_of(c, &s, FIELD_group_ranks);
	size_t len;

	ranks += *ranks == '"';
	len = strlen(ranks);
	len -= len && ranks[len - 1] == '"';
	if (*name && len > RANKS_SHOWN)
		snprintf(out->group, GROUP_TEXT, "%.64s %.*s… #%08x", name, RANKS_SHOWN / 2, ranks,
			 (unsigned)hash_text(ranks, len));
	else if (*name)
		snprintf(out->group, GROUP_TEXT, "%.64s%s%.*s", name, len ? " " : "", (int)len,
			 ranks);
	else if (number_of(&s, FIELD_comms_id))
		snprintf(out->group, GROUP_TEXT, "0x%llx",
			 (unsigned long long)number_of(&s, FIELD_comms_id));
	out->ranks = number_of(&s, FIELD_group_size);
	if (!out->ranks)
		out->ranks = count_ranks(ranks);
	take_pair(&s, out);
	/* As in nccl-tests, gathered and scattered data counts as a whole.  NCCL's own field has
	 * only one rank's part. */
	uint64_t in = number_of(&s, FIELD_in_elements), most = number_of(&s, FIELD_out_elements);
	unsigned size = type_bytes(out->type);
	bool is_part = out->operation == OPERATION_ALL_GATHER ||
		       out->operation == OPERATION_REDUCE_SCATTER ||
		       out->operation == OPERATION_ALL_TO_ALL;

	most = in > most ? in : most;
	if (s.has[FIELD_in_elements] && size && most < UINT64_MAX / 16)
		out->bytes = most * size;
	else if (s.has[FIELD_bytes] && s.bits[FIELD_bytes] < UINT64_MAX / 65536)
		out->bytes = s.bits[FIELD_bytes] * (is_part && out->ranks ? out->ranks % 65536 : 1);
	out->has_seq = s.has[FIELD_collective_seq];
	out->seq = s.bits[FIELD_collective_seq];
	return true;
}

const char *backend_operation(const char *range)
{
	static const char *const backends[] = {
		"nccl:", "rccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:", "ccl:",
	};
	size_t i, len;

	for (i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		len = strlen(backends[i]);
		if (!strncmp(range, backends[i], len))
			return range + len;
	}
	return NULL;
}

static struct by_name name_says(struct collectives *c, uint32_t name)
{
	const char *text = trace_text(c->trace, name, NULL), *range = backend_operation(text);
	struct by_name says;

	if (name <= c->name_count && c->names[name].type)
		return c->names[name];
	says.operation = operation_in(text);
	says.type = type_in(text, says.operation);
	says.range = range ? operation_in(range) : OPERATION_OTHER;
	if (name <= c->name_count)
		c->names[name] = says;
	return says;
}

enum status collectives_note(struct collectives *c, const struct event *range, struct error *err)
{
	struct thread *thread = &c->threads[range->track <= c->track_count ? range->track : 0];
	struct recent one = { .begin_ns = range->begin_ns,
			      .end_ns = range->end_ns,
			      .is = { .type = "", .bytes = UINT64_MAX } };

	if (!schema_speaks(c, range->schema) || !understand(c, range, &one.is)) {
		one.is_named = true;
		one.is.operation = name_says(c, range->name).range;
		if (one.is.operation == OPERATION_OTHER)
			return ST_OK;
	}
	if (thread->count == RECENT) {
		thread->count = RECENT / 2;
		memmove(thread->at, thread->at + RECENT / 2, RECENT / 2 * sizeof(one));
	}
	TRY(vec_reserve(&thread->at, &thread->cap, thread->count + 1, err));
	thread->at[thread->count++] = one;
	return ST_OK;
}

/* Fills `out` from the ranges around the launch, the innermost first. */
static void ranges_say(const struct collectives *c, const struct launch *launch,
		       struct collective *out)
{
	const struct thread *thread;
	enum operation operation = OPERATION_OTHER;
	size_t begun;

	if (!launch || launch->track > c->track_count)
		return;
	thread = &c->threads[launch->track];
	SEARCH(begun, 0, thread->count, thread->at[begun].begin_ns <= launch->begin_ns);
	for (size_t i = 0; i < NESTED && i < begun; i++) {
		const struct recent *r = &thread->at[begun - 1 - i];

		if (launch->begin_ns >= r->end_ns)
			continue;
		if (operation == OPERATION_OTHER)
			operation = r->is.operation;
		if (r->is_named)
			continue;
		*out = r->is;
		break;
	}
	if (operation != OPERATION_OTHER)
		out->operation = operation;
}

void collectives_find(struct collectives *c, const struct event *kernel,
		      const struct launch *launch, struct collective *out)
{
	struct by_name says = name_says(c, kernel->name);

	*out = (struct collective){ .type = "", .bytes = UINT64_MAX };
	if (!schema_speaks(c, kernel->schema) || !understand(c, kernel, out))
		ranges_say(c, launch, out);
	if (out->operation == OPERATION_OTHER)
		out->operation = says.operation;
	if (!*out->type)
		out->type = says.type;
}
