/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "analyze/report/hta/hta.h"

/* Two that overlap, one that begins as another ends, one of no length. */
void test_compat_rates(void)
{
	const struct hta_event events[] = {
		{ .begin_ns = 1000, .end_ns = 3000, .rate = 40 },
		{ .begin_ns = 2000, .end_ns = 5000, .rate = 7 },
		{ .begin_ns = 5000, .end_ns = 6000, .rate = 100 },
		{ .begin_ns = 9000, .end_ns = 9000, .rate = 3 },
	};
	const struct hta_rate want[] = {
		{ 1000, 40 },  { 2000, 47 }, { 3000, 7 }, { 5000, 0 },
		{ 5000, 100 }, { 6000, 0 },  { 9000, 3 }, { 10000, 0 },
	};
	struct hta_rate got[8];
	size_t i;

	if (!CHECK_U64(hta_rates(events, 4, got), 8))
		return;
	for (i = 0; i < 8; i++) {
		CHECK_U64(got[i].at_ns, want[i].at_ns);
		CHECK(got[i].change == want[i].change);
	}
	CHECK_U64(hta_rates(events, 0, got), 0);
}

/* Lengths after each change; what is launched as another begins is there before that goes. */
void test_compat_queue(void)
{
	const struct hta_event events[] = {
		{ .launch_begin_ns = 10, .begin_ns = 30, .has_launch = true },
		{ .launch_begin_ns = 20, .begin_ns = 40, .has_launch = true },
		{ .launch_begin_ns = 40, .begin_ns = 50, .has_launch = true },
		{ .begin_ns = 60 },
	};
	const uint64_t want[] = { 1, 2, 1, 2, 1, 0 };
	struct hta_edge edges[8];
	uint64_t lengths[8];
	size_t i;

	if (!CHECK_U64(hta_queue(events, 4, edges, lengths), 6))
		return;
	for (i = 0; i < 6; i++)
		CHECK_U64(lengths[i], want[i]);
}
