/* SPDX-License-Identifier: Apache-2.0 */
/* Formats stacks of functions as PyTorch records them, to show which code issued something. */
#include "convert/source/pickle/pickle.h"

#include <ctype.h>
#include <string.h>

enum { SHOWN = 4 }; /* functions shown of a stack */

static bool is_python(const char *file)
{
	size_t len = strlen(file);

	return len > 3 && !strcmp(file + len - 3, ".py");
}

/* Returns whether a file only passes calls on, which says nothing about the program. */
static bool hands_on(const char *file)
{
	static const char *const parts[] = { "/torch/", "/einops/", "/jaxtyping/", "/functools.py",
					     "/contextlib.py" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(file, parts[i]))
			return true;
	return false;
}

void pickle_put_frame(struct buf *out, const struct pickle_value *frame, const char *before,
		      bool has_folder)
{
	const char *file = pickle_text(pickle_get(frame, "filename"), "");
	const char *base = has_folder ? NULL : strrchr(file, '/');

	buf_putf(out, "%s%.300s:%lld %.200s", before, base ? base + 1 : file,
		 (long long)pickle_int(pickle_get(frame, "line"), 0),
		 pickle_text(pickle_get(frame, "name"), "?"));
}

/*
 * Returns the operator or autograd node that a C++ function implements; *len is 0 if there is none.
 * An operator is at::_ops::mul_Tensor::call(...), where a part that begins with a capital is the
 * overload; a node is torch::autograd::generated::MulBackward0::apply(...).
 */
static const char *operator_of(const char *function, size_t *len)
{
	static const char ops[] = "at::_ops::", autograd[] = "torch::autograd::";
	const char *apply = strstr(function, "::apply("), *begin = function + strlen(ops);

	*len = 0;
	if (!strncmp(function, ops, strlen(ops))) {
		*len = strcspn(begin, ":");
		for (size_t i = 1; i + 1 < *len; i++)
			if (begin[i] == '_' && isupper((unsigned char)begin[i + 1]))
				*len = i;
	} else if (!strncmp(function, autograd, strlen(autograd)) && apply) {
		for (begin = apply; begin > function && begin[-1] != ':'; begin--)
			;
		*len = (size_t)(apply - begin);
	}
	return begin;
}

/* Appends operators such as "aten::mul < MulBackward0", because C++ threads of autograd have no
 * functions of the program. */
static void put_operators(struct buf *out, const struct pickle_value *frames)
{
	const char *last = "";
	size_t last_len = 0, len;

	for (size_t i = 0, shown = 0; i < pickle_count(frames) && shown < SHOWN; i++) {
		const char *function = pickle_text(pickle_get(frames->items[i], "name"), "");
		const char *name = operator_of(function, &len);

		if (!len || (len == last_len && !memcmp(name, last, len)))
			continue;
		buf_putf(out, "%s%s%.*s", shown++ ? " < " : "", *function == 'a' ? "aten::" : "",
			 (int)len, name);
		last = name;
		last_len = len;
	}
}

/* Appends functions of the program (level 2), of Python (level 1) or all functions (level 0). */
static void put_functions(struct buf *out, const struct pickle_value *frames, int level)
{
	for (size_t i = 0, shown = 0; i < pickle_count(frames) && shown < SHOWN; i++) {
		const char *file = pickle_text(pickle_get(frames->items[i], "filename"), "");

		if (is_python(file) + (is_python(file) && !hands_on(file)) >= level)
			pickle_put_frame(out, frames->items[i], shown++ ? " < " : "", false);
	}
}

void pickle_put_where(struct buf *out, const struct pickle_value *frames)
{
	put_functions(out, frames, 2);
	if (!out->len)
		put_functions(out, frames, 1);
	if (!out->len)
		put_operators(out, frames);
	if (!out->len)
		put_functions(out, frames, 0);
}
