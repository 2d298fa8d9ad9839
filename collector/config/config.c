/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/config.h"

#include "schemas/base/buf.h"
#include "schemas/model/event.h"
#include "schemas/model/records.h"
#include "schemas/base/quantity.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct config, member)
const struct option config_options[] = {
	{ "out", 'o', OPTION_TEXT, "DIR", "folder for the logs, created if missing", AT(out),
	  "tacho-logs" },
	{ "window", 'w', OPTION_TEXT, "SPEC",
	  "when to record: all, steps:10-20, "
	  "every=60m,first=10,steps=5, delay=30s,for=10s, nvtx=epoch_3, signal, ...",
	  AT(window), "all" },
	{ "ranks", 0, OPTION_TEXT, "LIST", "ranks to record: main, all, or 0,4-7", AT(ranks),
	  "all" },
	{ "sample", 0, OPTION_TEXT, "SPEC", "memory samples: 100ms, steps=10, both, or none",
	  AT(sample), "100ms" },
	{ "kinds", 0, OPTION_TEXT, "LIST",
	  "all, or some of kernel, memcpy, memset, graph, sync, api, range, step, mark, counter, "
	  "jit, overhead; only if named: memory, health",
	  AT(kinds), "all" },
	{ "graphs", 0, OPTION_TEXT, "HOW", "CUDA graphs: by node, by graph (cheap), or auto",
	  AT(graphs), "auto" },
	{ "max-disk", 0, OPTION_SIZE, "SIZE", "keep the newest SIZE of a process's logs; 0: all",
	  AT(max_disk), "16G" },
	{ "rotate", 0, OPTION_SIZE, "SIZE", "size of each log; 0: 1/8 of --max-disk", AT(rotate),
	  "0" },
	{ "min-free", 0, OPTION_SIZE, "SIZE", "stop writing when less disk space is free",
	  AT(min_free), "64M" },
	{ "ring", 0, OPTION_SIZE, "SIZE",
	  "flight recorder: keep the last SIZE, save it on a trigger", AT(ring), "0" },
	{ "save-on", 0, OPTION_TEXT, "LIST",
	  "when to save the ring: slow=1.5 (times the median), "
	  "hang=300s, signal, death; min=5ms, cool=60s, keep=3, stacks=USR2",
	  AT(save_on), "signal,death" },
	{ "ring-dir", 0, OPTION_TEXT, "DIR",
	  "local folder for the ring (default: --out); on tmpfs, threads' rings too", AT(ring_dir),
	  "" },
	{ "memory", 0, OPTION_SIZE, "SIZE", "memory limit of the recording", AT(memory), "128M" },
	{ "buffer", 0, OPTION_SIZE, "SIZE", "size of the ring of each recorded thread", AT(buffer),
	  "1M" },
	{ "cupti-buffer", 0, OPTION_SIZE, "SIZE",
	  "size of a CUPTI buffer; each thread has one or more", AT(cupti_buffer), "512K" },
	{ "cupti-lib", 0, OPTION_TEXT, "FILE", "libcupti to load if the process has none yet",
	  AT(cupti_lib), "" },
	{ "finalize", 0, OPTION_TEXT, "HOW",
	  "detach from CUDA after windows: no, yes, auto (no graphs)", AT(finalize), "no" },
	{ "clock", 0, OPTION_TEXT, "NAME", "auto or monotonic", AT(clock), "auto" },
	{ "nvtx", 0, OPTION_FLAG, NULL, "record NVTX ranges and marks", AT(nvtx), "yes" },
	{ "nccl", 0, OPTION_TEXT, "HOW", "NCCL events: no, calls, or all (channels, proxies)",
	  AT(nccl), "calls" },
	{ "totals", 0, OPTION_FLAG, NULL, "keep live totals outside windows, too", AT(totals),
	  "no" },
	{ "trace-python", 0, OPTION_FLAG, NULL, "record Python calls as ranges; slow",
	  AT(trace_python), "no" },
	{ "auto", 0, OPTION_FLAG, NULL,
	  "detect steps and phases of PyTorch, Lightning and JAX without marks", AT(automatic),
	  "yes" },
	{ "workers", 0, OPTION_FLAG, NULL, "also record workers: child processes without steps",
	  AT(workers), "no" },
	{ "enabled", 0, OPTION_FLAG, NULL, "no: run the program without recording it", AT(enabled),
	  "yes" },
	/* The spelling of other profilers' guides. */
	{ "profiling.enabled", 0, OPTION_FLAG, NULL, NULL, AT(enabled), "yes" },
	{ 0 }
};

enum status config_parse_sample(const char *text, uint64_t *ns, uint64_t *steps, struct error *err)
{
	size_t len;

	*ns = *steps = 0;
	if (!strcmp(text, "none"))
		return ST_OK;
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		if (len > 6 && !memcmp(text, "steps=", 6))
			TRY(unit_parse_count(text + 6, len - 6, steps, err));
		else
			TRY(unit_parse_time(text, len, ns, err));
		if (!text[len])
			return ST_OK;
	}
}

enum status config_parse_kinds(const char *text, uint32_t *mask, struct error *err)
{
	size_t len;

	*mask = 0;
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		unsigned kind = kind_of_word(text, len);
		if (len == 3 && !memcmp(text, "all", 3))
			*mask = UINT32_MAX;
		else if (len == 6 && !memcmp(text, "memory", 6))
			*mask |= 1u << KIND_ALLOC | 1u << KIND_FREE;
		else if (len == 6 && !memcmp(text, "health", 6))
			*mask |= 1u << KIND_COUNTER;
		else if (kind == KIND_UNKNOWN)
			return fail(err, ST_USAGE, NOWHERE, "%.*s: not a kind of event",
				    (int)(len < 40 ? len : 40), text);
		else
			*mask |= 1u << kind;
		if (!text[len])
			return ST_OK;
	}
}

/* Returns whether the list has the word; "all" does not include expensive kinds. */
static bool names_kind(const char *kinds, const char *word)
{
	const char *at = strstr(kinds, word);
	size_t len = strlen(word);

	return at && (at == kinds || at[-1] == ',') && (at[len] == '\0' || at[len] == ',');
}

/* Sets *out to the index of one of three words. */
static enum status parse_word(const char *text, const char *const words[3], int *out,
			      struct error *err)
{
	for (*out = 0; *out < 3; ++*out)
		if (strcmp(text, words[*out]) == 0)
			return ST_OK;
	return fail(err, ST_USAGE, NOWHERE, "%.40s: must be %s, %s or %s", text, words[0], words[1],
		    words[2]);
}

void config_parse_devices(struct config *c, const char *text)
{
	uint64_t index;
	size_t len;

	c->has_devices = text != NULL;
	c->device_count = 0;
	for (; text && *text && c->device_count < CONFIG_DEVICES;
	     text += len + (text[len] == ',')) {
		unsigned i = c->device_count++;

		len = strcspn(text, ",");
		c->devices[i] = -1;
		if (unit_parse_count(text, len, &index, NULL) == ST_OK && index < INT32_MAX)
			c->devices[i] = (int)index;
		else
			snprintf(c->device_uuids[i], sizeof(c->device_uuids[i]), "%.*s", (int)len,
				 text);
	}
}

static enum status named(enum status status, const char *option, struct error *why,
			 struct error *err)
{
	if (status == ST_OK)
		return ST_OK;
	return fail(err, status, NOWHERE, "--%s: %s", option, why->text);
}

enum status config_check(struct config *c, struct error *err)
{
	struct error why;
	bool wanted;
	int word;

	TRY(named(window_parse(&c->window_spec, c->window, &why), "window", &why, err));
	TRY(named(trigger_parse(&c->trigger_spec, c->save_on, &why), "save-on", &why, err));
	if (c->ring && c->ring < (uint64_t)1 << 20)
		return fail(err, ST_USAGE, NOWHERE, "--ring: must be at least 1M");
	TRY(named(config_parse_sample(c->sample, &c->sample_ns, &c->sample_steps, &why), "sample",
		  &why, err));
	TRY(named(config_parse_kinds(c->kinds, &c->kinds_mask, &why), "kinds", &why, err));
	c->device_memory = names_kind(c->kinds, "memory");
	c->health = names_kind(c->kinds, "health");
	TRY(named(parse_word(c->graphs, (const char *[]){ "node", "graph", "auto" }, &word, &why),
		  "graphs", &why, err));
	c->graphs_level = (enum config_graphs)word;
	TRY(named(parse_word(c->finalize, (const char *[]){ "no", "yes", "auto" }, &word, &why),
		  "finalize", &why, err));
	c->finalizes = (enum config_finalize)word;
	TRY(named(parse_word(c->nccl, (const char *[]){ "no", "calls", "all" }, &word, &why),
		  "nccl", &why, err));
	c->nccl_events = (enum config_nccl)word;
	TRY(named(rank_is_wanted(c->ranks, 0, &wanted, &why), "ranks", &why, err));
	if (strcmp(c->clock, "auto") != 0 && strcmp(c->clock, "monotonic") != 0)
		return fail(err, ST_USAGE, NOWHERE, "--clock: %.40s: must be auto or monotonic",
			    c->clock);
	if (!*c->out)
		return fail(err, ST_USAGE, NOWHERE, "--out: the name of the folder is empty");
	if (c->memory < (uint64_t)16 << 20)
		return fail(err, ST_USAGE, NOWHERE, "--memory: must be at least 16M");
	if (c->cupti_buffer < 65536 || c->cupti_buffer > (uint64_t)64 << 20)
		return fail(err, ST_USAGE, NOWHERE, "--cupti-buffer: must be from 64K to 64M");
	return ST_OK;
}

/* Copies a text.  Folders become absolute, because the program may change its working directory
 * before the log is opened. */
static char *copy_text(const struct option *row, const char *text)
{
	char here[2048], *path;

	if ((row->at != AT(out) && row->at != AT(ring_dir)) || !*text || text[0] == '/' ||
	    !getcwd(here, sizeof(here)))
		return strdup(text);
	return asprintf(&path, "%s/%s", here, text) < 0 ? NULL : path;
}

void config_release(struct config *c)
{
	for (const struct option *row = config_options; row->name; row++) {
		const char **text = (const char **)(void *)((char *)c + row->at);
		if (row->type != OPTION_TEXT || *text == row->fallback)
			continue;
		free((char *)(uintptr_t)*text);
		*text = row->fallback;
	}
}

bool config_wants_gpu(const struct config *c)
{
	static const uint32_t cupti = 1u << KIND_KERNEL | 1u << KIND_MEMCPY | 1u << KIND_MEMSET |
				      1u << KIND_GRAPH | 1u << KIND_SYNC | 1u << KIND_API |
				      1u << KIND_JIT | 1u << KIND_OVERHEAD;

	return c->kinds_mask & cupti || c->device_memory;
}

const char *config_ring_dir(const struct config *c)
{
	return *c->ring_dir ? c->ring_dir : c->out;
}

uint64_t config_ring_space(const struct config *c)
{
	return c->ring ? c->ring + c->min_free : 0;
}

void config_look_around(struct config *c, char *const *envp)
{
	c->rank = rank_find(envp);
	run_id_find(envp, c->run_id);
	config_parse_devices(c, rank_variable(envp, "CUDA_VISIBLE_DEVICES"));
	if (gethostname(c->host, sizeof(c->host)) != 0 || !c->host[0])
		strcpy(c->host, "host");
	c->host[sizeof(c->host) - 1] = '\0';
}

bool config_learn_rank(struct config *c, char *const *envp)
{
	struct rank rank = config_rank(c);
	bool wanted = true;

	if (rank.rank == RANK_UNKNOWN) {
		rank = rank_find(envp);
		if (rank.rank != RANK_UNKNOWN)
			atomic_store(&c->late_rank,
				     ((uint64_t)rank.rank + 1) << 32 | rank.world_size);
	}
	return rank_is_wanted(c->ranks, rank.rank, &wanted, NULL) != ST_OK || wanted;
}

struct rank config_rank(const struct config *c)
{
	uint64_t late = atomic_load(&c->late_rank);

	if (!late)
		return c->rank;
	return (struct rank){ .rank = (uint32_t)(late >> 32) - 1,
			      .world_size = (uint32_t)late,
			      .launcher = "environment" };
}

static enum status read_variables(struct config *c, const struct option_set *sets,
				  char *const *envp, struct error *err)
{
	const char *values = rank_variable(envp, "TACHO_ENABLED");
	const char *window = rank_variable(envp, "TACHO_WINDOW");
	struct config_source before;

	config_source_begin(c, &before);
	TRY(option_environment(sets, envp, err));
	TRY(config_source_end(c, &before, err));
	if (!c->enabled)
		c->forbidden = true;
	else if (!values || !*values)
		c->enabled = (window && *window) || preset_asks_window(&c->preset);
	return config_check(c, err);
}

enum status config_read(struct config *c, char *const *envp, struct error *err)
{
	const struct option_set sets[] = { { config_options, c },
					   { preset_options, &c->preset },
					   { NULL, NULL } };
	bool wanted = true;

	memset(c, 0, sizeof(*c));
	TRY(option_defaults(sets, err));
	config_look_around(c, envp);
	enum status status = read_variables(c, sets, envp, err);
	if (status != ST_OK) {
		option_defaults(sets, NULL);
		config_check(c, NULL);
		config_source_release(c);
		c->enabled = false;
		c->forbidden = true; /* a job with wrong settings runs unrecorded */
		return status;
	}
	for (const struct option *row = config_options; row->name; row++) {
		if (row->type != OPTION_TEXT)
			continue;
		const char **text = (const char **)(void *)((char *)c + row->at);
		char *copy = copy_text(row, *text);
		*text = copy ? copy : row->fallback;
	}
	config_source_release(c);
	status = rank_is_wanted(c->ranks, c->rank.rank, &wanted, err);
	if (status != ST_OK || !wanted) {
		c->enabled = false;
		c->forbidden = true;
	}
	return status;
}

static void value_text(const struct option *row, const void *value, char *out, size_t cap)
{
	char text[UNIT_TEXT];

	if (row->type == OPTION_TEXT)
		snprintf(out, cap, "%s", *(const char *const *)value);
	else if (row->type == OPTION_FLAG)
		snprintf(out, cap, "%d", *(const bool *)value);
	else if (row->type == OPTION_SIZE)
		snprintf(out, cap, "%s", unit_format_size(*(const uint64_t *)value, text));
	else
		snprintf(out, cap, "%llu", *(const unsigned long long *)value);
}

void config_export(const struct config *c,
		   void (*set)(const char *name, const char *value, void *arg), void *arg)
{
	char name[OPTION_NAME + 16], value[4096];

	for (const struct option *row = config_options; row->name; row++) {
		value_text(row, (const char *)c + row->at, value, sizeof(value));
		set(option_variable(row, name, sizeof(name)), row->help ? value : NULL, arg);
	}
	for (const struct option *row = preset_options; row->name; row++)
		set(option_variable(row, name, sizeof(name)), NULL, arg);
}
