/* SPDX-License-Identifier: Apache-2.0 */
/* tacho.diff/1: one list of keys defines the JSON and its schema. */
#include "analyze/format/diff/diff.h"

#include "schemas/base/json_text.h"

enum field_type { TEXT, TEXT_HERE, COUNT, NS, REAL, BOOL, VERDICT }; /* HERE: no pointer to it */
struct key {
	const char *name;
	enum field_type type;
	size_t at;
	const char *meaning;
};

#define SIDE(name, type, meaning)                                                                  \
	{                                                                                          \
#name, type, offsetof(struct diff_side, name), meaning                             \
	}
static const struct key side_keys[] = {
	SIDE(path, TEXT, "path of the first input"),
	SIDE(inputs, COUNT, "number of inputs"),
	SIDE(ranks, COUNT, "number of ranks"),
	SIDE(gpus, COUNT, "number of GPUs of all ranks"),
	SIDE(steps, COUNT, "number of complete steps of all ranks"),
	SIDE(mean_ns, NS, "mean wall time of complete steps, rounded"),
	SIDE(window_ns, NS, "windows per step and GPU: the sum of all parts but outside_steps"),
	SIDE(deviation_ns, REAL, "standard deviation of step times; null below two"),
	SIDE(correlation, REAL, "max(0, autocorrelation of step times at lag 1)"),
	SIDE(effective_steps, REAL, "independent steps of equal worth: n (1 - r) / (1 + r)"),
	SIDE(sampled, BOOL, "correlation ids are sparse: parts are not to be trusted"),
	SIDE(damaged, BOOL, "bytes could not be read: parts are not to be trusted"),
	{ .name = NULL },
};
#define AMOUNT(of, name, meaning)                                                                  \
	{                                                                                          \
#name, NS, offsetof(struct of, ns.name), meaning                                   \
	}
#define AMOUNTS(of)                                                                                \
	AMOUNT(of, a_ns, "time in A, rounded: mean per step and GPU; of a step its wall time"),    \
		AMOUNT(of, b_ns, "time in B, like a_ns"), AMOUNT(of, difference_ns, "b_ns - a_ns")
static const struct key part_keys[] = {
	{ "class", TEXT, offsetof(struct diff_part, class),
	  "compute, exposed_comm, exposed_copy, idle, lead, tail; outside_steps: the rest of the "
	  "mean wall time" },
	{ "phase", TEXT, offsetof(struct diff_part, phase), "phase of launch; null: nothing runs" },
	{ "cause", TEXT, offsetof(struct diff_part, cause),
	  "why nothing runs; null: something does" },
	AMOUNTS(diff_part),
	{ .name = NULL },
};
static const struct key owner_keys[] = {
	{ "class", TEXT, offsetof(struct diff_row, class), "class, as in parts" },
	{ "phase", TEXT, offsetof(struct diff_row, phase), "phase of the launch" },
	{ "name", TEXT, offsetof(struct diff_row, name), "kernel or copy that owns the time" },
	AMOUNTS(diff_row),
	{ .name = NULL },
};
static const struct key place_keys[] = {
	{ "cause", TEXT, offsetof(struct diff_row, cause),
	  "why nothing runs; in `model` also what work does" },
	{ "range", TEXT, offsetof(struct diff_row, range),
	  "operator or annotation around the cause; in `model` the place" },
	{ "python", TEXT, offsetof(struct diff_row, python), "Python function around the cause" },
	{ "call", TEXT, offsetof(struct diff_row, call), "call that is the cause" },
	AMOUNTS(diff_row),
	{ .name = NULL },
};
static const struct key step_keys[] = {
	{ "step", COUNT, offsetof(struct diff_step, number), "step that both sides counted" },
	{ "is_apart", BOOL, offsetof(struct diff_step, is_apart),
	  "its change differs from the median change by over fail_over and 3 x the usual" },
	AMOUNTS(diff_step),
	{ .name = NULL },
};
static const struct key edit_keys[] = {
	{ "edit", TEXT, offsetof(struct diff_edit, edit),
	  "edit as in --what-if, for what the other side has less of" },
	{ "of", TEXT, offsetof(struct diff_edit, of), "side that was replayed with it: A or B" },
	{ "place", TEXT, offsetof(struct diff_edit, place),
	  "place in the model with at least half of the change; null: none" },
	AMOUNT(diff_edit, difference_ns, "part of the difference, after this side's earlier edits"),
	{ .name = NULL },
};
static const struct key unlike_keys[] = {
	{ "what", TEXT, offsetof(struct diff_unlike, what),
	  "setting: GPUs, command, recorder, or what was recorded" },
	{ "a", TEXT_HERE, offsetof(struct diff_unlike, a), "value in A" },
	{ "b", TEXT_HERE, offsetof(struct diff_unlike, b), "value in B" },
	{ .name = NULL },
};
#define TOP(name, type, member, meaning)                                                           \
	{                                                                                          \
		name, type, offsetof(struct diff, member), meaning                                 \
	}
static const struct key top_keys[] = {
	TOP("verdict", VERDICT, estimate.verdict,
	    "slower (exit 3), slower_below_fail_over, no_difference, faster, cannot_tell"),
	TOP("fail_over", REAL, fail_over, "limit as a share of A's mean step time, as given"),
	TOP("difference_ns", REAL, estimate.difference, "mean step time of B - that of A"),
	TOP("interval_ns", REAL, estimate.half,
	    "half of the 95 % interval of the difference; null: too few steps"),
	TOP("is_paired", BOOL, estimate.is_paired,
	    "the means cannot tell, but the differences of equal steps can (99 %)"),
	TOP("replayed_difference_ns", REAL, replayed_ns,
	    "median step of B - median step of A, to the end of GPU work; null: not replayed"),
	TOP("unexplained_ns", REAL, unexplained_ns, "part of replayed_difference_ns, in no edit"),
	TOP("needed_steps", REAL, estimate.needed,
	    "cannot_tell: about how many steps each side needs; 0: unknown"),
	{ .name = NULL },
};

static void put_value(struct buf *out, const struct key *k, const void *of)
{
	const void *at = (const char *)of + k->at;
	const char *text;

	switch (k->type) {
	case TEXT:
		text = *(const char *const *)at;
		if (text)
			json_put_word(out, text);
		else
			buf_put_text(out, "null");
		return;
	case TEXT_HERE:
		json_put_word(out, at);
		return;
	case COUNT:
		buf_put_u64_text(out, *(const uint64_t *)at);
		return;
	case NS:
		buf_put_i64_text(out, *(const int64_t *)at);
		return;
	case REAL:
		put_json_number(out, *(const double *)at);
		return;
	case BOOL:
		buf_put_text(out, *(const bool *)at ? "true" : "false");
		return;
	case VERDICT:
		json_put_word(out, diff_verdict_word(*(const enum diff_verdict *)at));
		return;
	}
}

static void put_keys(struct buf *out, const struct key *keys, const void *of)
{
	for (size_t i = 0; keys[i].name; i++) {
		buf_putf(out, "%s\"%s\": ", i ? ", " : "", keys[i].name);
		put_value(out, &keys[i], of);
	}
}

static void put_rows(struct buf *out, const char *name, const struct key *keys, const void *rows,
		     size_t count, size_t size)
{
	buf_putf(out, ",\n \"%s\": [", name);
	for (size_t i = 0; i < count; i++) {
		buf_put_text(out, i ? ",\n  {" : "\n  {");
		put_keys(out, keys, (const char *)rows + i * size);
		buf_put_byte(out, '}');
	}
	buf_put_byte(out, ']');
}

void diff_put_json(const struct diff *d, struct buf *out)
{
	char sentence[DIFF_SENTENCE];

	diff_sentence(d, sentence);
	buf_put_text(out, "{\"schema\": \"tacho.diff/1\",\n \"sentence\": ");
	json_put_word(out, sentence);
	diff_reason(d, sentence);
	buf_put_text(out, ", \"reason\": ");
	json_put_word(out, sentence);
	buf_put_text(out, ",\n ");
	put_keys(out, top_keys, d);
	put_rows(out, "unlike", unlike_keys, d->unlikes, d->unlike_count, sizeof(*d->unlikes));
	buf_put_text(out, ",\n \"a\": {");
	put_keys(out, side_keys, &d->a);
	buf_put_text(out, "},\n \"b\": {");
	put_keys(out, side_keys, &d->b);
	buf_put_byte(out, '}');
	put_rows(out, "parts", part_keys, d->parts, d->part_count, sizeof(*d->parts));
	put_rows(out, "owners", owner_keys, d->owners, d->owner_count, sizeof(*d->owners));
	put_rows(out, "places", place_keys, d->places, d->place_count, sizeof(*d->places));
	put_rows(out, "model", place_keys, d->model, d->model_count, sizeof(*d->model));
	put_rows(out, "steps", step_keys, d->steps, d->step_count, sizeof(*d->steps));
	put_rows(out, "edits", edit_keys, d->edits, d->edit_count, sizeof(*d->edits));
	buf_put_text(out, "}\n");
}

/* ---- schema ----------------------------------------------------------------------------- */

static const char *type_word(enum field_type type)
{
	static const char *const words[] = {
		[TEXT] = "[\"string\", \"null\"]",
		[TEXT_HERE] = "[\"string\", \"null\"]",
		[COUNT] = "\"integer\", \"minimum\": 0",
		[NS] = "\"integer\"",
		[REAL] = "[\"number\", \"null\"]",
		[BOOL] = "\"boolean\"",
		[VERDICT] = "\"string\"",
	};

	return words[type];
}

static void put_properties(struct buf *out, const struct key *keys, const char *first)
{
	buf_putf(out, "\"required\": [%s", first);
	for (size_t i = 0; keys[i].name; i++)
		buf_putf(out, "%s\"%s\"", i || first[0] ? ", " : "", keys[i].name);
	buf_put_text(out, "],\n   \"properties\": {");
	for (size_t i = 0; keys[i].name; i++) {
		buf_putf(out, "%s\n    \"%s\": {\"type\": %s, \"description\": ", i ? "," : "",
			 keys[i].name, type_word(keys[i].type));
		json_put_word(out, keys[i].meaning);
		buf_put_byte(out, '}');
	}
}

void diff_put_schema(struct buf *out)
{
	const struct {
		const char *name;
		const struct key *keys;
	} objects[] = { { "side", side_keys },    { "part", part_keys }, { "owner", owner_keys },
			{ "place", place_keys },  { "step", step_keys }, { "edit", edit_keys },
			{ "unlike", unlike_keys } };

	buf_put_text(out, "{\n \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
			  " \"$id\": \"tacho.diff/1\",\n"
			  " \"title\": \"Comparison of tacho-analyze --diff --format json\",\n"
			  " \"description\": \"a_ns of parts add up to mean_ns of a, b_ns to that "
			  "of b, exactly; owners of a class and phase to their part. Printed by "
			  "tacho-analyze --diff --schema.\",\n \"$defs\": {\n");
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		buf_putf(out, "%s  \"%s\": {\n   \"type\": \"object\",\n   ", i ? ",\n" : "",
			 objects[i].name);
		put_properties(out, objects[i].keys, "");
		buf_put_text(out, "\n   }\n  }");
	}
	buf_put_text(out, "\n },\n \"type\": \"object\",\n ");
	put_properties(out, top_keys,
		       "\"schema\", \"sentence\", \"reason\", \"unlike\", \"a\", \"b\", \"parts\", "
		       "\"owners\", \"places\", \"model\", \"steps\", \"edits\"");
	buf_put_text(
		out,
		",\n    \"schema\": {\"const\": \"tacho.diff/1\"},\n"
		"    \"sentence\": {\"type\": \"string\"},\n"
		"    \"reason\": {\"type\": \"string\"},\n"
		"    \"unlike\": {\"type\": \"array\", \"items\": {\"$ref\": "
		"\"#/$defs/unlike\"}},\n"
		"    \"places\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/place\"}},\n"
		"    \"model\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/place\"}},\n"
		"    \"edits\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/edit\"}},\n"
		"    \"steps\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/step\"}},\n"
		"    \"a\": {\"$ref\": \"#/$defs/side\"},\n"
		"    \"b\": {\"$ref\": \"#/$defs/side\"},\n"
		"    \"parts\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/part\"}},\n"
		"    \"owners\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/owner\"}}\n "
		"  }\n}\n");
}
