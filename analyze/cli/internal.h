/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what the parts of tacho-analyze's command line share.
 */
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

/*
 * The options that tacho-analyze alone has.  Texts are borrowed from argv and the
 * environment.
 */

struct analyze_options {
	const char *report, *format, *phases, *peaks, *view, *what_if, *run, *capture;
	bool per_step;
	const char *partial, *compat, *explain, *mcp, *baseline, *junit;
	double fail_over; /* share of A's mean step */
	bool diff, merge, schema, annotate;
};
extern const struct option analyze_options[]; /* rows for a set over struct analyze_options */
extern const struct option analyze_memory[];  /* over struct common_options, before its own */

/* What does not go together is ST_USAGE. */
enum status analyze_options_check(const struct analyze_options *o, struct error *err);

enum wording options_view(const struct analyze_options *o);

enum { REPORTS_ASKED = 32 };
/* "phases,steps" to a list that ends with NULL; "all": every one. */
enum status reports_parse(const char *text, const struct report_type *out[REPORTS_ASKED + 1],
			  struct error *err);
/* What --what-if asks for besides; in place of the summary, which is the default.  The replay is
 * the first report.  Returns what is read for it but not shown; NULL: all is. */
const struct report_type *what_if_report(const struct report_type *out[REPORTS_ASKED + 1]);
/* What --compat asks for instead. */
void compat_report(const char *name, const struct report_type *out[REPORTS_ASKED + 1]);

struct tool {
	struct analyze_options own;
	struct common_options common;
	struct filter filter;
	const struct report_type *reports[REPORTS_ASKED + 1], *hidden; /* read, but not shown */
	const struct format_type *format;
	struct name_rules *rules;
	struct edit_set *edits;   /* of --what-if */
	struct peaks_file *peaks; /* of --peaks */
	size_t edit_count;
	uint32_t rules_crc; /* of the file of --phases; 0: the defaults */
	bool is_far;        /* standard output is not what it seems: mpirun hands it on */
	struct buf page;
};

void tool_complain(const char *path, const struct error *err);

/* What the machine is. */
const char *scratch_folder(void);
unsigned thread_count(uint64_t wanted); /* 0: all cores */
enum colour colour_of(bool is_terminal);
unsigned columns_of(bool is_terminal);
bool is_utf8(void);

/* Finds the files that the operands stand for; says on standard error how many it passed over. */
enum status tool_paths(struct tool *t, char **operands, size_t count, struct input_paths *paths,
		       struct error *err);
/* A run over paths; `reports` NULL: those of the tool. */
struct engine_request tool_request(struct tool *t, char *const *paths, size_t count);
/* Says what was wrong with inputs; the status of the first, ST_OK if none was. */
enum status tool_judge(const struct tool *t, const struct engine_result *r);
/*
 * Finds the inputs of the operands and reads them for `reports` with these pictures; the caller
 * releases the result also after an error.
 */
enum status tool_read(struct tool *t, char **operands, size_t count,
		      const struct report_type *const *reports, enum pictures pictures,
		      struct engine_result *out, struct error *err);
/* How a page looks on standard output; `is_far`: what the other end is nobody knows. */
struct format_request tool_page(const struct tool *t, struct tables *tables);
/* To standard output or --output. */
enum status tool_write(const struct tool *t, const void *bytes, size_t len, struct error *err);
/* Finishes a result and prints it; the status of an input that was bad, at the end. */
enum status tool_conclude(struct tool *t, struct engine_result *r, bool is_filtered,
			  struct error *err);

enum status run_partial(struct tool *t, char **operands, size_t count, struct error *err);
enum status run_merge(struct tool *t, char **operands, size_t count, struct error *err);
enum status run_explain(struct tool *t, char **operands, size_t count, struct error *err);
enum status run_diff(struct tool *t, char **operands, size_t count, struct error *err);
/* With --baseline and without --diff: keeps the run under the name. */
enum status run_baseline(struct tool *t, char **operands, size_t count, struct error *err);
/* The file of a named baseline; freed with free().  NULL: no memory. */
char *baseline_path(const char *name);
/* Whether a file is one that --partial wrote. */
bool partial_is(const char *path);
/* Reads one into `r`, which engine_result_init() made; *settings as in engine_partial_take(). */
enum status partial_read(const struct tool *t, const char *path, struct engine_result *r,
			 const char **settings, struct error *err);
/* Appends the options that a partial result depends on, as one text. */
void partial_settings(const struct tool *t, struct buf *out);
bool partial_is_filtered(const char *settings);
/* Appends the partial result of these paths; *inputs (may be NULL) is what tool_judge() returned.
 */
enum status partial_make(struct tool *t, char *const *paths, size_t count, struct buf *out,
			 enum status *inputs, struct error *err);
/* Under mpirun: this process's share of the inputs; the first one prints. */
bool mpi_is_there(void);
enum status run_mpi(struct tool *t, char **operands, size_t count, struct error *err);

/*
 * The Model Context Protocol for programs that read traces: JSON-RPC 2.0, one message a
 * line, requests on standard input and answers on standard output.
 *
 * Each tool of the protocol is one command line of tacho-analyze or tacho-convert, run as a child
 * process, so a trace that ends the child leaves the server running.  Tools only read, and only
 * what lies below one folder.  An answer has at most MCP_ANSWER bytes of text; where there is more
 * it ends with the cursor that the next call takes.
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
/* The result of tools/list; NULL: no memory.  The caller deletes it. */
cJSON *mcp_tools_list(void);
/* Calls a tool: *text is the answer and *failed says that it is a complaint.  false: there is no
 * such tool, or an argument is missing or of a wrong type, and *text says which. */
bool mcp_tools_call(struct mcp_tools *t, const char *name, const cJSON *arguments, struct buf *text,
		    bool *failed);
