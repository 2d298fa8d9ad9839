/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/config.h"
#include "tests/unit/unit.h"

#include <string.h>

#include <stddef.h>
#include <stdio.h>

static struct rank find(const char *a, const char *b, const char *c)
{
	char *envp[] = { "HOME=/", (char *)a, (char *)b, (char *)c, NULL };

	return rank_find(envp);
}

void test_rank_launchers(void)
{
	struct rank r = find("RANK=3", "WORLD_SIZE=8", NULL);

	CHECK_U64(r.rank, 3);
	CHECK_U64(r.world_size, 8);
	CHECK_STR(r.launcher, "torchrun");
	r = find("SLURM_PROCID=17", "SLURM_NTASKS=64", NULL);
	CHECK_U64(r.rank, 17);
	CHECK_U64(r.world_size, 64);
	r = find("OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", NULL);
	CHECK_U64(r.rank, 1);
	CHECK_U64(r.world_size, 2);
	r = find("PMI_RANK=5", NULL, NULL);
	CHECK_U64(r.rank, 5);
	CHECK_U64(r.world_size, 0);
	r = find("PMIX_RANK=6", NULL, NULL);
	CHECK_U64(r.rank, 6);
	/* what is said outright wins over what the scheduler says of the whole allocation */
	r = find("SLURM_PROCID=0", "TACHO_RANK=9", "RANK=3");
	CHECK_U64(r.rank, 9);
	CHECK_STR(r.launcher, "tacho");
	r = find("SLURM_PROCID=0", "RANK=3", NULL);
	CHECK_U64(r.rank, 3);
}

/* Each launcher by the variables that it is known to set. */
void test_rank_table(void)
{
	static const struct {
		const char *rank, *size, *launcher;
	} rows[] = {
		{ "RANK=3", "WORLD_SIZE=8", "torchrun" },
		{ "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=8", "open mpi" },
		{ "MV2_COMM_WORLD_RANK=3", "MV2_COMM_WORLD_SIZE=8", "mvapich" },
		{ "PMIX_RANK=3", "PMIX_SIZE=8", "pmix" },
		{ "PMI_RANK=3", "PMI_SIZE=8", "pmi" },
		{ "HOROVOD_RANK=3", "HOROVOD_SIZE=8", "horovod" },
		{ "JAX_PROCESS_ID=3", "JAX_NUM_PROCESSES=8", "jax" },
		{ "JSM_NAMESPACE_RANK=3", "JSM_NAMESPACE_SIZE=8", "jsrun" },
		{ "FLUX_TASK_RANK=3", "FLUX_JOB_SIZE=8", "flux" },
		{ "PALS_RANKID=3", "PALS_SIZE=8", "pals" },
		{ "PADDLE_TRAINER_ID=3", "PADDLE_TRAINERS_NUM=8", "paddle" },
		{ "SLURM_PROCID=3", "SLURM_NTASKS=8", "slurm" },
		{ "VC_TASK_INDEX=3", "VC_TASK_NUM=8", "volcano" },
		{ "JOB_COMPLETION_INDEX=3", "JOB_COMPLETIONS=8", "kubernetes" },
	};
	struct rank r;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		r = find(rows[i].rank, rows[i].size, NULL);
		CHECK_U64(r.rank, 3);
		CHECK_U64(r.world_size, 8);
		CHECK_STR(r.launcher, rows[i].launcher);
	}
	/* a rank within its node is the job's on the first node, and where the nodes are alike */
	CHECK_U64(find("LOCAL_RANK=3", "NODE_RANK=0", NULL).rank, 3);
	CHECK_U64(find("LOCAL_RANK=3", "NODE_RANK=2", "LOCAL_WORLD_SIZE=4").rank, 11);
	CHECK_U64(find("LOCAL_RANK=3", "NODE_RANK=2", NULL).rank, RANK_UNKNOWN);
	CHECK_U64(find("LOCAL_RANK=3", NULL, NULL).rank, RANK_UNKNOWN);
	CHECK_U64(find("LOCAL_RANK=4", "NODE_RANK=2", "LOCAL_WORLD_SIZE=4").rank, RANK_UNKNOWN);
	CHECK_U64(find("LOCAL_RANK=1", "NODE_RANK=4294967294", "LOCAL_WORLD_SIZE=9").rank,
		  RANK_UNKNOWN);
}

void test_rank_nonsense(void)
{
	CHECK_U64(find(NULL, NULL, NULL).rank, RANK_UNKNOWN);
	CHECK_U64(find("RANK=", NULL, NULL).rank, RANK_UNKNOWN);
	CHECK_U64(find("RANK=-1", NULL, NULL).rank, RANK_UNKNOWN);
	CHECK_U64(find("RANK=four", "PMI_RANK=2", NULL).rank, 2);
	CHECK_U64(find("RANK=99999999999", NULL, NULL).rank, RANK_UNKNOWN);
	CHECK_U64(find("RANKS=4", "XRANK=5", NULL).rank, RANK_UNKNOWN);
	CHECK_U64(find("RANK=8", "WORLD_SIZE=8", NULL).world_size, 0);
	CHECK_U64(rank_find(NULL).rank, RANK_UNKNOWN);
}

static int wanted(const char *ranks, uint32_t rank)
{
	bool yes;

	return rank_is_wanted(ranks, rank, &yes, NULL) == ST_OK ? yes : -1;
}

void test_rank_wanted(void)
{
	CHECK(wanted("all", 7) == 1);
	CHECK(wanted("all", RANK_UNKNOWN) == 1);
	CHECK(wanted("main", 0) == 1);
	CHECK(wanted("main", 1) == 0);
	CHECK(wanted("main", RANK_UNKNOWN) == 1);
	CHECK(wanted("0,4-7,12", 4) == 1);
	CHECK(wanted("0,4-7,12", 7) == 1);
	CHECK(wanted("0,4-7,12", 12) == 1);
	CHECK(wanted("0,4-7,12", 8) == 0);
	CHECK(wanted("4-7", RANK_UNKNOWN) == 0);
	CHECK(wanted("", 0) == -1);
	CHECK(wanted("7-4", 0) == -1);
	CHECK(wanted("1,", 0) == -1);
	CHECK(wanted("first", 0) == -1);
}

static void run_id_is(char *const *envp, const char *want)
{
	char id[RUN_ID_MAX];

	run_id_find(envp, id);
	CHECK_STR(id, want);
}

#define RUN_ID(want, ...) run_id_is((char *const[]){ __VA_ARGS__, NULL }, want)

void test_run_id(void)
{
	char *const none[] = { NULL };
	char long_id[512] = "TACHO_RUN_ID=";

	run_id_is(none, "");
	RUN_ID("slurm 12.3", "SLURM_JOB_ID=12", "SLURM_STEP_ID=3", "SLURM_RESTART_COUNT=0");
	RUN_ID("slurm 12, restart 1", "SLURM_JOB_ID=12", "SLURM_RESTART_COUNT=1");
	RUN_ID("torchrun abc, restart 4", "TORCHELASTIC_RUN_ID=abc",
	       "TORCHELASTIC_RESTART_COUNT=4");
	RUN_ID("", "TORCHELASTIC_RUN_ID=none", "TORCHELASTIC_RESTART_COUNT=4");
	RUN_ID("t, restart 4", "TORCHELASTIC_RUN_ID=none", "TORCHELASTIC_RESTART_COUNT=4",
	       "TACHO_STARTED=t");
	RUN_ID("t", "TACHO_STARTED=t", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "NODE_RANK=0");
	RUN_ID("", "TACHO_STARTED=t", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2");
	RUN_ID("", "TACHO_STARTED=t", "NODE_RANK=1");
	RUN_ID("lsf 7", "TACHO_STARTED=t", "LSB_JOBID=7", "SLURM_NNODES=2");
	RUN_ID("mine", "TACHO_RUN_ID=mine", "SLURM_JOB_ID=12");
	memset(long_id + 13, 'x', 400);
	char id[RUN_ID_MAX];
	run_id_find((char *const[]){ long_id, NULL }, id);
	CHECK_U64(strlen(id), RUN_ID_MAX - 1);
}
