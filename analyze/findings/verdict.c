/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict: what bounds the run (DEFINITIONS.md 8). */
#include "analyze/findings/internal.h"

#include "analyze/report/shared.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#define VERDICT_COLUMNS(X)                                                                         \
	X(VERDICT_OF, "of", NULL, TEXT, KEY, "always the word run")                                \
	X(VERDICT_BOUND, "bound", "bound by", TEXT, MAX,                                           \
	  "INPUT, HOST, SYNC, COMPILE, COMM, COPY, COMPUTE, UNBALANCED, NO GPU, or NO VERDICT")    \
	X(VERDICT_NS, "ns_per_step", NULL, U64, MAX, "time per step of the family in bound")       \
	X(VERDICT_SHARE, "share", "%", F64, DERIVED, "share of the family in the window",          \
	  .of = "window")                                                                          \
	X(VERDICT_SENTENCE, "sentence", "sentence", TEXT, MAX, "the verdict as a sentence")        \
	X(VERDICT_MORE, "more", NULL, TEXT, MAX, "sentence about the next family; null: none")     \
	X(VERDICT_ALSO, "also", NULL, TEXT, MAX,                                                   \
	  "another family that would save nearly as much; null: none")                             \
	X(VERDICT_HOST, "host_bound", NULL, TEXT, MAX,                                             \
	  "family that bounds a job without a GPU; null: none")
TABLE(verdict, VERDICT_COLUMNS, .nest = NEST_OBJECT, .null_texts = "more also host_bound",
      .is_finished = true);

#define LEAST_SHARE 0.01 /* share of the window below which a saving bounds nothing */
#define MORE_SHARE  0.1  /* share of the window above which a saving gets a second sentence */

#define FAMILY_COLUMNS(X)                                                                          \
	X(FAMILY_WORD, "family", NULL, TEXT, KEY, "family, as in bound of the verdict")            \
	X(FAMILY_MOST, "most_ns", NULL, U64, MAX,                                                  \
	  "time of the family per step; for COMPUTE a third of it")                                \
	X(FAMILY_SAVES, "saves_ns", NULL, U64, MAX, "most_ns, at most what the replay saves")      \
	X(FAMILY_EDITS, "edits", NULL, TEXT, MAX, "edits as in --what-if; empty: not replayed")
TABLE(families, FAMILY_COLUMNS, .by = "saves_ns", .is_finished = true, .is_seldom = true);

static enum status put_families(const struct facts *f, const struct savings *s, struct error *err)
{
	struct table *t = tables_find(f->tables, "families");

	for (int i = 1; i < FAMILY_COUNT; i++) {
		union value key = { .text = family_words[i] }, *row;

		TRY(table_row(t, &key, &row, err));
		row[FAMILY_MOST].u64 = (uint64_t)llround(s->most_ns[i]);
		row[FAMILY_SAVES].u64 = (uint64_t)llround(s->ns[i]);
		row[FAMILY_EDITS].text = table_text(t, family_edits((enum family)i), err);
		if (!row[FAMILY_EDITS].text)
			return ST_CEILING;
	}
	return ST_OK;
}

static enum status put(struct table *t, const char *bound, double ns, double share,
		       const char *sentence, const char *more, const char *also, struct error *err)
{
	union value key = { .text = "run" }, *row;

	TRY(table_row(t, &key, &row, err));
	row[VERDICT_NS].u64 = ns > 0 ? (uint64_t)llround(ns) : 0;
	row[VERDICT_SHARE].f64 = share;
	row[VERDICT_BOUND].text = table_text(t, bound, err);
	row[VERDICT_SENTENCE].text = table_text(t, sentence, err);
	row[VERDICT_MORE].text = more ? table_text(t, more, err) : NULL;
	row[VERDICT_ALSO].text = also ? table_text(t, also, err) : NULL;
	return row[VERDICT_BOUND].text && row[VERDICT_SENTENCE].text ? ST_OK : ST_CEILING;
}

static const char *subject(const struct facts *f, char out[32])
{
	struct table *t = tables_find(f->tables, "gpus");
	uint64_t device = table_at(t, 0)[RANK_KEYS].u64;

	if (f->gpus > 1)
		snprintf(out, 32, "A GPU");
	else if (device && device != NO_U64)
		snprintf(out, 32, "GPU %llu", (unsigned long long)device);
	else
		snprintf(out, 32, "The GPU");
	return out;
}

/* Returns the words for a GPU that lacks work, which depend on the longest cause. */
static const char *host_predicate(const struct facts *f)
{
	static const struct {
		const char *cause, *predicate;
	} others[] = {
		{ "dispatch", "waits %s before launched work begins" },
		{ "graph_internal", "waits %s between the nodes of CUDA graphs" },
		{ "stream_wait", "waits %s for other streams" },
		{ "allocator", "waits %s while its memory is allocated or freed" },
	};
	double host_ns = savings_take(f).most_ns[FAMILY_HOST];

	if (!f->has_launches)
		return "is idle for %s; the file has no launches that explain it";
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (facts_cause(f, others[i].cause) > host_ns / 2)
			return others[i].predicate;
	return "waits %s because launches come too late";
}

/* Writes "5 ms of every 20 ms step". */
static void tell_share(const struct facts *f, double ns, char out[96])
{
	char a[SPAN_TEXT], b[SPAN_TEXT];
	bool is_window = !f->has_steps || ns > f->step_ns;
	double whole_ns = is_window ? f->window_ns : f->step_ns;

	span_beside(a, ns, whole_ns);
	span_beside(b, whole_ns, ns);
	/* without marks, or if there is time between them, refer to the window */
	if (is_window)
		snprintf(out, 96,
			 f->has_steps ? "%s of the window's %s per step" : "%s of the window's %s",
			 a, b);
	else
		snprintf(out, 96, "%s of every %s step", a, b);
}

/* Returns whether shares refer to a counted step, because there are settling steps. */
static bool is_of_steps(const struct facts *f)
{
	return f->settled_steps < f->window_steps;
}

static double shared_ns(const struct facts *f)
{
	return is_of_steps(f) ? f->step_ns : f->window_ns;
}

/* Writes the sentence for a family other than UNBALANCED, without a full stop. */
static void tell(const struct facts *f, enum family family, double ns, char out[FINDING_TEXT])
{
	static const char *const predicates[FAMILY_COUNT] = {
		[FAMILY_INPUT] = "waits %s for the data loader",
		[FAMILY_SYNC] = "waits %s because the host waited for the GPU",
		[FAMILY_COMPILE] =
			"waits %s while code is compiled or loaded, or the driver starts",
		[FAMILY_COMM] = "communicates without overlapping compute for %s",
		[FAMILY_COPY] = "copies without overlapping compute for %s",
	};
	const char *words = family == FAMILY_HOST ? host_predicate(f) : predicates[family];
	char who[32], share[96];

	if (family == FAMILY_INPUT && !facts_has(f, TRAIT_LOADER_ALONE) &&
	    !facts_has(f, TRAIT_LOADER_WORKERS))
		words = "waits %s for its input";
	subject(f, who);
	if (family == FAMILY_COMPUTE) {
		snprintf(out, FINDING_TEXT, "%s computes %.1f %% of %s", who,
			 100 * f->compute_ns / shared_ns(f),
			 is_of_steps(f) ? "a step" : "the window");
		return;
	}
	tell_share(f, ns, share);
	int before = (int)(strstr(words, "%s") - words);
	snprintf(out, FINDING_TEXT, "%s %.*s%s%s", who, before, words, share, words + before + 2);
}

#define UNBALANCED_SHARE 0.05 /* of a step: difference between the ranks' own kernels */

/* Describes a rank that is slower in the same kernels, which even a sample shows. */
static bool tell_spread(const struct facts *f, const struct spread *s, char out[FINDING_TEXT])
{
	struct table *ranks = tables_find(f->tables, "ranks");
	char a[SPAN_TEXT], n[MANY_TEXT];
	size_t i;

	many_text(n, (double)s->names, "kernel");

	if (f->ranks > 2) {
		snprintf(
			out, FINDING_TEXT,
			"Rank %llu computes %s a step longer than the average rank in the same %s.",
			(unsigned long long)s->rank, span_text(a, s->most_ns - s->mean_ns), n);
		return true;
	}
	for (i = 0; i < f->ranks; i++)
		if (table_at(ranks, i)[0].u64 != s->rank)
			break;
	if (i == f->ranks)
		return false;
	snprintf(out, FINDING_TEXT,
		 "Rank %llu computes %s a step longer than rank %llu in the same %s.",
		 (unsigned long long)s->rank, span_text(a, s->most_ns - s->least_ns),
		 (unsigned long long)table_at(ranks, i)[0].u64, n);
	return true;
}

/* Returns whether ranks differ enough for this to be the verdict. */
static bool is_unbalanced(const struct facts *f, double of_ns, double share, struct spread *s)
{
	return facts_spread(f, s) && s->rank != NO_U64 && s->most_ns - s->mean_ns >= share * of_ns;
}

static enum status judge_blind(const struct facts *f, struct table *t, struct error *err)
{
	struct spread s;
	char sentence[FINDING_TEXT];

	if (f->is_sampled && !f->is_damaged &&
	    is_unbalanced(f, f->step_ns, UNBALANCED_SHARE / 2, &s) && tell_spread(f, &s, sentence))
		return put(t, "UNBALANCED", s.most_ns - s.mean_ns, NAN, sentence,
			   "A sample does not show what bounds a step.", NULL, err);
	return put(t, "NO VERDICT", 0, NAN,
		   f->is_sampled ? "The file is a sample: the GPU may be busy where it looks idle."
				 : "The file is damaged: the missing part may change the verdict.",
		   NULL, NULL, err);
}

/* Names the rank that is last in the collectives, or that computes longest in the same kernels. */
static void tell_unbalanced(const struct facts *f, double ns, char out[FINDING_TEXT])
{
	struct waiting w = waiting_of(f->tables);
	struct spread s;

	if (is_unbalanced(f, ns, 0.99, &s) && tell_spread(f, &s, out)) {
		out[strlen(out) - 1] = '\0'; /* the caller adds the full stop */
		return;
	}
	double per_rank = f->ranks ? (double)f->settled_steps / (double)f->ranks : 1;
	double alone_ns = w.saving_ns / per_rank;
	double whole_ns = f->has_steps ? f->step_ns : f->window_ns;
	char made[SPAN_TEXT], all[SPAN_TEXT], saved[SPAN_TEXT], alone[SPAN_TEXT];
	const char *where = f->has_steps ? "a step" : "the window";

	int len = snprintf(
		out, FINDING_TEXT,
		"Ranks wait for rank %llu: of the %s that all ranks together wait in %s, it "
		"causes %s. %s would be up to %s shorter",
		(unsigned long long)(w.culprit ? w.culprit[0].u64 : 0),
		span_text(all, w.wait_ns / per_rank), where,
		span_beside(made, w.made_wait_ns / per_rank, w.wait_ns / per_rank),
		f->has_steps ? "A step" : "The window", span_beside(saved, ns, whole_ns));
	/* the finding about that one rank saves less if other ranks are late too */
	if (alone_ns > 0 && alone_ns < NEAR_SHARE * ns)
		snprintf(out + len, (size_t)(FINDING_TEXT - len),
			 " if no rank were late, and %s if only that rank were as early as the "
			 "next one",
			 span_beside(alone, alone_ns, whole_ns));
}

/* Returns the first letter for use after a colon: "GPU 1" keeps it, "The GPU" does not. */
static int sentence_head(const char *sentence)
{
	return isupper((unsigned char)sentence[1]) ? sentence[0] : sentence[0] | 0x20;
}

static void tell_family(const struct facts *f, const struct savings *s, enum family family,
			char out[FINDING_TEXT])
{
	if (family == FAMILY_UNBALANCED)
		tell_unbalanced(f, s->most_ns[family], out);
	else
		tell(f, family, s->most_ns[family], out);
}

/* Writes NO VERDICT, because more time has no known cause than the best change saves. A second
 * sentence names the family that has most of the rest. */
static enum status put_unexplained(const struct facts *f, const struct savings *s, struct table *t,
				   struct error *err)
{
	const struct {
		const char *cause, *words;
	} reasons[] = {
		{ "unrecorded", "while unrecorded work may run" },
		{ "lost", "while records are missing" },
		{ "before_window", f->has_launches
					   ? "before work whose launch is not in the file"
					   : "because no launch can be matched with its work" },
		{ "profiler", "while the profiler itself took time" },
		{ "unknown", "for unknown reasons" },
	};
	const char *words = "for unknown reasons";
	char share[96], sentence[FINDING_TEXT], who[32], first[FINDING_TEXT];
	char more[FINDING_TEXT + 64];
	double most = 0;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		double one =
			f->has_steps
				? facts_wait(f, (struct gap_query){ .cause = reasons[i].cause }).ns
				: facts_cause(f, reasons[i].cause);

		words = one > most ? reasons[i].words : words;
		most = fmax(most, one);
	}
	tell_share(f, s->unexplained_ns, share);
	snprintf(sentence, sizeof(sentence),
		 "%s looks idle for %s %s: the file does not show what bounds it.", subject(f, who),
		 share, words);
	tell_family(f, s, s->first, first);
	snprintf(more, sizeof(more), "Of what it shows, %s weighs most: %c%s.",
		 family_words[s->first], sentence_head(first), first + 1);
	return put(t, "NO VERDICT", 0, NAN, sentence,
		   s->most_ns[s->first] >= MORE_SHARE * shared_ns(f) ? more : NULL, NULL, err);
}

/* Writes NO VERDICT if the window is nearly all start and end of a program. */
static enum status put_start(const struct facts *f, const struct savings *s, struct table *t,
			     struct error *err)
{
	char sentence[FINDING_TEXT], more[FINDING_TEXT + 64], first[FINDING_TEXT], who[32];
	char busy[SPAN_TEXT], all[SPAN_TEXT], lead[SPAN_TEXT];

	snprintf(sentence, sizeof(sentence),
		 "%s works for %s of the window's %s, and begins after %s: record steps in which "
		 "it works.",
		 subject(f, who),
		 span_beside(busy, f->compute_ns + f->exposed_comm_ns + f->exposed_copy_ns,
			     f->window_ns),
		 span_text(all, f->window_ns), span_beside(lead, f->lead_ns, f->window_ns));
	tell_family(f, s, s->first, first);
	snprintf(more, sizeof(more), "Of what it shows, %s weighs most: %c%s.",
		 family_words[s->first], sentence_head(first), first + 1);
	return put(t, "NO VERDICT", 0, NAN, sentence, s->most_ns[s->first] > 0 ? more : NULL, NULL,
		   err);
}

/* Describes inputs that are not timelines: a memory snapshot, or dumps of the Flight Recorder.
 * False: neither. */
static bool tell_other_input(const struct facts *f, char sentence[FINDING_TEXT])
{
	struct table *memory = tables_find(f->tables, "memory"),
		     *owners = tables_find(f->tables, "memory_owners");
	const union value *row = NULL, *one, *most = NULL;
	size_t live = owners ? table_column(owners, "live_bytes") : 0;
	char a[NUMBER_TEXT], b[NUMBER_TEXT];

	if (tables_sum(f->tables, "hang_calls", "seq") &&
	    !table_count(tables_find(f->tables, "hang_open"))) {
		snprintf(sentence, FINDING_TEXT,
			 "These are dumps of PyTorch's Flight Recorder: collectives without the "
			 "GPU's times. --report hang names every process group that hangs.");
		return true;
	}
	if (!tables_sum(f->tables, "snapshot", "segments") || !memory || !owners)
		return false;
	for (size_t i = 0; (one = table_at(memory, i)); i++)
		if (!row || one[table_column(memory, "peak_bytes")].u64 >
				    row[table_column(memory, "peak_bytes")].u64)
			row = one;
	for (size_t i = 0; (one = table_at(owners, i)); i++) {
		bool is_rest = !*one[table_column(owners, "owner")].text;

		if (!is_rest && (!most || one[live].u64 > most[live].u64))
			most = one;
	}
	if (!row || !most)
		return false;
	snprintf(sentence, FINDING_TEXT,
		 "A memory snapshot has no times of the GPU. GPU %llu had %s in use at most. The "
		 "largest part, %s: %.200s. See --report memory,snapshot.",
		 (unsigned long long)row[table_column(memory, "device")].u64,
		 bytes_text(a, (double)row[table_column(memory, "peak_bytes")].u64),
		 bytes_text(b, (double)most[live].u64), most[table_column(owners, "owner")].text);
	return true;
}

/* Describes the longest phase of a job without a GPU if no rule explains it. */
static void tell_longest_phase(const struct facts *f, char sentence[FINDING_TEXT])
{
	struct table *t = tables_find(f->tables, "phases");
	const union value *row, *most = NULL;
	size_t wall = t ? table_column(t, "wall_ns") : 0;
	char a[SPAN_TEXT], b[SPAN_TEXT];

	for (size_t i = 0; (row = table_at(t, i)); i++)
		if (strcmp(row[RANK_KEYS].text, "other") != 0 &&
		    (!most || row[wall].u64 > most[wall].u64))
			most = row;
	if (!f->has_steps || !most) {
		snprintf(sentence, FINDING_TEXT, "Times of the host only, %s.",
			 f->has_steps ? "without phases" : "without steps");
		return;
	}
	double ns = facts_wall(f, most[RANK_KEYS].text);
	snprintf(sentence, FINDING_TEXT, "The longest phase, %.60s, takes %s of every %s step.",
		 most[RANK_KEYS].text, span_beside(a, ns, f->step_ns), span_text(b, f->step_ns));
}

/* Writes the verdict for a run without GPU work. Launches without GPU events show that the GPU was
 * not recorded. The table `trust` counts before filters apply, so what they hide still counts. */
static enum status put_no_gpu(const struct facts *f, struct table *t, struct error *err)
{
	uint64_t launches = tables_sum(f->tables, "trust", "launches");
	char sentence[FINDING_TEXT], count[NUMBER_TEXT];

	if (f->gpus)
		snprintf(sentence, sizeof(sentence),
			 "No GPU event has a duration: host phases only.");
	else if (launches && !tables_sum(f->tables, "trust", "gpu_events"))
		snprintf(sentence, sizeof(sentence),
			 "The file has %s launch%s but no GPU events: the GPU was not recorded.",
			 count_text(count, launches), launches == 1 ? "" : "es");
	else if (tables_sum(f->tables, "trust", "gpu_events"))
		snprintf(sentence, sizeof(sentence),
			 "The filters leave no GPU event: host phases only.");
	else if (tell_other_input(f, sentence))
		return put(t, "NO VERDICT", 0, NAN, sentence, NULL, NULL, err);
	else
		tell_longest_phase(f, sentence);
	/* host collectives are what bounds such a job most often */
	double all = 0, exposed = facts_host_comm(f, &all);
	char more[FINDING_TEXT];
	facts_tell_host_comm(f, more);
	return put(t, "NO GPU", 0, NAN, sentence,
		   f->step_ns > 0 && exposed >= MORE_SHARE * f->step_ns ? more : NULL, NULL, err);
}

enum status verdict_put(struct facts *f, struct error *err)
{
	struct table *t = tables_find(f->tables, "verdict");
	char first[FINDING_TEXT], second[FINDING_TEXT], sentence[2 * FINDING_TEXT + 64];

	if (!f->gpus || f->window_ns <= 0)
		return put_no_gpu(f, t, err);
	if (f->is_sampled || f->is_damaged)
		return judge_blind(f, t, err);
	TRY(savings_replay(f, err));
	struct savings s = savings_take(f);
	TRY(put_families(f, &s, err));
	if (s.unexplained_ns > s.most_ns[s.first])
		return put_unexplained(f, &s, t, err);
	if (s.most_ns[s.first] < LEAST_SHARE * shared_ns(f))
		return put_start(f, &s, t, err);
	f->bound = s.first;
	/* compute is compared by a third, but shown as a whole */
	double seen = s.first == FAMILY_COMPUTE ? f->compute_ns : s.most_ns[s.first];
	bool is_near = s.second && s.second_ns >= NEAR_SHARE * s.ns[s.first];
	bool has_more = !is_near && s.most_ns[s.second] >= MORE_SHARE * shared_ns(f);
	tell_family(f, &s, s.first, first);
	tell_family(f, &s, s.second ? s.second : s.first, second);
	if (is_near)
		snprintf(sentence, sizeof(sentence), "%s. %s weighs nearly as much: %c%s.", first,
			 family_words[s.second], sentence_head(second), second + 1);
	else
		snprintf(sentence, sizeof(sentence), "%s.", first);
	size_t len = strlen(second);
	snprintf(second + len, sizeof(second) - len, ".");
	return put(t, family_words[s.first], seen, 100 * seen / shared_ns(f), sentence,
		   has_more ? second : NULL, is_near ? family_words[s.second] : NULL, err);
}

enum family verdict_of_cpu(const struct found *all, size_t count, enum family but, double *ns)
{
	double sums[FAMILY_COUNT] = { 0 };
	enum family best = FAMILY_NONE;

	for (size_t i = 0; i < count; i++)
		if (all[i].finding.family != FAMILY_NONE && all[i].finding.family != but)
			sums[all[i].finding.family] += all[i].saving_ns;
	for (int i = 0; i < FAMILY_COUNT; i++)
		best = sums[i] > sums[best] ? (enum family)i : best;
	if (ns)
		*ns = sums[best];
	return best;
}

/* Writes "The step thread waits ...; the largest part in train.py:7." without the place's times,
 * which are in the page's unit. */
static void tell_cpu(const struct facts *f, const struct found *all, size_t count,
		     enum family family, char out[2 * FINDING_TEXT])
{
	struct table *t = tables_find(f->tables, "findings");
	size_t at = 0;

	while (at < count && all[at].finding.family != family)
		at++;
	const union value *row = table_at(t, at);
	const char *said = row[table_column(t, "evidence")].text,
		   *where = row[table_column(t, "where")].text;
	const char *rest = strstr(where, " \xc2\xb7 "), *name = strstr(where, " in ");
	char place[FINDING_TEXT] = "";

	if (name)
		snprintf(place, sizeof(place), "%.*s",
			 (int)(rest ? rest - name - 4 : (ptrdiff_t)strlen(name + 4)), name + 4);
	if (strstr(said, place)) /* already in the sentence, or empty */
		place[0] = '\0';
	snprintf(out, 2 * FINDING_TEXT, "%.*s%s%s.", (int)strlen(said) - 1, said,
		 *place ? "; the largest part in " : "", place);
}

enum status verdict_tell_cpu(const struct facts *f, const struct found *all, size_t count,
			     struct error *err)
{
	struct table *t = tables_find(f->tables, "verdict");
	union value *row = table_at(t, 0);
	double first_ns, second_ns;
	enum family first = verdict_of_cpu(all, count, FAMILY_NONE, &first_ns),
		    second = verdict_of_cpu(all, count, first, &second_ns);
	char sentence[5 * FINDING_TEXT], more[2 * FINDING_TEXT];

	/* The host is only half of a job whose GPU was not recorded or is filtered out. Without
	 * steps, operators and calls nothing is known. */
	if (strcmp(row[VERDICT_BOUND].text, "NO GPU") != 0 || first == FAMILY_NONE ||
	    (!f->has_steps && !strcmp(all[0].rule->name, "cpu_loop")) ||
	    tables_sum(f->tables, "trust", "gpu_events") ||
	    tables_sum(f->tables, "trust", "launches"))
		return ST_OK;
	bool is_near = second != FAMILY_NONE && second_ns >= NEAR_SHARE * first_ns;
	tell_cpu(f, all, count, first, sentence);
	row[VERDICT_HOST].text = family_words[first];
	if (is_near) {
		size_t len = strlen(sentence);

		tell_cpu(f, all, count, second, more);
		snprintf(sentence + len, sizeof(sentence) - len, " %s weighs nearly as much: %c%s",
			 family_words[second], sentence_head(more), more + 1);
		row[VERDICT_ALSO].text = family_words[second];
	}
	if (first == FAMILY_COMM || (is_near && second == FAMILY_COMM))
		row[VERDICT_MORE].text = NULL;
	row[VERDICT_SENTENCE].text = table_text(t, sentence, err);
	return row[VERDICT_SENTENCE].text ? ST_OK : ST_CEILING;
}
