/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xla.h - what an operation of a compiled XLA program computes, from the HLO in an XSpace
 * (DEFINITIONS.md 8).
 */
#pragma once

#include "analyze/model/model.h"
#include "schemas/base/status.h"

struct xla_program;
/* Reads the message HloProto. The bytes are borrowed and must outlive the program, which the caller
 * frees with xla_free(). A damaged message is read up to the damage. */
enum status xla_read(const void *bytes, size_t size, struct xla_program **out, struct error *err);
void xla_free(struct xla_program *p);
/* Computes the cost of an instruction by its name; false: there is none, or its cost is unknown. */
bool xla_cost(struct xla_program *p, const char *name, struct model_cost *out);
