/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of the protocol: the arguments of each, and its command line. */
#include "analyze/cli/internal.h"

#include "analyze/report/report_list.h"
#include "schemas/model/records.h"

#include "convert/base/temporary.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { PARAMS_MAX = 9, ARGUMENTS_MAX = 24, COMPLAINT_MAX = 2000, FILES_DEPTH = 16 };

struct param {
	const char *name, *about;
	const char *option; /* option that takes it as its value; NULL: it is a path, an operand */
	bool is_needed;
};

#define RUN_PARAM                                                                                  \
	{                                                                                          \
		"run",                                                                             \
			"number of the run in a folder with several runs, or all; default: the "   \
			"latest",                                                                  \
			"--run", false                                                             \
	}
#define PATH_PARAM                                                                                 \
	{                                                                                          \
		"path",                                                                            \
			"a trace, or a folder with one trace for each rank, below the served "     \
			"folder",                                                                  \
			NULL, true                                                                 \
	}
#define CUT_PARAMS                                                                                 \
	{ "steps", "only these steps: 10-20 is steps 10 to 19", "--steps", false },                \
		{ "ranks", "only these ranks: 0,2-5", "--ranks", false },                          \
		{ "from", "only from this time on: 1.5s is 1.5 s after the first event", "--from", \
		  false },                                                                         \
	{                                                                                          \
		"to", "only before this time", "--to", false                                       \
	}

static const struct mcp_tool {
	const char *name, *about;
	const char *program;  /* NULL: lists the folder's files */
	const char *fixed[3]; /* first arguments */
	struct param params[PARAMS_MAX];
} tools[] = {
	{ "files",
	  "Lists the files below the folder, with their sizes.",
	  NULL,
	  { NULL },
	  { { "path", "a folder below the served one; default: the served one", NULL, false } } },
	{ "summary",
	  "Prints one page: what bounds the run, what to change first and what that saves, GPU "
	  "time, phases, steps, kernels, and how reliable the recording is.",
	  "tacho-analyze",
	  { "--format=text" },
	  { PATH_PARAM, RUN_PARAM, CUT_PARAMS } },
	{ "report",
	  "Prints the tables of one or more reports, with all rows.",
	  "tacho-analyze",
	  { "--format=md" },
	  { PATH_PARAM,
	    { "name", "one or several, separated by commas:", "--report", true },
	    RUN_PARAM,
	    CUT_PARAMS } },
	{ "explain",
	  "Explains a figure, a cause or a rule; with a path also its values and the events from "
	  "which they come.",
	  "tacho-analyze",
	  { NULL },
	  { { "figure",
	      "a name from a page or table, or a report: INPUT BOUND, idle_ns, sync, "
	      "small_kernels, ranks",
	      "--explain", true },
	    { "path", "a trace or a folder", NULL, false },
	    RUN_PARAM,
	    CUT_PARAMS } },
	{ "events",
	  "Prints single events in time order, one per line: time and duration in ms, kind, "
	  "track, name, arguments.",
	  "tacho-convert",
	  { "--type=text", "--quiet" },
	  { PATH_PARAM,
	    { "kinds", "only these, separated by commas:", "--kinds", false },
	    { "names", "only names that match, as a shell's pattern: *nccl*", "--names", false },
	    { "devices", "only GPU events of these devices: 0,1", "--devices", false },
	    CUT_PARAMS } },
	{ "what_if",
	  "Predicts the step time after changes, by replaying the events.",
	  "tacho-analyze",
	  { "--format=md" },
	  { PATH_PARAM,
	    { "edits",
	      "data=0, launch=graph, host:PHASE=F, kernel:GLOB=F, work:KIND=F, place:PATH=F, "
	      "comm=F, comm=overlap, link=Nx, copy[:GLOB]=F, cause:NAME=F, rank:N=median; commas "
	      "combine edits, semicolons separate alternatives",
	      "--what-if", true },
	    RUN_PARAM,
	    CUT_PARAMS } },
	{ "diff",
	  "Compares two runs: is run B slower than run A, and where does the time go?",
	  "tacho-analyze",
	  { "--diff", "--format=md" },
	  { { "a", "a trace or folder: the run before", NULL, true },
	    { "b", "a trace or folder: the run after", NULL, true } } },
	{ "check",
	  "Checks whether the recording is complete and consistent: losses, clocks, cost of "
	  "recording.",
	  "tacho-analyze",
	  { "--report=check", "--format=text" },
	  { PATH_PARAM } },
};
enum { TOOLS = sizeof(tools) / sizeof(tools[0]) };

struct mcp_tools {
	char root[PATH_MAX];     /* resolved path */
	char programs[PATH_MAX]; /* folder of this program and of tacho-convert */
	/* Output of the last call. The next call may read another part of it. */
	struct buf command, output;
	int exit_code;
	bool was_cut; /* the output had more than MCP_KEPT bytes */
};

enum status mcp_tools_open(struct mcp_tools **out, const char *folder, struct error *err)
{
	struct mcp_tools *t = calloc(1, sizeof(*t));
	ssize_t len = t ? readlink("/proc/self/exe", t->programs, sizeof(t->programs) - 1) : -1;

	if (!t)
		return fail_memory(err);
	char *slash = len > 0 ? strrchr(t->programs, '/') : NULL;
	if (!slash || !realpath(folder, t->root)) {
		free(t);
		return fail(err, ST_USAGE, NOWHERE, "--mcp %.200s: %s", folder,
			    slash ? strerror(errno) : "/proc/self/exe cannot be read");
	}
	*slash = '\0';
	buf_init(&t->command, 64 * 1024);
	buf_init(&t->output, MCP_KEPT);
	*out = t;
	return ST_OK;
}

void mcp_tools_close(struct mcp_tools *t)
{
	if (!t)
		return;
	buf_release(&t->command);
	buf_release(&t->output);
	free(t);
}

/* ---- the list --------------------------------------------------------------------------- */

static void add_property(cJSON *properties, const char *name, const char *type, const char *about)
{
	cJSON *one = cJSON_AddObjectToObject(properties, name);

	cJSON_AddStringToObject(one, "type", type);
	cJSON_AddStringToObject(one, "description", about);
}

static void add_tool(cJSON *list, const struct mcp_tool *tool)
{
	cJSON *one = cJSON_CreateObject(), *schema, *properties, *needed;

	cJSON_AddStringToObject(one, "name", tool->name);
	cJSON_AddStringToObject(one, "description", tool->about);
	schema = cJSON_AddObjectToObject(one, "inputSchema");
	cJSON_AddStringToObject(schema, "type", "object");
	properties = cJSON_AddObjectToObject(schema, "properties");
	needed = cJSON_AddArrayToObject(schema, "required");
	for (const struct param *p = tool->params; p->name; p++) {
		struct buf about;

		buf_init(&about, MCP_ANSWER);
		/* Writes the description, and the values that exist. */
		buf_put_text(&about, p->about);
		for (size_t i = 0; p->option && !strcmp(p->option, "--report") && report_types[i];
		     i++)
			buf_putf(&about, " %s", report_types[i]->name);
		for (unsigned i = 1; p->option && !strcmp(p->option, "--kinds") && i < KIND_END;
		     i++)
			buf_putf(&about, " %s", kind_word(i));
		add_property(properties, p->name, "string", buf_text(&about));
		buf_release(&about);
		if (p->is_needed)
			cJSON_AddItemToArray(needed, cJSON_CreateString(p->name));
	}
	add_property(properties, "cursor", "integer",
		     "position from which to continue, from the previous answer; default: the "
		     "beginning");
	cJSON_AddItemToArray(list, one);
}

cJSON *mcp_tools_list(void)
{
	cJSON *result = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(result, "tools");

	for (size_t i = 0; i < TOOLS; i++)
		add_tool(list, &tools[i]);
	return result;
}

/* ---- paths ------------------------------------------------------------------------------ */

static bool is_below(const char *root, const char *path)
{
	size_t len = strlen(root);

	return !strncmp(root, path, len) &&
	       (!path[len] || path[len] == '/' || root[len - 1] == '/');
}

static const char *walk_root; /* used by the callbacks of nftw() */
static struct files {         /* found by list_file() */
	struct file {
		const char *path;
		uint64_t bytes;
	} * items;
	size_t count, cap;
} walk_files;

/* Finds a link in a folder that leads out of the folder that is served. */
static int find_way_out(const char *path, const struct stat *st, int type, struct FTW *at)
{
	char real[PATH_MAX];

	(void)st;
	(void)at;
	return type == FTW_SL && realpath(path, real) && !is_below(walk_root, real);
}

static int list_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	struct files *f = &walk_files;
	struct file one = { NULL, (uint64_t)st->st_size };

	if (type != FTW_F || !S_ISREG(st->st_mode) || at->level > FILES_DEPTH)
		return 0;
	one.path = strdup(path + strlen(walk_root) + 1);
	if (!one.path || vec_reserve(&f->items, &f->cap, f->count + 1, NULL) != ST_OK) {
		free((char *)one.path);
		return 1;
	}
	f->items[f->count++] = one;
	return 0;
}

/* Resolves a path into `real` (PATH_MAX bytes). Tools that read a folder follow links in it,
 * listing does not. false: the path may not be read, and *text explains why. */
static bool settle_path(const struct mcp_tools *t, const char *path, bool is_read, char *real,
			struct buf *text)
{
	char joined[PATH_MAX];
	int len = path[0] == '/' ? snprintf(joined, sizeof(joined), "%s", path)
				 : snprintf(joined, sizeof(joined), "%s/%s", t->root, path);

	if (len < 0 || (size_t)len >= sizeof(joined) || !realpath(joined, real)) {
		buf_putf(text, "%.200s: %s", path, len < 0 ? "too long" : strerror(errno));
		return false;
	}
	walk_root = t->root;
	if (!is_below(t->root, real) || (is_read && nftw(real, find_way_out, 16, FTW_PHYS) == 1)) {
		buf_putf(text, "%.200s: not below the folder that is served", path);
		return false;
	}
	return true;
}

/* ---- a call ----------------------------------------------------------------------------- */

struct call {
	char *argv[ARGUMENTS_MAX + 1]; /* each one is allocated */
	size_t count;
};

static bool call_add(struct call *c, const char *option, const char *value)
{
	if (c->count == ARGUMENTS_MAX ||
	    asprintf(&c->argv[c->count], "%s%s%s", option, option[0] ? "=" : "", value) < 0)
		return false;
	c->count++;
	return true;
}

/* false: an argument is wrong, which *text explains. */
static bool call_make(const struct mcp_tools *t, const struct mcp_tool *tool,
		      const cJSON *arguments, struct call *c, struct buf *text)
{
	char program[PATH_MAX + 32], real[PATH_MAX];

	snprintf(program, sizeof(program), "%s/%s", t->programs, tool->program);
	bool fits = call_add(c, "", program);
	for (size_t i = 0; i < 3 && tool->fixed[i]; i++)
		fits = fits && call_add(c, "", tool->fixed[i]);
	for (const struct param *p = tool->params; p->name; p++) {
		const cJSON *given = cJSON_GetObjectItemCaseSensitive(arguments, p->name);
		const char *value = cJSON_GetStringValue(given);

		if (given ? !value : p->is_needed) {
			buf_putf(text, "%s: %s must be a string", tool->name, p->name);
			return false;
		}
		if (!value)
			continue;
		if (!p->option && !settle_path(t, value, true, real, text))
			return false;
		fits = fits && call_add(c, p->option ? p->option : "", p->option ? value : real);
	}
	if (!fits)
		buf_put_text(text, "out of memory");
	return fits;
}

/* Runs in the child and never returns. */
static void run_child(const struct call *c, int out, int complaints)
{
	static char *const environment[] = { "COLUMNS=120", "LC_ALL=C.UTF-8", "NO_COLOR=1",
					     "PATH=/usr/bin:/bin", NULL };
	int nothing = open("/dev/null", O_RDONLY);

	signal(SIGPIPE, SIG_DFL);
	if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(complaints, STDERR_FILENO) >= 0)
		execve(c->argv[0], c->argv, environment);
	_exit(127);
}

static bool run_call(struct mcp_tools *t, const struct call *c, struct buf *text)
{
	char complaint[COMPLAINT_MAX];
	int out[2], complaints = temporary_open("/tmp"), status = 0;
	ssize_t len;
	pid_t child;

	if (complaints < 0 || pipe2(out, O_CLOEXEC) != 0) {
		buf_putf(text, "cannot create a temporary file: %s", strerror(errno));
		if (complaints >= 0)
			close(complaints);
		return false;
	}
	fflush(stdout);
	child = fork();
	if (child == 0)
		run_child(c, out[1], complaints);
	close(out[1]);
	buf_clear(&t->output);
	t->was_cut = false;
	if (child > 0) {
		/* Append what the child writes, up to MCP_KEPT bytes; then stop it. */
		int from = out[0];
		uint8_t *place;
		ssize_t got;

		while (!t->was_cut) {
			size_t left = MCP_KEPT - t->output.len, want = left < 65536 ? left : 65536;

			place = want ? buf_reserve(&t->output, want) : NULL;
			if (!place) {
				t->was_cut = true;
				kill(child, SIGKILL);
				break;
			}
			got = read(from, place, want);
			if (got < 0 && errno == EINTR)
				continue;
			if (got <= 0)
				break;
			t->output.len += (size_t)got;
		}
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(out[0]);
	t->exit_code = child < 0           ? 127
		       : t->was_cut        ? 0
		       : WIFEXITED(status) ? WEXITSTATUS(status)
					   : 128 + WTERMSIG(status);
	/* Messages on standard error, about losses or damage, belong to the answer. */
	len = pread(complaints, complaint, sizeof(complaint), 0);
	close(complaints);
	if (len > 0) {
		if (t->output.len)
			buf_put_text(&t->output, "\n");
		buf_put(&t->output, complaint, (size_t)len);
	}
	return true;
}

/* ---- the answer ------------------------------------------------------------------------- */

/* Writes the output from `cursor` on, up to the end of a line if possible. */
static void put_part(struct mcp_tools *t, uint64_t cursor, struct buf *text)
{
	const char *all = buf_text(&t->output);
	size_t from = cursor < t->output.len ? (size_t)cursor : t->output.len, len;

	len = t->output.len - from;
	if (len > MCP_ANSWER) {
		for (len = MCP_ANSWER; len > MCP_ANSWER / 2 && all[from + len - 1] != '\n'; len--)
			;
		if (len == MCP_ANSWER / 2) /* cut a long line between two characters */
			for (len = MCP_ANSWER; ((uint8_t)all[from + len] & 0xc0) == 0x80; len--)
				;
	}
	buf_put(text, all + from, len);
	if (from + len < t->output.len)
		buf_putf(text, "\n[%zu of %zu bytes%s; continue with cursor %zu]", from + len,
			 t->output.len, t->was_cut ? " and more" : "", from + len);
	else if (t->was_cut)
		buf_putf(text, "\n[the output is longer than %d bytes: select a shorter time]",
			 MCP_KEPT);
}

static bool files_call(struct mcp_tools *t, const cJSON *arguments, struct buf *text)
{
	const char *path =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(arguments, "path"));
	char real[PATH_MAX];

	if (!settle_path(t, path ? path : ".", false, real, text))
		return false;
	buf_clear(&t->output);
	nftw(real, list_file, 16, FTW_PHYS);
	SORT_BY(walk_files.items, walk_files.count, UP(struct file, path));
	for (size_t i = 0; i < walk_files.count; i++) {
		buf_putf(&t->output, "%12llu  %s\n", (unsigned long long)walk_files.items[i].bytes,
			 walk_files.items[i].path);
		free((char *)walk_files.items[i].path);
	}
	free(walk_files.items);
	walk_files = (struct files){ .items = NULL };
	t->was_cut = buf_status(&t->output, NULL) != ST_OK;
	t->exit_code = 0;
	return true;
}

/* Returns whether the kept output belongs to the same call, and remembers this call. */
static bool is_last_call(struct mcp_tools *t, const struct call *c)
{
	struct buf command;

	buf_init(&command, t->command.ceiling);
	for (size_t i = 0; i < c->count; i++)
		buf_put(&command, c->argv[i], strlen(c->argv[i]) + 1);
	bool same = command.len && command.len == t->command.len &&
		    !memcmp(command.data, t->command.data, command.len);
	buf_clear(&t->command);
	if (command.len)
		buf_put(&t->command, command.data, command.len);
	buf_release(&command);
	return same;
}

static const struct mcp_tool *tool_find(const char *name)
{
	for (size_t i = 0; i < TOOLS; i++)
		if (!strcmp(tools[i].name, name))
			return &tools[i];
	return NULL;
}

bool mcp_tools_call(struct mcp_tools *t, const char *name, const cJSON *arguments, struct buf *text,
		    bool *failed)
{
	const cJSON *given = cJSON_GetObjectItemCaseSensitive(arguments, "cursor");
	double cursor = cJSON_IsNumber(given) ? given->valuedouble : 0;
	const struct mcp_tool *tool = tool_find(name);
	struct call call = { .count = 0 };
	bool is_done;

	if (!tool) {
		buf_putf(text, "%.80s: there is no such tool", name);
		return false;
	}
	if ((given && !cJSON_IsNumber(given)) || !(cursor >= 0 && cursor < 1e15)) {
		buf_putf(text, "%s: cursor must be a number from an answer", name);
		return false;
	}
	if (!tool->program) {
		is_done = files_call(t, arguments, text);
		buf_clear(&t->command);
	} else {
		is_done = call_make(t, tool, arguments, &call, text);
		if (is_done && !(is_last_call(t, &call) && cursor > 0))
			is_done = run_call(t, &call, text);
	}
	for (size_t i = 0; i < call.count; i++)
		free(call.argv[i]);
	/* Exit codes 3 (a diff with a slower B) and 4 (damage) come with an answer. */
	*failed = !is_done || (t->exit_code && t->exit_code != 3 && t->exit_code != 4);
	if (is_done && !t->output.len)
		buf_put_text(text, "no rows: the input contains no such events");
	else if (is_done)
		put_part(t, (uint64_t)cursor, text);
	return true;
}
