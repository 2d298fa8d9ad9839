/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads names of the Itanium C++ ABI, and makes the text while it reads.  The C++ runtime's own
 * function has no limits of time and memory, and reads no name longer than 1,024 bytes, which those
 * of CUTLASS exceed.  Everything that occurs in signatures of kernels is supported; a name with
 * anything else stays mangled.
 */
#include "convert/name/name.h"

#include "convert/name/mangled.h"

#include <stdio.h>
#include <stdlib.h>

/* Letters and their meanings, separated by semicolons. */
static const char builtins[] =
	"asigned char;bbool;cchar;ddouble;elong double;ffloat;g__float128;"
	"hunsigned char;iint;junsigned int;llong;munsigned long;n__int128;"
	"ounsigned __int128;sshort;tunsigned short;vvoid;wwchar_t;xlong long;"
	"yunsigned long long;z...";
static const char d_builtins[] = "ndecltype(nullptr);ichar32_t;schar16_t;uchar8_t;aauto;hhalf";
static const char std_names[] = "astd::allocator;bstd::basic_string;sstd::string;istd::istream;"
				"ostd::ostream;dstd::iostream";
static const char suffixes[] = "i;ju;ll;mul;xll;yull"; /* suffixes of numbers, by their type */
/* The digit is the number of operands. */
static const char operators[] = "aN2&=;aS2=;aa2&&;ad1&;an2&;cl0();cm2,;co1~;dV2/=;de1*;dv2/;eO2^=;"
				"eo2^;eq2==;ge2>=;gt2>;ix2[];lS2<<=;le2<=;ls2<<;lt2<;mI2-=;mL2*=;"
				"mi2-;ml2*;mm1--;ne2!=;ng1-;nt1!;oR2|=;oo2||;or2|;pL2+=;pl2+;pp1++;"
				"ps1+;pt2->;qu3?;rM2%=;rS2>>=;rm2%;rs2>>;ss2<=>";

enum form { WHOLE, LOCAL, NAME }; /* with return type; without; without parameters as well */
static struct text read_encoding(struct reader *r, enum form form);
static struct type read_type(struct reader *r);
static struct text read_name(struct reader *r, struct text *behind, bool is_encoding);
static struct text read_expression(struct reader *r, bool in_brackets);

/* ---- template arguments ---- */

/* Reads a value, or the name of an object, after L. */
static struct text read_literal(struct reader *r)
{
	struct text t = none, suffix = none;
	const char *begin;

	if (take(r, "_Z")) {
		t = read_encoding(r, WHOLE);
	} else if (take(r, "b0") || take(r, "b1")) {
		t = add(r, none, r->s[-1] == '1' ? "true" : "false");
	} else {
		if (!look_up(r, suffixes, 1, &suffix))
			t = around(r, "(", whole(r, read_type(r)), ")");
		t = add(r, t, take(r, "n") ? "-" : "");
		for (begin = r->s; *r->s && *r->s != 'E';)
			r->s++;
		t = join(r, join(r, t, put(r, begin, (size_t)(r->s - begin))), suffix);
	}
	must(r, "E");
	return t;
}

/* Joins arguments with commas, without empty ones. */
static struct text commas(struct reader *r, struct list l)
{
	struct text t = none;

	for (uint32_t i = 0; i < l.count; i++)
		t = comma(r, t, whole(r, r->arguments[l.at + i]));
	return t;
}

/* Reads template arguments up to E.  Inner lists are stored first, so the arguments of this list
 * wait on a stack until the list is complete. */
static struct list read_arguments(struct reader *r)
{
	uint32_t base = r->waiting_count, count;

	enter(r);
	while (!take(r, "E")) {
		struct type t = { .is_pack = take(r, "J") };

		if (t.is_pack) {
			t.pack = read_arguments(r);
			t.left = commas(r, t.pack);
		} else if (take(r, "L")) {
			t.left = read_literal(r);
		} else if (take(r, "X")) {
			t.left = read_expression(r, false);
			must(r, "E");
		} else {
			t = read_type(r);
		}
		if (r->waiting_count == ARGUMENTS)
			give_up(r);
		r->waiting[r->waiting_count++] = t;
	}
	r->depth--;
	count = r->waiting_count - base;
	r->waiting_count = base;
	if (count > ARGUMENTS - r->argument_count)
		give_up(r);
	memcpy(&r->arguments[r->argument_count], &r->waiting[base], count * sizeof(struct type));
	r->argument_count += count;
	return (struct list){ r->argument_count - count, count };
}

/* Reads arguments after I, and returns "name<a, b>". */
static struct text read_template(struct reader *r, struct text name, struct list *out)
{
	bool in_lambda = r->in_lambda;

	r->in_lambda = false;
	struct list l = *out = read_arguments(r);

	r->in_lambda = in_lambda;
	struct text args = commas(r, l);
	/* like the C++ runtime, even if the last argument is an empty pack */
	bool apart = last_of(r, args) == '>' && whole(r, r->arguments[l.at + l.count - 1]).len;

	name = add(r, name, last_of(r, name) == '<' ? " <" : "<");
	return add(r, join(r, name, args), apart ? " >" : ">");
}

/* Returns the current element of a pack inside an expansion, otherwise `t`. */
static struct type element(struct reader *r, struct type t)
{
	if (!r->in_pack || !t.is_pack)
		return t;
	r->pack_count = t.pack.count;
	return r->pack_index < t.pack.count ? r->arguments[t.pack.at + r->pack_index] : plain(none);
}

/* Reads a template parameter after T. */
static struct type read_param(struct reader *r)
{
	uint32_t n = sequence(r, 10);
	char text[24];

	snprintf(text, sizeof(text), "auto:%u", n + 1);
	if (r->in_lambda)
		return plain(add(r, none, text));
	if (n >= r->params.count)
		give_up(r);
	struct type t = element(r, r->arguments[r->params.at + n]);

	t.param = n + 1;
	return t;
}

/* Reads a substitution after S. */
static struct type read_substitution(struct reader *r)
{
	struct type t = plain(none);

	if (look_up(r, std_names, 1, &t.left))
		return t;
	uint32_t n = sequence(r, 36);

	if (n >= r->substitution_count)
		give_up(r);
	t = r->substitutions[n];
	if (t.param && t.param <= r->params.count)
		t = r->arguments[r->params.at + t.param - 1];
	return element(r, t);
}

/* Reads the type after Dp once for each element of the pack in it. */
static struct type read_expansion(struct reader *r)
{
	uint32_t index = r->pack_index, count = r->pack_count, known = r->substitution_count;
	const char *begin = r->s;
	bool in_pack = r->in_pack;
	struct text t = none;

	r->in_pack = true;
	r->pack_count = r->pack_index = 0;
	do {
		r->s = begin;
		struct text one = whole(r, read_type(r));

		if (!r->pack_index) /* only the first adds substitutions */
			known = r->substitution_count;
		r->substitution_count = known;
		t = comma(r, t, one);
	} while (++r->pack_index < r->pack_count);
	r->in_pack = in_pack;
	r->pack_index = index;
	r->pack_count = count;
	return plain(t);
}

static struct text read_source_name(struct reader *r)
{
	uint32_t len = number(r);
	const char *p = r->s;

	if (strnlen(p, len) < len)
		give_up(r);
	r->s += len;
	if (len > 10 && !memcmp(p, "_GLOBAL_", 8) && p[9] == 'N')
		return add(r, none, "(anonymous namespace)");
	return put(r, p, len);
}

/* Reads an expression.  Calls, casts and the like are not supported. */
static struct text read_expression(struct reader *r, bool in_brackets)
{
	struct text t, sign;
	struct list l;

	enter(r);
	if (take(r, "L")) {
		t = read_literal(r);
	} else if (take(r, "T")) {
		t = whole(r, read_param(r));
	} else if (take(r, "st")) {
		t = around(r, "sizeof (", whole(r, read_type(r)), ")");
	} else if (take(r, "sr")) {
		t = add(r, whole(r, read_type(r)), "::");
		t = join(r, t, read_source_name(r));
		in_brackets = in_brackets && *r->s == 'I';
		if (take(r, "I"))
			t = read_template(r, t, &l);
	} else if (take(r, "adL_Z")) {
		t = read_encoding(r, NAME);
		t = last_of(r, t) == ')' ? around(r, "&(", t, ")") : around(r, "&", t, "");
		must(r, "E");
	} else if (look_up(r, operators, 2, &sign)) {
		char count = r->pool[sign.at++];

		sign.len--;
		t = count == '1' ? sign : join(r, read_expression(r, true), sign);
		t = join(r, t, read_expression(r, true));
		if (count == '3')
			t = join(r, add(r, t, " : "), read_expression(r, true));
	} else {
		give_up(r);
	}
	r->depth--;
	return in_brackets ? around(r, "(", t, ")") : t;
}

/* ---- types ---- */

/* Reads parameters up to E or the end of the name; "v" alone means that there are none. */
static struct text read_params(struct reader *r)
{
	struct text t = none;

	if (r->s[0] == 'v' && (!r->s[1] || r->s[1] == 'E'))
		r->s++;
	else
		t = whole(r, read_type(r));
	while (*r->s && *r->s != 'E')
		t = comma(r, t, whole(r, read_type(r)));
	return around(r, "(", t, ")");
}

/* Returns a pointer or reference to `t`, or a pointer to a member. */
static struct type point(struct reader *r, struct type t, struct text sign)
{
	bool is_reference = r->pool[sign.at] == '&';

	if (r->in_pack && !t.left.len) /* an empty pack element stays empty */
		return t;
	if (is_reference && last_of(r, t.left) == '&') { /* collapse references */
		t.left.len -= sign.len == 1 && t.left.len > 1 &&
			      r->pool[t.left.at + t.left.len - 2] == '&';
		return t;
	}
	if (t.right.len) {
		t.left = add(r, t.left, last_of(r, t.left) == ' ' ? "(" : " (");
		t.right = around(r, ")", t.right, "");
	}
	t.left = join(r, t.left, sign);
	return t;
}

static struct type qualify(struct reader *r, struct type t, const char *word)
{
	struct text *to = t.right.len && r->pool[t.right.at] == '(' ? &t.right : &t.left;
	size_t len = strlen(word);

	if ((r->in_pack && !t.left.len) ||
	    (to->len >= len && !memcmp(r->pool + to->at + to->len - len, word, len)))
		return t; /* it is already qualified */
	*to = add(r, *to, word);
	return t;
}

static struct type read_array(struct reader *r)
{
	const char *begin = r->s;

	number(r);
	struct text size = around(r, " [", put(r, begin, (size_t)(r->s - begin)), "]");

	must(r, "_");
	struct type t = read_type(r);

	if (t.right.len && r->pool[t.right.at] == ' ') { /* "int [2][3]" */
		t.right.at++;
		t.right.len--;
	}
	t.right = join(r, size, t.right);
	return t;
}

/* Reads a type that is neither built in nor qualified, after its first letter `c`. */
static struct type read_compound(struct reader *r, char c)
{
	struct text behind = none, of;
	struct type t;
	struct list l;

	switch (c) {
	case 'P':
		return point(r, read_type(r), add(r, none, "*"));
	case 'R':
		return point(r, read_type(r), add(r, none, "&"));
	case 'O':
		return point(r, read_type(r), add(r, none, "&&"));
	case 'F':
		take(r, "Y");
		t = read_type(r);
		t.left = add(r, t.left, " ");
		t.right = join(r, read_params(r), t.right);
		must(r, "E");
		return t;
	case 'A':
		return read_array(r);
	case 'M':
		of = whole(r, read_type(r));
		t = read_type(r);
		return point(r, t, around(r, t.right.len ? "" : " ", of, "::*"));
	case 'T':
		t = read_param(r);
		if (*r->s == 'I')
			remember(r, t);
		break;
	case 'S':
		t = read_substitution(r);
		break;
	default:
		r->s--;
		return plain(read_name(r, &behind, false));
	}
	return take(r, "I") ? plain(read_template(r, whole(r, t), &l)) : t;
}

static struct type read_type(struct reader *r)
{
	struct type t = plain(none);
	const char *begin = r->s;
	char c = *r->s;

	enter(r);
	if (look_up(r, builtins, 1, &t.left) ||
	    (c == 'D' && (r->s++, look_up(r, d_builtins, 1, &t.left)))) {
		r->depth--;
		return t;
	}
	if (take(r, "p")) {
		t = read_expansion(r);
	} else if (c == 'r' || c == 'V' || c == 'K') { /* the first qualifier is applied last */
		r->s += strspn(r->s, "rVK");
		const char *end = r->s;

		for (t = read_type(r); end > begin; end--)
			t = qualify(r, t,
				    end[-1] == 'K'   ? " const"
				    : end[-1] == 'V' ? " volatile"
						     : " restrict");
	} else if (c && c != 'D') {
		bool is_known = c == 'S' && r->s[1] != 't';

		r->s++;
		t = read_compound(r, is_known || c != 'S' ? c : 'N');
		if (is_known && r->s[-1] != 'E') {
			r->depth--;
			return t;
		}
	} else {
		give_up(r);
	}
	if (c != 'T') {
		t.param = 0;
		t.is_pack = false;
	}
	remember(r, t);
	r->depth--;
	return t;
}

/* ---- names ---- */

/* Reads a name without scopes.  `before` is the name of the class, for its constructors. */
static struct text read_unqualified(struct reader *r, struct text before)
{
	struct text t = none;
	char text[24];

	r->is_plain = r->is_template = false;
	while (take(r, "L"))
		;
	if (is_digit(*r->s)) {
		t = read_source_name(r);
	} else if ((*r->s == 'C' || *r->s == 'D') && is_digit(r->s[1])) {
		t = around(r, *r->s == 'D' ? "~" : "", before, "");
		r->s += 2;
		r->is_plain = true;
	} else if (take(r, "Ul")) {
		bool in_lambda = r->in_lambda;

		r->in_lambda = true;
		t = around(r, "{lambda", read_params(r), "");
		r->in_lambda = in_lambda;
		must(r, "E");
	} else if (take(r, "Ut")) {
		t = add(r, none, "{unnamed type");
	} else if (take(r, "cv")) {
		t = around(r, "operator ", whole(r, read_type(r)), "");
		r->is_plain = true;
		r->is_template = false;
	} else if (look_up(r, operators, 2, &t)) {
		t.at++; /* skip the number of operands */
		t.len--;
		t = around(r, "operator", t, "");
	} else {
		give_up(r);
	}
	if (t.len && r->pool[t.at] == '{') {
		snprintf(text, sizeof(text), "#%u}", sequence(r, 10) + 1);
		t = add(r, t, text);
	}
	while (take(r, "B"))
		t = join(r, t, around(r, "[abi:", read_source_name(r), "]"));
	return t;
}

static struct text read_arguments_of(struct reader *r, struct text name, bool is_encoding)
{
	bool is_plain = r->is_plain;
	struct list l;

	name = read_template(r, name, &l);
	if (is_encoding)
		r->params = l;
	r->is_plain = is_plain;
	r->is_template = true;
	return name;
}

/* Reads a nested name after N. */
static struct text read_nested(struct reader *r, struct text *behind, bool is_encoding)
{
	struct text t = none, name = none;

	while (take(r, "K") || take(r, "V") || take(r, "r"))
		*behind = add(r, *behind,
			      r->s[-1] == 'K'   ? " const"
			      : r->s[-1] == 'V' ? " volatile"
						: " restrict");
	while (take(r, "R") || take(r, "O"))
		*behind = add(r, *behind, r->s[-1] == 'R' ? " &" : " &&");
	while (!take(r, "E")) {
		bool is_known = true;

		if (take(r, "St")) {
			t = add(r, none, "std");
		} else if (take(r, "S")) {
			t = whole(r, read_substitution(r));
		} else {
			is_known = false;
			if (take(r, "T"))
				t = whole(r, read_param(r));
			else if (take(r, "I"))
				t = read_arguments_of(r, t, is_encoding);
			else
				t = join(r, t.len ? add(r, t, "::") : t,
					 name = read_unqualified(r, name));
		}
		if (!is_known && *r->s != 'E')
			remember(r, plain(t));
	}
	return t;
}

static struct text read_name(struct reader *r, struct text *behind, bool is_encoding)
{
	struct list params = r->params;
	bool is_known = false;
	struct text t = none;

	enter(r);
	r->is_template = r->is_plain = false;
	if (take(r, "N")) {
		t = read_nested(r, behind, is_encoding);
	} else if (take(r, "Z")) { /* a name local to a function */
		t = read_encoding(r, LOCAL);
		must(r, "E");
		t = add(r, t, "::");
		t = join(r, t, read_name(r, behind, is_encoding));
		if (r->s[0] == '_' && is_digit(r->s[1]))
			r->s += 2;
		if (!is_encoding)
			r->params = params;
	} else {
		if (take(r, "St"))
			t = add(r, none, "std::");
		else if ((is_known = take(r, "S")))
			t = whole(r, read_substitution(r));
		if (!is_known)
			t = join(r, t, read_unqualified(r, none));
		if (*r->s == 'I' && !is_known)
			remember(r, plain(t));
		if (take(r, "I"))
			t = read_arguments_of(r, t, is_encoding);
	}
	r->depth--;
	return t;
}

static struct text read_encoding(struct reader *r, enum form form)
{
	struct text behind = none, t;
	struct type result = plain(none);

	enter(r);
	t = read_name(r, &behind, true);
	r->depth--;
	if (!*r->s || *r->s == 'E')
		return t;
	if (r->is_template && !r->is_plain)
		result = read_type(r);
	struct text params = read_params(r);

	if (form == NAME && !result.left.len)
		return t;
	t = join(r, join(r, t, params), behind);
	if (form == LOCAL || !result.left.len)
		return t;
	if (!result.right.len)
		result.left = add(r, result.left, " ");
	return join(r, join(r, result.left, t), result.right);
}

char *name_demangle(const char *name)
{
	char *out = NULL;

	if (strncmp(name, "_Z", 2) != 0 || strnlen(name, MANGLED_MAX) == MANGLED_MAX)
		return NULL;
	struct reader *r = malloc(sizeof(*r)); /* pages that are not used cost nothing */

	if (!r)
		return NULL;
	memset(r, 0, offsetof(struct reader, substitutions));
	r->s = name + 2;
	if (!setjmp(r->failed)) {
		struct text t = read_encoding(r, WHOLE);

		if (!*r->s && t.len <= PLAIN_MAX)
			out = strndup(r->pool + t.at, t.len);
	}
	free(r);
	return out;
}
