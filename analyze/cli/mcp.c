/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the protocol. */
#include "analyze/cli/internal.h"

#include "schemas/base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_MAX_BYTES = 1024 * 1024, NEST_MAX = 64 };
enum { PARSE_ERROR = -32700, INVALID_REQUEST = -32600, NO_METHOD = -32601, BAD_PARAMS = -32602 };

/* Versions of the protocol in which the methods below have this form. Clients of other versions are
 * offered the last one. */
static const char *const versions[] = { "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25" };
enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };

static const char instructions[] =
	"Analyzes traces of training on GPUs. Call files to list them, and begin with summary of a "
	"trace or of a folder of ranks. Then call report for tables, explain for the meaning of a "
	"figure and the events it comes from, events for single events, and what_if to predict the "
	"effect of a change.";

/* ---- answers ---------------------------------------------------------------------------- */

/* Replaces bytes that are not UTF-8, in names or requests, by '?', because JSON requires it. */
static void mend(char *line)
{
	for (size_t left = strlen(line), bytes; left; line += bytes, left -= bytes) {
		bytes = utf8_sequence(line, left);
		if (!bytes) {
			*line = '?';
			bytes = 1;
		}
	}
}

/* Sends an answer to the request `id`. Takes ownership of `body`, which becomes its member
 * `key`. */
static enum status answer(const cJSON *id, const char *key, cJSON *body, struct error *err)
{
	cJSON *message = cJSON_CreateObject();

	cJSON_AddStringToObject(message, "jsonrpc", "2.0");
	cJSON_AddItemToObject(message, "id", id ? cJSON_Duplicate(id, true) : cJSON_CreateNull());
	if (!body || !cJSON_AddItemToObject(message, key, body)) {
		cJSON_Delete(body);
		cJSON_Delete(message);
		return fail_memory(err);
	}
	char *line = message ? cJSON_PrintUnformatted(message) : NULL;

	cJSON_Delete(message);
	if (!line)
		return fail_memory(err);
	mend(line);
	bool is_out = printf("%s\n", line) >= 0 && fflush(stdout) == 0;
	cJSON_free(line);
	return is_out ? ST_OK : fail(err, ST_IO, NOWHERE, "standard output: %s", strerror(errno));
}

static enum status refuse(const cJSON *id, int code, const char *why, struct error *err)
{
	cJSON *body = cJSON_CreateObject();

	cJSON_AddNumberToObject(body, "code", code);
	cJSON_AddStringToObject(body, "message", why);
	return answer(id, "error", body, err);
}

/* ---- methods ---------------------------------------------------------------------------- */

static cJSON *initialize(const cJSON *params)
{
	const char *asked =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(params, "protocolVersion"));
	const char *version = versions[VERSIONS - 1];
	cJSON *result = cJSON_CreateObject(), *info;

	for (size_t i = 0; asked && i < VERSIONS; i++)
		if (!strcmp(asked, versions[i]))
			version = versions[i];
	cJSON_AddStringToObject(result, "protocolVersion", version);
	cJSON_AddObjectToObject(cJSON_AddObjectToObject(result, "capabilities"), "tools");
	info = cJSON_AddObjectToObject(result, "serverInfo");
	cJSON_AddStringToObject(info, "name", "tacho");
	cJSON_AddStringToObject(info, "version", TACHO_VERSION);
	cJSON_AddStringToObject(result, "instructions", instructions);
	return result;
}

static enum status call_tool(struct mcp_tools *tools, const cJSON *id, const cJSON *params,
			     struct error *err)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(params, "name"));
	cJSON *result, *part;
	struct buf text;
	bool failed = false;
	enum status status;

	if (!name)
		return refuse(id, BAD_PARAMS, "tools/call: the name of the tool is missing", err);
	buf_init(&text, 2 * MCP_ANSWER);
	if (!mcp_tools_call(tools, name, cJSON_GetObjectItemCaseSensitive(params, "arguments"),
			    &text, &failed)) {
		status = refuse(id, BAD_PARAMS, buf_text(&text), err);
		buf_release(&text);
		return status;
	}
	result = cJSON_CreateObject();
	part = cJSON_CreateObject();
	cJSON_AddStringToObject(part, "type", "text");
	cJSON_AddStringToObject(part, "text", buf_text(&text));
	cJSON_AddItemToArray(cJSON_AddArrayToObject(result, "content"), part);
	cJSON_AddBoolToObject(result, "isError", failed);
	buf_release(&text);
	return answer(id, "result", result, err);
}

static enum status serve_message(struct mcp_tools *tools, const cJSON *message, struct error *err)
{
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(message, "id");
	const cJSON *params = cJSON_GetObjectItemCaseSensitive(message, "params");
	const char *method =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "method"));
	char why[128];

	if (!cJSON_IsObject(message) || !method)
		return refuse(id, INVALID_REQUEST, "a request must be an object with a method",
			      err);
	if (!id) /* a notification: gets no answer, and none has an effect here */
		return ST_OK;
	if (!strcmp(method, "initialize"))
		return answer(id, "result", initialize(params), err);
	if (!strcmp(method, "ping"))
		return answer(id, "result", cJSON_CreateObject(), err);
	if (!strcmp(method, "tools/list"))
		return answer(id, "result", mcp_tools_list(), err);
	if (!strcmp(method, "tools/call"))
		return call_tool(tools, id, params, err);
	snprintf(why, sizeof(why), "%.80s: there is no such method", method);
	return refuse(id, NO_METHOD, why, err);
}

/* Returns whether a message nests deeper than any request needs, before cJSON recurses into it. */
static bool is_deep(const char *line)
{
	size_t depth = 0;

	for (; *line; line++) {
		depth += *line == '{' || *line == '[';
		depth -= depth && (*line == '}' || *line == ']');
		if (depth > NEST_MAX)
			return true;
	}
	return false;
}

static enum status serve_line(struct mcp_tools *tools, const char *line, size_t len,
			      struct error *err)
{
	cJSON *message;

	if (line[strspn(line, " \t\r\n")] == '\0' && strlen(line) == len)
		return ST_OK;
	message = strlen(line) == len && len <= LINE_MAX_BYTES && !is_deep(line)
			  ? cJSON_ParseWithOpts(line, NULL, true)
			  : NULL;
	if (!message)
		return refuse(NULL, PARSE_ERROR, "the line is not JSON", err);
	enum status status = serve_message(tools, message, err);
	cJSON_Delete(message);
	return status;
}

enum status mcp_serve(const char *folder, struct error *err)
{
	struct mcp_tools *tools;
	enum status status;
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	TRY(mcp_tools_open(&tools, folder, err));
	do {
		len = getline(&line, &cap, stdin);
		status = len < 0 ? ST_OK : serve_line(tools, line, (size_t)len, err);
	} while (len >= 0 && status == ST_OK);
	free(line);
	mcp_tools_close(tools);
	return status;
}
