/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/base/buf.h"
#include "schemas/base/option.h"

#include <string.h>

struct own {
	const char *out;
	uint64_t steps, memory, wait_ns;
	double share;
	bool quiet, progress;
};
struct shared {
	uint64_t ranks;
	bool strict;
};

static const struct option own_rows[] = {
	{ "out", 'o', OPTION_TEXT, "FILE", "where to write", offsetof(struct own, out), NULL },
	{ "steps", 's', OPTION_COUNT, "N", "how many steps", offsetof(struct own, steps), "10" },
	{ "max-memory", 'm', OPTION_SIZE, "SIZE", "memory to use at most",
	  offsetof(struct own, memory), "256M" },
	{ "wait", 0, OPTION_TIME, "TIME", "how long to wait", offsetof(struct own, wait_ns), NULL },
	{ "share", 0, OPTION_SHARE, "SHARE", "what to accept", offsetof(struct own, share), "2%" },
	{ "quiet", 'q', OPTION_FLAG, NULL, "say nothing", offsetof(struct own, quiet), NULL },
	{ "progress", 'p', OPTION_FLAG, NULL, "show progress", offsetof(struct own, progress),
	  "yes" },
	{ 0 },
};
static const struct option shared_rows[] = {
	{ "ranks", 'r', OPTION_COUNT, "N", "ranks to take", offsetof(struct shared, ranks), NULL },
	{ "strict", 0, OPTION_FLAG, NULL, NULL, offsetof(struct shared, strict), NULL },
	{ "steps", 'x', OPTION_COUNT, "N", "never reached: own_rows has the name",
	  offsetof(struct shared, ranks), NULL },
	{ 0 },
};

/* A fresh pair of structs with defaults, and the last error. */
struct bench {
	struct own own;
	struct shared shared;
	struct option_set sets[3];
	struct error err;
	int operands;
};

static void bench_init(struct bench *b)
{
	memset(b, 0x5a, sizeof(*b)); /* defaults must not rest on zeroed memory */
	b->sets[0] = (struct option_set){ own_rows, &b->own };
	b->sets[1] = (struct option_set){ shared_rows, &b->shared };
	b->sets[2] = (struct option_set){ NULL, NULL };
	b->operands = -1;
	CHECK_OK(option_defaults(b->sets, &b->err), &b->err);
}

#define ARGS(...) ((char *[]){ (char *)"tool", __VA_ARGS__, NULL })

static enum status arguments(struct bench *b, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	bench_init(b);
	return option_arguments(b->sets, argc, argv, &b->operands, &b->err);
}

static void check_refused(const char *text, char **argv)
{
	struct bench b;

	CHECK_U64(arguments(&b, argv), ST_USAGE);
	CHECK_STR(b.err.text, text);
	CHECK_U64(b.err.at, NOWHERE);
}

void test_option_defaults(void)
{
	static const struct option broken[] = {
		{ "depth", 0, OPTION_SIZE, "SIZE", "x", 0, "10X" },
		{ 0 },
	};
	struct option_set sets[] = { { broken, &(uint64_t){ 0 } }, { NULL, NULL } };
	struct bench b;

	bench_init(&b);
	CHECK(b.own.out == NULL);
	CHECK_U64(b.own.steps, 10);
	CHECK_U64(b.own.memory, 256 << 20);
	CHECK_U64(b.own.wait_ns, 0);
	CHECK_F64(b.own.share, 0.02, 0);
	CHECK(!b.own.quiet && b.own.progress && !b.shared.strict);
	CHECK_U64(b.shared.ranks, 0);
	CHECK_U64(option_defaults(sets, &b.err), ST_USAGE);
	CHECK_STR(b.err.text, "default of --depth: 10X: unknown unit 'X': use K M G T");
}

/* As tacho-analyze does with --memory: its own row stands before the shared one, over one place. */
void test_option_default_replaced(void)
{
	static const struct option of_tool[] = {
		{ "depth", 0, OPTION_SIZE, "SIZE", "x", 0, "2K" },
		{ 0 },
	};
	static const struct option of_all[] = {
		{ "depth", 0, OPTION_SIZE, "SIZE", "x", 0, "1K" },
		{ 0 },
	};
	uint64_t depth = 0;
	struct option_set sets[] = { { of_tool, &depth }, { of_all, &depth }, { NULL, NULL } };
	struct error err;

	CHECK_OK(option_defaults(sets, &err), &err);
	CHECK_U64(depth, 2048);
}

void test_option_long(void)
{
	struct bench b;

	CHECK_OK(arguments(&b, ARGS("--out", "a b", "--steps=7", "--max_memory", "1.5K",
				    "--wait=5ms", "--share", "50%", "--quiet", "--no-progress",
				    "--ranks=3", "--strict")),
		 &b.err);
	CHECK_STR(b.own.out, "a b");
	CHECK_U64(b.own.steps, 7);
	CHECK_U64(b.own.memory, 1536);
	CHECK_U64(b.own.wait_ns, 5000000);
	CHECK_F64(b.own.share, 0.5, 0);
	CHECK(b.own.quiet && !b.own.progress && b.shared.strict);
	CHECK_U64(b.shared.ranks, 3);
	CHECK_I64(b.operands, 0);
	CHECK_OK(arguments(&b, ARGS("--out=", "--steps=1", "--steps=2", "--quiet=no",
				    "--progress=FALSE")),
		 &b.err);
	CHECK_STR(b.own.out, "");
	CHECK_U64(b.own.steps, 2); /* the last one wins */
	CHECK(!b.own.quiet && !b.own.progress);
	CHECK_OK(arguments(&b, ARGS("--out", "--steps", "--out=x=y")), &b.err);
	CHECK_STR(b.own.out, "x=y");
	CHECK_U64(b.own.steps, 10); /* the first --out took the word */
}

void test_option_letters(void)
{
	struct bench b;

	CHECK_OK(arguments(&b, ARGS("-o", "f", "-s7", "-qr", "4")), &b.err);
	CHECK_STR(b.own.out, "f");
	CHECK_U64(b.own.steps, 7);
	CHECK(b.own.quiet);
	CHECK_U64(b.shared.ranks, 4);
	CHECK_OK(arguments(&b, ARGS("-pqo-", "-")), &b.err);
	CHECK(b.own.quiet && b.own.progress);
	CHECK_STR(b.own.out, "-");
	CHECK_I64(b.operands, 1);
}

void test_option_operands(void)
{
	char **argv =
		ARGS("in1", "--steps", "3", "-", "-q", "in2", "--", "--not", "-an", "--", "x");
	static const char *const want[] = { "in1", "-", "in2", "--not", "-an", "--", "x" };
	struct bench b;
	size_t i;

	CHECK_OK(arguments(&b, argv), &b.err);
	if (!CHECK_I64(b.operands, 7))
		return;
	for (i = 0; i < 7; i++)
		CHECK_STR(argv[1 + i], want[i]);
	CHECK(argv[8] == NULL);
	CHECK_STR(argv[0], "tool");
	CHECK(b.own.quiet);
	CHECK_U64(b.own.steps, 3);
	CHECK_OK(arguments(&b, ARGS("--")), &b.err);
	CHECK_I64(b.operands, 0);
	bench_init(&b);
	CHECK_OK(option_arguments(b.sets, 0, (char *[]){ NULL }, &b.operands, &b.err), &b.err);
	CHECK_I64(b.operands, 0);
}

static void check_command(char **argv, int argc, int operands, const char *first)
{
	struct bench b;

	bench_init(&b);
	CHECK_OK(option_arguments_until_operand(b.sets, argc, argv, &b.operands, &b.err), &b.err);
	CHECK_U64(b.own.steps, 3);
	CHECK_I64(b.operands, operands);
	CHECK_STR(argv[1], first);
	CHECK(argv[1 + operands] == NULL);
	CHECK(!b.own.quiet); /* -q is the command's */
}

void test_option_until_operand(void)
{
	char **argv = ARGS("--steps=3", "--", "python", "-q", "--", "--steps", "x");

	check_command(argv, 8, 5, "python");
	CHECK_STR(argv[3], "--");
	check_command(ARGS("--steps=3", "python", "-q", "--steps=9"), 5, 3, "python");
	check_command(ARGS("-s", "3", "--", "--odd-name", "-q"), 6, 2, "--odd-name");
	check_command(ARGS("-s3"), 2, 0, NULL);
}

void test_option_unknown(void)
{
	check_refused("unknown option --stpes; did you mean --steps?", ARGS("--stpes", "3"));
	check_refused("unknown option --step; did you mean --steps?", ARGS("--step=3"));
	check_refused("unknown option --max-memroy; did you mean --max-memory?",
		      ARGS("--max-memroy", "1"));
	check_refused("unknown option --otu; did you mean --out?", ARGS("--otu"));
	check_refused("unknown option --no-qiuet; did you mean --no-quiet?", ARGS("--no-qiuet"));
	check_refused("unknown option --frobnicate", ARGS("--frobnicate"));
	check_refused("unknown option --x", ARGS("--x"));
	check_refused("unknown option --at", ARGS("--at"));       /* half of it is another word */
	check_refused("unknown option --stric", ARGS("--stric")); /* a hidden row is not proposed */
	check_refused("unknown option --", ARGS("--=3"));
	check_refused("unknown option -z", ARGS("-z"));
	check_refused("unknown option -5", ARGS("-5"));
	check_refused("unknown option -Q", ARGS("-qQ"));
	check_refused("unknown option --aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		      ARGS("--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

void test_option_wrong_values(void)
{
	check_refused("--steps: ten: not a number", ARGS("--steps", "ten"));
	check_refused("--steps: no value given", ARGS("--steps="));
	check_refused("-s: 1K: not a number: use digits only", ARGS("-qs1K"));
	check_refused("--max-memory: 10X: unknown unit 'X': use K M G T", ARGS("--max_memory=10X"));
	check_refused("--wait: 5: a time needs a unit: ns us ms s m h", ARGS("--wait", "5"));
	check_refused("--share: 300%: over 100 %: use 2% or 0.02", ARGS("--share", "300%"));
	check_refused("--quiet: maybe: must be yes or no", ARGS("--quiet=maybe"));
	check_refused("--steps needs a value, N", ARGS("in", "--steps"));
	check_refused("-o needs a value, FILE", ARGS("-qo"));
	check_refused("--no-steps: --steps takes a value and has no opposite", ARGS("--no-steps"));
	check_refused("--no-quiet takes no value", ARGS("--no-quiet=yes"));
}

void test_option_environment(void)
{
	char **envp = ARGS("TACHO_STEPS=5", "TACHO_MAX_MEMORY=1M", "TACHO_QUIET=1",
			   "TACHO_PROGRESS=", "TACHO_WAIT=", "TACHO_STEPS=6", "TACHO_STEPSX=9",
			   "TACHO_OUT", "TACHO_NOBODY=1", "TACHO_RANKS=8");
	struct bench b;

	bench_init(&b);
	CHECK_OK(option_environment(b.sets, envp, &b.err), &b.err);
	CHECK_U64(b.own.steps, 5); /* the first, as getenv() has it */
	CHECK_U64(b.own.memory, 1 << 20);
	CHECK(b.own.quiet);
	CHECK(b.own.progress); /* empty is unset */
	CHECK_U64(b.own.wait_ns, 0);
	CHECK(b.own.out == NULL);
	CHECK_U64(b.shared.ranks, 8);
	CHECK_OK(option_environment(b.sets, NULL, &b.err), &b.err);
	envp[1] = (char *)"TACHO_MAX_MEMORY=10X";
	CHECK_U64(option_environment(b.sets, envp, &b.err), ST_USAGE);
	CHECK_STR(b.err.text, "TACHO_MAX_MEMORY: 10X: unknown unit 'X': use K M G T");
}

void test_option_set_text(void)
{
	struct bench b;
	void *into;

	bench_init(&b);
	CHECK_OK(option_set_text(b.sets, "max-memory", "2K", &b.err), &b.err);
	CHECK_U64(b.own.memory, 2048);
	CHECK_OK(option_set_text(b.sets, "max_memory", "3K", &b.err), &b.err);
	CHECK_U64(b.own.memory, 3072);
	CHECK_OK(option_set_text(b.sets, "progress", "False", &b.err), &b.err);
	CHECK(!b.own.progress);
	CHECK_U64(option_set_text(b.sets, "steps", "-1", &b.err), ST_USAGE);
	CHECK_STR(b.err.text, "steps: -1: not a number");
	CHECK_U64(option_set_text(b.sets, "rank", "1", &b.err), ST_USAGE);
	CHECK_STR(b.err.text, "unknown option rank; did you mean ranks?");
	CHECK_U64(option_set_text(b.sets, "", "1", &b.err), ST_USAGE);
	CHECK(option_find(b.sets, "ranks", &into) == &shared_rows[0]);
	CHECK(into == &b.shared.ranks);
	CHECK(option_find(b.sets, "steps", NULL) == &own_rows[1]);
	CHECK(option_find(b.sets, "step", NULL) == NULL);
	CHECK(option_find(b.sets, "stepss", NULL) == NULL);
}

void test_option_variable(void)
{
	char out[OPTION_NAME + 8], small[9];

	CHECK_STR(option_variable(&own_rows[2], out, sizeof(out)), "TACHO_MAX_MEMORY");
	CHECK_STR(option_variable(&own_rows[2], small, sizeof(small)), "TACHO_MA");
}

static void help(const struct option *rows, struct buf *out)
{
	struct option_set sets[] = { { rows, NULL }, { NULL, NULL } };

	buf_init(out, 10000);
	option_help(sets, out);
}

void test_option_help(void)
{
	struct bench b;
	struct buf out;

	bench_init(&b);
	buf_init(&out, 10000);
	option_help(b.sets, &out);
	CHECK_STR(buf_text(&out), "  -o, --out FILE         where to write\n"
				  "  -s, --steps N          how many steps (default 10)\n"
				  "  -m, --max-memory SIZE  memory to use at most (default 256M)\n"
				  "      --wait TIME        how long to wait\n"
				  "      --share SHARE      what to accept (default 2%)\n"
				  "  -q, --quiet            say nothing\n"
				  "  -p, --[no-]progress    show progress\n"
				  "  -r, --ranks N          ranks to take\n");
	buf_release(&out);
}

void test_option_help_wraps(void)
{
	static const struct option rows[] = {
		{ "schedule", 'w', OPTION_TEXT, "wait=N,warmup=N,active=N,repeat=N,and-more=N",
		  "too wide for its column, so the help stands below it; and as this help is wide "
		  "too, it goes on in a line of its own",
		  0, "steps:10-20" },
		{ "short", 0, OPTION_TEXT, "X",
		  "123456789 123456789 123456789 123456789 123456789 "
		  "123456789 123456789 1234567 1",
		  0, NULL },
		{ "tight", 0, OPTION_TEXT, "X",
		  "123456789 123456789 123456789 123456789 123456789 "
		  "123456789 123456789 123456 12",
		  0, "x" },
		{ "umlaut", 0, OPTION_TEXT, "\xc3\xbc", "a width is counted in characters", 0,
		  NULL },
		{ 0 },
	};
	struct buf out;
	const char *line, *end;

	help(rows, &out);
	CHECK_STR(buf_text(&out),
		  "  -w, --schedule wait=N,warmup=N,active=N,repeat=N,and-more=N\n"
		  "                  too wide for its column, so the help stands below it; and as "
		  "this help is wide\n"
		  "                  too, it goes on in a line of its own (default steps:10-20)\n"
		  "      --short X   123456789 123456789 123456789 123456789 123456789 123456789 "
		  "123456789 1234567 1\n"
		  "      --tight X   123456789 123456789 123456789 123456789 123456789 123456789 "
		  "123456789 123456 12\n"
		  "                  (default x)\n"
		  "      --umlaut \xc3\xbc  a width is counted in characters\n");
	for (line = buf_text(&out); (end = strchr(line, '\n')); line = end + 1)
		CHECK(end - line <= 100);
	buf_release(&out);
}

void test_option_help_ceiling(void)
{
	struct option_set sets[] = { { own_rows, NULL }, { NULL, NULL } };
	struct buf out;

	buf_init(&out, 30);
	option_help(sets, &out);
	CHECK_U64(buf_status(&out, NULL), ST_CEILING);
	CHECK(out.len <= 30);
	buf_release(&out);
}
