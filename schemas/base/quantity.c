/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/quantity.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SECOND_NS 1000000000ULL

enum { QUOTE_MAX = 60, PLACES_MAX = 19 };

struct unit_row {
	const char *name;
	uint64_t factor;
};

/* The order is ascending, because formatting uses the last unit that divides the value. */
static const struct unit_row size_units[] = {
	{ "", 1 },           { "K", 1ULL << 10 }, { "M", 1ULL << 20 },
	{ "G", 1ULL << 30 }, { "T", 1ULL << 40 }, { NULL, 0 },
};
static const struct unit_row time_units[] = {
	{ "ns", 1 },        { "us", 1000 },          { "ms", 1000000 },
	{ "s", SECOND_NS }, { "m", 60 * SECOND_NS }, { "h", 3600 * SECOND_NS },
	{ NULL, 0 },
};

/* The number digits / 10^places, read from the first `used` characters of a text; used 0: there is
 * no number. */
struct decimal {
	uint64_t digits;
	unsigned places;
	size_t used;
};

__attribute__((format(printf, 4, 5))) static enum status
refuse(const char *text, size_t len, struct error *err, const char *fmt, ...)
{
	char why[120];
	va_list args;

	if (!len)
		return fail(err, ST_USAGE, NOWHERE, "no value given");
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	return fail(err, ST_USAGE, NOWHERE, "%.*s%s: %s", len < QUOTE_MAX ? (int)len : QUOTE_MAX,
		    text, len > QUOTE_MAX ? "..." : "", why);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool add_digit(uint64_t *v, char digit)
{
	return !__builtin_mul_overflow(*v, 10, v) &&
	       !__builtin_add_overflow(*v, (uint64_t)(digit - '0'), v);
}

/* Returns false if the number has too many digits. */
static bool decimal_parse(const char *text, size_t len, struct decimal *d)
{
	size_t i, end;

	*d = (struct decimal){ 0 };
	for (i = 0; i < len && is_digit(text[i]); i++)
		if (!add_digit(&d->digits, text[i]))
			return false;
	d->used = i;
	if (!i || i + 1 >= len || text[i] != '.' || !is_digit(text[i + 1]))
		return true;
	for (end = ++i; end < len && is_digit(text[end]); end++)
		;
	d->used = end;
	while (end > i && text[end - 1] == '0') /* zeros at the end have no meaning */
		end--;
	if (end - i > PLACES_MAX)
		return false;
	d->places = (unsigned)(end - i);
	for (; i < end; i++)
		if (!add_digit(&d->digits, text[i]))
			return false;
	return true;
}

static const struct unit_row *unit_find(const struct unit_row *units, const char *name, size_t len,
					bool any_case)
{
	for (; units->name; units++)
		if (strlen(units->name) == len &&
		    !(any_case ? strncasecmp : strncmp)(units->name, name, len))
			return units;
	return NULL;
}

static uint64_t power_of_10(unsigned exponent)
{
	uint64_t power = 1;

	while (exponent--)
		power *= 10;
	return power;
}

static enum status unit_parse_start(const char *text, size_t len, struct decimal *d,
				    struct error *err)
{
	if (!decimal_parse(text, len, d))
		return refuse(text, len, err, "too many digits");
	if (!d->used)
		return refuse(text, len, err, "not a number");
	return ST_OK;
}

enum status unit_parse_count(const char *text, size_t len, uint64_t *count, struct error *err)
{
	struct decimal d;

	TRY(unit_parse_start(text, len, &d, err));
	if (d.used < len || memchr(text, '.', len))
		return refuse(text, len, err, "not a number: use digits only");
	*count = d.digits;
	return ST_OK;
}

static enum status parse_unit(const char *text, size_t len, const struct decimal *d,
			      const struct unit_row *unit, const char *use, const char *whole,
			      uint64_t *v, struct error *err)
{
	if (!unit)
		return refuse(text, len, err, "unknown unit '%.*s': use %s",
			      (int)(len - d->used < 20 ? len - d->used : 20), text + d->used, use);
	/* The value d x factor must be a whole number and fit. */
	unsigned __int128 product = (unsigned __int128)d->digits * unit->factor;
	uint64_t power = power_of_10(d->places);

	if (product % power)
		return refuse(text, len, err, "not a whole number of %s", whole);
	if (product / power > UINT64_MAX)
		return refuse(text, len, err, "too large");
	*v = (uint64_t)(product / power);
	return ST_OK;
}

enum status unit_parse_size(const char *text, size_t len, uint64_t *bytes, struct error *err)
{
	struct decimal d;

	TRY(unit_parse_start(text, len, &d, err));
	return parse_unit(text, len, &d, unit_find(size_units, text + d.used, len - d.used, true),
			  "K M G T", "bytes", bytes, err);
}

enum status unit_parse_time(const char *text, size_t len, uint64_t *ns, struct error *err)
{
	const struct unit_row *unit = time_units; /* 0 is the same in any unit */
	struct decimal d;

	TRY(unit_parse_start(text, len, &d, err));
	if (d.used == len && d.digits)
		return refuse(text, len, err, "a time needs a unit: ns us ms s m h");
	if (d.used < len)
		unit = unit_find(time_units, text + d.used, len - d.used, false);
	return parse_unit(text, len, &d, unit, "ns us ms s m h", "ns", ns, err);
}

enum status unit_parse_share(const char *text, size_t len, double *share, struct error *err)
{
	struct decimal d;

	TRY(unit_parse_start(text, len, &d, err));
	bool percent = d.used + 1 == len && text[d.used] == '%';
	if (d.used < len && !percent)
		return refuse(text, len, err, "not a share: use 2%% or 0.02");
	/* This rounds only once: powers of ten up to 10^22 and most digits are exact as doubles. */
	double v = (double)d.digits / ((double)power_of_10(d.places) * (percent ? 100 : 1));
	if (v > 1)
		return refuse(text, len, err, "over 100 %%: use 2%% or 0.02");
	*share = v;
	return ST_OK;
}

enum field { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, FIELDS };

/* Parses "YYYY-MM-DDTHH:MM:SS"; the digits in `layout` are field numbers. */
static bool instant_fields(const char *text, size_t len, int f[FIELDS])
{
	static const char layout[] = "0000-11-22T33:44:55";

	memset(f, 0, FIELDS * sizeof(f[0]));
	if (len < sizeof(layout) - 1)
		return false;
	for (size_t i = 0; layout[i]; i++) {
		if (!is_digit(layout[i])) {
			if (text[i] != layout[i])
				return false;
			continue;
		}
		if (!is_digit(text[i]))
			return false;
		f[layout[i] - '0'] = f[layout[i] - '0'] * 10 + text[i] - '0';
	}
	return true;
}

/* Parses ".123456789" with 1 to 9 digits, or nothing, and then "Z" at the end. */
static bool instant_fraction(const char *text, size_t len, uint64_t *ns)
{
	size_t i = 0;

	*ns = 0;
	if (len && text[0] == '.') {
		for (i = 1; i < len && is_digit(text[i]); i++)
			*ns = *ns * 10 + (uint64_t)(text[i] - '0');
		if (i < 2 || i > 10)
			return false;
		*ns *= power_of_10((unsigned)(10 - i));
	}
	return i + 1 == len && text[i] == 'Z';
}

enum status unit_parse_instant(const char *text, size_t len, uint64_t *ns, struct error *err)
{
	uint64_t fraction, s;
	int f[FIELDS];

	if (len > 30 || !instant_fields(text, len, f) ||
	    !instant_fraction(text + 19, len - 19, &fraction))
		return refuse(text, len, err, "not a time like 2026-11-20T12:00:00Z");
	struct tm tm = { .tm_year = f[YEAR] - 1900,
			 .tm_mon = f[MONTH] - 1,
			 .tm_mday = f[DAY],
			 .tm_hour = f[HOUR],
			 .tm_min = f[MINUTE],
			 .tm_sec = f[SECOND] };
	time_t seconds = timegm(&tm); /* changes fields that are out of range */
	if (tm.tm_mon != f[MONTH] - 1 || tm.tm_mday != f[DAY] || tm.tm_hour != f[HOUR] ||
	    tm.tm_min != f[MINUTE] || tm.tm_sec != f[SECOND])
		return refuse(text, len, err, "no such day or time of day");
	if (f[YEAR] < 1970 || f[YEAR] > 2554)
		return refuse(text, len, err, "the year must be from 1970 to 2554");
	if (__builtin_mul_overflow((uint64_t)seconds, SECOND_NS, &s) ||
	    __builtin_add_overflow(s, fraction, &s))
		return refuse(text, len, err, "too late");
	*ns = s;
	return ST_OK;
}

static char *unit_format(const struct unit_row *units, uint64_t v, char out[UNIT_TEXT])
{
	const struct unit_row *best = units;

	for (; v && units->name; units++)
		if (v % units->factor == 0)
			best = units;
	snprintf(out, UNIT_TEXT, "%" PRIu64 "%s", v / best->factor, v ? best->name : "");
	return out;
}

char *unit_format_size(uint64_t bytes, char out[UNIT_TEXT])
{
	return unit_format(size_units, bytes, out);
}

char *unit_format_time(uint64_t ns, char out[UNIT_TEXT])
{
	return unit_format(time_units, ns, out);
}

char *unit_format_instant(uint64_t ns, char out[UNIT_TEXT])
{
	uint64_t fraction = ns % SECOND_NS;
	time_t s = (time_t)(ns / SECOND_NS);
	int digits = !fraction ? 0 : fraction % 1000000 == 0 ? 3 : fraction % 1000 == 0 ? 6 : 9;
	struct tm tm;
	size_t len = strftime(out, UNIT_TEXT, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));

	if (digits)
		len += (size_t)snprintf(out + len, UNIT_TEXT - len, ".%0*" PRIu64, digits,
					fraction / power_of_10((unsigned)(9 - digits)));
	snprintf(out + len, UNIT_TEXT - len, "Z");
	return out;
}
