/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a pickle.  It ends with values that can be walked, and a stream of the same bytes
 * has the same, also where its lists are given away item by item.
 */
#include "convert/input/input.h"
#include "convert/source/pickle/pickle.h"
#include "schemas/base/hash.h"
#include "tests/fuzz/target.h"

enum { CEILING = 16 << 20, DEPTH = 24, VALUES = 20000 };

/* Values may share parts and contain themselves. */
static uint64_t sum_of(const struct pickle_value *v, unsigned depth, unsigned *left)
{
	uint64_t sum = hash_word(0, v->type);

	if (!depth || !*left)
		return sum;
	--*left;
	switch (v->type) {
	case PICKLE_BOOL:
	case PICKLE_INT:
	case PICKLE_REAL:
		return hash_word(sum, (uint64_t)v->number);
	case PICKLE_TEXT:
		if (v->text[v->len])
			abort();
		return hash_word(sum, hash_text(v->text, v->len));
	case PICKLE_LIST:
	case PICKLE_DICT:
		if (v->count > v->cap || (v->type == PICKLE_DICT && v->count % 2))
			abort();
		for (uint32_t i = 0; i < v->count; i++)
			sum = hash_word(sum, sum_of(v->items[i], depth - 1, left));
		return hash_word(sum, pickle_count(v));
	case PICKLE_NONE:
	case PICKLE_FUNCTION:
		return sum;
	}
	abort(); /* a mark is inside the reader only */
}

static enum status take(void *user, size_t list, size_t ordinal, struct pickle_value *item,
			struct error *err)
{
	unsigned left = VALUES;

	(void)ordinal;
	(void)err;
	*(uint64_t *)user += list + sum_of(item, DEPTH, &left);
	return ST_OK;
}

/* False: it is refused. */
static bool read_stream(const uint8_t *data, size_t size, const struct pickle_list *lists,
			uint64_t *sum)
{
	struct pickle_taker taker = { .lists = lists, .take = take, .user = sum };
	const struct pickle_value *root;
	struct error err = { 0 };
	struct pickle *p = NULL;
	struct input *in = NULL;
	unsigned left = VALUES;
	char path[64];
	int fd = fuzz_file(data, size, path);
	bool is_read = input_open(&in, path, "/tmp", NULL) == ST_OK &&
		       pickle_stream(&p, &root, in, &taker, CEILING, &err) == ST_OK;

	if (is_read)
		*sum += sum_of(root, DEPTH, &left);
	pickle_free(p);
	input_close(in);
	close(fd);
	return is_read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pickle_list none[] = { { NULL, false } };
	static const struct pickle_list lists[] = { { "entries", false },
						    { "device_traces", true },
						    { NULL, false } };
	const struct pickle_value *root;
	struct error err = { 0 };
	struct pickle *p = NULL;
	uint64_t sum = 0, streamed = 0;
	unsigned left = VALUES;

	if (pickle_read(&p, &root, data, size, CEILING, &err) == ST_OK) {
		sum = sum_of(root, DEPTH, &left);
		if (read_stream(data, size, none, &streamed) && sum != streamed)
			abort();
	} else if (err.at != NOWHERE && err.at > size) {
		abort();
	}
	pickle_free(p);
	read_stream(data, size, lists, &streamed);
	return 0;
}
