/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/rank.h"
#include "tests/unit/unit.h"

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
