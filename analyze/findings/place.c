/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in the model a finding is (DEFINITIONS.md 8): GPU work by what it does and idle time by its
 * cause, each by place.
 *
 * A place is the innermost module, else the innermost annotation, else the outermost operator, with
 * the line of the innermost Python function that is not the framework's.  Numbers in names of
 * modules become stars, so that the layers of a model are one place.
 */
#include "analyze/findings/internal.h"

#include "analyze/report/where/where.h"
#include "schemas/base/sort.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACE_COLUMNS(X)                                                                           \
	X(PLACE_WHAT = RANK_KEYS, "what", NULL, TEXT, KEY, "kind of work, or cause of idle time")  \
	X(PLACE_SHORT, "is_short", NULL, U64, KEY,                                                 \
	  "1: kernels under 10 us on average (communication: 50 us), or launch calls over 1 ms")   \
	X(PLACE_NAME, "place", NULL, TEXT, KEY, "place in the model, with * for numbers")          \
	X(PLACE_NS, "ns", NULL, U64, SUM, "GPU time or idle time at the place")                    \
	X(PLACE_FIRST, "first", NULL, TEXT, MIN, "place with its numbers, first in byte order")    \
	X(PLACE_LAST, "last", NULL, TEXT, MAX, "place with its numbers, last in byte order")
static RANK_TABLE(places, &table_ranks, PLACE_COLUMNS, .nest = NEST_NEVER);

#define IDLE_PREFIX "idle_causes." /* prefix of figures in rules */
enum { PLACE_TEXT = 400, PLACE_NAME_TEXT = 240 };

/* Replaces numbers that are whole parts of a name: "layers.3.mlp" becomes "layers.*.mlp". */
static void put_pattern(const char *name, char out[PLACE_NAME_TEXT])
{
	size_t len = 0;

	for (size_t i = 0; name[i] && len < PLACE_NAME_TEXT - 1; out[len++] = name[i++]) {
		size_t digits = strspn(name + i, "0123456789");

		if (digits && i && !isalnum((unsigned char)name[i - 1]) &&
		    !isalnum((unsigned char)name[i + digits])) {
			out[len++] = '*';
			i += digits;
			if (!name[i])
				break;
		}
	}
	out[len < PLACE_NAME_TEXT ? len : PLACE_NAME_TEXT - 1] = '\0';
}

struct place {
	const char *module, *annotation, *op;
	char line[PATH_LINE_TEXT];
};

static struct place place_find(const struct trace *t, uint32_t path)
{
	static const char engine[] = "autograd::engine::evaluate_function: ";
	struct place p = { .line = "" };

	for (const struct path_node *n = trace_get_path(t, path); n->parent;
	     n = trace_get_path(t, n->parent)) {
		const char *name = trace_text(t, n->name, NULL);

		if (n->class == RANGE_PYTHON && !p.module)
			p.module = path_module(t, n);
		if (n->class == RANGE_PYTHON && !p.line[0])
			path_line(name, p.line);
		if (n->class == RANGE_OP)
			p.op = strncmp(name, engine, sizeof(engine) - 1) ? name
			       : p.op                                    ? p.op
				      : name + sizeof(engine) - 1;
		if (!p.annotation && strncmp(name, "nccl:", 5) != 0 &&
		    (n->class == RANGE_ANNOTATION || n->class == RANGE_NVTX ||
		     n->class == RANGE_PHASE))
			p.annotation = name;
	}
	return p;
}

/* Writes the name of a place with its numbers, and its pattern. */
static void place_texts(const struct trace *t, uint32_t path, char exact[PLACE_TEXT],
			char pattern[PLACE_TEXT])
{
	static const char *const passes[] = { "", "backward of ", "recompute of " };
	const struct path_node *node = trace_get_path(t, path);
	struct place p = place_find(t, path);
	const char *name = p.module ? p.module : p.annotation ? p.annotation : p.op;
	char stars[PLACE_NAME_TEXT];
	bool has_line = p.line[0] != '\0';

	if (!name) {
		snprintf(exact, PLACE_TEXT, "%s", p.line);
		snprintf(pattern, PLACE_TEXT, "%s", p.line);
		return;
	}
	put_pattern(name, stars);
	snprintf(exact, PLACE_TEXT, "%s%.239s%s%s%s", passes[node->pass], name,
		 has_line ? " (" : "", p.line, has_line ? ")" : "");
	snprintf(pattern, PLACE_TEXT, "%s%s%s%s%s", passes[node->pass], stars, has_line ? " (" : "",
		 p.line, has_line ? ")" : "");
}

static enum status put_place(struct accumulator *f, uint32_t process, uint32_t path,
			     union value keys[PLACE_NAME + 1], uint64_t ns, struct error *err)
{
	char exact[PLACE_TEXT], pattern[PLACE_TEXT];
	struct table *table = tables_find(f->tables, "places");
	union value *row;

	place_texts(f->trace, path, exact, pattern);
	keys[PLACE_NAME].text = pattern;
	TRY(acc_bounded_row(f, "places", process, keys, PLACE_NAME, &row, err));
	if (keys[PLACE_NAME].text != pattern)
		strcpy(exact, TABLE_OTHER);
	row[PLACE_NS].u64 += ns;
	TRY(table_combine(table, row, PLACE_FIRST, (union value){ .text = exact }, err));
	return table_combine(table, row, PLACE_LAST, (union value){ .text = exact }, err);
}

static enum status end_leaf(struct accumulator *f, const struct path_node *leaf, uint32_t process,
			    struct path_sum sum, struct error *err)
{
	char idle[sizeof(IDLE_PREFIX) + IDLE_TEXT];
	union value keys[PLACE_NAME + 1];
	const char *name = trace_text(f->trace, leaf->name, NULL);

	keys[PLACE_SHORT].u64 = 0;
	if (leaf->class == PATH_IDLE) {
		keys[PLACE_SHORT].u64 = leaf->name >> 8 == CAUSE_LAUNCH && (leaf->name & 255);
		memcpy(idle, IDLE_PREFIX, sizeof(IDLE_PREFIX));
		paths_idle_text(f, leaf, idle + sizeof(IDLE_PREFIX) - 1);
		keys[PLACE_WHAT].text = idle;
	} else if (!strncmp(name, "Memcpy", 6) || !strncmp(name, "Memset", 6)) {
		keys[PLACE_WHAT].text = name;
	} else {
		bool comm = sweep_communicates(f->sweep, leaf->name);
		enum work work = comm ? WORK_COMM : work_of(name);

		keys[PLACE_WHAT].text = work_words[work];
		keys[PLACE_SHORT].u64 =
			sum.calls && sum.gpu_ns / sum.calls < (comm ? 5 : 1) * SHORT_KERNEL_NS;
	}
	return put_place(f, process, leaf->parent, keys, sum.gpu_ns + sum.idle_ns, err);
}

/* For processes without a GPU: returns for each path its outermost operator that is not a node of
 * autograd; 0: none, so it is code of the loop; NOWHERE_PATH: in a function that loads, validates
 * or saves. */
#define NOWHERE_PATH UINT32_MAX
static uint32_t *outermost_operators(struct accumulator *f, uint32_t count)
{
	uint32_t *all = calloc(count, sizeof(*all));

	for (uint32_t i = 1; all && i < count; i++) {
		const struct path_node *node = trace_get_path(f->trace, i);

		if (node->class >= PATH_IDLE)
			continue; /* below a PATH_* node the operator is not that of forward */
		const char *name = trace_text(f->trace, node->name, NULL);
		all[i] = all[node->parent];
		if (!all[i] && node->class == RANGE_PYTHON &&
		    name_function_phase(name) != PHASE_NONE)
			all[i] = NOWHERE_PATH;
		if (!all[i] && node->class == RANGE_OP && !name_is_autograd(name))
			all[i] = i;
	}
	return all;
}

/* Returns whether a node is a Python function outside of annotations, which would define its
 * phase. */
static bool is_loop_code(struct accumulator *f, uint32_t path)
{
	const struct path_node *node = trace_get_path(f->trace, path);
	bool is_code = node->class == RANGE_PYTHON;

	for (; is_code && node->parent; node = trace_get_path(f->trace, node->parent))
		is_code = node->class == RANGE_PYTHON;
	return is_code;
}

static enum status end_operator(struct accumulator *f, uint32_t path, uint32_t process, int64_t ns,
				struct error *err)
{
	const struct path_node *node = trace_get_path(f->trace, path);
	const char *name = trace_text(f->trace, node->name, NULL);
	bool is_operator = node->class == RANGE_OP;
	char what[OPERATORS_TEXT];
	union value keys[PLACE_NAME + 1];

	snprintf(what, sizeof(what), OPERATORS_PREFIX "%s",
		 is_operator ? operator_category(name) : "code");
	keys[PLACE_WHAT].text = what;
	keys[PLACE_SHORT].u64 = 0;
	return put_place(f, process, path, keys, ns > 0 ? (uint64_t)ns : 0, err);
}

static enum status places_end(struct accumulator *f, struct error *err)
{
	uint32_t count = paths_count(f);
	RELEASED_BY(vec_release) uint32_t *processes = paths_processes(f);
	RELEASED_BY(vec_release) uint32_t *operators = outermost_operators(f, count);

	if (!processes || !operators)
		return fail_memory(err);
	for (uint32_t i = 1; i < count; i++) {
		const struct path_node *node = trace_get_path(f->trace, i);
		struct path_sum sum = paths_at(f->state, i);

		if (!acc_wants(f, processes[i]))
			continue;
		if ((node->class == PATH_WORK || node->class == PATH_IDLE) &&
		    (sum.gpu_ns || sum.idle_ns))
			TRY(end_leaf(f, node, processes[i], sum, err));
		else if (sum.host_ns && !sweep_process(f->sweep, processes[i]).has_gpu &&
			 (operators[i] ? operators[i] != NOWHERE_PATH : is_loop_code(f, i)))
			TRY(end_operator(f, operators[i] ? operators[i] : i, processes[i],
					 sum.host_ns, err));
	}
	return flame_end(f, f->state, err);
}

const struct report_type report_places = {
	.name = "places",
	.help = "GPU work and idle time by place",
	.tables = TABLES(&table_places, &table_flame),
	.state_size = sizeof(struct path_sums),
	.shares_state = true,
	.needs_owners = true,
	.put = paths_put,
	.end = places_end,
	.release = paths_release,
};

/* ---- places of findings --------------------------------------------------------------------- */

/* Kernels or copies that a rule is about, by their kind of work or the begin of their names. "*"
 * before a word: part of the name; "-": must not be part of it. Rules about idle time use their
 * figures instead. */
static const struct {
	const char *rule, *words[4];
	bool is_short;
} sums[] = {
	{ "exposed_comm", { "comm" }, false },
	{ "small_collectives", { "comm" }, true },
	{ "pageable_copy", { "*Pageable" }, false },
	{ "exposed_upload", { "*HtoD", "-Pageable" }, false },
	{ "exposed_download", { "*DtoH", "-Pageable" }, false },
	{ "device_copy", { "*DtoD" }, false },
	{ "peer_copy", { "*PtoP" }, false },
	{ "memset_fill", { "Memset" }, false },
	{ "fp32_gemm", { "gemm_fp32" }, false },
	{ "fp32_conv", { "conv_fp32" }, false },
	{ "fp8", { "gemm", "gemm_tf32" }, false },
	{ "unfused_attention", { "softmax" }, false },
	{ "layout", { "layout" }, false },
	{ "short_kernels", { "*", "-comm", "-Mem" }, true },
	{ "elementwise", { "elementwise", "copy" }, false },
	{ "slow_kernels", { "*", "-comm", "-Mem" }, false },
};
enum { SUMS = sizeof(sums) / sizeof(sums[0]) };

static bool is_summed(size_t at, const union value *row)
{
	const char *what = row[PLACE_WHAT].text;
	bool found = false;

	if ((sums[at].is_short && row[PLACE_SHORT].u64 != 1) ||
	    !strncmp(what, IDLE_PREFIX, sizeof(IDLE_PREFIX) - 1))
		return false;
	for (size_t i = 0; i < 4 && sums[at].words[i]; i++) {
		const char *word = sums[at].words[i];

		if (word[0] == '-' && strstr(what, word + 1))
			return false;
		found |= word[0] == '*'           ? strstr(what, word + 1) != NULL
			 : strcmp(word, "Memset") ? !strcmp(what, word)
						  : !strncmp(what, word, strlen(word));
	}
	return found;
}

/* Returns whether "idle_causes.CAUSE" is among the figures of a rule. Long launches have their own
 * rule.
 */
static bool is_cause(const struct rule *rule, const union value *row)
{
	const char *what = row[PLACE_WHAT].text, *figures = rule->figures;
	size_t len = strlen(what);

	if (!strcmp(what, IDLE_PREFIX "launch") &&
	    (row[PLACE_SHORT].u64 == 1) != !strcmp(rule->name, "long_launches"))
		return false;
	/* launch_bound includes launches in the user's annotations */
	if (!strcmp(rule->name, "launch_bound") &&
	    !strncmp(what, IDLE_PREFIX, strlen(IDLE_PREFIX)) &&
	    cause_is_own(what + strlen(IDLE_PREFIX)))
		return true;
	for (const char *at = strstr(figures, what); at; at = strstr(at + 1, what))
		if (!at[len] || at[len] == ' ')
			return !strncmp(what, IDLE_PREFIX, sizeof(IDLE_PREFIX) - 1);
	return false;
}

struct found_place {
	const char *name, *first, *last;
	uint64_t ns;
};

static size_t places_take(const struct facts *f, const struct rule *rule, const char *operators,
			  struct found_place *all)
{
	struct table *rows = tables_find(f->tables, "places");
	size_t at = 0, count = 0, kept = 0;
	const union value *row;

	while (at < SUMS && strcmp(sums[at].rule, rule->name) != 0)
		at++;
	for (size_t i = 0; (row = table_at(rows, i)); i++)
		if (operators[0] ? !strcmp(row[PLACE_WHAT].text, operators)
		    : at < SUMS  ? is_summed(at, row)
				 : is_cause(rule, row))
			all[count++] =
				(struct found_place){ row[PLACE_NAME].text, row[PLACE_FIRST].text,
						      row[PLACE_LAST].text, row[PLACE_NS].u64 };
	SORT_BY(all, count, UP(struct found_place, name), UP(struct found_place, first),
		UP(struct found_place, last), UP(struct found_place, ns));
	for (size_t i = 0; i < count; i++) {
		if (kept && !strcmp(all[kept - 1].name, all[i].name)) {
			all[kept - 1].ns += all[i].ns;
			if (all[i].last && strcmp(all[i].last, all[kept - 1].last) > 0)
				all[kept - 1].last = all[i].last;
			continue;
		}
		all[kept++] = all[i];
	}
	SORT_BY(all, kept, DOWN(struct found_place, ns), UP(struct found_place, name));
	return kept;
}

enum status places_text(const struct facts *f, const struct rule *rule, const struct finding *of,
			char out[WHERE_TEXT], struct error *err)
{
	size_t rows = table_count(tables_find(f->tables, "places")), len = 0, shown = 0, more = 0;
	struct time_unit unit = f->unit;
	RELEASED_BY(vec_release) struct found_place *all = calloc(rows + 1, sizeof(*all));
	double whole = 0, rest = 0, outside = 0;
	char n[NUMBER_TEXT], m[NUMBER_TEXT], cut[CUT_TEXT];

	out[0] = '\0';
	if (!all)
		return fail_memory(err);
	size_t count = places_take(f, rule, of->operators, all);
	for (size_t i = 0; i < count; i++)
		whole += facts_per_gpu(f, (double)all[i].ns);
	if (of->operators[0] && whole > 1.01 * of->operators_ns)
		count = 0; /* some of it lies outside of steps, and it is unknown which */
	/* it is unknown how much lies in settling steps: if they have most of it, show
	 * percentages */
	if (f->settled_steps < f->window_steps && whole > 4 * of->saving_ns)
		unit = (struct time_unit){ .ns = whole / 100, .name = "%" };
	for (size_t i = 0; i < count; i++) {
		double ns = facts_per_gpu(f, (double)all[i].ns);
		bool is_one = all[i].first && all[i].last && !strcmp(all[i].first, all[i].last);

		if (!all[i].name[0]) {
			outside += ns;
		} else if (shown < PLACES_SHOWN && ns >= PLACE_LEAST * whole) {
			len += (size_t)snprintf(out + len, WHERE_TEXT - len, "%s%s",
						shown++ ? " \xc2\xb7 " : "",
						time_text(n, ns, &unit));
			if (shown == 1)
				len += (size_t)snprintf(out + len, WHERE_TEXT - len, " of %s %s",
							time_text(n, whole, &unit), unit.name);
			len += (size_t)snprintf(
				out + len, WHERE_TEXT - len, " in %s",
				cut_text(cut, is_one ? all[i].first : all[i].name, 120));
		} else {
			rest += ns;
			more++;
		}
	}
	if (shown && rest >= PLACE_LEAST * whole / 2)
		len += (size_t)snprintf(out + len, WHERE_TEXT - len, " \xc2\xb7 %s in %s more",
					time_text(n, rest, &unit), count_text(m, more));
	if (shown && outside >= PLACE_LEAST * whole)
		snprintf(out + len, WHERE_TEXT - len, " \xc2\xb7 %s outside of any range",
			 time_text(n, outside, &unit));
	return ST_OK;
}
