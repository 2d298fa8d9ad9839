/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/account.h"

void account_add(struct account *a, struct trace *t)
{
	a->events_in += trace_provenance(t)->events;
	a->lost_all += trace_lost_total(t, 0);
	for (unsigned why = 0; why < LOSS_END; why++)
		a->lost[why] += trace_lost(t, 0, (enum loss)why);
}

static void put_reason(struct buf *out, size_t from, uint64_t count, const char *why)
{
	if (!count)
		return;
	buf_put_text(out, out->len == from ? " (" : ", ");
	buf_put_u64_text(out, count);
	buf_put_byte(out, ' ');
	buf_put_text(out, why);
}

void account_put(const struct account *a, const char *output, struct buf *out)
{
	size_t from;

	buf_putf(out, "%llu events in, %llu out", (unsigned long long)a->events_in,
		 (unsigned long long)a->events_out);
	from = out->len;
	for (unsigned why = 0; why < LOSS_END; why++)
		put_reason(out, from, a->lost[why],
			   why ? loss_text((enum loss)why) : "that only a newer Tacho knows");
	put_reason(out, from, a->unknown_kind, "of a kind that only a newer Tacho knows");
	put_reason(out, from, a->left_out, "with no place in ");
	if (a->left_out)
		buf_put_text(out, output);
	if (out->len > from)
		buf_put_byte(out, ')');
}
