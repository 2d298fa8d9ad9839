/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/rank.h"

#include "schemas/unit.h"

#include <string.h>

struct launcher {
	const char *name, *rank, *world_size;
};
/* From the one that says it outright to those that are set around many a process. */
static const struct launcher launchers[] = {
	{ "tacho", "TACHO_RANK", "TACHO_WORLD_SIZE" },
	{ "torchrun", "RANK", "WORLD_SIZE" },
	{ "open mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE" },
	{ "pmix", "PMIX_RANK", "PMIX_SIZE" },
	{ "pmi", "PMI_RANK", "PMI_SIZE" },
	{ "horovod", "HOROVOD_RANK", "HOROVOD_SIZE" },
	{ "jax", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES" },
	{ "jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE" },
	{ "flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE" },
	{ "pals", "PALS_RANKID", "PALS_SIZE" },
	{ "slurm", "SLURM_PROCID", "SLURM_NTASKS" },
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

struct rank rank_find(char *const *envp)
{
	struct rank r = { .rank = RANK_UNKNOWN, .launcher = "" };
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		if (!number_of(envp, launchers[i].rank, &r.rank))
			continue;
		r.launcher = launchers[i].name;
		if (!number_of(envp, launchers[i].world_size, &r.world_size) ||
		    r.world_size <= r.rank)
			r.world_size = 0;
		return r;
	}
	return r;
}

/* "7" or "4-7", half-open nowhere: both ends belong. */
static enum status range_holds(const char *text, size_t len, uint32_t rank, bool *holds,
			       struct error *err)
{
	const char *dash = memchr(text, '-', len);
	uint64_t first, last;

	TRY(unit_parse_count(text, dash ? (size_t)(dash - text) : len, &first, err));
	last = first;
	if (dash)
		TRY(unit_parse_count(dash + 1, len - (size_t)(dash + 1 - text), &last, err));
	if (last < first)
		return fail(err, ST_USAGE, NOWHERE, "%.*s: the last rank is before the first",
			    (int)(len < 40 ? len : 40), text);
	if (rank >= first && rank <= last)
		*holds = true;
	return ST_OK;
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
		TRY(range_holds(ranks, len, own, wanted, err));
		if (!ranks[len])
			return ST_OK;
	}
}
