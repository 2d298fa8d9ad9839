/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/base/option.h"

#include "schemas/base/buf.h"
#include "schemas/base/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HELP_WIDTH = 100, HELP_NAMES = 36, WHERE_MAX = OPTION_NAME + 16 };

static bool same_name(const char *row, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len && row[i]; i++)
		if (row[i] != (name[i] == '_' ? '-' : name[i]))
			return false;
	return i == len && !row[i];
}

/* Returns the place of the value; sets that only option_help() reads may have no struct. */
static void *row_place(const struct option_set *set, const struct option *row)
{
	return set->into ? (char *)set->into + row->at : NULL;
}

/* Returns the first row with this name, or with this letter unless it is 0. */
static const struct option *find_row(const struct option_set *sets, const char *name, size_t len,
				     char letter, void **into)
{
	for (; sets->rows; sets++)
		for (const struct option *row = sets->rows; row->name; row++)
			if (letter ? row->letter == letter : same_name(row->name, name, len)) {
				*into = row_place(sets, row);
				return row;
			}
	return NULL;
}

const struct option *option_find(const struct option_set *sets, const char *name, void **into)
{
	void *place;

	return find_row(sets, name, strlen(name), 0, into ? into : &place);
}

static enum status flag_parse(const char *text, bool *flag, struct error *err)
{
	static const char *const words[] = {
		"", "1", "true", "yes", "on", "0", "false", "no", "off"
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i])) {
			*flag = i < 5;
			return ST_OK;
		}
	return fail(err, ST_USAGE, NOWHERE, "%.60s: must be yes or no", text);
}

static enum status value_parse(const struct option *row, const char *text, void *into,
			       struct error *err)
{
	size_t len = strlen(text);

	switch (row->type) {
	case OPTION_FLAG:
		return flag_parse(text, into, err);
	case OPTION_TEXT:
		*(const char **)into = text;
		return ST_OK;
	case OPTION_COUNT:
		return unit_parse_count(text, len, into, err);
	case OPTION_SIZE:
		return unit_parse_size(text, len, into, err);
	case OPTION_TIME:
		return unit_parse_time(text, len, into, err);
	case OPTION_SHARE:
		return unit_parse_share(text, len, into, err);
	}
	return fail(err, ST_USAGE, NOWHERE, "an option has an unknown type");
}

static void value_clear(const struct option *row, void *into)
{
	if (row->type == OPTION_FLAG)
		*(bool *)into = false;
	else if (row->type == OPTION_TEXT)
		*(const char **)into = NULL;
	else if (row->type == OPTION_SHARE)
		*(double *)into = 0;
	else
		*(uint64_t *)into = 0;
}

/* Parses a value.  `where` is its source (an option or variable) for the error. */
static enum status value_set(const struct option *row, void *into, const char *where,
			     const char *text, struct error *err)
{
	struct error why;
	enum status status = value_parse(row, text, into, &why);

	if (status == ST_OK)
		return ST_OK;
	return fail(err, status, NOWHERE, "%s: %s", where, why.text);
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns how many letters must be added, removed, changed or swapped with their neighbour to make
 * b of a. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][OPTION_NAME], *two = rows[0], *one = rows[1], *now = rows[2], *spare;

	if (a_len >= OPTION_NAME || b_len >= OPTION_NAME)
		return OPTION_NAME;
	for (size_t j = 0; j <= b_len; j++)
		one[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			now[j] = least(least(one[j], now[j - 1]) + 1,
				       one[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], two[j - 2] + 1);
		}
		spare = two;
		two = one;
		one = now;
		now = spare;
	}
	return one[b_len];
}

void similar_try(struct similar *s, const char *word)
{
	unsigned slips = distance(s->name, s->len, word, strlen(word));
	size_t used = strlen(s->words);

	if (used + strlen(word) + 3 <= sizeof(s->words))
		snprintf(s->words + used, sizeof(s->words) - used, "%s%s", used ? ", " : "", word);
	if (slips > 2 || slips * 2 >= s->len || (s->best && slips >= s->slips))
		return;
	s->slips = slips;
	s->best = word;
}

const char *similar_text(const struct similar *s, char out[SIMILAR_TEXT])
{
	if (s->best)
		snprintf(out, SIMILAR_TEXT, "; did you mean %s?", s->best);
	else
		snprintf(out, SIMILAR_TEXT, "%s%s", *s->words ? "; there are " : "", s->words);
	return out;
}

static const char *find_similar(const struct option_set *sets, const char *name, size_t len,
				bool flags_only)
{
	struct similar s = { .name = name, .len = len };

	for (; sets->rows; sets++)
		for (const struct option *row = sets->rows; row->name; row++)
			if (row->help && (!flags_only || row->type == OPTION_FLAG))
				similar_try(&s, row->name);
	return s.best;
}

static enum status fail_unknown(const struct option_set *sets, const char *dashes, const char *name,
				size_t len, struct error *err)
{
	int shown = len < OPTION_NAME ? (int)len : OPTION_NAME;
	const char *similar = find_similar(sets, name, len, false);
	const char *no = "";

	if (!similar && len > 3 && !strncmp(name, "no-", 3)) {
		similar = find_similar(sets, name + 3, len - 3, true);
		no = "no-";
	}
	if (similar)
		return fail(err, ST_USAGE, NOWHERE, "unknown option %s%.*s; did you mean %s%s%s?",
			    dashes, shown, name, dashes, no, similar);
	return fail(err, ST_USAGE, NOWHERE, "unknown option %s%.*s", dashes, shown, name);
}

enum status option_defaults(const struct option_set *sets, struct error *err)
{
	char where[WHERE_MAX];
	const struct option_set *first = sets;
	void *into, *asked;

	for (; sets->rows; sets++)
		for (const struct option *row = sets->rows; row->name; row++) {
			into = row_place(sets, row);
			/* A tool overrides a default by a row of its own before the shared row. */
			if (option_find(first, row->name, &asked) != row && asked == into)
				continue;
			value_clear(row, into);
			snprintf(where, sizeof(where), "default of --%s", row->name);
			if (row->fallback)
				TRY(value_set(row, into, where, row->fallback, err));
		}
	return ST_OK;
}

char *option_variable(const struct option *row, char *out, size_t cap)
{
	char *p = out;

	snprintf(out, cap, "TACHO_%s", row->name);
	for (; cap && *p; p++)
		*p = *p == '-' || *p == '.' ? '_' : (char)toupper((unsigned char)*p);
	return out;
}

static const char *find_variable(char *const *envp, const char *variable)
{
	size_t len = strlen(variable);

	for (; *envp; envp++)
		if (!strncmp(*envp, variable, len) && (*envp)[len] == '=')
			return *envp + len + 1;
	return NULL;
}

enum status option_environment(const struct option_set *sets, char *const *envp, struct error *err)
{
	char variable[WHERE_MAX];
	const char *text;

	for (const struct option_set *set = sets; envp && set->rows; set++)
		for (const struct option *row = set->rows; row->name; row++) {
			option_variable(row, variable, sizeof(variable));
			text = find_variable(envp, variable);
			if (text && *text && option_find(sets, row->name, NULL) == row)
				TRY(value_set(row, row_place(set, row), variable, text, err));
		}
	return ST_OK;
}

enum status option_set_text(const struct option_set *sets, const char *name, const char *value,
			    struct error *err)
{
	void *into;
	const struct option *row = find_row(sets, name, strlen(name), 0, &into);

	if (!row)
		return fail_unknown(sets, "", name, strlen(name), err);
	return value_set(row, into, row->name, value, err);
}

/* A position in argv; `next` is the first argument that was not read yet. */
struct arguments {
	const struct option_set *sets;
	char **argv;
	int argc, next;
};

/* Reads the value of an option from `inside`, the rest of its argument, or if that is NULL from the
 * next argument. */
static enum status take_value(struct arguments *a, const struct option *row, void *into,
			      const char *where, const char *inside, struct error *err)
{
	if (!inside && a->next >= a->argc)
		return fail(err, ST_USAGE, NOWHERE, "%s needs a value%s%s", where,
			    row->arg ? ", " : "", row->arg ? row->arg : "");
	return value_set(row, into, where, inside ? inside : a->argv[a->next++], err);
}

/* Handles --no-NAME if no row has that name. */
static enum status take_negated(struct arguments *a, const char *name, size_t len, bool has_value,
				struct error *err)
{
	void *into;
	const struct option *row = NULL;

	if (len > 3 && !strncmp(name, "no-", 3))
		row = find_row(a->sets, name + 3, len - 3, 0, &into);
	if (!row)
		return fail_unknown(a->sets, "--", name, len, err);
	if (row->type != OPTION_FLAG)
		return fail(err, ST_USAGE, NOWHERE,
			    "--no-%s: --%s takes a value and has no opposite", row->name,
			    row->name);
	if (has_value)
		return fail(err, ST_USAGE, NOWHERE, "--no-%s takes no value", row->name);
	*(bool *)into = false;
	return ST_OK;
}

static enum status take_long(struct arguments *a, const char *name, struct error *err)
{
	const char *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	void *into;
	const struct option *row = find_row(a->sets, name, len, 0, &into);
	char where[WHERE_MAX];

	if (!row)
		return take_negated(a, name, len, value != NULL, err);
	snprintf(where, sizeof(where), "--%s", row->name);
	if (value)
		value++;
	else if (row->type == OPTION_FLAG)
		value = "yes";
	return take_value(a, row, into, where, value, err);
}

/* Handles one argument of letters: flags, the last of which may be an option with its value. */
static enum status take_letters(struct arguments *a, const char *letters, struct error *err)
{
	const struct option *row;
	char where[] = "-x";
	void *into;

	for (; *letters; letters++) {
		row = find_row(a->sets, NULL, 0, *letters, &into);
		if (!row)
			return fail(err, ST_USAGE, NOWHERE, "unknown option -%c", *letters);
		where[1] = *letters;
		if (row->type != OPTION_FLAG)
			return take_value(a, row, into, where, letters[1] ? letters + 1 : NULL,
					  err);
		*(bool *)into = true;
	}
	return ST_OK;
}

static enum status arguments(struct arguments *a, bool until_operand, int *operands,
			     struct error *err)
{
	char *argument;
	int count = 0;

	while (a->next < a->argc) {
		argument = a->argv[a->next];
		if (argument[0] != '-' || !argument[1]) {
			if (until_operand)
				break;
			a->argv[++count] = argument;
			a->next++;
			continue;
		}
		a->next++;
		if (!strcmp(argument, "--"))
			break;
		if (argument[1] == '-')
			TRY(take_long(a, argument + 2, err));
		else
			TRY(take_letters(a, argument + 1, err));
	}
	while (a->next < a->argc)
		a->argv[++count] = a->argv[a->next++];
	if (count + 1 < a->argc)
		a->argv[count + 1] = NULL;
	*operands = count;
	return ST_OK;
}

enum status option_arguments(const struct option_set *sets, int argc, char **argv, int *operands,
			     struct error *err)
{
	struct arguments a = { .sets = sets, .argv = argv, .argc = argc, .next = 1 };

	return arguments(&a, false, operands, err);
}

enum status option_arguments_until_operand(const struct option_set *sets, int argc, char **argv,
					   int *operands, struct error *err)
{
	struct arguments a = { .sets = sets, .argv = argv, .argc = argc, .next = 1 };

	return arguments(&a, true, operands, err);
}

/* Returns the number of characters, not bytes. */
static size_t text_width(const char *text, size_t len)
{
	size_t width = 0;

	while (len--)
		width += (*text++ & 0xc0) != 0x80;
	return width;
}

static bool row_is_yes(const struct option *row)
{
	bool yes = false;

	return row->type == OPTION_FLAG && row->fallback &&
	       flag_parse(row->fallback, &yes, NULL) == ST_OK && yes;
}

/* Writes "  -o, --out FILE" to `out`, which has HELP_WIDTH bytes; returns its width. */
static size_t help_names(const struct option *row, char *out)
{
	char letter[] = "    ";

	if (row->letter)
		memcpy(letter, (char[]){ '-', row->letter, ',' }, 3);
	snprintf(out, HELP_WIDTH, "  %s--%s%s%s%s", letter, row_is_yes(row) ? "[no-]" : "",
		 row->name, row->arg ? " " : "", row->arg ? row->arg : "");
	return text_width(out, strlen(out));
}

static bool row_is_shown(const struct option_set *sets, const struct option *row)
{
	return row->help && option_find(sets, row->name, NULL) == row;
}

/* Returns the width of the left column, including the two spaces after it. */
static size_t help_column(const struct option_set *sets)
{
	char names[HELP_WIDTH];
	size_t column = 0, width;

	for (const struct option_set *set = sets; set->rows; set++)
		for (const struct option *row = set->rows; row->name; row++) {
			width = row_is_shown(sets, row) ? help_names(row, names) + 2 : 0;
			if (width > column && width <= HELP_NAMES)
				column = width;
		}
	return column ? column : HELP_NAMES;
}

/* Appends the words of `text` from the column `at` on, with further lines indented by `column`.
 * Returns the column after the last word. */
static size_t help_words(struct buf *out, const char *text, size_t at, size_t column)
{
	size_t len, width;

	for (; *text; text += len) {
		text += strspn(text, " ");
		len = strcspn(text, " ");
		width = text_width(text, len);
		if (at > column && at + 1 + width > HELP_WIDTH) {
			buf_put_byte(out, '\n');
			buf_fill(out, ' ', column);
			at = column;
		} else if (at > column) {
			buf_put_byte(out, ' ');
			at++;
		}
		buf_put(out, text, len);
		at += width;
	}
	return at;
}

static void help_row(const struct option *row, size_t column, struct buf *out)
{
	char names[HELP_WIDTH], fallback[2 * HELP_WIDTH];
	size_t width = help_names(row, names), at;

	buf_put_text(out, names);
	if (width + 2 > column) {
		buf_put_byte(out, '\n');
		width = 0;
	}
	buf_fill(out, ' ', column - width);
	at = help_words(out, row->help, column, column);
	if (row->fallback && *row->fallback && row->type != OPTION_FLAG) {
		snprintf(fallback, sizeof(fallback), "(default %s)", row->fallback);
		help_words(out, fallback, at, column);
	}
	buf_put_byte(out, '\n');
}

void option_help(const struct option_set *sets, struct buf *out)
{
	size_t column = help_column(sets);

	for (const struct option_set *set = sets; set->rows; set++)
		for (const struct option *row = set->rows; row->name; row++)
			if (row_is_shown(sets, row))
				help_row(row, column, out);
}
