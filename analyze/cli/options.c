/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/cli/internal.h"

#include "analyze/engine/runs.h"
#include "analyze/report/hta/hta.h"
#include "analyze/report/where/where.h"
#include "analyze/report/report_list.h"

#define AT(member) offsetof(struct analyze_options, member)

const struct option analyze_options[] = {
	{ "report", 'r', OPTION_TEXT, "NAMES", "reports to print, comma separated (see below)",
	  AT(report), "summary" },
	{ "format", 'f', OPTION_TEXT, "NAME", "output format (see below)", AT(format), "text" },
	{ "phases", 0, OPTION_TEXT, "RULES.json",
	  "rules for phases, steps and communication that replace the built-in ones", AT(phases),
	  NULL },
	{ "view", 0, OPTION_TEXT, "NAME", "print phases as another tool does: lightning or metrics",
	  AT(view), NULL },
	{ "peaks", 0, OPTION_TEXT, "FILE",
	  "GPU peaks for the report roofline instead of data sheet values: lines such as 'H100: "
	  "bf16=989 memory=3350'",
	  AT(peaks), NULL },
	{ "capture", 0, OPTION_TEXT, "FOLDER",
	  "traces of CUDA graph captures: the report operators then names the operators of "
	  "replayed work",
	  AT(capture), NULL },
	{ "what-if", 0, OPTION_TEXT, "EDITS",
	  "predict the step time after changes: data=0, launch=graph, host:PHASE=F, "
	  "kernel:GLOB=F, work:KIND=F, place:PATH=F, comm=F, comm=overlap, link=Nx, copy[:GLOB]=F, "
	  "cause:NAME=F, rank:N=median; commas combine edits, semicolons separate alternatives",
	  AT(what_if), NULL },
	RUN_OPTION(AT(run)),
	{ "per-step", 0, OPTION_FLAG, NULL, "also print GPU time by step", AT(per_step), NULL },
	{ "schema", 0, OPTION_FLAG, NULL, "print the JSON Schema of --format json", AT(schema),
	  NULL },
	{ "diff", 0, OPTION_FLAG, NULL, "compare two runs A and B: is B slower, and where",
	  AT(diff), NULL },
	{ "fail-over", 0, OPTION_SHARE, "SHARE",
	  "exit 3 if B's steps are slower by this much and the difference is significant",
	  AT(fail_over), "2%" },
	{ "baseline", 0, OPTION_TEXT, "NAME",
	  "store this run as .tacho-baselines/NAME; with --diff, compare the input with it",
	  AT(baseline), NULL },
	{ "junit", 0, OPTION_TEXT, "FILE", "with --diff: also write the verdict as JUnit XML",
	  AT(junit), NULL },
	{ "annotate", 0, OPTION_FLAG, NULL,
	  "with --diff: also print the verdict as a GitHub annotation", AT(annotate), NULL },
	{ "partial", 0, OPTION_TEXT, "OUT", "write partial results of all reports for --merge",
	  AT(partial), NULL },
	{ "merge", 0, OPTION_FLAG, NULL,
	  "the inputs are files of --partial; report on all of them together", AT(merge), NULL },
	{ "compat", 0, OPTION_TEXT, "NAME",
	  "print figures as another tool defines them: hta, pytorch, or pytorch-ops "
	  "(key_averages() without Python functions)",
	  AT(compat), NULL },
	{ "explain", 0, OPTION_TEXT, "FIGURE",
	  "explain a figure (any name on a page or in JSON) and, with an input, show the events it "
	  "comes from",
	  AT(explain), NULL },
	{ "mcp", 0, OPTION_TEXT, "FOLDER",
	  "run a Model Context Protocol server on standard input and output for the traces in "
	  "FOLDER",
	  AT(mcp), NULL },
	{ .name = NULL },
};

const struct option analyze_memory[] = {
	{ "memory", 0, OPTION_SIZE, "SIZE",
	  "approximate memory limit; the rest goes to unlinked files in $TMPDIR",
	  offsetof(struct common_options, memory_bytes), "256M" },
	{ .name = NULL },
};

/* Returns NULL if there is no such report. */
static const struct report_type *compat_find(const char *name)
{
	static const struct report_type *const all[] = { &report_compat_hta, &report_compat_pytorch,
							 &report_compat_pytorch_ops };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

enum status analyze_options_check(const struct analyze_options *o, struct error *err)
{
	if (o->merge + (o->partial != NULL) + o->diff + (o->explain != NULL) > 1)
		return fail(err, ST_USAGE, NOWHERE,
			    "--partial, --merge, --diff and --explain exclude each other");
	if ((o->junit || o->annotate) && !o->diff)
		return fail(err, ST_USAGE, NOWHERE, "--junit and --annotate need --diff");
	if (o->baseline && (o->merge || o->partial || o->explain || o->compat))
		return fail(err, ST_USAGE, NOWHERE,
			    "--baseline cannot be combined with --partial, --merge, --explain or "
			    "--compat");
	if (o->baseline && (o->baseline[0] == '.' || !o->baseline[0] || strchr(o->baseline, '/')))
		return fail(err, ST_USAGE, NOWHERE, "--baseline %.40s: must be a name, not a path",
			    o->baseline);
	if (o->mcp && (o->merge || o->partial || o->diff || o->explain))
		return fail(
			err, ST_USAGE, NOWHERE,
			"--mcp cannot be combined with --partial, --merge, --diff or --explain");
	if (o->compat && !compat_find(o->compat))
		return fail(err, ST_USAGE, NOWHERE,
			    "--compat %.40s: must be hta, pytorch or pytorch-ops", o->compat);
	if (o->compat && (o->merge || o->partial || o->diff))
		return fail(err, ST_USAGE, NOWHERE,
			    "--compat cannot be combined with --partial, --merge or --diff");
	TRY(runs_option_check(o->run, err));
	if (o->run && (o->merge || o->partial))
		return fail(err, ST_USAGE, NOWHERE,
			    "--run cannot be combined with --partial or --merge");
	if (o->capture && (o->merge || o->partial))
		return fail(err, ST_USAGE, NOWHERE,
			    "--capture cannot be combined with --partial or --merge");
	if (o->view && strcmp(o->view, "lightning") && strcmp(o->view, "metrics"))
		return fail(err, ST_USAGE, NOWHERE, "--view %.40s: must be lightning or metrics",
			    o->view);
	return ST_OK;
}

enum wording options_view(const struct analyze_options *o)
{
	if (!o->view)
		return VIEW_OWN;
	return !strcmp(o->view, "lightning") ? VIEW_LIGHTNING : VIEW_METRICS;
}

void compat_report(const char *name, const struct report_type *out[REPORTS_ASKED + 1])
{
	memset(out, 0, (REPORTS_ASKED + 1) * sizeof(*out));
	out[0] = compat_find(name);
}

const struct report_type *what_if_report(const struct report_type *out[REPORTS_ASKED + 1])
{
	const struct report_type *asked[REPORTS_ASKED + 1] = { NULL };
	bool has_findings = false;
	size_t count = 1;

	/* If only the summary is listed, it is the default. */
	if (out[0] != &report_summary || out[1])
		memcpy(asked, out, sizeof(asked));
	memset(out, 0, (REPORTS_ASKED + 1) * sizeof(*out));
	out[0] = &report_replay;
	for (size_t i = 0; asked[i] && count < REPORTS_ASKED - 1; i++) {
		has_findings |= asked[i] == &report_findings;
		if (asked[i] != &report_replay)
			out[count++] = asked[i];
	}
	out[count] = has_findings ? NULL : &report_findings;
	return out[count];
}

static enum status report_unknown(const char *name, size_t len, struct error *err)
{
	struct similar s = { .name = name, .len = len };
	char meant[SIMILAR_TEXT];

	for (size_t i = 0; report_types[i]; i++)
		similar_try(&s, report_types[i]->name);
	return fail(err, ST_USAGE, NOWHERE, "--report %.*s: no such report%s",
		    len < 40 ? (int)len : 40, name, similar_text(&s, meant));
}

enum status reports_parse(const char *text, const struct report_type *out[REPORTS_ASKED + 1],
			  struct error *err)
{
	size_t count = 0, len;

	memset(out, 0, (REPORTS_ASKED + 1) * sizeof(*out));
	if (!strcmp(text, "all")) {
		for (size_t i = 0; i < REPORTS_ASKED && report_types[i]; i++)
			out[i] = report_types[i];
		return ST_OK;
	}
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		const struct report_type *type = report_find(text, len);
		size_t i = 0;

		if (!type)
			return report_unknown(text, len, err);
		while (i < count && out[i] != type) /* skip duplicates */
			i++;
		if (i == REPORTS_ASKED)
			return fail(err, ST_USAGE, NOWHERE, "--report: too many names");
		out[i] = type;
		count += i == count;
		if (!text[len])
			return ST_OK;
	}
}
