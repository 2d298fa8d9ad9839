/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that every rank calls equally often, and the rank on which they take longer
 * (DEFINITIONS.md 7). */
#include "analyze/findings/rule.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

struct of_rank {
	const char *name, *brief;
	size_t rank; /* index of the row in `ranks` */
	double calls, ns;
};

static bool same_rank(const union value *a, const union value *b)
{
	return a[0].u64 == b[0].u64 && a[1].text == b[1].text && a[2].u64 == b[2].u64;
}

/* Lists the kernels of all ranks. Both tables are sorted by rank. */
static size_t take(const struct facts *f, struct table *kernels, struct of_rank *all)
{
	struct table *ranks = tables_find(f->tables, "ranks");
	size_t steps = table_column(ranks, "window_steps"), rank = 0, count = 0;
	size_t name = table_column(kernels, "name"), class = table_column(kernels, "class");
	size_t brief = table_column(kernels, "short");
	size_t calls = table_column(kernels, "count"), ns = table_column(kernels, "total_ns");
	const union value *row;

	for (size_t i = 0; (row = table_at(kernels, i)); i++) {
		while (rank < f->ranks && !same_rank(table_at(ranks, rank), row))
			rank++;
		const union value *of = table_at(ranks, rank);
		if (!of || !row[name].text || (row[class].text && !strcmp(row[class].text, "comm")))
			continue;
		all[count] = (struct of_rank){ .name = row[name].text, .rank = rank };
		all[count].brief = row[brief].text ? row[brief].text : row[name].text;
		all[count].calls =
			(double)row[calls].u64 / (double)(of[steps].u64 ? of[steps].u64 : 1);
		all[count++].ns = (double)row[ns].u64 / (double)(of[steps].u64 ? of[steps].u64 : 1);
	}
	return count;
}

/* Adds a name to the ranks' sums if every rank calls it equally often. */
static void add_name(const struct of_rank *of, size_t ranks, double *sums, struct spread *out)
{
	double most = 0, sum = 0;

	for (size_t i = 0; i < ranks; i++) {
		if (fabs(of[i].calls - of[0].calls) > 1e-9)
			return;
		sum += of[i].ns;
		most = fmax(most, of[i].ns);
	}
	for (size_t i = 0; i < ranks; i++)
		sums[i] += of[i].ns;
	out->names++;
	if (most - sum / (double)ranks <= out->apart_ns)
		return;
	out->apart_ns = most - sum / (double)ranks;
	out->apart = of[0].brief;
}

bool facts_spread(const struct facts *f, struct spread *out)
{
	struct table *kernels = tables_find(f->tables, "kernels");
	size_t rows = kernels ? table_count(kernels) : 0, end;
	RELEASED_BY(vec_release) struct of_rank *all = calloc(rows + 1, sizeof(*all));
	RELEASED_BY(vec_release) double *sums = calloc(f->ranks + 1, sizeof(*sums));

	*out = (struct spread){ .names = 0 };
	size_t count = all && sums && f->ranks > 1 && rows ? take(f, kernels, all) : 0;
	SORT_BY(all, count, UP(struct of_rank, name), UP(struct of_rank, rank));
	for (size_t first = 0; first < count; first = end) {
		for (end = first + 1; end < count && !strcmp(all[end].name, all[first].name); end++)
			;
		if (end - first == f->ranks)
			add_name(all + first, f->ranks, sums, out);
	}
	if (sums && out->names) {
		struct table *ranks = tables_find(f->tables, "ranks");
		out->least_ns = sums[0];
		for (size_t i = 0; i < f->ranks; i++) {
			out->mean_ns += sums[i] / (double)f->ranks;
			out->least_ns = fmin(out->least_ns, sums[i]);
			if (sums[i] <= out->most_ns)
				continue;
			out->most_ns = sums[i];
			out->rank = table_at(ranks, i)[0].u64;
		}
	}
	return out->names > 0;
}
