/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/options.h"

#include "convert/base/parallel.h"
#include "schemas/base/quantity.h"

enum { RESIDENT_BYTES = 64 * 1024 };

#define AT(member) offsetof(struct common_options, member)

const struct option common_options[] = {
	{ "output", 'o', OPTION_TEXT, "OUT", "file or folder to write (default: standard output)",
	  AT(output), NULL },
	{ "memory", 0, OPTION_SIZE, "SIZE",
	  "approximate memory limit; the rest goes to unlinked files in $TMPDIR", AT(memory_bytes),
	  "64M" },
	{ "threads", 0, OPTION_COUNT, "N",
	  "number of threads; does not change the output; 0: all cores", AT(threads), "0" },
	{ "strict", 0, OPTION_FLAG, NULL, "treat damage and losses as errors and leave no output",
	  AT(strict), NULL },
	{ "quiet", 'q', OPTION_FLAG, NULL, "print errors only", AT(quiet), NULL },
	{ "help", 'h', OPTION_FLAG, NULL, "print this help", AT(help), NULL },
	{ "version", 'V', OPTION_FLAG, NULL, "print the version, and those of the libraries in use",
	  AT(version), NULL },
	{ .name = NULL },
};

struct budget options_budget(const struct common_options *o, const char *scratch)
{
	return (struct budget){
		.opening = (size_t)(o->memory_bytes / 8 * 3),
		.resident = RESIDENT_BYTES,
		.threads = (unsigned)(o->threads ? o->threads : usable_cores()) - 1,
		.scratch = scratch,
	};
}

size_t options_trace_ceiling(const struct common_options *o)
{
	return (size_t)(o->memory_bytes / 8 * 3);
}

enum status options_check(const struct common_options *o, struct error *err)
{
	char least[UNIT_TEXT];

	if (o->memory_bytes >= OPTIONS_MEMORY_LEAST)
		return ST_OK;
	return fail(err, ST_USAGE, NOWHERE, "--memory: must be at least %s",
		    unit_format_size(OPTIONS_MEMORY_LEAST, least));
}
