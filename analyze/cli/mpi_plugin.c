/* SPDX-License-Identifier: Apache-2.0 */
/* Sends bytes from the processes that mpirun started to the first of them. */
#include "analyze/cli/mpi_plugin.h"

#include <mpi.h>
#include <stdint.h>

enum { TAG_LENGTH = 1, TAG_BYTES, CHUNK_BYTES = 1 << 28 };

static int plug_open(int *rank, int *size)
{
	if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
		return -1;
	return MPI_Comm_rank(MPI_COMM_WORLD, rank) != MPI_SUCCESS ||
	       MPI_Comm_size(MPI_COMM_WORLD, size) != MPI_SUCCESS;
}

static int chunk_of(size_t left)
{
	return left < CHUNK_BYTES ? (int)left : CHUNK_BYTES;
}

static int plug_give(const void *bytes, size_t len)
{
	uint64_t length = len;
	const char *at = bytes;

	if (MPI_Send(&length, 1, MPI_UINT64_T, 0, TAG_LENGTH, MPI_COMM_WORLD) != MPI_SUCCESS)
		return -1;
	for (; len; at += chunk_of(len), len -= (size_t)chunk_of(len))
		if (MPI_Send(at, chunk_of(len), MPI_BYTE, 0, TAG_BYTES, MPI_COMM_WORLD) !=
		    MPI_SUCCESS)
			return -1;
	return 0;
}

static int plug_ask(int from, size_t *len)
{
	uint64_t length = 0;

	if (MPI_Recv(&length, 1, MPI_UINT64_T, from, TAG_LENGTH, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE) != MPI_SUCCESS)
		return -1;
	*len = (size_t)length;
	return 0;
}

static int plug_take(int from, void *bytes, size_t len)
{
	char *at = bytes;

	for (; len; at += chunk_of(len), len -= (size_t)chunk_of(len))
		if (MPI_Recv(at, chunk_of(len), MPI_BYTE, from, TAG_BYTES, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return -1;
	return 0;
}

static int plug_close(void)
{
	return MPI_Finalize() != MPI_SUCCESS;
}

const struct mpi_plug tacho_mpi_plug_1 = {
	.open = plug_open,
	.give = plug_give,
	.ask = plug_ask,
	.take = plug_take,
	.close = plug_close,
};
