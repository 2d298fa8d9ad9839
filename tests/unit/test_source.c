/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "convert/stage/filter/filter.h"
#include "convert/input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What opening these bytes says. */
static enum status source_of(const void *bytes, size_t len, struct error *err)
{
	char path[] = "/tmp/tacho-unit-XXXXXX";
	struct budget budget = { .opening = 8 << 20, .resident = 65536, .scratch = "/tmp" };
	struct source *source = NULL;
	struct input *in = NULL;
	struct trace *trace = NULL;
	enum status status = ST_IO;
	int fd = mkstemp(path);

	if (!CHECK(fd >= 0))
		return ST_IO;
	if (CHECK_U64((uint64_t)write(fd, bytes, len), len) &&
	    CHECK_OK(trace_new(&trace, 1 << 20, NULL), NULL) &&
	    CHECK_OK(input_open(&in, path, "/tmp", err), err))
		status = source_open(&source, in, trace, &budget, NULL, err);
	CHECK(!source == (status != ST_OK));
	source_close(source);
	input_close(in);
	trace_free(trace);
	close(fd);
	unlink(path);
	return status;
}

void test_source_empty(void)
{
	struct error err = { 0 };

	CHECK_U64(source_of("", 0, &err), ST_FORMAT);
	CHECK_STR(err.text, "the input is empty");
}

void test_source_unknown(void)
{
	struct error err = { 0 };

	CHECK_U64(source_of("step,loss\n1,0.5\n2,0.4\n", 22, &err), ST_FORMAT);
	CHECK_STR(err.text, "not a trace that Tacho reads (it begins with 'step,loss?1,0.5?' ...)");
	CHECK_U64(source_of("\x7f"
			    "ELF\x02\x01",
			    6, &err),
		  ST_FORMAT);
	CHECK_STR(err.text,
		  "not a trace that Tacho reads (it begins with the bytes 7f 45 4c 46 02 01)");
}
