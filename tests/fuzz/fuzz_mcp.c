/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as requests of the protocol: each line gets one answer at most, and each answer is an
 * object with a result or an error.  Tools that are programs find none beside this one.
 */
#include "analyze/cli/internal.h"
#include "tests/fuzz/target.h"

static char folder[] = "/tmp/fuzz_mcp.XXXXXX";

static void remove_folder(void)
{
	rmdir(folder);
}

static void check_answer(const char *line)
{
	cJSON *answer = cJSON_Parse(line);
	const char *version = cJSON_GetStringValue(cJSON_GetObjectItem(answer, "jsonrpc"));

	if (!version || strcmp(version, "2.0") != 0 || !cJSON_HasObjectItem(answer, "id") ||
	    cJSON_HasObjectItem(answer, "result") == cJSON_HasObjectItem(answer, "error"))
		abort();
	cJSON_Delete(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *in = stdin, *out = stdout;
	size_t len = 0, lines = 1, answers = 0;
	char *text = NULL, *end;
	struct error err = { 0 };

	if (!size || (strstr(folder, "XXXXXX") && (!mkdtemp(folder) || atexit(remove_folder) != 0)))
		return 0;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	stdin = fmemopen((void *)(uintptr_t)data, size, "r");
	stdout = open_memstream(&text, &len);
	if (!stdin || !stdout || mcp_serve(folder, &err) != ST_OK)
		abort();
	fclose(stdin);
	fclose(stdout);
	stdin = in;
	stdout = out;
	for (char *line = text; (end = strchr(line, '\n')); line = end + 1, answers++) {
		*end = '\0';
		check_answer(line);
	}
	if (answers > lines)
		abort();
	free(text);
	return 0;
}
