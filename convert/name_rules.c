/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name_rules.h"

#include "convert/name_pattern.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

enum {
	PHASES_OWN = 128, /* a user's; ids of annotation rows (step.h) need the rest of a byte */
	RULES_MAX = 1024, /* of one table */
};

struct phase_row {
	unsigned phase;
	const char *match;
};

/* analyze/DEFINITIONS.md 4. */
static const struct phase_row phase_rows[] = {
	{ PHASE_VALIDATION, "^(## )?(valid|eval)" },
	{ PHASE_CHECKPOINT, "^(## )?(save_)?checkpoint" },
	{ PHASE_DATA, "enumerate\\(Data(Loader|Pipe)\\)|data_?load|load_batch|wait_for_batch"
		      "|copy_batch_to_gpu|data_batch_production" },
	{ PHASE_OPTIMIZER, "optimizer|zero_grad" },
	{ PHASE_BACKWARD, "^(## )?backward" },
	{ PHASE_FORWARD, "^(## )?forward"
			 "|(DistributedDataParallel|FullyShardedDataParallel)\\.forward" },
};

static const struct {
	const char *match;
	bool yields; /* to a user's own */
} step_rows[] = {
	{ "^ProfilerStep[[:space:]]*#[[:space:]]*([0-9]+)", false },
	/* runs of a program of JAX; what is in brackets is no number, so they are counted */
	{ "^XlaModule:[^[:space:]]*(train|step|update)", true },
};

/* Substrings, case ignored: analyze/DEFINITIONS.md 2. */
static const char *const communication_parts[] = {
	"nccl", "rccl", "nvshmem", "all_reduce_kernel", "allreduce_kernel",
	"cross_device_reduce", "deep_ep", "deepep",
};

static const char *const phase_words[] = {
#define X(name, word) word,
	PHASE_LIST(X)
#undef X
};

enum { PREFIX_MOST = 32 };

struct rule {
	unsigned phase; /* of phases only */
	unsigned prefix; /* letters with which all begin that match; see prefix_length() */
	char text[PREFIX_MOST];
	regex_t match;
};
struct rules {
	struct rule *rows;
	size_t count;
	struct pattern_size size; /* of all rows */
};
struct name_rules {
	struct rules phases, steps, communication;
	char *own[PHASES_OWN];
	unsigned own_count;
};

/* What is being loaded, for messages. */
struct place {
	const char *table;
	size_t row;
};

/*
 * Letters and digits behind a ^ that stand for themselves: names that begin otherwise, nearly all,
 * are told without the slow matcher.  None where another branch could match.
 */
static unsigned prefix_length(const char *match)
{
	size_t len;

	if (*match != '^' || strchr(match, '|'))
		return 0;
	len = strspn(match + 1, DIGITS LETTERS);
	if (len && strchr("*?+{", match[1 + len]) && match[1 + len])
		len--; /* the last may be missing */
	return len < PREFIX_MOST ? (unsigned)len : PREFIX_MOST;
}

static bool rule_match(const struct rule *r, const char *name, size_t count, regmatch_t *groups)
{
	return strncasecmp(name, r->text, r->prefix) == 0 &&
	       regexec(&r->match, name, count, groups, 0) == 0;
}

static enum status rule_add(struct rules *t, unsigned phase, const char *match, struct place at,
			    struct error *err)
{
	struct rule *rows;
	enum status status;
	char why[100];

	if (t->count == RULES_MAX)
		return fail(err, ST_CEILING, NOWHERE, "more than %d rules in \"%s\"", RULES_MAX,
			    at.table);
	rows = realloc(t->rows, (t->count + 1) * sizeof(*rows));
	if (!rows)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for rules");
	t->rows = rows;
	status = pattern_compile(&rows[t->count].match, match, &t->size, why, sizeof(why));
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "rule %zu of \"%s\", \"%.60s\": %s", at.row,
			    at.table, match, why);
	rows[t->count].phase = phase;
	rows[t->count].prefix = prefix_length(match);
	memcpy(rows[t->count].text, match + (*match == '^'), rows[t->count].prefix);
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

/* The id of a phase by its word, made if it is new. */
static enum status phase_find(struct name_rules *r, const char *word, struct place at,
			      unsigned *phase, struct error *err)
{
	for (unsigned i = 0; i < name_rules_phase_count(r); i++) {
		if (strcasecmp(name_rules_phase_name(r, i), word) == 0) {
			*phase = i;
			return ST_OK;
		}
	}
	if (!word[0])
		return fail(err, ST_FORMAT, NOWHERE, "rule %zu of \"%s\" names no phase", at.row,
			    at.table);
	if (r->own_count == PHASES_OWN)
		return fail(err, ST_CEILING, NOWHERE, "more than %d phases of one's own",
			    PHASES_OWN);
	r->own[r->own_count] = strdup(word);
	if (!r->own[r->own_count])
		return fail(err, ST_MEMORY, NOWHERE, "no memory for rules");
	*phase = PHASE_KNOWN + r->own_count++;
	return ST_OK;
}

static enum status phases_default(struct name_rules *r, struct error *err)
{
	for (size_t i = 0; i < sizeof(phase_rows) / sizeof(phase_rows[0]); i++)
		TRY(rule_add(&r->phases, phase_rows[i].phase, phase_rows[i].match,
			     (struct place){ "phases", i + 1 }, err));
	return ST_OK;
}

static enum status phase_take(struct name_rules *r, const cJSON *row, struct place at,
			      struct error *err)
{
	const char *word = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "phase"));
	const char *match = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "match"));
	unsigned phase = PHASE_NONE;

	if (!word || !match)
		return fail(err, ST_FORMAT, NOWHERE,
			    "rule %zu of \"%s\" needs \"phase\" and \"match\" as texts", at.row,
			    at.table);
	TRY(phase_find(r, word, at, &phase, err));
	return rule_add(&r->phases, phase, match, at, err);
}

static enum status text_take(struct rules *t, const cJSON *row, struct place at,
			     struct error *err)
{
	const char *match = cJSON_GetStringValue(row);

	if (!match)
		return fail(err, ST_FORMAT, NOWHERE, "rule %zu of \"%s\" is not a text", at.row,
			    at.table);
	return rule_add(t, PHASE_NONE, match, at, err);
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
			    "\"%.60s\" is not a table of rules: phases, steps, communication",
			    at.table);
	if (!cJSON_IsArray(table))
		return fail(err, ST_FORMAT, NOWHERE, "\"%s\" is not a list", at.table);
	cJSON_ArrayForEach(row, table) {
		at.row++;
		if (texts)
			TRY(text_take(texts, row, at, err));
		else
			TRY(phase_take(r, row, at, err));
	}
	return ST_OK;
}

static enum status json_take(struct name_rules *r, const cJSON *root, struct error *err)
{
	const cJSON *table;

	if (!cJSON_IsObject(root))
		return fail(err, ST_FORMAT, NOWHERE, "rules are a JSON object");
	cJSON_ArrayForEach(table, root)
		TRY(table_take(r, table, err));
	if (!cJSON_GetObjectItemCaseSensitive(root, "phases"))
		return phases_default(r, err);
	return ST_OK;
}

static enum status json_load(struct name_rules *r, const char *json, size_t len,
			     struct error *err)
{
	const char *stop = json;
	cJSON *root = cJSON_ParseWithLengthOpts(json, len, &stop, 0);
	enum status status;

	if (!root)
		return fail(err, ST_FORMAT, stop ? (uint64_t)(stop - json) : NOWHERE,
			    "rules are not valid JSON");
	status = json_take(r, root, err);
	cJSON_Delete(root);
	return status;
}

static enum status rules_load(struct name_rules *r, const char *json, size_t len,
			      struct error *err)
{
	if (json)
		TRY(json_load(r, json, len, err));
	else
		TRY(phases_default(r, err));
	bool has_own = r->steps.count != 0;

	for (size_t i = 0; i < sizeof(step_rows) / sizeof(step_rows[0]); i++)
		if (!has_own || !step_rows[i].yields)
			TRY(rule_add(&r->steps, PHASE_NONE, step_rows[i].match,
				     (struct place){ "steps", i + 1 }, err));
	return ST_OK;
}

enum status name_rules_new(struct name_rules **out, const char *json, size_t len,
			   struct error *err)
{
	struct name_rules *r = calloc(1, sizeof(*r));
	enum status status;

	*out = NULL;
	if (!r)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for rules");
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
	for (unsigned i = 0; i < name_rules_phase_count(r); i++)
		if (strcasecmp(name_rules_phase_name(r, i), name) == 0)
			return i;
	return name_rules_phase(r, name);
}

/* The number that its rule put in brackets, else the last one in the name. */
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

bool name_rules_communicates(const struct name_rules *r, const char *kernel)
{
	size_t count = sizeof(communication_parts) / sizeof(communication_parts[0]);

	for (size_t i = 0; i < count; i++)
		if (strcasestr(kernel, communication_parts[i]))
			return true;
	return rules_find(&r->communication, kernel) != NULL;
}

bool name_rules_autograd(const struct name_rules *r, const char *op)
{
	static const char engine[] = "autograd::engine::";

	(void)r;
	return strncmp(op, engine, sizeof(engine) - 1) == 0 || strstr(op, "Backward") != NULL;
}
