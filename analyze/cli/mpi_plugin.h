/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_plugin.h - interface of libtacho-mpi.so, the only part that uses MPI. It is built only if
 * mpi.h is found, and loaded only if mpirun started this process, so tacho-analyze itself does not
 * need MPI.
 *
 * Every function returns 0 on success, otherwise MPI failed. All are called on one thread.
 */
#pragma once

#include <stddef.h>

struct mpi_plug {
	int (*open)(int *rank, int *size);
	/* Sends bytes from any process but the first; length 0 reports a failure. */
	int (*give)(const void *bytes, size_t len);
	/* Called in the first process: ask() returns how many bytes process `from` sends, take()
	 * receives them. */
	int (*ask)(int from, size_t *len);
	int (*take)(int from, void *bytes, size_t len);
	int (*close)(void);
};
#define MPI_PLUG_NAME "tacho_mpi_plug_1"
extern const struct mpi_plug tacho_mpi_plug_1;
