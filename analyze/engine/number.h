/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - figures for people.
 *
 * `–` is exactly nothing, `<0.1` is something that rounds to nothing; a column has one unit and
 * one number of decimals.  Each function writes to `out` and returns it.
 */
#pragma once

#include <stdint.h>
#include <stddef.h>

enum { NUMBER_TEXT = 48 };
#define DASH "\xe2\x80\x93"

struct time_unit { /* of a column */
	double ns;
	unsigned decimals;
	const char *name;
};
/*
 * The unit in which a column is written whose greatest figure is this: s, ms or us.  Below 10 ms
 * there are two decimals, so that what sentences give in ms is in ms in every table.
 */
struct time_unit time_unit_of(double most_ns, unsigned ms_decimals);

char *number_text(char out[NUMBER_TEXT], double value, unsigned decimals);
char *count_text(char out[NUMBER_TEXT], uint64_t value); /* with commas, also 0 */
static inline const char *plural(uint64_t value)
{
	return value == 1 ? "" : "s";
}
char *time_text(char out[NUMBER_TEXT], double ns, const struct time_unit *unit);
/* "18.4 MiB", "1.10 GiB"; below a tenth of a MiB "51.2 KiB". */
char *bytes_text(char out[NUMBER_TEXT], double bytes);

/*
 * Tenths of a percent of each part, rounded by itself; the part `rest` takes what is missing to
 * 1000.  Nothing stays 0; what rounds to nothing is -1, to be written `<0.1`.
 */
void percents(const double *parts, size_t count, double whole, size_t rest, int *tenths);
char *percent_text(char out[NUMBER_TEXT], int tenths);
