/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/quantity.h"

#include <string.h>

typedef enum status (*parse)(const char *text, size_t len, uint64_t *v, struct error *err);

/* A row with an error has no value, and the reverse. */
struct row {
	const char *text;
	uint64_t value;
	const char *error;
};

static void check_rows(parse parse_text, const struct row *row)
{
	struct error err;
	uint64_t v;

	for (; row->text; row++) {
		v = 4711;
		if (row->error) {
			CHECK_U64(parse_text(row->text, strlen(row->text), &v, &err), ST_USAGE);
			CHECK_STR(err.text, row->error);
			CHECK_U64(v, 4711);
		} else if (CHECK_OK(parse_text(row->text, strlen(row->text), &v, &err), &err)) {
			CHECK_U64(v, row->value);
		}
	}
}

void test_unit_counts(void)
{
	static const struct row rows[] = {
		{ "0", 0, NULL },
		{ "0010", 10, NULL },
		{ "18446744073709551615", UINT64_MAX, NULL },
		{ "18446744073709551616", 0, "18446744073709551616: too many digits" },
		{ "99999999999999999999999", 0, "99999999999999999999999: too many digits" },
		{ "", 0, "no value given" },
		{ "-1", 0, "-1: not a number" },
		{ "+1", 0, "+1: not a number" },
		{ " 1", 0, " 1: not a number" },
		{ "1.5", 0, "1.5: not a number: use digits only" },
		{ "1.0", 0, "1.0: not a number: use digits only" },
		{ "1.", 0, "1.: not a number: use digits only" },
		{ "12k", 0, "12k: not a number: use digits only" },
		{ "0x10", 0, "0x10: not a number: use digits only" },
		{ NULL, 0, NULL },
	};

	check_rows(unit_parse_count, rows);
}

void test_unit_sizes(void)
{
	static const struct row rows[] = {
		{ "0", 0, NULL },
		{ "4096", 4096, NULL },
		{ "1K", 1024, NULL },
		{ "256M", 256 << 20, NULL },
		{ "256m", 256 << 20, NULL },
		{ "1.5G", 3ULL << 29, NULL },
		{ "2T", 2ULL << 40, NULL },
		{ "0.25K", 256, NULL },
		{ "1.50000000000000000000000000K", 1536, NULL },
		{ "16777215T", 16777215ULL << 40, NULL },
		{ "16777216T", 0, "16777216T: too large" },
		{ "17179869184G", 0, "17179869184G: too large" },
		{ "18446744073709551615", UINT64_MAX, NULL },
		{ "18446744073709551615K", 0, "18446744073709551615K: too large" },
		{ "0.1K", 0, "0.1K: not a whole number of bytes" },
		{ "1.5", 0, "1.5: not a whole number of bytes" },
		{ "1e6", 0, "1e6: unknown unit 'e6': use K M G T" },
		{ "12MB", 0, "12MB: unknown unit 'MB': use K M G T" },
		{ "12 M", 0, "12 M: unknown unit ' M': use K M G T" },
		{ "1.K", 0, "1.K: unknown unit '.K': use K M G T" },
		{ "M", 0, "M: not a number" },
		{ ".5M", 0, ".5M: not a number" },
		{ "0.00000000000000000001K", 0, "0.00000000000000000001K: too many digits" },
		{ "", 0, "no value given" },
		{ NULL, 0, NULL },
	};

	check_rows(unit_parse_size, rows);
}

void test_unit_times(void)
{
	static const struct row rows[] = {
		{ "0", 0, NULL },
		{ "0.0", 0, NULL },
		{ "0s", 0, NULL },
		{ "7ns", 7, NULL },
		{ "50us", 50000, NULL },
		{ "20ms", 20000000, NULL },
		{ "1.5s", 1500000000, NULL },
		{ "0.000000001s", 1, NULL },
		{ "10m", 600000000000, NULL },
		{ "60m", 3600000000000, NULL },
		{ "2h", 7200000000000, NULL },
		{ "5124095h", 5124095ULL * 3600000000000, NULL },
		{ "5124096h", 0, "5124096h: too large" },
		{ "18446744073709551615ns", UINT64_MAX, NULL },
		{ "18446744073.709551615s", UINT64_MAX, NULL },
		{ "18446744073.709551616s", 0, "18446744073.709551616s: too many digits" },
		{ "18446744074s", 0, "18446744074s: too large" },
		{ "0.5ns", 0, "0.5ns: not a whole number of ns" },
		{ "0.0000000001s", 0, "0.0000000001s: not a whole number of ns" },
		{ "5", 0, "5: a time needs a unit: ns us ms s m h" },
		{ "5S", 0, "5S: unknown unit 'S': use ns us ms s m h" },
		{ "5min", 0, "5min: unknown unit 'min': use ns us ms s m h" },
		{ "5n", 0, "5n: unknown unit 'n': use ns us ms s m h" },
		{ "1h30m", 0, "1h30m: unknown unit 'h30m': use ns us ms s m h" },
		{ "-5s", 0, "-5s: not a number" },
		{ "", 0, "no value given" },
		{ NULL, 0, NULL },
	};

	check_rows(unit_parse_time, rows);
}

void test_unit_shares(void)
{
	static const struct {
		const char *text;
		double want;
	} good[] = {
		{ "2%", 0.02 },    { "0.02", 0.02 },
		{ "0", 0 },        { "1", 1 },
		{ "1.0", 1 },      { "100%", 1 },
		{ "0.5%", 0.005 }, { "33.3%", 0.333 },
		{ "0.1", 0.1 },    { "0.0000000000000000001%", 1e-21 },
	};
	static const char *const bad[] = {
		"", "-1%", "101%", "1.01", "2", "2 %", "2%%", "%", "0.5x", "100.0000001%", "nan",
	};
	struct error err;
	double share;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		share = -1;
		CHECK_OK(unit_parse_share(good[i].text, strlen(good[i].text), &share, &err), &err);
		CHECK_F64(share, good[i].want, 0); /* as near as the compiler comes */
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		share = -1;
		CHECK_U64(unit_parse_share(bad[i], strlen(bad[i]), &share, &err), ST_USAGE);
		CHECK_F64(share, -1, 0);
	}
	unit_parse_share("2", 1, &share, &err);
	CHECK_STR(err.text, "2: over 100 %: use 2% or 0.02");
}

void test_unit_instants(void)
{
	static const struct row rows[] = {
		{ "1970-01-01T00:00:00Z", 0, NULL },
		{ "2026-11-20T12:00:00Z", 1795176000000000000, NULL },
		{ "2026-11-20T12:00:00.5Z", 1795176000500000000, NULL },
		{ "2026-11-20T12:00:00.000000001Z", 1795176000000000001, NULL },
		{ "2000-02-29T23:59:59Z", 951868799000000000, NULL },
		{ "2024-02-29T00:00:00Z", 1709164800000000000, NULL },
		{ "2100-03-01T00:00:00Z", 4107542400000000000, NULL },
		{ "2554-07-21T23:34:33.709551615Z", UINT64_MAX, NULL },
		{ "2554-07-21T23:34:33.709551616Z", 0, "2554-07-21T23:34:33.709551616Z: too late" },
		{ "2554-12-31T00:00:00Z", 0, "2554-12-31T00:00:00Z: too late" },
		{ "9999-12-31T23:59:59Z", 0,
		  "9999-12-31T23:59:59Z: the year must be from 1970 to 2554" },
		{ "1969-12-31T23:59:59Z", 0,
		  "1969-12-31T23:59:59Z: the year must be from 1970 to 2554" },
		{ "0000-01-01T00:00:00Z", 0,
		  "0000-01-01T00:00:00Z: the year must be from 1970 to 2554" },
		{ "2023-02-29T00:00:00Z", 0, "2023-02-29T00:00:00Z: no such day or time of day" },
		{ "2100-02-29T00:00:00Z", 0, "2100-02-29T00:00:00Z: no such day or time of day" },
		{ "2026-00-10T00:00:00Z", 0, "2026-00-10T00:00:00Z: no such day or time of day" },
		{ "2026-13-10T00:00:00Z", 0, "2026-13-10T00:00:00Z: no such day or time of day" },
		{ "2026-04-31T00:00:00Z", 0, "2026-04-31T00:00:00Z: no such day or time of day" },
		{ "2026-04-00T00:00:00Z", 0, "2026-04-00T00:00:00Z: no such day or time of day" },
		{ "2026-04-01T24:00:00Z", 0, "2026-04-01T24:00:00Z: no such day or time of day" },
		{ "2026-04-01T00:60:00Z", 0, "2026-04-01T00:60:00Z: no such day or time of day" },
		{ "2026-04-01T00:00:60Z", 0, "2026-04-01T00:00:60Z: no such day or time of day" },
		{ NULL, 0, NULL },
	};
	static const char *const malformed[] = {
		"2026-11-20",
		"2026-11-20T12:00:00",
		"2026-11-20T12:00:00+01:00",
		"2026-11-20 12:00:00Z",
		"2026-11-20T12:00Z",
		"2026-11-20T12:00:00.Z",
		"2026-11-20T12:00:00.1234567890Z",
		"2026-11-20T12:00:00ZZ",
		"26-11-20T12:00:00Z",
		"2026-1a-20T12:00:00Z",
		"2026-11-20T12:00:00.5",
		"x",
	};
	struct error err;
	uint64_t ns;
	size_t i;

	check_rows(unit_parse_instant, rows);
	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		CHECK_U64(unit_parse_instant(malformed[i], strlen(malformed[i]), &ns, &err),
			  ST_USAGE);
		CHECK(strstr(err.text, "not a time like 2026-11-20T12:00:00Z") != NULL);
	}
	CHECK_U64(unit_parse_instant("", 0, &ns, &err), ST_USAGE);
	CHECK_STR(err.text, "no value given");
}

/* A value in the middle of a text, as in "every=60m,first=10". */
void test_unit_part_of_text(void)
{
	static const char text[] = "60ms5";
	struct error err;
	uint64_t v = 0;

	CHECK_OK(unit_parse_time(text, 3, &v, &err), &err);
	CHECK_U64(v, 60 * 60000000000);
	CHECK_OK(unit_parse_time(text, 4, &v, &err), &err);
	CHECK_U64(v, 60000000);
	CHECK_OK(unit_parse_count(text, 1, &v, &err), &err);
	CHECK_U64(v, 6);
	CHECK_U64(unit_parse_size(text, 4, &v, &err), ST_USAGE);
	CHECK_STR(err.text, "60ms: unknown unit 'ms': use K M G T");
}

void test_unit_long_text(void)
{
	char text[500];
	struct error err;
	uint64_t v;

	memset(text, 'x', sizeof(text));
	CHECK_U64(unit_parse_size(text, sizeof(text), &v, &err), ST_USAGE);
	CHECK(strstr(err.text, "xxx...: not a number") != NULL); /* the end of the sentence stays */
	text[0] = '1';
	CHECK_U64(unit_parse_time(text, sizeof(text), &v, &err), ST_USAGE);
	CHECK(strstr(err.text, "': use ns us ms s m h") != NULL);
	CHECK_U64(unit_parse_time(text, sizeof(text), &v, NULL), ST_USAGE);
}

void test_unit_formats(void)
{
	char out[UNIT_TEXT];

	CHECK_STR(unit_format_size(0, out), "0");
	CHECK_STR(unit_format_size(1000, out), "1000");
	CHECK_STR(unit_format_size(1024, out), "1K");
	CHECK_STR(unit_format_size(1536, out), "1536");
	CHECK_STR(unit_format_size(256 << 20, out), "256M");
	CHECK_STR(unit_format_size(3ULL << 40, out), "3T");
	CHECK_STR(unit_format_size(1ULL << 63, out), "8388608T");
	CHECK_STR(unit_format_size(UINT64_MAX, out), "18446744073709551615");
	CHECK_STR(unit_format_time(0, out), "0");
	CHECK_STR(unit_format_time(1, out), "1ns");
	CHECK_STR(unit_format_time(1500000, out), "1500us");
	CHECK_STR(unit_format_time(90000000000, out), "90s");
	CHECK_STR(unit_format_time(60000000000, out), "1m");
	CHECK_STR(unit_format_time(86400000000000, out), "24h");
	CHECK_STR(unit_format_time(UINT64_MAX, out), "18446744073709551615ns");
	CHECK_STR(unit_format_instant(0, out), "1970-01-01T00:00:00Z");
	CHECK_STR(unit_format_instant(1795176000000000000, out), "2026-11-20T12:00:00Z");
	CHECK_STR(unit_format_instant(1795176000020000000, out), "2026-11-20T12:00:00.020Z");
	CHECK_STR(unit_format_instant(1795176000000004000, out), "2026-11-20T12:00:00.000004Z");
	CHECK_STR(unit_format_instant(UINT64_MAX, out), "2554-07-21T23:34:33.709551615Z");
}

/* What was formatted parses to the same number: odd numbers, and each day of 585 years. */
void test_unit_round_trip(void)
{
	char out[UNIT_TEXT];
	uint64_t v = 1, back, day;
	int i;

	for (i = 0; i < 2000; i++) {
		v = v * 6364136223846793005 + 1442695040888963407;
		day = v >> i % 64 << i % 23;
		unit_format_size(day, out);
		CHECK_OK(unit_parse_size(out, strlen(out), &back, NULL), NULL);
		CHECK_U64(back, day);
		unit_format_time(day, out);
		CHECK_OK(unit_parse_time(out, strlen(out), &back, NULL), NULL);
		CHECK_U64(back, day);
		unit_format_instant(day, out);
		CHECK_OK(unit_parse_instant(out, strlen(out), &back, NULL), NULL);
		CHECK_U64(back, day);
	}
	for (day = 0; day < UINT64_MAX / 86400000000000; day++) {
		v = day * 86400000000000 + 86399999999999;
		unit_format_instant(v, out);
		if (!CHECK_OK(unit_parse_instant(out, strlen(out), &back, NULL), NULL) ||
		    !CHECK_U64(back, v))
			return;
	}
}
