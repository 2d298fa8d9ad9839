/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.h - one switch that turns all fast paths off.
 *
 * A fast path stands in a file NAME_fast.c beside NAME.c, which has plain code that does the same
 * with the same result.  It has one entry point, and its caller asks `plain_ways` before it.  A
 * tool sets the switch once, at the beginning of main(), where TACHO_PLAIN=1 is in the environment;
 * tests set it to compare both.  It must not change while a source or a sink is open.
 */
#pragma once

#include <stdbool.h>

extern bool plain_ways;

/* The value of TACHO_PLAIN, NULL where it is not set: "1" means yes. */
void plain_set(const char *value);
