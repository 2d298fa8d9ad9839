/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option.h - options: each row defines an option, a key of the config file and a TACHO_ variable.
 *
 * A tool passes one set for each struct that it fills: its own rows and the shared ones
 * (filter_options, common_options).  Sources apply in this order, and a later one overrides an
 * earlier one: row default, config file (read by the tools and Python only), environment, command
 * line.  The library inside a job reads only the environment; tacho-record sets it from the file
 * and the command line.  A variable is TACHO_ and the name in capitals with underscores for dashes
 * and dots, so a name means the same in every tool (`make check` fails on two rows of one name that
 * name that differ in type).
 *
 * To add an option, add a row: --help, the man page, config.schema.json and the example config are
 * made from the rows.
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

struct buf;

enum option_type {
	OPTION_FLAG,  /* bool; "", 1, true, yes, on / 0, false, no, off */
	OPTION_TEXT,  /* const char *, borrowed from argv, the environment or the config's arena */
	OPTION_COUNT, /* uint64_t */
	OPTION_SIZE,  /* uint64_t, bytes; K M G are powers of 1024 */
	OPTION_TIME,  /* uint64_t, ns; ns us ms s m h */
	OPTION_SHARE, /* double, 0..1; "2%" */
};
struct option {
	const char *name; /* without dashes, at most OPTION_NAME - 1 long; NULL ends a table */
	char letter;      /* 0: none */
	enum option_type type;
	const char *arg;      /* the name of the value in --help; NULL for a flag */
	const char *help;     /* one line, lower case, no full stop; NULL: not in --help */
	size_t at;            /* offsetof() in the set's struct */
	const char *fallback; /* as text, parsed like any other; NULL: zero */
};
struct option_set {
	const struct option *rows;
	void *into;
};
enum { OPTION_NAME = 48 };

/*
 * Sets all options to their defaults.  `sets` ends with {NULL, NULL}; of two rows with one name or
 * letter the first counts.  Names may be written with underscores.  The error names the option and
 * its source ("TACHO_MAX_DISK: 10X: unknown unit 'X', need K M G T").
 */
enum status option_defaults(const struct option_set *sets, struct error *err);
/* Sets options from TACHO_ variables.  An empty variable counts as unset, and variables without a
 * row are ignored. */
enum status option_environment(const struct option_set *sets, char *const *envp, struct error *err);

/*
 * Sets options from a command line: --name VALUE, --name=VALUE, -x VALUE, -xVALUE; flags --name,
 * --no-name, --name=no, -xyz.  "-" is an operand.  Operands are moved to argv[1..*operands], in
 * their order, with NULL after them; all arguments after "--" are operands.
 */
enum status option_arguments(const struct option_set *sets, int argc, char **argv, int *operands,
			     struct error *err);
/* Does the same for a tool that runs a command: the first operand ends the options, as "--"
 * does. */
enum status option_arguments_until_operand(const struct option_set *sets, int argc, char **argv,
					   int *operands, struct error *err);

/* Sets one option from its name and value, for readers of config files. */
enum status option_set_text(const struct option_set *sets, const char *name, const char *value,
			    struct error *err);

/* Finds the word that was probably meant: one with at most two typing errors, which are less than
 * half of its letters.  Initialise only `name` and `len`.  `best` borrows one of the tried words;
 * NULL: none is similar. */
enum { SIMILAR_WORDS = 160, SIMILAR_TEXT = SIMILAR_WORDS + 16 };
struct similar {
	const char *name;
	size_t len;
	const char *best;
	unsigned slips;            /* typing errors in `best` */
	char words[SIMILAR_WORDS]; /* tried words, separated by commas, as far as they fit */
};
void similar_try(struct similar *s, const char *word);
/* Writes "; did you mean kernels?" to `out`, or "; there are ..." if no word is similar; returns
 * `out`. */
const char *similar_text(const struct similar *s, char out[SIMILAR_TEXT]);

/* Returns the row called `name` or NULL.  *into (may be NULL) is set to the place of its value. */
const struct option *option_find(const struct option_set *sets, const char *name, void **into);

/* Writes a name such as "TACHO_MAX_DISK" to `out`, truncated to `cap` bytes with the NUL; returns
 * `out`. */
char *option_variable(const struct option *row, char *out, size_t cap);

/*
 * Appends two columns: names, and help with the default, wrapped so that no line has over 100
 * characters.  A flag whose default is yes is shown as --[no-]name.
 */
void option_help(const struct option_set *sets, struct buf *out);
