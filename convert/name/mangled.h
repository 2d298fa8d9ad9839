/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mangled.h - for demangle.c: reads a mangled name letter by letter and builds texts.
 *
 * A text is a part of one pool of fixed size.  If the pool, a table or the nesting reaches its
 * limit, demangling stops, because nested substitutions can make gigabytes from a hundred bytes.
 * give_up() does not return: it jumps back to name_demangle().
 */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	POOL = 4 << 20,
	MANGLED_MAX = 64 << 10,
	PLAIN_MAX = 256 << 10,
	SUBSTITUTIONS = 4096,
	ARGUMENTS = 8192, /* template arguments in one name */
	DEPTH = 512,
};

struct text {
	uint32_t at, len;
};
struct list {
	uint32_t at, count;
};
/* A type as the text before and after a declared name: "int (*" and ")(float)". */
struct type {
	struct text left, right;
	struct list pack; /* if `is_pack`: the arguments of the pack */
	bool is_pack;
	uint32_t param; /* template parameter + 1; a substitution by it means the argument at the
			 * place of use */
};
struct reader {
	const char *s;
	jmp_buf failed;
	unsigned depth;
	uint32_t used, substitution_count, argument_count, waiting_count;
	struct list params; /* arguments that T_, T0_ and so on stand for */
	/* The latest name ends in template arguments; is that of a function without a return type.
	 */
	bool is_template, is_plain;
	bool in_lambda;
	bool in_pack; /* inside an expansion: index and count of its elements */
	uint32_t pack_index, pack_count;
	/* The members from here on are not zeroed. */
	struct type substitutions[SUBSTITUTIONS], arguments[ARGUMENTS], waiting[ARGUMENTS];
	char pool[POOL];
};

static const struct text none;

__attribute__((noreturn)) static inline void give_up(struct reader *r)
{
	longjmp(r->failed, 1);
}

/* ---- texts ---- */

static inline struct text put(struct reader *r, const char *p, size_t len)
{
	struct text t = { r->used, (uint32_t)len };

	if (len > POOL - r->used)
		give_up(r);
	memmove(r->pool + r->used, p, len);
	r->used += t.len;
	return t;
}

static inline struct text join(struct reader *r, struct text a, struct text b)
{
	if (!a.len || !b.len)
		return a.len ? a : b;
	if (a.at + a.len != r->used) /* otherwise extend `a` in place */
		a = put(r, r->pool + a.at, a.len);
	put(r, r->pool + b.at, b.len);
	a.len += b.len;
	return a;
}

static inline struct text add(struct reader *r, struct text a, const char *p)
{
	return join(r, a, put(r, p, strlen(p)));
}

static inline struct text around(struct reader *r, const char *before, struct text t,
				 const char *behind)
{
	return add(r, join(r, add(r, none, before), t), behind);
}

static inline struct text comma(struct reader *r, struct text t, struct text one)
{
	return join(r, t.len && one.len ? add(r, t, ", ") : t, one);
}

static inline char last_of(const struct reader *r, struct text t)
{
	return t.len ? r->pool[t.at + t.len - 1] : '\0';
}

static inline struct text whole(struct reader *r, struct type t)
{
	return join(r, t.left, t.right);
}

static inline struct type plain(struct text t)
{
	return (struct type){ .left = t };
}

/* ---- letters ---- */

static inline bool take(struct reader *r, const char *w)
{
	size_t len = strlen(w);
	bool is = strncmp(r->s, w, len) == 0;

	r->s += is ? len : 0;
	return is;
}

static inline void must(struct reader *r, const char *w)
{
	if (!take(r, w))
		give_up(r);
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Looks up the next `size` letters in the list, skips them and returns their meaning in *out.
 * Returns false if they are not in the list. */
static inline bool look_up(struct reader *r, const char *list, size_t size, struct text *out)
{
	for (const char *p = list, *end; *p; p = end + (*end == ';')) {
		end = p + strcspn(p, ";");
		if (strncmp(p, r->s, size) != 0)
			continue;
		*out = put(r, p + size, (size_t)(end - p) - size);
		r->s += size;
		return true;
	}
	return false;
}

static inline uint32_t number(struct reader *r)
{
	uint32_t n = 0;

	if (!is_digit(*r->s))
		give_up(r);
	while (is_digit(*r->s) && n < 1u << 24)
		n = n * 10 + (uint32_t)(*r->s++ - '0');
	return n;
}

/* Reads a sequence number: "_" is 0, "0_" is 1, and so on; in base 36 for substitutions. */
static inline uint32_t sequence(struct reader *r, unsigned base)
{
	uint32_t n = 0, more = *r->s != '_';

	for (; *r->s && *r->s != '_' && n < 1u << 20; r->s++) {
		unsigned digit = (unsigned)(is_digit(*r->s) ? *r->s - '0' : *r->s - 'A' + 10);

		if (digit >= base)
			give_up(r);
		n = n * base + digit;
	}
	must(r, "_");
	return n + more;
}

static inline void enter(struct reader *r)
{
	if (++r->depth > DEPTH)
		give_up(r);
}

static inline void remember(struct reader *r, struct type t)
{
	if (r->substitution_count == SUBSTITUTIONS)
		give_up(r);
	r->substitutions[r->substitution_count++] = t;
}
