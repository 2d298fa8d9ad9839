/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the machine: processors, terminal and environment. */
#include "analyze/cli/internal.h"
#include "analyze/format/page/page.h"
#include "convert/base/parallel.h"

#include <langinfo.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { THREADS_MAX = 256 };

const char *scratch_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && folder[0] ? folder : "/tmp";
}

unsigned thread_count(uint64_t wanted)
{
	unsigned count = wanted ? (unsigned)wanted : usable_cores();

	return count > THREADS_MAX ? THREADS_MAX : count;
}

static bool variable_has(const char *name, const char *word)
{
	const char *value = getenv(name);

	return value && strstr(value, word);
}

enum colour colour_of(bool is_terminal)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	if (!is_terminal || (none && none[0]) || !term || !term[0] || !strcmp(term, "dumb"))
		return COLOUR_NONE;
	if (!variable_has("COLORTERM", "truecolor") && !variable_has("COLORTERM", "24bit"))
		return COLOUR_16;
	/* "15;0": foreground;background, set by some terminals; backgrounds 7 and 15 are light */
	return variable_has("COLORFGBG", ";15") || variable_has("COLORFGBG", ";7") ? COLOUR_LIGHT
										   : COLOUR_DARK;
}

unsigned columns_of(bool is_terminal)
{
	const char *asked = getenv("COLUMNS");
	struct winsize size;

	if (asked && atoi(asked) > 0)
		return (unsigned)atoi(asked);
	if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return LINE_WIDTH;
}

bool is_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}
