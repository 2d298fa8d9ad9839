/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.h - one switch that turns all fast paths off.
 *
 * A fast path is in a file NAME_fast.c beside NAME.c, whose plain code gives the same result.  It
 * has one entry point, and its caller checks `plain_ways` first.  A tool sets the switch once, at
 * the beginning of main(), if TACHO_PLAIN=1 is in the environment; tests set it to compare both.
 * It must not change while a source or a sink is open.
 */
#pragma once

#include <stdbool.h>

extern bool plain_ways;

/* `value` is that of TACHO_PLAIN, or NULL if it is not set; "1" turns fast paths off. */
void plain_set(const char *value);
