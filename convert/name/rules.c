/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name/rules.h"

#include "schemas/base/vec.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

enum {
	PHASES_OWN = 128,      /* phases of a user; context.h needs the other ids of a byte */
	RULES_MAX = 1024,      /* rules in one table */
	SPELT_OUT_MOST = 4096, /* bytes of one expression; regcomp() needs about 30 MB for them */
};

struct phase_row {
	unsigned phase;
	const char *match;
};

/* These rules are defined in analyze/DEFINITIONS.md 4. */
static const struct phase_row phase_rows[] = {
	{ PHASE_VALIDATION, "^(## )?(valid|eval)" },
	{ PHASE_CHECKPOINT, "^(## )?(save_)?checkpoint" },
	{ PHASE_DATA, "enumerate\\(Data(Loader|Pipe)\\)|data_?load|load_batch|wait_for_batch"
		      "|copy_batch_to_gpu|data_batch_production" },
	/* Megatron's timers and functions of pipelines, and timers of data parallel collectives. */
	{ PHASE_COMMUNICATION, "^(## )?((forward|backward)[-_])+(send|recv)"
			       "|^(send|recv)_(forward|backward)"
			       "|(grads|params)-(all-reduce|reduce-scatter|all-gather)$" },
	{ PHASE_OPTIMIZER, "optimizer|zero_grad" },
	{ PHASE_BACKWARD, "^(## )?backward" },
	{ PHASE_FORWARD, "^(## )?forward"
			 "|(DistributedDataParallel|FullyShardedDataParallel)\\.forward" },
	/* steps of vLLM, SGLang and ATOM */
	{ PHASE_PREFILL, "^execute_[0-9_]*context_[1-9][0-9]*\\([^)]*\\)_generation_0[^0-9]"
			 "|^step\\[EXTEND |^prefill\\[bs=" },
	{ PHASE_DECODE, "^execute_[0-9_]*context_0\\([^)]*\\)_generation_[1-9]"
			"|^step\\[DECODE |^decode\\[bs=" },
	{ PHASE_MIXED, "^execute_[0-9_]*context_[1-9][0-9]*\\([^)]*\\)_generation_[1-9]"
		       "|^step\\[MIXED " },
};

static const struct {
	const char *match;
	bool yields;      /* left out if the user's file has rules for steps */
	unsigned grammar; /* see name_rules_grammar() */
} step_rows[] = {
	{ "^ProfilerStep[[:space:]]*#[[:space:]]*([0-9]+)", false, 0 },
	/* Runs of a JAX program.  In this and all rules below, the group matches no number, so that
	 * steps are counted: those of vLLM, SGLang, ATOM and of diffusion. */
	{ "^XlaModule:[^[:space:]]*(train|step|update)", true, 0 },
	{ "^execute_[0-9_]*context_[0-9]+\\([^)]*(\\))_generation_[0-9]", true, 1 },
	{ "^step\\[([A-Z])[A-Z_]* bs=[0-9]", true, 2 },
	{ "^(prefill|decode)\\[bs=[0-9]", true, 3 },
	{ "^execute_diffusion(_)[0-9]+_", true, 4 },
};

static const char *const phase_words[] = {
#define X(name, word) word,
	PHASE_LIST(X)
#undef X
};

enum { PREFIX_MOST = 32 };

struct rule {
	unsigned phase;         /* the rule's phase; in a rule for steps its grammar */
	char text[PREFIX_MOST]; /* a matching name begins with these letters */
	unsigned prefix;        /* number of these letters; see prefix_length() */
	regex_t match;
};
struct rules { /* one table, whose rows are tried in order */
	struct rule *rows;
	size_t count, cap;
	uint64_t squares; /* sum of the squares of spelt_out() */
};
struct name_rules {
	struct rules phases, steps, communication;
	char *own[PHASES_OWN];
	unsigned own_count;
};

/* The place of a rule in the user's file, for messages. */
struct place {
	const char *table;
	size_t row;
};

/*
 * Returns the number of letters and digits after a ^ that match only themselves.  Nearly all names
 * begin differently, and are rejected without the slow matcher.  The result is 0 if the expression
 * has alternatives.
 */
static unsigned prefix_length(const char *match)
{
	size_t len;

	if (*match != '^' || strchr(match, '|'))
		return 0;
	len = strspn(match + 1, DIGITS LETTERS);
	if (len && strchr("*?+{", match[1 + len]) && match[1 + len])
		len--; /* the last letter may be missing */
	return len < PREFIX_MOST ? (unsigned)len : PREFIX_MOST;
}

static bool rule_match(const struct rule *r, const char *name, size_t count, regmatch_t *groups)
{
	return strncasecmp(name, r->text, r->prefix) == 0 &&
	       regexec(&r->match, name, count, groups, 0) == 0;
}

/*
 * Returns an upper bound of an expression's length with its repetitions written out, as by
 * regcomp(): "(a{1,99}){1,99}" is repeated 9,801 times.  A {m,n} counts by its larger number; a *,
 * + or ? after a group or another repetition doubles.  All factors are multiplied, as if each
 * repetition were inside the next, so the result may be too large, but never too small.
 */
static uint64_t spelt_out(const char *match)
{
	uint64_t size = strlen(match);
	bool is_whole = false; /* a group or a repetition ends here */

	for (const char *p = match; *p && size <= SPELT_OUT_MOST; p++) {
		bool was_whole = is_whole;

		is_whole = *p == ')';
		if (*p == '\\' && p[1]) {
			p++;
		} else if (*p == '[') {
			p += 1 + (p[1] == '^');
			p += strcspn(p + (*p == ']'), "]") + (*p == ']');
			p -= !*p;
		} else if (*p == '*' || *p == '+' || *p == '?') {
			size *= was_whole ? 2 : 1;
			is_whole = true;
		} else if (*p == '{') {
			unsigned long least = strtoul(p + 1, NULL, 10);
			size_t digits = strspn(p + 1, DIGITS);
			unsigned long most =
				p[1 + digits] == ',' ? strtoul(p + 2 + digits, NULL, 10) : 0;
			unsigned long times = least > most ? least : most;

			size *= times < 1 ? 1 : times < SPELT_OUT_MOST ? times : SPELT_OUT_MOST;
			is_whole = true;
		}
	}
	return size;
}

static bool refers_to_group(const char *match)
{
	for (; *match; match++)
		if (*match == '\\' && *++match >= '1' && *match <= '9')
			return true;
		else if (!*match)
			break;
	return false;
}

/*
 * Compiles an expression. regcomp() needs memory in proportion to the square of what it writes out,
 * and matching a back reference to a group can take years, so both are refused.
 */
static enum status compile(struct rules *t, const char *match, regex_t *out, char *why,
			   size_t why_size)
{
	uint64_t size = spelt_out(match);
	const char *refused = NULL;
	int code;

	t->squares += size * size;
	if (t->squares > SPELT_OUT_MOST * SPELT_OUT_MOST)
		refused = "its repetitions make it too large";
	else if (refers_to_group(match))
		refused = "references to a group are not supported";
	if (refused) {
		snprintf(why, why_size, "%s", refused);
		return ST_CEILING;
	}
	code = regcomp(out, match, REG_EXTENDED | REG_ICASE);
	if (code)
		regerror(code, out, why, why_size);
	return code ? ST_FORMAT : ST_OK;
}

static enum status rule_add(struct rules *t, unsigned phase, const char *match, struct place at,
			    struct error *err)
{
	struct rule *r;
	enum status status;
	char why[100];

	if (t->count == RULES_MAX)
		return fail(err, ST_CEILING, NOWHERE, "more than %d rules in \"%s\"", RULES_MAX,
			    at.table);
	TRY(vec_reserve(&t->rows, &t->cap, t->count + 1, err));
	r = &t->rows[t->count];
	status = compile(t, match, &r->match, why, sizeof(why));
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "rule %zu of \"%s\", \"%.60s\": %s", at.row,
			    at.table, match, why);
	r->phase = phase;
	r->prefix = prefix_length(match);
	memcpy(r->text, match + (*match == '^'), r->prefix);
	t->count++;
	return ST_OK;
}

static void rules_release(struct rules *t)
{
	for (size_t i = 0; i < t->count; i++)
		regfree(&t->rows[i].match);
	free(t->rows);
}

static const struct rule *rules_find(const struct rules *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (rule_match(&t->rows[i], name, 0, NULL))
			return &t->rows[i];
	return NULL;
}

static enum status phases_default(struct name_rules *r, struct error *err)
{
	for (size_t i = 0; i < sizeof(phase_rows) / sizeof(phase_rows[0]); i++)
		TRY(rule_add(&r->phases, phase_rows[i].phase, phase_rows[i].match,
			     (struct place){ "phases", i + 1 }, err));
	return ST_OK;
}

/* Returns the phase with this name, or name_rules_phase_count() if there is none. */
static unsigned phase_by_word(const struct name_rules *r, const char *word)
{
	unsigned i = 0, count = name_rules_phase_count(r);

	while (i < count && strcasecmp(name_rules_phase_name(r, i), word) != 0)
		i++;
	return i;
}

/* Adds a row of the user's "phases".  A word that is not a phase yet becomes one. */
static enum status phase_take(struct name_rules *r, const cJSON *row, struct place at,
			      struct error *err)
{
	const char *word = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "phase"));
	const char *match = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "match"));
	unsigned phase;

	if (!word || !match)
		return fail(err, ST_FORMAT, NOWHERE,
			    "rule %zu of \"%s\" needs the strings \"phase\" and \"match\"", at.row,
			    at.table);
	phase = phase_by_word(r, word);
	if (phase == name_rules_phase_count(r)) {
		if (!word[0])
			return fail(err, ST_FORMAT, NOWHERE,
				    "the phase of rule %zu of \"%s\" has no name", at.row,
				    at.table);
		if (r->own_count == PHASES_OWN)
			return fail(err, ST_CEILING, NOWHERE, "more than %d custom phases",
				    PHASES_OWN);
		r->own[r->own_count] = strdup(word);
		if (!r->own[r->own_count])
			return fail_memory(err);
		r->own_count++;
	}
	return rule_add(&r->phases, phase, match, at, err);
}

static enum status table_take(struct name_rules *r, const cJSON *table, struct error *err)
{
	struct place at = { table->string, 0 };
	struct rules *texts = NULL;
	const cJSON *row;

	if (strcmp(at.table, "steps") == 0)
		texts = &r->steps;
	else if (strcmp(at.table, "communication") == 0)
		texts = &r->communication;
	else if (strcmp(at.table, "phases") != 0)
		return fail(err, ST_FORMAT, NOWHERE,
			    "\"%.60s\" is not a list of rules: use phases, steps or communication",
			    at.table);
	if (!cJSON_IsArray(table))
		return fail(err, ST_FORMAT, NOWHERE, "\"%s\" is not a list", at.table);
	cJSON_ArrayForEach(row, table)
	{
		const char *match = cJSON_GetStringValue(row);

		at.row++;
		if (!texts)
			TRY(phase_take(r, row, at, err));
		else if (!match)
			return fail(err, ST_FORMAT, NOWHERE, "rule %zu of \"%s\" is not a string",
				    at.row, at.table);
		else
			TRY(rule_add(texts, 0, match, at, err));
	}
	return ST_OK;
}

static enum status json_take(struct name_rules *r, const cJSON *root, struct error *err)
{
	const cJSON *table;

	if (!cJSON_IsObject(root))
		return fail(err, ST_FORMAT, NOWHERE, "the rules must be a JSON object");
	cJSON_ArrayForEach(table, root) TRY(table_take(r, table, err));
	if (!cJSON_GetObjectItemCaseSensitive(root, "phases"))
		return phases_default(r, err);
	return ST_OK;
}

static enum status rules_load(struct name_rules *r, const char *json, size_t len, struct error *err)
{
	if (json) {
		const char *stop = json;
		cJSON *root = cJSON_ParseWithLengthOpts(json, len, &stop, 0);
		enum status status;

		if (!root)
			return fail(err, ST_FORMAT, stop ? (uint64_t)(stop - json) : NOWHERE,
				    "the rules are not valid JSON");
		status = json_take(r, root, err);
		cJSON_Delete(root);
		TRY(status);
	} else {
		TRY(phases_default(r, err));
	}

	bool has_own = r->steps.count != 0;

	for (size_t i = 0; i < sizeof(step_rows) / sizeof(step_rows[0]); i++)
		if (!has_own || !step_rows[i].yields)
			TRY(rule_add(&r->steps, step_rows[i].grammar, step_rows[i].match,
				     (struct place){ "steps", i + 1 }, err));
	return ST_OK;
}

enum status name_rules_new(struct name_rules **out, const char *json, size_t len, struct error *err)
{
	struct name_rules *r;
	enum status status;

	*out = NULL;
	TRY(vec_new(&r, 1, err));
	status = rules_load(r, json, len, err);
	if (status != ST_OK) {
		name_rules_free(r);
		return status;
	}
	*out = r;
	return ST_OK;
}

void name_rules_free(struct name_rules *r)
{
	if (!r)
		return;
	rules_release(&r->phases);
	rules_release(&r->steps);
	rules_release(&r->communication);
	for (unsigned i = 0; i < r->own_count; i++)
		free(r->own[i]);
	free(r);
}

unsigned name_rules_phase_count(const struct name_rules *r)
{
	return PHASE_KNOWN + r->own_count;
}

const char *name_rules_phase_name(const struct name_rules *r, unsigned phase)
{
	if (phase < PHASE_KNOWN)
		return phase_words[phase];
	return phase - PHASE_KNOWN < r->own_count ? r->own[phase - PHASE_KNOWN] : "";
}

unsigned name_rules_phase(const struct name_rules *r, const char *name)
{
	const struct rule *rule = rules_find(&r->phases, name);

	return rule ? rule->phase : PHASE_NONE;
}

unsigned name_rules_pushed(const struct name_rules *r, const char *name)
{
	unsigned phase = phase_by_word(r, name);

	return phase < name_rules_phase_count(r) ? phase : name_rules_phase(r, name);
}

/* Returns the number that matched the rule's first group; if the rule has none, the last number in
 * the name. */
static uint64_t step_number(const char *name, const regmatch_t *groups)
{
	const char *digits = "", *p = name;
	unsigned long long number;

	if (groups[1].rm_so >= 0)
		digits = name + groups[1].rm_so;
	while (groups[1].rm_so < 0 && *(p += strcspn(p, DIGITS))) {
		digits = p;
		p += strspn(p, DIGITS);
	}
	if (!strspn(digits, DIGITS))
		return UINT64_MAX;
	errno = 0;
	number = strtoull(digits, NULL, 10);
	return errno ? UINT64_MAX : number;
}

bool name_rules_step(const struct name_rules *r, const char *name, uint64_t *number)
{
	regmatch_t groups[2];

	for (size_t i = 0; i < r->steps.count; i++) {
		if (rule_match(&r->steps.rows[i], name, 2, groups)) {
			*number = step_number(name, groups);
			return true;
		}
	}
	return false;
}

unsigned name_rules_grammar(const struct name_rules *r, const char *name)
{
	const struct rule *rule = rules_find(&r->steps, name);

	return rule ? rule->phase : 0;
}

bool name_rules_communicates(const struct name_rules *r, const char *kernel)
{
	return name_communicates(kernel) || rules_find(&r->communication, kernel) != NULL;
}

/* Files in which all functions load input, and names that only such functions have. */
static const char *const data_files[] = {
	"torch/utils/data/",
	"dataloader.py",
	"accelerate/data_loader.py",
	"loops/fetchers.py",
	"timm/data/",
	"ultralytics/data/",
	"megatron/core/datasets/",
	"torchdata/",
	"torchvision/transforms/",
	"torchvision/io/",
	"torchvision/datasets/",
	"torchcodec/",
	"torchaudio/_backend/",
	"webdataset/",
	"nvidia/dali/",
	"ffcv/",
	"litdata/",
	"streaming/base/",
	"datasets/arrow_dataset",
	"datasets/iterable_dataset",
	"tensorflow/python/data/",
	"grain/",
	"decord/",
	"PIL/",
	"cv2/",
	"librosa/",
	"soundfile",
	"albumentations/",
	"transformers/tokenization_",
	"transformers/image_processing_",
	"transformers/feature_extraction_",
};
static const char *const data_functions[] = {
	"preprocess", "pre_process",  "collate",     "load_batch",   "next_batch",   "get_batch",
	"load_data",  "load_image",   "load_video",  "load_audio",   "read_image",   "read_video",
	"read_frame", "decode_image", "decode_jpeg", "decode_video", "decode_audio",
};

static const char *const saving_functions[] = { "save_checkpoint", "save_pretrained", "save_model",
						"save_state" };

/* Names of loops over validation data, such as "run_eval" and "validate_one_epoch". */
static const char *const validating_functions[] = { "validate",   "validation", "evaluate",
						    "evaluation", "eval",       "val" };
static const char *const loop_ends[] = { "", "_epoch", "_one_epoch", "_step", "_loop", "_model" };

/* Returns the function in "path/file.py(12): function" or "$file.py:12 function" (XSpace). */
static const char *function_of(const char *python)
{
	const char *function = *python == '$' ? strrchr(python, ' ') : strstr(python, "): ");

	if (!function)
		return "";
	function += strspn(function, "): ");
	return function + strspn(function, "_");
}

static bool begins_with(const char *text, const char *const *words, size_t count)
{
	while (count && strncmp(text, words[count - 1], strlen(words[count - 1])) != 0)
		count--;
	return count > 0;
}

/* Returns whether `part` is at the begin of a path, or after a slash or "$". */
static bool is_in(const char *python, const char *part)
{
	const char *at = strstr(python, part);

	return at && (at == python || strchr("/$", at[-1]));
}

static bool validates(const char *python, const char *function)
{
	const size_t words = sizeof(validating_functions) / sizeof(validating_functions[0]);
	const size_t ends = sizeof(loop_ends) / sizeof(loop_ends[0]);
	size_t len;

	function += !strncmp(function, "run_", 4) ? 4 : 0;
	for (size_t i = 0; i < words * ends; i++) {
		len = strlen(validating_functions[i / ends]);
		if (!strncmp(function, validating_functions[i / ends], len) &&
		    !strcmp(function + len, loop_ends[i % ends]))
			return !is_in(python, "torch/") && !is_in(python, "sympy/");
	}
	return strstr(python, "loops/evaluation_loop.py") != NULL;
}

unsigned name_function_phase(const char *python)
{
	const char *function = function_of(python);

	if (begins_with(function, saving_functions,
			sizeof(saving_functions) / sizeof(saving_functions[0])) ||
	    strstr(python, "torch/distributed/checkpoint/") ||
	    (strstr(python, "torch/serialization.py") && !strcmp(function, "save")))
		return PHASE_CHECKPOINT;

	for (size_t i = 0; i < sizeof(data_files) / sizeof(data_files[0]); i++)
		if (is_in(python, data_files[i]))
			return PHASE_DATA;
	if (validates(python, function))
		return PHASE_VALIDATION;
	return begins_with(function, data_functions,
			   sizeof(data_functions) / sizeof(data_functions[0]))
		       ? PHASE_DATA
		       : PHASE_NONE;
}

bool name_compiles(const char *name)
{
	static const char *const jax[] = { "backend_compile", "compile_or_get_cached" };
	const char *function = function_of(name);

	return strstr(name, "(dynamo_timed)") || strstr(name, "torch/_dynamo/convert_frame.py") ||
	       (strstr(name, "triton/compiler/compiler.py") && !strcmp(function, "compile")) ||
	       begins_with(function, jax, sizeof(jax) / sizeof(jax[0]));
}

bool name_is_compiled(const char *annotation)
{
	static const char begin[] = "## Call CompiledFxGraph ";

	return !strncmp(annotation, begin, sizeof(begin) - 1);
}

bool name_is_profiler(const char *python)
{
	static const char *const ends[] = { "start_trace", "stop_trace", "prepare_trace" };
	size_t len = strlen(python);

	if (!strstr(python, "profiler"))
		return false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);

		if (len > end && strcmp(python + len - end, ends[i]) == 0 &&
		    strchr(" ._", python[len - end - 1]))
			return true;
	}
	return false;
}

bool name_is_autograd(const char *op)
{
	static const char engine[] = "autograd::engine::";

	return strncmp(op, engine, sizeof(engine) - 1) == 0 || strstr(op, "Backward") != NULL;
}
