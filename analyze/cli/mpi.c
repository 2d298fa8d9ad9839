/* SPDX-License-Identifier: Apache-2.0 */
/* mpirun -n N tacho-analyze INPUT...: process i of n reads every n-th input and sends its partial
 * result to the first, which prints and also reports errors of inputs. */
#include "analyze/cli/internal.h"

#include "analyze/cli/mpi_plugin.h"
#include "analyze/engine/partial.h"
#include "analyze/engine/runs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PARTIAL_MAX ((size_t)4 << 30)
enum { PATH_BYTES = 4096 };

bool mpi_is_there(void)
{
	const char *open_mpi = getenv("OMPI_COMM_WORLD_SIZE"), *others = getenv("PMI_SIZE");

	return (open_mpi && atoi(open_mpi) > 1) || (others && atoi(others) > 1);
}

static enum status mpi_failed(struct error *err)
{
	return fail(err, ST_IO, NOWHERE, "MPI failed");
}

/* Fills `share` with every n-th path from `first` on; it has space for all paths. */
static size_t share_of(const struct input_paths *paths, int first, int n, char **share)
{
	size_t count = 0, parts;

	for (size_t i = 0, turn = 0; i < paths->count; i += parts, turn++) {
		parts = engine_parts(paths->paths, paths->count, i);
		for (size_t k = i; turn % (size_t)n == (size_t)first && k < i + parts; k++)
			share[count++] = paths->paths[k];
	}
	return count;
}

static enum status merge_process(struct tool *t, const struct mpi_plug *plug, int from,
				 struct engine_result *r, const char **settings, struct error *err)
{
	enum status status = ST_OK;
	size_t len = 0;

	if (plug->ask(from, &len))
		return mpi_failed(err);
	if (!len)
		return fail(err, ST_IO, NOWHERE, "process %d of mpirun failed", from);
	uint8_t *bytes = malloc(len);
	if (!bytes)
		return fail_memory(err);
	if (plug->take(from, bytes, len))
		status = mpi_failed(err);
	if (status == ST_OK)
		status = engine_partial_take(r, bytes, len, (size_t)t->common.memory_bytes,
					     settings, err);
	free(bytes);
	return status;
}

/* The operands, and their files. */
struct asked_for {
	char **operands;
	size_t count;
	const struct input_paths *paths;
};

/* Returns in *out whether the files in folders belong to several runs, or --run was given. */
static enum status are_several(const struct tool *t, const struct asked_for *of,
			       const struct engine_result *r, bool *out, struct error *err)
{
	struct runs runs;

	*out = runs_matter(t->own.run, of->paths);
	if (!*out || t->own.run || !filter_is_empty(&t->filter))
		return ST_OK;
	enum status status = runs_find(&runs, r, err);
	*out = runs.count > 1;
	runs_release(&runs);
	return status;
}

/* Runs in the first process: reads its own share, then receives those of all others. If there are
 * several runs it reads the chosen one again, alone. */
static enum status gather(struct tool *t, const struct mpi_plug *plug, int n,
			  const struct asked_for *of, struct buf *own, bool *done,
			  struct error *err)
{
	bool again = false;
	struct engine_result result;
	const char *settings = NULL;
	enum status status;

	status = engine_result_init(&result, t->reports, (size_t)t->common.memory_bytes, err);
	if (status == ST_OK)
		status = engine_partial_take(&result, own->data, own->len,
					     (size_t)t->common.memory_bytes, &settings, err);
	for (int from = 1; from < n && status == ST_OK; from++)
		status = merge_process(t, plug, from, &result, &settings, err);
	*done = status == ST_OK;
	if (status == ST_OK)
		status = are_several(t, of, &result, &again, err);
	if (status == ST_OK && again) {
		engine_result_release(&result);
		status = tool_read(t, of->operands, of->count, t->reports, t->format->pictures,
				   &result, err);
	}
	if (status == ST_OK)
		status = tool_conclude(t, &result, engine_is_filtered(&t->filter), err);
	engine_result_release(&result);
	return status;
}

/* Sets *done once no other process waits for this one. */
static enum status part_do(struct tool *t, const struct mpi_plug *plug, int rank, int n,
			   const struct asked_for *of, bool *done, struct error *err)
{
	char **share = calloc(of->paths->count + 1, sizeof(*share));
	enum status status;
	struct buf own;

	if (!share)
		return fail_memory(err);
	buf_init(&own, PARTIAL_MAX);
	t->common.quiet |= rank != 0;
	t->is_far = true;
	status = partial_make(t, share, share_of(of->paths, rank, n, share), &own, NULL, err);
	if (rank && plug->give(own.data, status == ST_OK ? own.len : 0) && status == ST_OK)
		status = mpi_failed(err);
	*done = rank != 0;
	if (!rank && status == ST_OK)
		status = gather(t, plug, n, of, &own, done, err);
	buf_release(&own);
	free(share);
	return status;
}

enum status run_mpi(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct input_paths paths = { .count = 0 };
	int rank = 0, n = 1;
	bool done = true;

	if (t->own.compat)
		return fail(err, ST_USAGE, NOWHERE, "--compat does not work under mpirun");
	/* Look beside this program, where it is built, or where make install puts it. */
	static const char *const places[] = { "/libtacho-mpi.so", "/../lib/tacho/libtacho-mpi.so" };
	char path[PATH_BYTES + 64];
	ssize_t len = readlink("/proc/self/exe", path, PATH_BYTES);
	void *library = NULL;

	path[len < 0 ? 0 : len] = '\0';
	char *slash = strrchr(path, '/');
	for (size_t i = 0; slash && !library && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(slash, 64, "%s", places[i]);
		library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	}
	const struct mpi_plug *plug = library ? dlsym(library, MPI_PLUG_NAME) : NULL;
	if (!plug)
		return fail(
			err, ST_ABSENT, NOWHERE,
			"started by mpirun, but built without mpi.h: use --partial and --merge");
	if (plug->open(&rank, &n))
		return mpi_failed(err);
	enum status status = tool_paths(t, operands, count, &paths, err);
	if (status == ST_OK)
		status = part_do(t, plug, rank, n, &(struct asked_for){ operands, count, &paths },
				 &done, err);
	else if (rank)
		err->text[0] = '\0'; /* the first process reports it */
	input_paths_free(&paths);
	if (done) /* otherwise mpirun ends the processes that wait */
		plug->close();
	return status;
}
