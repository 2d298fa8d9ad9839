/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec.h - arrays that grow.
 *
 * An array is three members of its owner: a typed pointer, a count and a capacity.  The owner frees
 * the pointer with free().
 *
 *	TRY(vec_reserve(&s->rows, &s->row_cap, s->row_count + 1, err));
 *	s->rows[s->row_count++] = row;
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Makes space for `wanted` items of `size` bytes.  The capacity at least doubles, so appending one
 * by one costs constant time on average.  New items are zeroed.  ST_MEMORY leaves the array
 * unchanged.  `items` is the address of the typed pointer.
 */
enum status vec_grow(void *items, size_t *cap, size_t wanted, size_t size, struct error *err);

/* Calls vec_grow() through a typed pointer: vec_reserve(&items, &cap, wanted, err). */
#define vec_reserve(items, cap, wanted, err)                                                       \
	(*(cap) >= (size_t)(wanted)                                                                \
		 ? ST_OK                                                                           \
		 : vec_grow((items), (cap), (wanted), sizeof(**(items)), (err)))

/* Allocates a zeroed array that does not grow, through a typed pointer: vec_new(&items, count,
 * err). */
#define vec_new(items, count, err) vec_make((items), (count), sizeof(**(items)), (err))
enum status vec_make(void *items, size_t count, size_t size, struct error *err);
/* Frees an array; `items` is the address of its pointer, of any type. */
void vec_release(const void *items);

/* Compares for qsort() in ascending order. */
int compare_u64(const void *a, const void *b);
int compare_double(const void *a, const void *b);

/*
 * Returns the median and sorts the values in place.  For an even count it is the mean of the two
 * middle values, and without values it is 0.
 */
double median_u64(uint64_t *values, size_t count);
double median_double(double *values, size_t count);
