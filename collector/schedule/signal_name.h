/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal_name.h - signals that a user may name for windows and saves inside of the program.
 */
#ifndef COLLECTOR_SCHEDULE_SIGNAL_NAME_H
#define COLLECTOR_SCHEDULE_SIGNAL_NAME_H

#include "schemas/base/status.h"

#include <stddef.h>

/*
 * "USR1", "SIGUSR1" or "10".  ST_USAGE: it is none, or one that cannot be had, since it ends or
 * stops the program whatever it does, or says that the program is at fault.
 */
enum status signal_parse(const char *text, size_t len, int *out, struct error *err);

#endif
