/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h - reads Python pickles as plain values, without running code.
 *
 * A pickle is a program for a stack machine that can call any function it names.  Here only values
 * are made: numbers, texts, lists, tuples and dictionaries.  The only functions are those by which
 * PyTorch's C++ writer marks types (torch.jit._pickle build_*list, restore_type_tag), which return
 * their first argument; any other name is refused with an error.
 *
 * Equal texts, and equal tuples of numbers, are one value.  Values share parts where the pickle
 * does, so they may contain themselves: code that walks them must limit the depth.  All memory is
 * one arena with a ceiling.  A pickle belongs to one thread.
 *
 * A pickle of any length is read as a stream: items of the lists that pickle_stream() names go to
 * its caller one by one, and their memory is reused.  pickle_keep() keeps those to which the pickle
 * refers again, such as stacks, because a pickle writes each object once.
 */
#pragma once

#include "schemas/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pickle_type {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INT, /* of more than 64 bits: the nearest that fits */
	PICKLE_REAL,
	PICKLE_TEXT, /* also bytes; NUL-terminated */
	PICKLE_LIST, /* also tuples and sets */
	PICKLE_DICT,
	PICKLE_FUNCTION, /* one of those above, not called */
	PICKLE_MARK,     /* inside the reader only */
};
struct pickle_value {
	uint8_t type;
	uint8_t flags, list, ordinal; /* these three, `memo` and `refs` are the reader's */
	uint32_t id;                  /* of a kept value or text: no other has it; from 1 on */
	uint32_t memo, refs;
	union {
		int64_t number; /* and of PICKLE_BOOL */
		double real;
		struct {
			const char *text;
			size_t len;
		};
		struct { /* of a dictionary keys and values in turn */
			struct pickle_value **items;
			uint32_t count, cap;
		};
	};
};

/* A list whose items, dictionaries, are given away: that at root[key], or those in it. */
struct pickle_list {
	const char *key;
	bool is_nested;
};
struct pickle_taker {
	const struct pickle_list *lists; /* end with a key of NULL; fewer than 255 */
	/*
	 * An item of lists[list]; `ordinal`: of a nested one, which of the lists in it, 255: that
	 * or a later one.  `item` is borrowed, what is reached through pickle_keep() stays.
	 */
	enum status (*take)(void *user, size_t list, size_t ordinal, struct pickle_value *item,
			    struct error *err);
	void *user;
};

struct input;
struct pickle;
/*
 * Reads the pickle at bytes[0 .. len).  *out holds all values, and *root is the first of them.
 * ST_FORMAT: no pickle, damaged, or it wants something run; err->at is the byte.
 */
enum status pickle_read(struct pickle **out, const struct pickle_value **root, const void *bytes,
			size_t len, size_t ceiling, struct error *err);
/* The same of a stream.  *out is there for take() from the first call on. */
enum status pickle_stream(struct pickle **out, const struct pickle_value **root, struct input *in,
			  const struct pickle_taker *taker, size_t ceiling, struct error *err);
/*
 * The one value of this content, which stays until pickle_free(); it takes the place of *at, an
 * item of the value that is taken.  NULL: over the ceiling.
 */
const struct pickle_value *pickle_keep(struct pickle *p, struct pickle_value **at);
/* The same values of JSON, for writers that have both.  Numbers are those of a double. */
enum status pickle_of_json(struct pickle **out, const struct pickle_value **root, const char *text,
			   size_t len, size_t ceiling, struct error *err);
void pickle_free(struct pickle *p); /* accepts NULL */

/* The value of a text key; NULL: `v` is no dictionary, or has none. */
const struct pickle_value *pickle_get(const struct pickle_value *v, const char *key);
/* Of such a value; the fallback where it is missing or of another type. */
int64_t pickle_int(const struct pickle_value *v, int64_t fallback);
const char *pickle_text(const struct pickle_value *v, const char *fallback);
/* How many items a list or dictionary has; 0 for anything else. */
size_t pickle_count(const struct pickle_value *v);

/* Appends "FILE:LINE NAME" of a dictionary of a stack. */
void pickle_put_frame(struct buf *out, const struct pickle_value *frame, const char *before,
		      bool has_folder);
/*
 * The innermost functions of the program, "model.py:31 forward < train.py:88 step".  With stacks of
 * C++ most functions are none of it, so Python comes first.  A thread of autograd has none of
 * Python: "aten::mul < MulBackward0", its operators, says more than functions of C++.
 */
void pickle_put_where(struct buf *out, const struct pickle_value *frames);
bool pickle_head_has(const uint8_t *head, size_t len, const char *word);
