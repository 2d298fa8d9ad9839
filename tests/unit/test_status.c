/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/status.h"

#include <string.h>

static enum status try_it(enum status status, bool *went_on)
{
	TRY(status);
	*went_on = true;
	return ST_OK;
}

void test_status_fail(void)
{
	struct error err;

	CHECK_U64(fail(&err, ST_TRUNCATED, 44, "header needs %d bytes", 64), ST_TRUNCATED);
	CHECK_U64(err.status, ST_TRUNCATED);
	CHECK_U64(err.at, 44);
	CHECK_STR(err.text, "header needs 64 bytes");
	CHECK_U64(fail(NULL, ST_IO, NOWHERE, "nobody listens"), ST_IO);
}

void test_status_fail_adds_to_itself(void)
{
	struct error err;

	fail(&err, ST_FORMAT, 7, "no such kind");
	CHECK_U64(fail(&err, err.status, err.at, "%s: %s", "block 3", err.text), ST_FORMAT);
	CHECK_STR(err.text, "block 3: no such kind");
	CHECK_U64(err.at, 7);
}

void test_status_fail_cuts(void)
{
	struct error err;
	char text[400];

	memset(text, 'a', sizeof(text));
	text[399] = '\0';
	fail(&err, ST_FORMAT, 0, "%s", text);
	CHECK_U64(strlen(err.text), sizeof(err.text) - 1);

	/* a two, a three and a four-byte character over the edge go as a whole */
	strcpy(text + 198, "\xc3\xa9 and more");
	fail(&err, ST_FORMAT, 0, "%s", text);
	CHECK_U64(strlen(err.text), 198);
	strcpy(text + 197, "\xe2\x82\xac and more");
	fail(&err, ST_FORMAT, 0, "%s", text);
	CHECK_U64(strlen(err.text), 197);
	strcpy(text + 196, "\xf0\x9f\x98\x80 and more");
	fail(&err, ST_FORMAT, 0, "%s", text);
	CHECK_U64(strlen(err.text), 196);
	/* and one that ends at the edge stays */
	strcpy(text + 196, "\xe2\x82\xac and more");
	fail(&err, ST_FORMAT, 0, "%s", text);
	CHECK_STR(err.text + 196, "\xe2\x82\xac");
}

void test_status_fail_tames(void)
{
	struct error err;

	fail(&err, ST_FORMAT, 0, "bad name '%s'", "a\nb\x1b[31mc\x7f\xc3\xa9");
	CHECK_STR(err.text, "bad name 'a?b?[31mc?\xc3\xa9'");
	/* C1 controls, bytes that are no character, and what turns the direction of a text */
	fail(&err, ST_FORMAT, 0, "%s", "a\xc2\x9b\x9b\xe2\x80\xae\xe2\x81\xa6\xef\xbf\xbdz");
	CHECK_STR(err.text, "a????\xef\xbf\xbdz");
	memset(&err, 0x80, sizeof(err));
	fail(&err, ST_FORMAT, 0, "%s", "");
	CHECK_STR(err.text, "");
}

void test_status_codes(void)
{
	bool went_on = false;

	CHECK_I64(status_exit(ST_OK), 0);
	CHECK_I64(status_exit(ST_END), 0);
	CHECK_I64(status_exit(ST_USAGE), 2);
	CHECK_I64(status_exit(ST_OVER), 3);
	CHECK_I64(status_exit(ST_FORMAT), 4);
	CHECK_I64(status_exit(ST_TRUNCATED), 4);
	CHECK_I64(status_exit(ST_IO), 5);
	CHECK_I64(status_exit(ST_CEILING), 6);
	CHECK_I64(status_exit(ST_MEMORY), 6);
	CHECK_I64(status_exit(ST_ABSENT), 7);
	CHECK_STR(status_text(ST_OK), "ok");
	CHECK_STR(status_text(ST_ABSENT), "not available on this machine");
	CHECK_I64(status_exit((enum status)99), 5);
	CHECK_STR(status_text((enum status)99), status_text(ST_IO));
	CHECK_U64(try_it(ST_TRUNCATED, &went_on), ST_TRUNCATED);
	CHECK(!went_on);
	CHECK_U64(try_it(ST_OK, &went_on), ST_OK);
	CHECK(went_on);
}
