/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes short kernel names for people.  The demangled text is read as slices and never copied as a
 * whole: names may have many kilobytes, but only about fifty columns are shown.
 */
#include "convert/name/rules.h"

#include "convert/name/name.h"

#include <stdlib.h>
#include <string.h>

enum {
	NEST_MAX = 64,  /* open brackets; deeper text is not analysed */
	DEPTH_MAX = 12, /* nested templates */
};
#define ELLIPSIS "…"
#define JOINT    " · "

struct slice {
	const char *p;
	size_t len;
};

/* A text that is being made.  `wide`: some of it did not fit into `cap`. */
struct line {
	char *p;
	size_t len, cap;
	bool wide;
};

/* A C++ name without scopes: ident<args>. */
struct part {
	struct slice ident, args;
};

static const char *const wrappers[] = {
	"vectorized_elementwise_kernel",
	"unrolled_elementwise_kernel",
	"elementwise_kernel",
	"unrolled_elementwise_kernel_for_multi_outputs",
	"elementwise_kernel_with_index",
	"legacy_elementwise_kernel",
	"index_elementwise_kernel",
	"reduce_kernel",
	"multi_tensor_apply_kernel",
	"_scatter_gather_elementwise_kernel",
	"vectorized_templated_elementwise_kernel",
	"kernelPointwiseApply1",
	"kernelPointwiseApply2",
	"kernelPointwiseApply3",
	"elementwise_kernel_manual_unroll",
	NULL,
};
static const char *const looked_through[] = {
	"BinaryFunctor",
	"AUnaryFunctor",
	"BUnaryFunctor",
	"ReduceOp",
	"func_wrapper_t",
	"gpu_kernel_impl",
	"gpu_kernel_impl_nocast",
	"gpu_index_kernel",
	NULL,
};
/* Template arguments that are never a functor. */
static const char *const no_functors[] = {
	"float",
	"double",
	"int",
	"long",
	"short",
	"char",
	"bool",
	"void",
	"unsigned",
	"signed",
	"true",
	"false",
	"Half",
	"BFloat16",
	"complex",
	"Array",
	"array",
	"TensorListMetadata",
	"TensorListScalarListMetadata",
	"FusedOptimizerTensorListMetadata",
	"OffsetCalculator",
	"TrivialOffsetCalculator",
	"__half",
	"__nv_bfloat16",
	NULL,
};
static const char *const cutlass_kernels[] = { "Kernel", "Kernel2", NULL };
/* Members whose names mean nothing without their class. */
static const char *const empty_members[] = { "type", "Params", "kernel", NULL };

static bool listed(const char *const *list, struct slice s)
{
	for (; *list; list++)
		if (strlen(*list) == s.len && memcmp(*list, s.p, s.len) == 0)
			return true;
	return false;
}

static struct slice slice_trim(struct slice s)
{
	while (s.len && s.p[0] == ' ')
		s.p++, s.len--;
	while (s.len && s.p[s.len - 1] == ' ')
		s.len--;
	return s;
}

static bool slice_begins(struct slice s, const char *begin)
{
	size_t len = strlen(begin);

	return s.len >= len && memcmp(s.p, begin, len) == 0;
}

/* The open brackets.  A '>' that closes no '<' is an operator. */
struct nest {
	char open[NEST_MAX];
	size_t depth;
};

static void nest_close(struct nest *n, char open)
{
	size_t depth = n->depth;

	if (open == '<') {
		if (depth && n->open[depth - 1] == '<')
			n->depth--;
		return;
	}
	while (depth && n->open[depth - 1] != open)
		depth--;
	if (depth)
		n->depth = depth - 1;
}

static void nest_step(struct nest *n, const char *at, const char *begin)
{
	switch (*at) {
	case '(':
	case '<':
	case '{':
	case '[':
		if (n->depth < NEST_MAX)
			n->open[n->depth++] = *at;
		break;
	case ')':
		nest_close(n, '(');
		break;
	case '}':
		nest_close(n, '{');
		break;
	case ']':
		nest_close(n, '[');
		break;
	case '>':
		if (at == begin || at[-1] != '-')
			nest_close(n, '<');
		break;
	}
}

/* Returns the text up to the first `stop` outside of brackets, or all of it.  *s becomes the text
 * after it. */
static struct slice slice_take(struct slice *s, const char *stop)
{
	struct nest n = { .depth = 0 };
	size_t stop_len = strlen(stop), i = 0;
	struct slice head;

	for (; i < s->len; i++) {
		if (!n.depth && s->len - i >= stop_len && !memcmp(s->p + i, stop, stop_len))
			break;
		nest_step(&n, s->p + i, s->p);
	}
	head = (struct slice){ s->p, i };
	i = i < s->len ? i + stop_len : i;
	s->p += i;
	s->len -= i;
	return head;
}

/* Returns the text up to the next space outside of brackets.  "operator()() const::{lambda()#1}" is
 * one word. */
static struct slice slice_word(struct slice *s)
{
	struct slice word = slice_take(s, " "), more;

	while (slice_begins(*s, "const::")) {
		more = slice_take(s, " ");
		word.len = (size_t)(more.p + more.len - word.p);
	}
	return word;
}

/* Returns the last word, without the return type. */
static struct slice slice_last_word(struct slice s)
{
	struct slice word = { s.p, 0 }, next;

	while (s.len) {
		next = slice_word(&s);
		if (next.len)
			word = next;
	}
	return word;
}

static struct part part_split(struct slice s)
{
	struct part part = { s, { s.p, 0 } };
	struct nest n = { .depth = 0 };
	size_t i = strcspn(s.p, "<({["); /* the text ends with a NUL */

	if (i >= s.len)
		return part;
	part.ident.len = i;
	if (s.p[i] != '<')
		return part;
	part.args.p = s.p + i + 1;
	for (; i < s.len; i++) {
		nest_step(&n, s.p + i, s.p);
		if (!n.depth)
			break;
	}
	part.args.len = (size_t)(s.p + i - part.args.p);
	return part;
}

/* Returns the innermost scope with a name of its own: a lambda is named like its function. */
static struct part part_of(struct slice name)
{
	struct slice all = name, scope;
	struct part best = { { name.p, 0 }, { name.p, 0 } }, part;

	while (all.len) {
		scope = slice_trim(slice_take(&all, "::"));
		if (!scope.len || memchr("{[('", scope.p[0], 4) || slice_begins(scope, "operator"))
			continue;
		part = part_split(scope);
		if (!best.ident.len || !listed(empty_members, part.ident))
			best = part;
	}
	return best.ident.len ? best : (struct part){ name, { name.p, 0 } };
}

static void line_put(struct line *l, const char *p, size_t len)
{
	if (len > l->cap - l->len) {
		l->wide = true;
		return;
	}
	memcpy(l->p + l->len, p, len);
	l->len += len;
}

static void line_put_text(struct line *l, const char *text)
{
	line_put(l, text, strlen(text));
}

static size_t columns(const char *p, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += ((unsigned char)p[i] & 0xc0) != 0x80;
	return count;
}

/* Returns the number of bytes of the first `count` columns. */
static size_t columns_bytes(const char *p, size_t len, size_t count)
{
	size_t i = 0;

	for (; i < len; i++)
		if (((unsigned char)p[i] & 0xc0) != 0x80 && !count--)
			break;
	return i;
}

static bool is_number(struct slice s)
{
	return s.len && ((s.p[0] >= '0' && s.p[0] <= '9') || s.p[0] == '-');
}

static void line_put_part(struct line *l, struct part part, unsigned depth);

/* Returns 3 for "(cub::Algorithm)3", 2 for "2ul", and other arguments unchanged. */
static struct slice arg_number(struct slice arg)
{
	struct slice rest = arg;

	if (arg.len && arg.p[0] == '(') {
		slice_take(&rest, ")");
		rest.p = memchr(arg.p, ')', arg.len);
		if (!rest.p)
			return arg;
		rest.p++;
		rest.len = arg.len - (size_t)(rest.p - arg.p);
	}
	if (!is_number(rest))
		return arg;
	while (rest.len > 1 && strchr("ul", rest.p[rest.len - 1]))
		rest.len--;
	return rest;
}

/* Appends a type: its last scope, with the words and signs around it ("float const*"). */
static void line_put_arg(struct line *l, struct slice arg, unsigned depth)
{
	struct slice word, tail;

	arg = arg_number(slice_trim(arg));
	if (is_number(arg) || slice_begins(arg, "decltype(")) {
		line_put(l, arg.p, arg.len);
		return;
	}
	while (arg.len) {
		word = slice_word(&arg);
		tail = (struct slice){ word.p + word.len, 0 };
		while (word.len && strchr("*&", word.p[word.len - 1]))
			word.len--, tail.p--, tail.len++;
		if (word.len)
			line_put_part(l, part_of(word), depth);
		line_put(l, tail.p, tail.len);
		if (arg.len)
			line_put_text(l, " ");
	}
}

static void line_put_part(struct line *l, struct part part, unsigned depth)
{
	struct slice args = part.args;
	bool first = true;

	line_put(l, part.ident.p, part.ident.len);
	if (!args.len)
		return;
	if (depth >= DEPTH_MAX) {
		line_put_text(l, "<" ELLIPSIS ">");
		return;
	}
	line_put_text(l, "<");
	while (args.len && !l->wide) {
		if (!first)
			line_put_text(l, ", ");
		line_put_arg(l, slice_take(&args, ","), depth + 1);
		first = false;
	}
	line_put_text(l, ">");
}

/* Appends ident<a, b, …> with as many arguments as fit.  Returns false if not even <…> fits. */
static bool line_put_fitting(struct line *l, struct part part, size_t width)
{
	char cap[512];
	struct slice args = part.args;
	size_t used = columns(part.ident.p, part.ident.len) + (args.len ? 1 : 0);

	if (used + (args.len ? 2 : 0) > width)
		return false;
	line_put(l, part.ident.p, part.ident.len);
	if (!args.len)
		return true;
	line_put_text(l, "<");
	for (bool first = true; args.len; first = false) {
		struct line arg = { cap, 0, sizeof(cap), false };
		size_t need;

		if (!first)
			line_put_text(&arg, ", ");
		line_put_arg(&arg, slice_take(&args, ","), 0);
		need = used + columns(arg.p, arg.len);
		if (arg.wide || need + (args.len ? 4 : 1) > width) {
			line_put_text(l, first ? ELLIPSIS : ", " ELLIPSIS);
			break;
		}
		line_put(l, arg.p, arg.len);
		used = need;
	}
	line_put_text(l, ">");
	return true;
}

/* Appends a text, shortened in its middle at a ratio of 3 : 2, because tile sizes are at the end.
 */
static void line_put_middle(struct line *l, struct slice s, size_t width)
{
	size_t have = columns(s.p, s.len), left, skip;

	if (have <= width || width < 2) {
		line_put(l, s.p, columns_bytes(s.p, s.len, width));
		return;
	}
	left = ((width - 1) * 3 + 4) / 5;
	skip = columns_bytes(s.p, s.len, have - (width - 1 - left));
	line_put(l, s.p, columns_bytes(s.p, s.len, left));
	line_put_text(l, ELLIPSIS);
	line_put(l, s.p + skip, s.len - skip);
}

/* Finds the first template argument that is a functor.  Returns false if there is none. */
static bool functor_find(struct part of, struct part *out)
{
	struct slice args = of.args, arg;
	struct part part;

	while (args.len) {
		arg = arg_number(slice_trim(slice_take(&args, ",")));
		if (!arg.len || is_number(arg))
			continue;
		part = part_of(slice_last_word(arg));
		if (!part.ident.len || listed(no_functors, part.ident))
			continue;
		*out = part;
		return true;
	}
	return false;
}

static struct part functor_inner(struct part part)
{
	struct part inner;

	for (unsigned i = 0; i < DEPTH_MAX && listed(looked_through, part.ident); i++) {
		if (!functor_find(part, &inner))
			break;
		part = inner;
	}
	return part;
}

static void line_put_wrapped(struct line *l, struct part functor, struct slice wrapper,
			     size_t width)
{
	char cap[512];
	struct line whole = { cap, 0, sizeof(cap), false };
	size_t used, left;

	line_put_part(&whole, functor, 0);
	used = columns(whole.p, whole.len) + 3;
	if (whole.wide || used + 5 > width) { /* no room for a part of the wrapper */
		if (!line_put_fitting(l, functor, width))
			line_put_middle(l, functor.ident, width);
		return;
	}
	line_put(l, whole.p, whole.len);
	line_put_text(l, JOINT);
	left = width - used;
	if (columns(wrapper.p, wrapper.len) <= left) {
		line_put(l, wrapper.p, wrapper.len);
		return;
	}
	line_put(l, wrapper.p, columns_bytes(wrapper.p, wrapper.len, left - 1));
	line_put_text(l, ELLIPSIS);
}

/* Returns the last identifier of a mangled name that could not be demangled: "foo" in
 * "_ZN2at6native4fooI...". */
static struct slice mangled_last(struct slice s)
{
	struct slice last = s;
	size_t i = slice_begins(s, "_ZN") ? 3 : 2, len;

	while (i < s.len && s.p[i] >= '0' && s.p[i] <= '9') {
		for (len = 0; i < s.len && s.p[i] >= '0' && s.p[i] <= '9' && len < s.len; i++)
			len = len * 10 + (size_t)(s.p[i] - '0');
		if (len > s.len - i)
			break;
		last = (struct slice){ s.p + i, len };
		i += len;
	}
	return last;
}

/* Returns whether a text is a C++ signature.  Others, such as "Memcpy HtoD (Pageable -> Device)",
 * are shown unchanged. */
static bool is_signature(struct slice s, struct slice word)
{
	if (word.len && word.p[0] == '(' && !slice_begins(word, "(anonymous namespace)::"))
		return false;
	return memchr(s.p, '<', s.len) || memchr(s.p, '(', s.len) || slice_begins(s, "void ") ||
	       strstr(s.p, "::");
}

static void line_put_kernel(struct line *l, struct slice s, size_t width)
{
	struct slice word = slice_last_word(s);
	struct part part, inner;

	if (!is_signature(s, word)) {
		line_put_middle(l, s, width);
		return;
	}
	part = part_of(word);
	if (listed(cutlass_kernels, part.ident) && functor_find(part, &inner))
		part = inner;
	if (listed(wrappers, part.ident) && functor_find(part, &inner)) {
		line_put_wrapped(l, functor_inner(inner), part.ident, width);
		return;
	}
	if (!line_put_fitting(l, part, width))
		line_put_middle(l, part.ident, width);
}

size_t name_short(const char *kernel, size_t width, char *out, size_t cap)
{
	struct slice s = { kernel, strlen(kernel) };
	struct line l = { out, 0, cap ? cap - 1 : 0, false };
	char *plain = NULL;

	if (!cap)
		return 0;
	if (slice_begins(s, "_Z")) {
		plain = name_demangle(kernel);
		s = plain ? (struct slice){ plain, strlen(plain) } : mangled_last(s);
	}
	const char *clone = strstr(s.p, " [clone");
	if (clone)
		s.len = (size_t)(clone - s.p);
	while (s.len >= 6 && !memcmp(s.p + s.len - 6, " const", 6))
		s.len -= 6;
	line_put_kernel(&l, s, width);
	out[l.len] = '\0';
	free(plain);
	return l.len;
}
