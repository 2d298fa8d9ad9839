/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/config.h"
#include "schemas/base/buf.h"
#include "schemas/model/event.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static enum status read_with(struct config *c, const char *a, const char *b, const char *d,
			     struct error *err)
{
	char *envp[] = { "PATH=/bin", (char *)a, (char *)b, (char *)d, NULL };

	return config_read(c, envp, err);
}

void test_config_variables(void)
{
	struct config c;
	struct error err;

	/* nothing said: everything at its default, and off */
	if (!CHECK_OK(read_with(&c, NULL, NULL, NULL, &err), &err))
		return;
	CHECK(!c.enabled && !c.forbidden);
	CHECK_STR(c.window, "all");
	CHECK_U64(c.sample_ns, 100000000);
	CHECK(c.out[0] == '/');
	CHECK_U64(c.kinds_mask, UINT32_MAX);
	config_release(&c);
	/* a window is wish enough */
	if (!CHECK_OK(read_with(&c, "TACHO_WINDOW=steps:10-20", "TACHO_OUT=/x/y", "RANK=2", &err),
		      &err))
		return;
	CHECK(c.enabled);
	CHECK_STR(c.out, "/x/y");
	CHECK_U64(c.window_spec.first_step, 10);
	CHECK_U64(c.window_spec.active, 10);
	CHECK_U64(c.rank.rank, 2);
	config_release(&c);
	if (!CHECK_OK(read_with(&c, "TACHO_WINDOW=all", "TACHO_ENABLED=0", NULL, &err), &err))
		return;
	CHECK(!c.enabled && c.forbidden);
	config_release(&c);
	if (!CHECK_OK(read_with(&c, "TACHO_RANKS=main", "TACHO_ENABLED=1", "RANK=1", &err), &err))
		return;
	CHECK(!c.enabled && c.forbidden);
	config_release(&c);
}

void test_config_wrong_variables(void)
{
	static const char *const wrong[] = {
		"TACHO_WINDOW=steps:9-1", "TACHO_SAMPLE=often", "TACHO_KINDS=kernels",
		"TACHO_MAX_DISK=10X",     "TACHO_RANKS=x",      "TACHO_ENABLED=perhaps",
		"TACHO_MEMORY=1K",
	};
	struct config c;
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(read_with(&c, wrong[i], NULL, NULL, &err) == ST_USAGE);
		CHECK(!c.enabled && c.forbidden);
		CHECK_STR(c.window, "all");
	}
	read_with(&c, "TACHO_WINDOW=steps:9-1", NULL, NULL, &err);
	CHECK_STR(err.text, "--window: steps:9-1: the last step must be after the first");
}

void test_config_texts(void)
{
	uint64_t ns, steps;
	uint32_t mask;

	CHECK(config_parse_sample("50ms,steps=10", &ns, &steps, NULL) == ST_OK);
	CHECK(ns == 50000000 && steps == 10);
	CHECK(config_parse_sample("steps=100", &ns, &steps, NULL) == ST_OK);
	CHECK(ns == 0 && steps == 100);
	CHECK(config_parse_sample("none", &ns, &steps, NULL) == ST_OK);
	CHECK(ns == 0 && steps == 0);
	CHECK(config_parse_sample("", &ns, &steps, NULL) == ST_USAGE);
	CHECK(config_parse_sample("50", &ns, &steps, NULL) == ST_USAGE);
	CHECK(config_parse_kinds("range,step", &mask, NULL) == ST_OK);
	CHECK_U64(mask, 1u << KIND_RANGE | 1u << KIND_STEP);
	CHECK(config_parse_kinds("range,", &mask, NULL) == ST_USAGE);
}

void test_config_devices(void)
{
	struct config c;

	config_parse_devices(&c, NULL);
	CHECK(!c.has_devices);
	config_parse_devices(&c, "");
	CHECK(c.has_devices && c.device_count == 0);
	config_parse_devices(&c, "3,1,GPU-8f1c");
	CHECK_U64(c.device_count, 3);
	CHECK(c.devices[0] == 3 && c.devices[1] == 1 && c.devices[2] == -1);
	CHECK_STR(c.device_uuids[2], "GPU-8f1c");
}

struct seen {
	size_t count;
	char window[64], disk[64], totals[64];
};

static void note(const char *name, const char *value, void *arg)
{
	struct seen *seen = arg;

	if (!value)
		return;
	seen->count++;
	if (!strcmp(name, "TACHO_WINDOW"))
		strcpy(seen->window, value);
	if (!strcmp(name, "TACHO_MAX_DISK"))
		strcpy(seen->disk, value);
	if (!strcmp(name, "TACHO_TOTALS"))
		strcpy(seen->totals, value);
}

void test_config_export(void)
{
	struct seen seen = { 0 };
	struct config c;
	struct error err;
	size_t rows = 0, i;

	if (!CHECK_OK(read_with(&c, "TACHO_WINDOW=steps:1-2", "TACHO_MAX_DISK=1536M",
				"TACHO_TOTALS=yes", &err),
		      &err))
		return;
	config_export(&c, note, &seen);
	for (i = 0; config_options[i].name; i++)
		rows += config_options[i].help != NULL;
	CHECK_U64(seen.count, rows);
	CHECK_STR(seen.window, "steps:1-2");
	CHECK_STR(seen.disk, "1536M");
	CHECK_STR(seen.totals, "1");
	config_release(&c);
}

static void masked(const char *args, size_t len, const char *want)
{
	struct buf out;

	buf_init(&out, 4096);
	command_mask(args, len, &out);
	CHECK_STR(buf_text(&out), want);
	buf_release(&out);
}

#define MASKED(args, want) masked(args, sizeof(args) - 1, want)

void test_command_mask(void)
{
	MASKED("python\0train.py\0--lr\0"
	       "0.1\0",
	       "python train.py --lr 0.1");
	MASKED("a\0--api-key\0s3cret\0--x\0", "a --api-key *** --x");
	MASKED("a\0--hf_token=abc\0b\0", "a --hf_token=*** b");
	MASKED("env\0WANDB_API_KEY=abc\0python\0", "env WANDB_API_KEY=*** python");
	MASKED("a\0--Password\0p w\0q\0", "a --Password *** q");
	MASKED("a\0--use-auth\0--verbose\0", "a --use-auth --verbose");
	MASKED("a\0https://x/?token=1\0", "a https://x/?token=***");
	MASKED("a\0--env=WANDB_API_KEY=abc\0b\0", "a --env=WANDB_API_KEY=*** b");
	MASKED("a\0+wandb.api_key=abc\0b\0", "a +wandb.api_key=*** b");
	MASKED("a\0https://me:abc@host/x\0", "a https://me:***@host/x");
	MASKED("a\0https://abc@host/x\0", "a https://***@host/x");
	MASKED("a\0me:a:b@host\0", "a me:***@host");
	MASKED("git\0git@host.org:me/it.git\0", "git git@host.org:me/it.git");
	MASKED("a\0-H\0Authorization: Bearer abc\0b\0", "a -H Authorization: *** b");
	MASKED("a\0--header\0X-Api-Key: abc\0", "a --header X-Api-Key: ***");
	MASKED("a\0-H\0X: Bearer abc\0", "a -H X: Bearer ***");
	MASKED("a\0--pass\0abc\0", "a --pass ***");
	MASKED("sshpass\0-p\0abc\0ssh\0", "sshpass -p *** ssh");
	MASKED("/usr/bin/mysql\0-pabc\0x\0", "/usr/bin/mysql -p*** x");
	MASKED("ssh\0-p\0"
	       "22\0",
	       "ssh -p 22");
	MASKED("curl\0--user\0me:abc\0x\0", "curl --user *** x");
	MASKED("a\0--token\0-abc\0b\0", "a --token *** b");
	MASKED("a\0{\"x\": 1, \"password\": \"abc\"}\0b\0", "a {\"x\": 1, \"password\": \"*** b");
	MASKED("a\0Server=x;Pwd=abc;Uid=me\0", "a Server=x;Pwd=***");
	MASKED("a\0os.environ['SECRET']='abc'\0", "a os.environ['SECRET']='***");
	MASKED("a\0sk-0123456789abcdef\0", "a ***");
	MASKED("a\0x=ghp_0123456789abcdef;y\0", "a x=***;y");
	MASKED("a\0s3://b/hf_0123456789\0", "a s3://b/***");
	MASKED("a\0sk-x\0--task-name\0mask-lm\0", "a sk-x --task-name mask-lm");
	MASKED("a\0--max-tokens\0"
	       "512\0--tokenizer=gpt2\0--author=me\0",
	       "a --max-tokens 512 --tokenizer=gpt2 --author=me");
	MASKED("a\0--tokenizer-key=abc\0", "a --tokenizer-key=***");
	MASKED("a\0--authorization=abc\0", "a --authorization=***");
	MASKED("a\0--key=\0\0b\0", "a --key=  b");
	MASKED("a\0model:/key://x\0", "a model:/key://x");
	MASKED("", "");
	MASKED("cut", "cut");
}
