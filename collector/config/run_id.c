/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/run_id.h"

#include "collector/config/rank.h"
#include "schemas/base/quantity.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What a job is called; `part`, where it is set, tells launches within a job apart. */
static const struct {
	const char *name, *job, *part;
} jobs[] = {
	{ "slurm", "SLURM_JOB_ID", "SLURM_STEP_ID" },
	{ "lsf", "LSB_JOBID", "LSB_JOBINDEX" },
	{ "pbs", "PBS_JOBID", NULL },
	{ "flux", "FLUX_JOB_ID", NULL },
	{ "torchrun", "TORCHELASTIC_RUN_ID", NULL },
	{ "pmix", "PMIX_NAMESPACE", NULL },
};
static const char *const restarts[] = { "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT" };
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *variable(char *const *envp, const char *name)
{
	const char *text = name ? rank_variable(envp, name) : NULL;

	return text && *text ? text : NULL;
}

/* 0: it is not set, or no number. */
static uint64_t number(char *const *envp, const char *name)
{
	const char *text = variable(envp, name);
	uint64_t value;

	return text && unit_parse_count(text, strlen(text), &value, NULL) == ST_OK ? value : 0;
}

static bool is_of_many_nodes(char *const *envp)
{
	uint64_t local = number(envp, "LOCAL_WORLD_SIZE"), all = number(envp, "WORLD_SIZE");
	uint64_t mpi_local = number(envp, "OMPI_COMM_WORLD_LOCAL_SIZE");
	uint64_t mpi_all = number(envp, "OMPI_COMM_WORLD_SIZE");

	return (local && local < all) || (mpi_local && mpi_local < mpi_all) ||
	       number(envp, "GROUP_WORLD_SIZE") > 1 || number(envp, "NODE_RANK") > 0 ||
	       number(envp, "SLURM_NNODES") > 1;
}

static size_t add(char *out, size_t at, const char *before, const char *text)
{
	int n = snprintf(out + at, RUN_ID_MAX - at, "%s%s%s", at ? ", " : "", before, text);

	return n > 0 && at + (size_t)n < RUN_ID_MAX ? at + (size_t)n : RUN_ID_MAX - 1;
}

void run_id_find(char *const *envp, char out[RUN_ID_MAX])
{
	const char *own = variable(envp, "TACHO_RUN_ID");
	const char *started = variable(envp, RUN_STARTED_VARIABLE);
	char text[RUN_ID_MAX];
	size_t at = 0;

	out[0] = '\0';
	if (own) {
		snprintf(out, RUN_ID_MAX, "%s", own);
		return;
	}
	for (size_t i = 0; i < COUNT(jobs) && !at; i++) {
		const char *job = variable(envp, jobs[i].job), *part = variable(envp, jobs[i].part);

		if (!job ||
		    strcmp(job, "none") == 0) /* torchrun's, where the user has named none */
			continue;
		snprintf(text, sizeof(text), "%s %.64s%s%.20s", jobs[i].name, job, part ? "." : "",
			 part ? part : "");
		at = add(out, at, "", text);
	}
	if (started && !is_of_many_nodes(envp))
		at = add(out, at, "", started);
	for (size_t i = 0; i < COUNT(restarts) && at; i++)
		if (number(envp, restarts[i]))
			at = add(out, at, "restart ", variable(envp, restarts[i]));
}
