/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.c - the path of GPU work that names its own scope: XLA's kernels.
 *
 * XLA compiles a whole step, so the ranges that are open at its launch are the same for all
 * kernels.  Each kernel instead has JAX's name of its operation: functions and named scopes,
 * separated by slashes.  Transformations wrap a scope, such as "transpose(jvp(Dense_0))", the
 * backward of Dense_0.  The marks PATH_BACKWARD and PATH_RECOMPUTE replace them, so forward and
 * backward share a path.
 */
#include "convert/stage/context/internal.h"

#include <string.h>

enum {
	SCOPE_NONE = 1, /* values of `has_scope` by schema; 0: not looked up */
	SCOPE_THERE = 2,
	PARTS_MAX = 64, /* parts of one name */
};

struct part { /* part of a text */
	const char *at;
	size_t len;
};

static bool part_is(struct part p, const char *text)
{
	return p.len == strlen(text) && !memcmp(p.at, text, p.len);
}

/* Removes the text up to the next slash outside of parentheses from `rest` and returns it. */
static struct part part_take(struct part *rest)
{
	struct part first = { rest->at, 0 };
	int depth = 0;

	for (; first.len < rest->len && (depth > 0 || first.at[first.len] != '/'); first.len++)
		depth += (first.at[first.len] == '(') - (first.at[first.len] == ')');
	size_t taken = first.len + (first.len < rest->len);
	*rest = (struct part){ rest->at + taken, rest->len - taken };
	return first;
}

/* Returns the part without its transformations, which may be empty, and sets *pass from them. */
static struct part untransformed(struct part p, enum path_pass *pass)
{
	static const char *const around[] = { "transpose(", "jvp(", "vmap(", "checkpoint(",
					      "remat(" };
	static const char *const alone[] = { "gradient_tape", "rematted_computation", "checkpoint",
					     "remat" };

	for (size_t i = 0; i < sizeof(around) / sizeof(*around); i++) {
		size_t len = strlen(around[i]);

		if (p.len <= len || memcmp(p.at, around[i], len) != 0 || p.at[p.len - 1] != ')')
			continue;
		if (i == 0 && *pass == PASS_FORWARD)
			*pass = PASS_BACKWARD;
		p = (struct part){ p.at + len, p.len - len - 1 };
		i = SIZE_MAX; /* restart with the first transformation */
	}
	for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++) {
		if (!part_is(p, alone[i]))
			continue;
		if (i < 2)
			*pass = i ? PASS_RECOMPUTE : PASS_BACKWARD;
		p.len = 0;
	}
	return p;
}

static uint32_t enter(struct trace *t, uint32_t parent, struct part p, enum range_class class)
{
	uint32_t name = p.len ? trace_name(t, p.at, p.len, NULL) : 0;

	return name ? trace_path(t, parent, name, class) : parent;
}

/* Returns the name that the framework gave to the operation, without the type after a colon; empty:
 * there is none. */
static struct part framework_name(const struct trace *t, uint32_t schema)
{
	const char *text = trace_attr_text(t, schema, "tf_op");

	if (!text || !strchr(text, '/'))
		text = trace_attr_text(t, schema, "name_stat"); /* used by XLA for AMD GPUs */
	if (!text)
		return (struct part){ "", 0 };
	const char *slash = strrchr(text, '/'), *colon = strrchr(text, ':');
	return (struct part){ text, colon && (!slash || colon > slash) ? (size_t)(colon - text)
								       : strlen(text) };
}

/* Returns the name without its number, because "fusion.12" and "fusion.3" are of the same kind. */
static struct part compiler_name(const char *text)
{
	struct part p = { text, strlen(text) };
	size_t digits = p.len;

	while (digits && text[digits - 1] >= '0' && text[digits - 1] <= '9')
		digits--;
	if (digits > 1 && digits < p.len && text[digits - 1] == '.')
		p.len = digits - 1;
	return p;
}

uint32_t scope_path(struct host *h, const struct event *e, uint32_t process, uint32_t parent)
{
	struct trace *t = h->trace;
	enum path_pass pass = PASS_FORWARD;

	if (e->schema > h->schema_count || h->has_scope[e->schema] == SCOPE_NONE)
		return parent;
	const char *hlo = trace_attr_text(t, e->schema, "hlo_op");
	struct part rest = framework_name(t, e->schema), operation = { "", 0 };
	bool has_slash = memchr(rest.at, '/', rest.len) != NULL;
	h->has_scope[e->schema] = hlo || has_slash ? SCOPE_THERE : SCOPE_NONE;
	if (!hlo && !has_slash)
		return parent;
	if (!parent)
		parent = trace_path(t, 0, process, PATH_ROOT);
	for (int i = 0; rest.len && i < PARTS_MAX; i++) {
		struct part part = untransformed(part_take(&rest), &pass);
		bool is_scope = rest.len || memchr(part.at, '(', part.len);

		/* A name without slashes or parentheses is that of an argument. */
		if (is_scope)
			parent = enter(t, parent, part, RANGE_ANNOTATION);
		else if (has_slash)
			operation = part;
	}
	if (!operation.len && hlo)
		operation = compiler_name(hlo);
	parent = enter(t, parent, operation, RANGE_OP);
	if (pass == PASS_FORWARD)
		return parent;
	return trace_path_mark(t, parent, parent,
			       pass == PASS_BACKWARD ? PATH_BACKWARD : PATH_RECOMPUTE);
}
