/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/say.h"

#include "schemas/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void say(const char *tool, const char *fmt, ...)
{
	char *text;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	utf8_tame(text);
	fprintf(stderr, "%s: %s\n", tool, text);
	free(text);
}

void say_passed_over(const char *tool, size_t count, const char *one, const char *several)
{
	if (count)
		say(tool, "passed over %zu %s", count, count == 1 ? one : several);
}

void say_error(const char *tool, const char *file, const struct error *err)
{
	char at[40] = "";

	if (err->at != NOWHERE)
		snprintf(at, sizeof(at), "byte %llu: ", (unsigned long long)err->at);
	say(tool, "%s%s%s%s", file ? file : "", file ? ": " : "", at, err->text);
}
