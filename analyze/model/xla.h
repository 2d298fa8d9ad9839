/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xla.h - what an operation of a compiled program of XLA computes, from the program's HLO that an
 * XSpace holds (DEFINITIONS.md 8).
 */
#pragma once

#include "analyze/model/model.h"
#include "schemas/base/status.h"

struct xla_program;
/* Reads the message HloProto.  The bytes stay with the caller and outlive the program, which
 * xla_free() frees.  What is damaged in it is as if it ended there. */
enum status xla_read(const void *bytes, size_t size, struct xla_program **out, struct error *err);
void xla_free(struct xla_program *p);
/* What the instruction of that name costs; false: there is none, or nothing of it is known. */
bool xla_cost(struct xla_program *p, const char *name, struct model_cost *out);
