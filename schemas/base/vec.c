/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ITEMS = 16, MANY_ITEMS = 1 << 16 }; /* from MANY_ITEMS on, arrays grow by half */

enum status vec_grow(void *items, size_t *cap, size_t wanted, size_t size, struct error *err)
{
	size_t more = *cap < MANY_ITEMS ? *cap : *cap / 2;
	size_t wider = *cap > SIZE_MAX / 2 / size ? wanted : *cap + more;
	void *held;

	if (*cap >= wanted)
		return ST_OK;
	if (wider < FIRST_ITEMS)
		wider = FIRST_ITEMS;
	if (wider < wanted)
		wider = wanted;
	if (wider > SIZE_MAX / size)
		return fail_memory(err);
	memcpy(&held, items, sizeof(held)); /* reads a pointer of any type without aliasing it */
	void *grown = realloc(held, wider * size);
	if (!grown)
		return fail_memory(err);
	memset((char *)grown + *cap * size, 0, (wider - *cap) * size);
	memcpy(items, &grown, sizeof(grown));
	*cap = wider;
	return ST_OK;
}

enum status vec_make(void *items, size_t count, size_t size, struct error *err)
{
	void *made = calloc(count + !count, size);

	memcpy(items, &made, sizeof(made));
	return made ? ST_OK : fail_memory(err);
}

void vec_release(const void *items)
{
	void *held;

	memcpy(&held, items, sizeof(held));
	free(held);
}

int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median_u64(uint64_t *values, size_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), compare_u64);
	return ((double)values[(count - 1) / 2] + (double)values[count / 2]) / 2;
}

double median_double(double *values, size_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), compare_double);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
