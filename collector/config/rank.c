/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/config.h"
#include "schemas/base/quantity.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct launcher {
	const char *name, *rank, *world_size;
	const char *node, *node_size; /* NULL, or variables of the node's number and size: `rank` is
					 then local */
};
/* Variables that name the rank explicitly come first, and those that many tools set come last. */
static const struct launcher launchers[] = {
	{ "tacho", "TACHO_RANK", "TACHO_WORLD_SIZE", NULL, NULL },
	{ "torchrun", "RANK", "WORLD_SIZE", NULL, NULL },
	{ "open mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL },
	{ "mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", NULL, NULL },
	{ "pmix", "PMIX_RANK", "PMIX_SIZE", NULL, NULL },
	{ "pmi", "PMI_RANK", "PMI_SIZE", NULL, NULL },
	{ "horovod", "HOROVOD_RANK", "HOROVOD_SIZE", NULL, NULL },
	{ "jax", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", NULL, NULL },
	{ "jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", NULL, NULL },
	{ "flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", NULL, NULL },
	{ "pals", "PALS_RANKID", "PALS_SIZE", NULL, NULL },
	{ "paddle", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", NULL, NULL },
	{ "lightning", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "LOCAL_WORLD_SIZE" },
	{ "slurm", "SLURM_PROCID", "SLURM_NTASKS", NULL, NULL },
	{ "volcano", "VC_TASK_INDEX", "VC_TASK_NUM", NULL, NULL },
	/* Indexed jobs have the first variable; their manifest may set the second one. */
	{ "kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", NULL, NULL },
};

const char *rank_variable(char *const *envp, const char *name)
{
	size_t len = strlen(name);

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, len) && (*envp)[len] == '=')
			return *envp + len + 1;
	return NULL;
}

static bool number_of(char *const *envp, const char *name, uint32_t *out)
{
	const char *text = rank_variable(envp, name);
	uint64_t value;

	if (!text || unit_parse_count(text, strlen(text), &value, NULL) != ST_OK)
		return false;
	if (value >= RANK_UNKNOWN)
		return false;
	*out = (uint32_t)value;
	return true;
}

/* Reads the rank from the variables of a launcher.  An uncertain rank is reported as unknown,
 * because two processes with one rank are worse. */
static bool rank_by(const struct launcher *l, char *const *envp, uint32_t *rank)
{
	uint32_t node = 0, per_node = 0;

	if (!number_of(envp, l->rank, rank))
		return false;
	if (!l->node)
		return true;
	if (!number_of(envp, l->node, &node))
		return false;
	if (!node)
		return true;
	if (!number_of(envp, l->node_size, &per_node) || *rank >= per_node)
		return false;
	uint64_t sum = (uint64_t)node * per_node + *rank;
	*rank = (uint32_t)sum;
	return sum < RANK_UNKNOWN;
}

struct rank rank_find(char *const *envp)
{
	struct rank r = { .rank = RANK_UNKNOWN, .launcher = "" };

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		uint32_t rank;

		if (!rank_by(&launchers[i], envp, &rank))
			continue;
		r.rank = rank;
		r.launcher = launchers[i].name;
		if (!number_of(envp, launchers[i].world_size, &r.world_size) ||
		    r.world_size <= r.rank)
			r.world_size = 0;
		return r;
	}
	return r;
}

enum status rank_is_wanted(const char *ranks, uint32_t rank, bool *wanted, struct error *err)
{
	uint32_t own = rank == RANK_UNKNOWN ? 0 : rank;
	size_t len;

	*wanted = !strcmp(ranks, "all") || (!strcmp(ranks, "main") && own == 0);
	if (*wanted || !strcmp(ranks, "main"))
		return ST_OK;
	for (;; ranks += len + 1) {
		len = strcspn(ranks, ",");
		/* An item is "7" or "4-7", which includes both ends. */
		bool *holds = wanted;
		const char *dash = memchr(ranks, '-', len);
		uint64_t first;

		TRY(unit_parse_count(ranks, dash ? (size_t)(dash - ranks) : len, &first, err));
		uint64_t last = first;
		if (dash)
			TRY(unit_parse_count(dash + 1, len - (size_t)(dash + 1 - ranks), &last,
					     err));
		if (last < first)
			return fail(err, ST_USAGE, NOWHERE,
				    "%.*s: the last rank is before the first",
				    (int)(len < 40 ? len : 40), ranks);
		if (own >= first && own <= last)
			*holds = true;
		if (!ranks[len])
			return ST_OK;
	}
}

/* Variables with the name of a job; `part`, if it is set, distinguishes launches within a job. */
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

/* Returns the number in a variable, or 0 if it is not set or no number. */
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

		if (!job || strcmp(job, "none") == 0) /* torchrun's default */
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
