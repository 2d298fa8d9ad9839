/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h - reads Python pickles as plain values, without running code.
 *
 * A pickle is a program for a stack machine that can call any function it names.  This reader
 * creates only values: numbers, texts, lists, tuples and dictionaries.  The only functions it
 * accepts are those with which PyTorch's C++ writer marks types (torch.jit._pickle build_*list,
 * restore_type_tag), which return their first argument; any other name is refused with an error.
 *
 * Equal texts, and equal tuples of numbers, are one value.  Values share parts where the pickle
 * does, so they may contain themselves: code that walks them must limit the depth.  All memory
 * comes from one arena with a ceiling.  A pickle belongs to one thread.
 *
 * A pickle of any length can be read as a stream: the items of the lists that pickle_stream() names
 * are passed to its caller one by one, and their memory is reused.  pickle_keep() keeps those to
 * which the pickle refers again, such as stacks, because a pickle contains each object only once.
 */
#pragma once

#include "schemas/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pickle_type {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INT, /* clamped to 64 bits */
	PICKLE_REAL,
	PICKLE_TEXT, /* also bytes; ends with NUL */
	PICKLE_LIST, /* also tuples and sets */
	PICKLE_DICT,
	PICKLE_FUNCTION, /* one of the functions above, not called */
	PICKLE_MARK,     /* only inside the reader */
};
struct pickle_value {
	uint8_t type;
	uint8_t flags, list, ordinal; /* these three, `memo` and `refs` belong to the reader */
	uint32_t id;                  /* unique for each kept value and each text; from 1 on */
	uint32_t memo, refs;
	union {
		int64_t number; /* also for PICKLE_BOOL */
		double real;
		struct {
			const char *text;
			size_t len;
		};
		struct { /* a dictionary has keys and values in turn */
			struct pickle_value **items;
			uint32_t count, cap;
		};
	};
};

/* A list whose items, which are dictionaries, are streamed: the list at root[key], or the lists
 * inside it if `is_nested`. */
struct pickle_list {
	const char *key;
	bool is_nested;
};
struct pickle_taker {
	const struct pickle_list *lists; /* ends with a NULL key; fewer than 255 */
	/*
	 * Receives an item of lists[list].  `ordinal`: the index of the nested list that contains
	 * it; 255: that index or a greater one.  `item` is borrowed; what pickle_keep() returned
	 * stays valid.
	 */
	enum status (*take)(void *user, size_t list, size_t ordinal, struct pickle_value *item,
			    struct error *err);
	void *user;
};

struct input;
struct pickle;
/*
 * Reads the pickle at bytes[0 .. len).  *out owns all values, and *root is the outermost one.
 * Returns ST_FORMAT if it is not a pickle, is damaged, or requires running code; err->at is the
 * offset.
 */
enum status pickle_read(struct pickle **out, const struct pickle_value **root, const void *bytes,
			size_t len, size_t ceiling, struct error *err);
/* Reads a pickle as a stream.  *out is set before the first call of take(). */
enum status pickle_stream(struct pickle **out, const struct pickle_value **root, struct input *in,
			  const struct pickle_taker *taker, size_t ceiling, struct error *err);
/*
 * Returns the only value with this content, which stays valid until pickle_free(), and stores it in
 * *at, an item of the value that is being streamed.  Returns NULL above the ceiling.
 */
const struct pickle_value *pickle_keep(struct pickle *p, struct pickle_value **at);
/* Reads JSON as the same values, for writers that have both formats.  Numbers have the precision of
 * a double. */
enum status pickle_of_json(struct pickle **out, const struct pickle_value **root, const char *text,
			   size_t len, size_t ceiling, struct error *err);
void pickle_free(struct pickle *p); /* accepts NULL */

/* Returns the value of a text key, or NULL if `v` is not a dictionary or has no such key. */
const struct pickle_value *pickle_get(const struct pickle_value *v, const char *key);
/* Return the number or text in `v`, or `fallback` if `v` is NULL or has another type. */
int64_t pickle_int(const struct pickle_value *v, int64_t fallback);
const char *pickle_text(const struct pickle_value *v, const char *fallback);
/* Returns the number of items of a list or dictionary; 0 for anything else. */
size_t pickle_count(const struct pickle_value *v);

/* Appends `before` and "FILE:LINE NAME" for a frame, which is a dictionary. */
void pickle_put_frame(struct buf *out, const struct pickle_value *frame, const char *before,
		      bool has_folder);
/*
 * Appends the innermost functions of the program, such as "model.py:31 forward < train.py:88 step".
 * If a stack contains C++, most of its functions belong to libraries, so Python comes first.  A
 * thread of autograd has no Python functions; its operators ("aten::mul < MulBackward0") are more
 * useful than its C++ functions.
 */
void pickle_put_where(struct buf *out, const struct pickle_value *frames);
bool pickle_head_has(const uint8_t *head, size_t len, const char *word);
