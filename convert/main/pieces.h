/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main/pieces.h - XSpaces of one host's ranks become one.  Of the roof.
 *
 * XProf's tools read one plane /host:CPU, so the ranks' planes of that name become one: fields of a
 * message add up when its bytes stand one after the other.  The writer keeps their ids apart.  What
 * tells of the run is taken from the first; every other field is copied as it is.
 */
#ifndef CONVERT_MAIN_PIECES_H
#define CONVERT_MAIN_PIECES_H

#include "schemas/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pieces {
	int to;            /* the host's file; borrowed */
	const char *name;  /* of it, for errors */
	uint64_t host_len; /* bytes within the one plane; of all pieces before it is begun */
};

/* What is done with a piece; each of them is passed all pieces in order before the next. */
enum pieces_pass { PIECES_COUNT, PIECES_HOST, PIECES_REST, PIECES_PASSES };

/* Between PIECES_COUNT and PIECES_HOST. */
enum status pieces_begin_host(struct pieces *p, struct error *err);
enum status pieces_take(struct pieces *p, enum pieces_pass pass, const char *path, bool is_first,
			struct error *err);

#endif
