/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - formats figures for people.
 *
 * `–` means exactly zero, `<0.1` a value that rounds to zero. A column has one unit and one number
 * of decimals. Each function writes to `out` and returns it.
 */
#pragma once

#include <stdint.h>
#include <stddef.h>

enum { NUMBER_TEXT = 48 };
#define DASH "\xe2\x80\x93"

struct time_unit { /* the unit of a column */
	double ns;
	unsigned decimals;
	const char *name;
};
/* Returns the unit for a column whose greatest figure is `most_ns`: s, ms or us. Milliseconds below
 * 10 get two decimals, so that a figure has the same unit in sentences and in tables. */
struct time_unit time_unit_of(double most_ns, unsigned ms_decimals);

char *number_text(char out[NUMBER_TEXT], double value, unsigned decimals);
char *count_text(char out[NUMBER_TEXT], uint64_t value); /* commas between thousands */
static inline const char *plural(uint64_t value)
{
	return value == 1 ? "" : "s";
}
char *time_text(char out[NUMBER_TEXT], double ns, const struct time_unit *unit);
/* Writes "18.4 MiB" or "1.10 GiB"; less than 0.1 MiB as "51.2 KiB". */
char *bytes_text(char out[NUMBER_TEXT], double bytes);

/* Computes each part's tenths of a percent of `whole`, rounded separately. Part `rest` gets the
 * difference to 1000. A part of 0 gets 0; a greater part that rounds to 0 gets -1, to be written
 * `<0.1`. */
void percents(const double *parts, size_t count, double whole, size_t rest, int *tenths);
char *percent_text(char out[NUMBER_TEXT], int tenths);
