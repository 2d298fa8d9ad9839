/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeat.h - steps whose numbers come again: a second epoch, a loop that was begun anew.
 *
 * Two marks of one number are two steps.  Where ranks meet by the number of a step, its place among
 * those of this number says which of them.
 */
#ifndef ANALYZE_REPORT_COMM_REPEAT_H
#define ANALYZE_REPORT_COMM_REPEAT_H

#include "convert/stage/step_list.h"

struct step_repeat {         /* of a step */
	uint32_t nth, times; /* of its number: how many came before, and how many there are */
};
/* One for each row, to be freed; NULL: no number comes twice. */
enum status step_repeats_find(const struct step_list *steps, struct step_repeat **out,
			      struct error *err);
/* Of row - 1; of row 0, which is none, nothing. */
struct step_repeat step_repeat_at(const struct step_repeat *all, uint32_t row);

#endif
