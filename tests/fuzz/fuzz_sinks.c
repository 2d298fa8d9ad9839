/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any events, as a log whose checksums were made right, into a sink: the first byte says which one
 * and how.  What says it is JSON is JSON.
 */
#include "convert/input/input.h"
#include "convert/sink/sink.h"
#include "convert/source/json/scan.h"
#include "convert/output/output.h"
#include "schemas/base/buf.h"
#include "tests/fuzz/log_sign.h"
#include "tests/fuzz/target.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

static const struct sink_type *const sinks[] = {
#define X(name) &sink_##name,
	SINK_LIST(X)
#undef X
};
enum { SINKS = sizeof(sinks) / sizeof(sinks[0]) };

static const struct budget budget = { .opening = 2 << 20, .resident = 65536, .scratch = "/tmp" };

static enum status put(void *self, const struct batch *batch, struct error *err)
{
	return sink_put(self, batch, err);
}

static enum status run_sink(struct pipeline *p, struct sink_request *req,
			    const struct sink_type *type)
{
	struct sink *s = NULL;
	struct consumer consumer = { put, NULL };
	enum status status = sink_open(&s, type, req, NULL);
	bool source_failed = false;

	if (status != ST_OK)
		return status;
	consumer.self = s;
	status = pump(p->top, &consumer, 1, NULL, NULL, &source_failed, NULL);
	if ((status == ST_OK || status == ST_END || source_failed))
		status = sink_close(s, NULL);
	sink_free(s);
	return status;
}

static void check_json(const char *path)
{
	char *text = calloc(1, 1 << 24);
	FILE *f = fopen(path, "rb");
	size_t len = f ? fread(text, 1, 1 << 24, f) : 0;
	struct json_scan s;
	struct json token;

	json_open_text(&s, text, len);
	do {
		if (json_next(&s, &token, NULL) != ST_OK)
			abort();
	} while (token.type != JSON_END);
	if (f)
		fclose(f);
	free(text);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void convert(struct input *in, const struct sink_type *type, bool all_args,
		    const struct name_rules *rules)
{
	static const struct filter everything;
	char folder[] = "/dev/shm/fuzz-XXXXXX", path[64];
	struct pipeline_request how = {
		.filter = &everything, .rules = rules, .budget = &budget, .needs = type->needs
	};
	struct pipeline p = { 0 };
	struct sink_request req = { .budget = &budget, .rules = rules, .all_args = all_args };
	struct buf names;

	if (trace_new(&req.trace, 16 << 20, NULL) != ST_OK || !mkdtemp(folder))
		abort();
	buf_init(&names, 1 << 20);
	req.names = &names;
	snprintf(path, sizeof(path), "%s/out", folder);
	if (pipeline_open(&p, req.trace, &in, 1, &how, NULL) == ST_OK &&
	    out_open(&req.out, path, type->is_folder, NULL) == ST_OK) {
		req.context = p.context;
		req.process = type->scope == SINK_PER_PROCESS;
		if (run_sink(&p, &req, type) == ST_OK && out_commit(req.out, NULL) == ST_OK &&
		    (type == &sink_chrome || type == &sink_memory))
			check_json(path);
	}
	out_free(req.out);
	pipeline_close(&p);
	trace_free(req.trace);
	buf_release(&names);
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct name_rules *rules; /* for good */
	struct input *in = NULL;
	uint8_t *copy;
	char path[64];
	int fd;

	if (size < 2 || (!rules && name_rules_new(&rules, NULL, 0, NULL) != ST_OK))
		return 0;
	copy = malloc(size);
	memcpy(copy, data + 1, size - 1);
	log_sign(copy, size - 1);
	fd = fuzz_file(copy, size - 1, path);
	free(copy);
	if (input_open(&in, path, "/tmp", NULL) == ST_OK)
		convert(in, sinks[data[0] % SINKS], data[0] & 128, rules);
	input_close(in);
	close(fd);
	return 0;
}
