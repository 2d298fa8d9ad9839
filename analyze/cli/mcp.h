/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.h - the Model Context Protocol for programs that read traces: JSON-RPC 2.0, one message a
 * line, requests on standard input and answers on standard output.
 *
 * Each tool of the protocol is one command line of tacho-analyze or tacho-convert, run as a child
 * process, so a trace that ends the child leaves the server running.  Tools only read, and only
 * what lies below one folder.  An answer has at most MCP_ANSWER bytes of text; where there is more
 * it ends with the cursor that the next call takes.
 */
#ifndef ANALYZE_CLI_MCP_H
#define ANALYZE_CLI_MCP_H

#include "schemas/base/buf.h"
#include "schemas/base/status.h"

#include <cjson/cJSON.h>

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

#endif
