/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.h - --open: hands one file to Perfetto's user interface in the browser.
 *
 * The interface is a page that fetches the trace from this machine: nothing is uploaded.  It may
 * do so from port 9001 of the loopback address only.  The path has a random part, answers name
 * the interface as the one origin that may read them, and requests for another host are refused,
 * so that no other page and no other user gets at the trace.
 */
#ifndef CONVERT_CLI_OPEN_H
#define CONVERT_CLI_OPEN_H

#include "schemas/base/option.h"

#include <stdbool.h>
#include <stdint.h>

enum { OPEN_PORT = 9001 };

struct open_options {
	bool open;
	const char *viewer;  /* origin of the interface: "https://ui.perfetto.dev" */
	uint64_t timeout_ns; /* when nobody has fetched the trace by then */
	char *temporary;     /* of open_begin(); NULL: none */
};
extern const struct option open_rows[]; /* rows for a set over struct open_options */

/* Before the work: what cannot be shown is refused.  `type`: the output's format. */
enum status open_check(const struct open_options *o, const char *type, const char *output,
		       struct error *err);
/* Without -o a new file in `scratch` takes its place. */
enum status open_begin(struct open_options *o, const char **output, const char *scratch,
		       struct error *err);
/*
 * Starts the browser, prints the address and serves the output until it was fetched once, when
 * there is an output: the run may have been partial.  What open_begin() made is removed.
 */
enum status open_end(struct open_options *o, const char *output, bool was_written, bool quiet,
		     struct error *err);

#endif
