/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvtx.h - what the program fake_nvtx and its two shared objects share: how truth is told.
 *
 * Each of the three is linked with NVTX's headers alone, so each has its own copy of NVTX, and the
 * handler is initialised once by each.  Told is one line of JSON per name and kind of call,
 *
 *	{"domain": "NCCL", "kind": "push", "name": "ncclAllReduce", "count": 3, "detail": "..."}
 *
 * kinds: push, start, mark, domain, category, thread, resource, schema, enum, string.
 */
#ifndef TESTS_FAKE_NVTX_H
#define TESTS_FAKE_NVTX_H

/* `domain` NULL: the default one; `detail` or NULL. */
typedef void (*fake_nvtx_tell)(const char *domain, const char *kind, const char *name,
			       unsigned count, const char *detail);

/* Part A: a framework that speaks in the default domain; part B: libraries with their own. */
void fake_nvtx_part_a(fake_nvtx_tell tell, unsigned rounds);
void fake_nvtx_part_b(fake_nvtx_tell tell, unsigned rounds);

#endif
