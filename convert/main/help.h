/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main/help.h - --help and --version of tacho-convert.  Of the roof.
 */
#ifndef CONVERT_MAIN_HELP_H
#define CONVERT_MAIN_HELP_H

#include "schemas/option.h"

void help_print(const struct option_set *sets);
void help_print_version(void);

#endif
