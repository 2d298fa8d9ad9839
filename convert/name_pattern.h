/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_pattern.h - regular expressions that a user wrote, compiled only if that can end.
 *
 * regcomp() spells repetitions out: "a++++++" doubles six times, "(a{1,99}){1,99}" stands 9,801
 * times, and what may be left out costs memory by its square.  Repetitions of what may be empty, as
 * in "((a*)*){,7}", cost it exponential time, groups in groups use up the stack, and references back
 * to a group may match for years.  So all that is looked at before.
 */
#ifndef CONVERT_NAME_PATTERN_H
#define CONVERT_NAME_PATTERN_H

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

#include "schemas/status.h"

/* Of all expressions that share it; begin with zeros.  The most is about 30 MB of the C library. */
struct pattern_size {
	uint64_t elements; /* letters, sets and groups, repetitions spelt out */
	uint64_t squares;  /* of each expression's choices: | * + ? and what {m,n} may leave out */
};

/*
 * `match`, an extended expression of POSIX that ignores case, to `out`; regfree() is the caller's.
 * ST_CEILING, ST_FORMAT: nothing is in `out`, and `why` says it in words.
 */
enum status pattern_compile(regex_t *out, const char *match, struct pattern_size *sum, char *why,
			    size_t why_size);

#endif
