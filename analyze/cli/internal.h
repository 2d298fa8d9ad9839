/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - interfaces between the parts of tacho-analyze's command line. */
#pragma once

#include "analyze/engine/engine.h"
#include "analyze/engine/report.h"
#include "analyze/format/format.h"
#include "convert/input/input.h"
#include "convert/stage/options.h"
#include "schemas/base/buf.h"
#include "schemas/base/option.h"
#include "schemas/base/status.h"

#include <cjson/cJSON.h>

/* The options that only tacho-analyze has. Texts are borrowed from argv and the environment. */

struct analyze_options {
	const char *report, *format, *phases, *peaks, *view, *what_if, *run, *capture;
	bool per_step;
	const char *partial, *compat, *explain, *mcp, *baseline, *junit;
	double fail_over; /* share of A's mean step */
	bool diff, merge, schema, annotate;
};
extern const struct option analyze_options[]; /* rows for a set over struct analyze_options */
/* over struct common_options, before its common rows */
extern const struct option analyze_memory[];

/* Returns ST_USAGE for options that exclude each other. */
enum status analyze_options_check(const struct analyze_options *o, struct error *err);

enum wording options_view(const struct analyze_options *o);

enum { REPORTS_ASKED = 32 };
/* Parses "phases,steps" into a list that ends with NULL; "all" selects every report. */
enum status reports_parse(const char *text, const struct report_type *out[REPORTS_ASKED + 1],
			  struct error *err);
/* Adds what --what-if needs to the list: the replay becomes the first report and replaces the
 * summary if that is the default. Returns the report that is read but not shown; NULL: all are
 * shown. */
const struct report_type *what_if_report(const struct report_type *out[REPORTS_ASKED + 1]);
/* Replaces the list by the report of --compat. */
void compat_report(const char *name, const struct report_type *out[REPORTS_ASKED + 1]);

struct tool {
	struct analyze_options own;
	struct common_options common;
	struct filter filter;
	/* hidden: read, but not shown */
	const struct report_type *reports[REPORTS_ASKED + 1], *hidden;
	const struct format_type *format;
	struct name_rules *rules;
	struct edit_set *edits;   /* the edits of --what-if */
	struct peaks_file *peaks; /* the file of --peaks */
	size_t edit_count;
	uint32_t rules_crc; /* checksum of the file of --phases; 0: the defaults */
	/* mpirun forwards standard output, so isatty() does not describe its end */
	bool is_far;
	struct buf page;
};

void tool_complain(const char *path, const struct error *err);

/* Properties of the machine. */
const char *scratch_folder(void);
unsigned thread_count(uint64_t wanted); /* 0: all cores */
enum colour colour_of(bool is_terminal);
unsigned columns_of(bool is_terminal);
bool is_utf8(void);

/* Finds the files for the operands; reports on standard error how many it skipped. */
enum status tool_paths(struct tool *t, char **operands, size_t count, struct input_paths *paths,
		       struct error *err);
/* Returns a request for a run over paths; `reports` are those of the tool. */
struct engine_request tool_request(struct tool *t, char *const *paths, size_t count);
/* Reports what was wrong with inputs. Returns the status of the first bad one, or ST_OK. */
enum status tool_judge(const struct tool *t, const struct engine_result *r);
/* Finds the inputs for the operands and reads them for `reports` with these pictures. The caller
 * releases the result also after an error. */
enum status tool_read(struct tool *t, char **operands, size_t count,
		      const struct report_type *const *reports, enum pictures pictures,
		      struct engine_result *out, struct error *err);
/* Returns how a page looks on standard output; `is_far` means that its end is unknown. */
struct format_request tool_page(const struct tool *t, struct tables *tables);
/* Writes to standard output or --output. */
enum status tool_write(const struct tool *t, const void *bytes, size_t len, struct error *err);
/* Finishes a result and prints it. Then returns the status of a bad input, if there was one. */
enum status tool_conclude(struct tool *t, struct engine_result *r, bool is_filtered,
			  struct error *err);

enum status run_partial(struct tool *t, char **operands, size_t count, struct error *err);
enum status run_merge(struct tool *t, char **operands, size_t count, struct error *err);
enum status run_explain(struct tool *t, char **operands, size_t count, struct error *err);
enum status run_diff(struct tool *t, char **operands, size_t count, struct error *err);
/* Without --diff --baseline stores the run under a name. */
enum status run_baseline(struct tool *t, char **operands, size_t count, struct error *err);
/* Returns the file of a named baseline, which the caller frees. NULL: out of memory. */
char *baseline_path(const char *name);
/* Returns whether --partial wrote a file. */
bool partial_is(const char *path);
/* Reads a partial file into `r`, which engine_result_init() initialized; *settings as in
 * engine_partial_take(). */
enum status partial_read(const struct tool *t, const char *path, struct engine_result *r,
			 const char **settings, struct error *err);
/* Appends the options that a partial result depends on, as one text. */
void partial_settings(const struct tool *t, struct buf *out);
bool partial_is_filtered(const char *settings);
/* Appends the partial result of these paths. *inputs (may be NULL) becomes what tool_judge()
 * returned.
 */
enum status partial_make(struct tool *t, char *const *paths, size_t count, struct buf *out,
			 enum status *inputs, struct error *err);
/* Under mpirun each process reads its share of the inputs, and the first one prints. */
bool mpi_is_there(void);
enum status run_mpi(struct tool *t, char **operands, size_t count, struct error *err);

/*
 * The Model Context Protocol for programs that read traces: JSON-RPC 2.0, one message per line,
 * requests on standard input and answers on standard output.
 *
 * Each tool of the protocol is one command line of tacho-analyze or tacho-convert, run as a child
 * process, so a trace that crashes the child leaves the server running. Tools only read, and only
 * files below one folder. An answer has at most MCP_ANSWER bytes of text; a longer one ends with
 * the cursor that the next call can pass.
 */

enum {
	MCP_ANSWER = 8000,         /* bytes of text in one answer */
	MCP_KEPT = 4 * 1024 * 1024 /* bytes of a child's output that can be paged through */
};

/* Serves until standard input ends. */
enum status mcp_serve(const char *folder, struct error *err);

/* ---- mcp_tools.c ---- */

struct mcp_tools; /* the folder, and the output of the last call */
enum status mcp_tools_open(struct mcp_tools **out, const char *folder, struct error *err);
void mcp_tools_close(struct mcp_tools *t); /* accepts NULL */
/* Returns the result of tools/list, which the caller deletes; NULL: out of memory. */
cJSON *mcp_tools_list(void);
/* Calls a tool. *text becomes the answer; *failed: it is an error message. Returns false if there
 * is no such tool or an argument is missing or has a wrong type, which *text explains. */
bool mcp_tools_call(struct mcp_tools *t, const char *name, const cJSON *arguments, struct buf *text,
		    bool *failed);
