/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm/again.h - steps whose numbers come again: a second epoch, a loop that was begun anew.
 *
 * Two marks of one number are two steps.  Where ranks meet by the number of a step, its place among
 * those of this number says which of them.
 */
#ifndef ANALYZE_COMM_AGAIN_H
#define ANALYZE_COMM_AGAIN_H

#include "analyze/sweep/steps.h"

struct again { /* of a step */
	uint32_t nth, times; /* of its number: how many came before, and how many there are */
};
/* One for each row, to be freed; NULL: no number comes twice. */
enum status again_find(const struct step_list *steps, struct again **out, struct error *err);
/* Of row - 1; of row 0, which is none, nothing. */
struct again again_at(const struct again *all, uint32_t row);

#endif
