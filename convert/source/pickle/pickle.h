/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h - Python pickles as plain values, without running anything.
 *
 * A pickle is a program for a stack machine that can call any function it names.  Here only values
 * are made: numbers, texts, lists, tuples and dictionaries.  Of functions there are only those by
 * which PyTorch's C++ writer marks types (torch.jit._pickle build_*list, restore_type_tag), which
 * give their first argument back; every other name is refused, and the error has it.
 *
 * Values share parts where the pickle does, so they may hold themselves: who walks them limits the
 * depth.  All memory is one arena with a ceiling.  Of one thread.
 */
#ifndef CONVERT_SOURCE_PICKLE_PICKLE_H
#define CONVERT_SOURCE_PICKLE_PICKLE_H

#include "schemas/base/status.h"

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
	PICKLE_FUNCTION, /* inside the reader only */
	PICKLE_MARK,
};
struct pickle_value {
	uint8_t type;
	union {
		int64_t number; /* and of PICKLE_BOOL */
		double real;
		struct {
			const char *text;
			size_t len;
		};
		struct { /* of a dictionary keys and values in turn */
			struct pickle_value **items;
			size_t count, cap;
		};
	};
};

struct pickle;
/*
 * Reads the pickle at bytes[0 .. len).  *out holds all values, and *root is the first of them.
 * ST_FORMAT: no pickle, damaged, or it wants something run; err->at is the byte.
 */
enum status pickle_read(struct pickle **out, const struct pickle_value **root, const void *bytes,
			size_t len, size_t ceiling, struct error *err);
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

#endif
