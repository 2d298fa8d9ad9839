/* SPDX-License-Identifier: Apache-2.0 */
/* --diff as Markdown, for a review, and as csv: exact values. */
#include "analyze/diff.h"

#include <string.h>

/* Cells of Markdown: no bar ends one, no line breaks it. */
static void md_cell(struct buf *out, const char *text)
{
	buf_put_text(out, " ");
	for (; text && *text; text++) {
		if (strchr("|\\`*_<>[]", *text))
			buf_put_byte(out, '\\');
		buf_put_byte(out, (uint8_t)((unsigned char)*text < 0x20 ? ' ' : *text));
	}
	buf_put_text(out, " |");
}

static void md_amounts(struct buf *out, const struct diff_amount *ns)
{
	buf_putf(out, " %.3f | %.3f | %+.3f |\n", (double)ns->a_ns / 1e6, (double)ns->b_ns / 1e6,
		 (double)ns->difference_ns / 1e6);
}

static void md_side(struct buf *out, const char *letter, const struct diff_side *s)
{
	buf_putf(out, "| %s |", letter);
	md_cell(out, s->path);
	buf_putf(out, " %llu | %llu | %zu | %.3f |\n", (unsigned long long)s->ranks,
		 (unsigned long long)s->gpus, s->series.count, (double)s->mean_ns / 1e6);
}

enum { MD_OWNERS = 30 };

void diff_put_md(const struct diff *d, struct buf *out)
{
	char sentence[DIFF_SENTENCE];
	size_t i;

	diff_sentence(d, sentence);
	buf_putf(out, "# Diff\n\n**%s**\n\n| | input | ranks | GPUs | steps | mean step ms |\n"
		      "|---|---|---:|---:|---:|---:|\n", sentence);
	md_side(out, "A", &d->a);
	md_side(out, "B", &d->b);
	buf_put_text(out, "\n## Where it went, ms per step and GPU\n\n"
			  "| class | phase or cause | A | B | B - A |\n|---|---|---:|---:|---:|\n");
	for (i = 0; i < d->part_count; i++) {
		const struct diff_part *p = &d->parts[i];

		buf_put_text(out, "|");
		md_cell(out, p->class);
		md_cell(out, p->phase ? p->phase : p->cause);
		md_amounts(out, &p->ns);
	}
	buf_put_text(out, "\n## Kernels and copies, ms per step and GPU\n\n"
			  "| name | phase | A | B | B - A |\n|---|---|---:|---:|---:|\n");
	for (i = 0; i < d->owner_count && i < MD_OWNERS; i++) {
		buf_put_text(out, "|");
		md_cell(out, d->owners[i].name);
		md_cell(out, d->owners[i].phase);
		md_amounts(out, &d->owners[i].ns);
	}
}

static void csv_cell(struct buf *out, const char *text)
{
	buf_put_byte(out, '"');
	for (; text && *text; text++) {
		if (*text == '"')
			buf_put_byte(out, '"');
		buf_put_byte(out, (uint8_t)*text);
	}
	buf_put_text(out, "\",");
}

/* A row a part and a row an owner; those of one class and phase add up to the part's. */
void diff_put_csv(const struct diff *d, struct buf *out)
{
	size_t i;

	buf_put_text(out, "what,class,phase,cause,name,a_ns,b_ns,difference_ns\n");
	for (i = 0; i < d->part_count; i++) {
		const struct diff_part *p = &d->parts[i];

		buf_put_text(out, "part,");
		csv_cell(out, p->class);
		csv_cell(out, p->phase);
		csv_cell(out, p->cause);
		buf_putf(out, ",%lld,%lld,%lld\n", (long long)p->ns.a_ns, (long long)p->ns.b_ns,
			 (long long)p->ns.difference_ns);
	}
	for (i = 0; i < d->owner_count; i++) {
		const struct diff_owner *o = &d->owners[i];

		buf_put_text(out, "owner,");
		csv_cell(out, o->class);
		csv_cell(out, o->phase);
		buf_put_byte(out, ',');
		csv_cell(out, o->name);
		buf_putf(out, "%lld,%lld,%lld\n", (long long)o->ns.a_ns, (long long)o->ns.b_ns,
			 (long long)o->ns.difference_ns);
	}
}
