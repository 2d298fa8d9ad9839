/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti_say.h - what results and versions of CUPTI mean for people: one sentence, with the remedy.
 * Constant data, any thread.
 */
#ifndef COLLECTOR_CUPTI_SAY_H
#define COLLECTOR_CUPTI_SAY_H

#include "collector/cupti_lib.h"

/* Never NULL; for a result without a sentence its name and number are in `room`. */
const char *cupti_say_result(const struct cupti_lib *lib, int result, char room[160]);
/* Known faults of this version that matter to a recording, from 0; NULL: no more. */
const char *cupti_say_version(uint32_t api_version, unsigned number);
/* cuptiFinalize() is known to work. */
bool cupti_can_finalize(uint32_t api_version);

#endif
