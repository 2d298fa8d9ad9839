/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_plugin.h - what libtacho-mpi.so gives to tacho-analyze: the one file that knows MPI is built
 * only where mpi.h is found, and loaded only when mpirun started us.  So the tool itself needs no
 * MPI and runs everywhere.
 *
 * Every function returns 0, or not when MPI failed.  One thread.
 */
#pragma once

#include <stddef.h>

struct mpi_plug {
	int (*open)(int *rank, int *size);
	/* Of every process but the first: gives it some bytes; 0: nothing, something went wrong. */
	int (*give)(const void *bytes, size_t len);
	/* Of the first: how many process `from` gives, then takes them. */
	int (*ask)(int from, size_t *len);
	int (*take)(int from, void *bytes, size_t len);
	int (*close)(void);
};
#define MPI_PLUG_NAME "tacho_mpi_plug_1"
extern const struct mpi_plug tacho_mpi_plug_1;
