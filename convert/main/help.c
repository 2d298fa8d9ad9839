/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/help.h"

#include "convert/gzip.h"
#include "convert/sink.h"
#include "convert/source.h"
#include "schemas/buf.h"

#include <archive.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <zlib.h>

enum { TEXT_CEILING = 1 << 20 };

void help_print(const struct option_set *sets)
{
	static const struct source_type *const sources[] = {
#define X(name) &source_##name,
		SOURCE_LIST(X)
#undef X
	};
	struct buf b;

	buf_init(&b, TEXT_CEILING);
	buf_put_text(&b, "usage: tacho-convert INPUT... -t FORMAT [-o OUT] [options]\n\n"
			 "An INPUT is a file, a folder, either compressed or not, or - for standard "
			 "input.\n\n");
	option_help(sets, &b);
	buf_put_text(&b, "\nFormats for -t:\n");
	for (size_t i = 0; sink_at(i); i++)
		buf_putf(&b, "  %-8s %s\n", sink_at(i)->name, sink_at(i)->help);
	buf_put_text(&b, "\nFormats of an INPUT, found by its bytes:\n");
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		buf_putf(&b, "  %-8s %s\n", sources[i]->name, sources[i]->help);
	fputs(buf_text(&b), stdout);
	buf_release(&b);
}

void help_print_version(void)
{
	printf("tacho-convert %s\nzlib %s, %s, cJSON %s; gzip by %s\n", TACHO_VERSION,
	       zlibVersion(), archive_version_string(), cJSON_Version(), gzip_library());
}
