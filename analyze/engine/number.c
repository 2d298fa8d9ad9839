/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1e9

struct time_unit time_unit_of(double most_ns, unsigned ms_decimals)
{
	if (most_ns >= 10 * SECOND)
		return (struct time_unit){ SECOND, 2, "s" };
	if (most_ns < 1e6)
		return (struct time_unit){ 1e3, 0, "\xc2\xb5s" };
	return (struct time_unit){ 1e6, most_ns < 10e6 ? 2 : ms_decimals, "ms" };
}

/* Copies a number and puts commas between its thousands. */
static char *put_commas(char out[NUMBER_TEXT], const char *plain)
{
	size_t digits = strcspn(plain, "."), i, used = 0;

	for (i = 0; plain[i] && used + 2 < NUMBER_TEXT; i++) {
		if (i && i < digits && (digits - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = plain[i];
	}
	out[used] = '\0';
	return out;
}

char *number_text(char out[NUMBER_TEXT], double value, unsigned decimals)
{
	char plain[32];

	if (!(value > 0)) {
		snprintf(out, NUMBER_TEXT, "%s", DASH);
		return out;
	}
	snprintf(plain, sizeof(plain), "%.*f", (int)decimals, value);
	if (strspn(plain, "0.") == strlen(plain)) {
		if (decimals)
			snprintf(out, NUMBER_TEXT, "<0.%0*d", (int)decimals, 1);
		else
			snprintf(out, NUMBER_TEXT, "<1");
		return out;
	}
	return put_commas(out, plain);
}

char *count_text(char out[NUMBER_TEXT], uint64_t value)
{
	char plain[32];

	snprintf(plain, sizeof(plain), "%llu", (unsigned long long)value);
	return put_commas(out, plain);
}

char *time_text(char out[NUMBER_TEXT], double ns, const struct time_unit *unit)
{
	return number_text(out, ns / unit->ns, unit->decimals);
}

char *bytes_text(char out[NUMBER_TEXT], double bytes)
{
	static const struct {
		double size;
		unsigned decimals;
		const char *name;
	} units[] = { { 1073741824.0, 2, "GiB" }, { 1048576.0, 1, "MiB" }, { 1024.0, 1, "KiB" } };
	char number[NUMBER_TEXT];
	size_t i = bytes < units[0].size;

	if (bytes > 0 && bytes < units[1].size / 10)
		i = 2;

	number_text(number, bytes / units[i].size, units[i].decimals);
	snprintf(out, NUMBER_TEXT, "%.30s %s", number, units[i].name);
	return out;
}

/* The bound prevents overflow: in a damaged partial file a part may be a multiple of the whole. */
static int tenths_of(double part, double whole)
{
	const double most = 1e6;
	double tenths = part / whole * 1000;

	return (int)lround(tenths < most ? tenths : most);
}

void percents(const double *parts, size_t count, double whole, size_t rest, int *tenths)
{
	int left = 1000;
	size_t i;

	if (rest < count && !(parts[rest] > 0)) /* use the largest part instead */
		for (rest = 0, i = 1; i < count; i++)
			if (parts[i] > parts[rest])
				rest = i;
	for (i = 0; i < count; i++) {
		tenths[i] = whole > 0 ? tenths_of(parts[i], whole) : 0;
		if (i != rest)
			left -= tenths[i];
		if (parts[i] > 0 && !tenths[i])
			tenths[i] = -1;
	}
	if (rest < count && whole > 0 && parts[rest] > 0)
		tenths[rest] = left > 0 ? left : -1;
}

char *percent_text(char out[NUMBER_TEXT], int tenths)
{
	if (!tenths)
		snprintf(out, NUMBER_TEXT, "%s", DASH);
	else if (tenths < 0)
		snprintf(out, NUMBER_TEXT, "<0.1");
	else
		snprintf(out, NUMBER_TEXT, "%d.%d", tenths / 10, tenths % 10);
	return out;
}
