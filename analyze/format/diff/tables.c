/* SPDX-License-Identifier: Apache-2.0 */
/* --diff as csv, with exact values. */
#include "analyze/format/diff/diff.h"

#include "convert/base/csv.h"

#include <math.h>
#include <stdio.h>

static void csv_cell(struct buf *out, const char *text)
{
	if (text)
		csv_put_text(out, text, strlen(text));
	buf_put_byte(out, ',');
}

/* Writes a row for each part and each owner; the owners of a class and phase add up to the part.
 * Then a row for each edit of the replayed median step, and one for the unexplained rest. */
void diff_put_csv(const struct diff *d, struct buf *out)
{
	buf_put_text(out, "what,class,phase,cause,name,a_ns,b_ns,difference_ns\n");
	for (size_t i = 0; i < d->part_count; i++) {
		const struct diff_part *p = &d->parts[i];

		buf_put_text(out, "part,");
		csv_cell(out, p->class);
		csv_cell(out, p->phase);
		csv_cell(out, p->cause);
		buf_putf(out, ",%lld,%lld,%lld\n", (long long)p->ns.a_ns, (long long)p->ns.b_ns,
			 (long long)p->ns.difference_ns);
	}
	for (size_t i = 0; i < d->owner_count; i++) {
		const struct diff_row *o = &d->owners[i];

		buf_put_text(out, "owner,");
		csv_cell(out, o->class);
		csv_cell(out, o->phase);
		buf_put_byte(out, ',');
		csv_cell(out, o->name);
		buf_putf(out, "%lld,%lld,%lld\n", (long long)o->ns.a_ns, (long long)o->ns.b_ns,
			 (long long)o->ns.difference_ns);
	}
	for (size_t i = 0; i < d->edit_count; i++) {
		char name[DIFF_SENTENCE];

		snprintf(name, sizeof(name), "%s of %s", d->edits[i].edit, d->edits[i].of);
		buf_put_text(out, "edit,,,,");
		csv_cell(out, name);
		buf_putf(out, ",,%lld\n", (long long)d->edits[i].ns.difference_ns);
	}
	if (isfinite(d->unexplained_ns))
		buf_putf(out, "unexplained,,,,,,,%lld\n", llround(d->unexplained_ns));
}
