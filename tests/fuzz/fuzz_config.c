/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a config file of tacho-record: taken or refused; what was taken is printed as a
 * file, and that file says the same.
 */
#include "collector/record/config.c" /* its texts stay for good; here they are given back */

#include "tests/fuzz/target.h"

static enum status take(struct config *c, const uint8_t *data, size_t size)
{
	struct option_set sets[] = { { config_options, c },
				     { preset_options, &c->preset },
				     { NULL, NULL } };
	struct config_source before;
	enum status status;
	char path[64];
	int fd = fuzz_file(data, size, path);

	memset(c, 0, sizeof(*c));
	status = option_defaults(sets, NULL);
	if (status == ST_OK) {
		config_source_begin(c, &before);
		status = record_config_take(path, sets, NULL);
	}
	if (status == ST_OK)
		status = config_source_end(c, &before, NULL);
	if (status == ST_OK)
		status = config_check(c, NULL);
	close(fd);
	return status;
}

static void print(const struct config *c, struct buf *out)
{
	buf_init(out, 1 << 20);
	if (record_config_print(c, out, NULL) != ST_OK)
		buf_clear(out);
}

/* What `one` says, said again. */
static void check_again(const struct buf *one)
{
	struct arena before = texts;
	struct config again;
	struct buf two;

	if (take(&again, one->data, one->len) != ST_OK)
		abort();
	print(&again, &two);
	if (two.len != one->len || memcmp(one->data, two.data, one->len) != 0)
		abort();
	buf_release(&two);
	config_source_release(&again);
	arena_release(&texts);
	texts = before;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config first;
	struct buf one;

	if (size > 8192)
		return 0;
	if (take(&first, data, size) == ST_OK) {
		print(&first, &one);
		if (one.len)
			check_again(&one);
		buf_release(&one);
	}
	config_source_release(&first);
	arena_release(&texts);
	return 0;
}
