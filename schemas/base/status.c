/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/status.h"

#include "schemas/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Removes the first bytes of a UTF-8 character that truncation has split. */
static void text_trim(char *text)
{
	size_t len = strlen(text), tail = 0;

	while (tail < len && tail < 3 && ((unsigned char)text[len - 1 - tail] & 0xc0) == 0x80)
		tail++;
	if (tail == len)
		return;
	unsigned char first = (unsigned char)text[len - 1 - tail];
	if (first >= 0xc0 && tail < (first >= 0xf0 ? 3u : first >= 0xe0 ? 2u : 1u))
		text[len - 1 - tail] = '\0';
}

enum status fail(struct error *err, enum status status, uint64_t at, const char *fmt, ...)
{
	char text[sizeof(err->text)]; /* an argument may be err->text */
	va_list args;

	if (!err)
		return status;
	va_start(args, fmt);
	int len = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (len < 0)
		text[0] = '\0';
	if (len >= (int)sizeof(text))
		text_trim(text);
	utf8_tame(text);
	err->status = status;
	err->at = at;
	memcpy(err->text, text, sizeof(text));
	return status;
}

struct status_row {
	int code;
	const char *text;
};

static const struct status_row *status_row(enum status status)
{
	static const struct status_row rows[] = {
#define X(name, exit, text) { exit, text },
		STATUS_LIST(X)
#undef X
	};
	unsigned row = (unsigned)status;

	return &rows[row < sizeof(rows) / sizeof(rows[0]) ? row : ST_IO];
}

int status_exit(enum status status)
{
	return status_row(status)->code;
}

const char *status_text(enum status status)
{
	return status_row(status)->text;
}

enum status fail_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "not enough memory");
}
