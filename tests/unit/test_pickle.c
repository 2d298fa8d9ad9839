/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles of Python's module pickle, of PyTorch's C++ writer, and such as want something run. */
#include "convert/source/pickle/pickle.h"

#include "convert/input/input.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CEILING = 1 << 20 };

/* {"a": [1, -2, 3.5, None, True], "big": 1 << 40, "t": (1, "x"), "same": the list again}, protocol
 * 4 */
static const char protocol4[] = "\x80\x04\x95\x4a\0\0\0\0\0\0\0}\x94(\x8c\x01"
				"a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x0c\0\0\0\0\0\0N\x88"
				"e\x8c\x03"
				"big\x94\x8a\x06\0\0\0\0\0\x01\x8c\x01t\x94K\x01\x8c\x01x\x94\x86"
				"\x94\x8c\x04same\x94h\x02u.";
/* The same of PyTorch's C++ writer: protocol 2, lists with their types */
static const char tagged[] = "\x80\x02}q\0(X\x01\0\0\0aq\x01"
			     "ctorch.jit._pickle\nrestore_type_tag\n("
			     "ctorch.jit._pickle\nbuild_intlist\n](K\x05K\x06"
			     "e\x85RX\x09\0\0\0List[int]tRu.";

static struct pickle *read_good(const void *bytes, size_t len, const struct pickle_value **root)
{
	struct error err = { .at = NOWHERE };
	struct pickle *p = NULL;

	CHECK_U64(pickle_read(&p, root, bytes, len, CEILING, &err), ST_OK);
	return p;
}

void test_pickle_values(void)
{
	const struct pickle_value *root, *list;
	struct pickle *p = read_good(protocol4, sizeof(protocol4) - 1, &root);

	if (!p)
		return;
	list = pickle_get(root, "a");
	CHECK_U64(pickle_count(root), 8);
	if (CHECK_U64(pickle_count(list), 5)) {
		CHECK(pickle_int(list->items[0], 0) == 1 && pickle_int(list->items[1], 0) == -2);
		CHECK(list->items[2]->type == PICKLE_REAL && list->items[2]->real == 3.5);
		CHECK(list->items[3]->type == PICKLE_NONE);
		CHECK(pickle_int(list->items[4], 0) == 1);
	}
	CHECK(pickle_int(pickle_get(root, "big"), 0) == (int64_t)1 << 40);
	CHECK_STR(pickle_text(pickle_get(root, "t")->items[1], ""), "x");
	CHECK(pickle_get(root, "same") == list);
	CHECK(!pickle_get(root, "none") && !pickle_get(list, "a"));
	CHECK_STR(pickle_text(list, "no text"), "no text");
	pickle_free(p);
}

void test_pickle_tagged(void)
{
	const struct pickle_value *root, *list;
	struct pickle *p = read_good(tagged, sizeof(tagged) - 1, &root);

	if (!p)
		return;
	list = pickle_get(root, "a");
	if (CHECK_U64(pickle_count(list), 2))
		CHECK(pickle_int(list->items[0], 0) == 5 && pickle_int(list->items[1], 0) == 6);
	pickle_free(p);
}

/* Nothing is run: whatever is named is refused, and the message has the name. */
void test_pickle_refuses(void)
{
	static const struct {
		const char *bytes, *says;
	} rows[] = {
		{ "\x80\x02"
		  "cos\nsystem\n(X\x02\0\0\0idtR.",
		  "os.system" },
		{ "\x80\x04\x8c\x02os\x8c\x06system\x93.", "os.system" },
		{ "\x80\x02(X\x02\0\0\0idios\nsystem\n.", "os.system" },
		{ "\x80\x02}}b.", "BUILD" },
		{ "\x80\x02})\x81.", "NEWOBJ" },
		{ "\x80\x04})}\x92.", "NEWOBJ_EX" },
		{ "\x80\x02(}o.", "OBJ" },
		{ "\x80\x02}Q.", "BINPERSID" },
		{ "\x80\x02\x82\x01.", "EXT1" },
		{ "(dp0\nS'a'\n.", "protocol 0" },
		{ "\x80\x02}(X\x01\0\0\0x", "ends before" },
		{ "\x80\x02h\x07.", "missing entry of its memo" },
		{ "\x80\x02K\x01K\x02s.", "other than a list or dictionary" },
		{ "\x80\x02u.", "other than a list or dictionary" },
		{ "\x80\x02t.", "a mark is missing" },
		{ "\x80\x02\x85.", "needs more values" },
		{ "\x80\x02K\x01(\x86.", "needs more values" },
		{ "\x80\x02](a.", "other than a list or dictionary" },
		{ "\x80\x02}K\x01(s.", "other than a list or dictionary" },
		{ "\x80\x02.", "without a value" },
		{ "\x80\x02(.", "without a value" },
		{ "\x80\x02q\0.", "stores no value" },
		{ "\x80\x02K\x01r\xff\xff\xff\x7f.", "stores no value" },
		{ "\x80\x02K\x01K\x01R.", "that calls" },
		{ "\x80\x02(R.", "that calls" },
	};
	static const uint8_t lengths[] = { 22, 16, 22, 6, 6, 7, 6, 5, 5, 12, 8, 5, 7,
					   4,  4,  4,  7, 6, 8, 3, 4, 5, 10, 8, 5 };
	const struct pickle_value *root;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { .at = NOWHERE };
		struct pickle *p = NULL;

		CHECK(pickle_read(&p, &root, rows[i].bytes, lengths[i], CEILING, &err) != ST_OK);
		if (!CHECK(strstr(err.text, rows[i].says) != NULL))
			CHECK_STR(err.text, rows[i].says);
		CHECK(!p && err.at <= lengths[i]);
	}
}

void test_pickle_damage(void)
{
	static const char *const all[] = { protocol4, tagged };
	static const size_t lengths[] = { sizeof(protocol4) - 1, sizeof(tagged) - 1 };
	const struct pickle_value *root;

	for (size_t i = 0; i < 2; i++) {
		for (size_t len = 0; len < lengths[i]; len++) {
			struct error err = { .at = NOWHERE };
			struct pickle *p = NULL;
			char *copy = malloc(len ? len : 1);

			memcpy(copy, all[i], len);
			CHECK(pickle_read(&p, &root, copy, len, CEILING, &err) != ST_OK && !p);
			free(copy);
		}
		for (unsigned n = 0; n < 256 * (unsigned)lengths[i]; n++) {
			struct error err = { .at = NOWHERE };
			struct pickle *p = NULL;
			char *copy = malloc(lengths[i]);

			memcpy(copy, all[i], lengths[i]);
			copy[n / 256] = (char)(n % 256);
			if (pickle_read(&p, &root, copy, lengths[i], CEILING, &err) != ST_OK)
				CHECK(!p && err.text[0]);
			pickle_free(p);
			free(copy);
		}
	}
	/* A text may not be longer than what is there, nor a value than the ceiling. */
	static const char huge[] = "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
				   "x.";
	struct error err = { .at = NOWHERE };
	struct pickle *p = NULL;

	CHECK_U64(pickle_read(&p, &root, huge, sizeof(huge) - 1, CEILING, &err), ST_TRUNCATED);
	CHECK_U64(pickle_read(&p, &root, protocol4, sizeof(protocol4) - 1, 100, &err), ST_CEILING);
}

/*
 * {"n": [[{"k": f, "p": (0, 0)}, {"k": f, "p": (0, 0)}], [{"k": g, "p": (0, 1)}]],
 *  "l": [{"k": 1}, {}], "rest": [{"k": 2}]}, where f and g are two lists [{"line": 1}]: of Python's
 * pickler, and as PyTorch's writer does it
 */
static const uint8_t streamed_python[] = {
	0x80, 0x04, 0x95, 0x7b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7d, 0x94, 0x28, 0x8c,
	0x01, 0x6e, 0x94, 0x5d, 0x94, 0x28, 0x5d, 0x94, 0x28, 0x7d, 0x94, 0x28, 0x8c, 0x01, 0x6b,
	0x94, 0x5d, 0x94, 0x7d, 0x94, 0x8c, 0x04, 0x6c, 0x69, 0x6e, 0x65, 0x94, 0x4b, 0x01, 0x73,
	0x61, 0x8c, 0x01, 0x70, 0x94, 0x4b, 0x00, 0x4b, 0x00, 0x86, 0x94, 0x75, 0x7d, 0x94, 0x28,
	0x68, 0x05, 0x68, 0x06, 0x68, 0x09, 0x68, 0x0a, 0x75, 0x65, 0x5d, 0x94, 0x7d, 0x94, 0x28,
	0x68, 0x05, 0x5d, 0x94, 0x7d, 0x94, 0x68, 0x08, 0x4b, 0x01, 0x73, 0x61, 0x68, 0x09, 0x4b,
	0x00, 0x4b, 0x01, 0x86, 0x94, 0x75, 0x61, 0x65, 0x8c, 0x01, 0x6c, 0x94, 0x5d, 0x94, 0x28,
	0x7d, 0x94, 0x68, 0x05, 0x4b, 0x01, 0x73, 0x7d, 0x94, 0x65, 0x8c, 0x04, 0x72, 0x65, 0x73,
	0x74, 0x94, 0x5d, 0x94, 0x7d, 0x94, 0x68, 0x05, 0x4b, 0x02, 0x73, 0x61, 0x75, 0x2e
};
static const uint8_t streamed_cpp[] = {
	0x80, 0x02, 0x7d, 0x28, 0x58, 0x01, 0x00, 0x00, 0x00, 0x6e, 0x71, 0x00, 0x5d, 0x28, 0x5d,
	0x28, 0x7d, 0x28, 0x58, 0x01, 0x00, 0x00, 0x00, 0x6b, 0x71, 0x01, 0x5d, 0x28, 0x7d, 0x28,
	0x58, 0x04, 0x00, 0x00, 0x00, 0x6c, 0x69, 0x6e, 0x65, 0x71, 0x02, 0x4b, 0x01, 0x75, 0x65,
	0x71, 0x03, 0x58, 0x01, 0x00, 0x00, 0x00, 0x70, 0x71, 0x04, 0x4b, 0x00, 0x4b, 0x00, 0x86,
	0x75, 0x7d, 0x28, 0x68, 0x01, 0x68, 0x03, 0x68, 0x04, 0x4b, 0x00, 0x4b, 0x00, 0x86, 0x75,
	0x65, 0x71, 0x05, 0x5d, 0x28, 0x7d, 0x28, 0x68, 0x01, 0x5d, 0x28, 0x7d, 0x28, 0x68, 0x02,
	0x4b, 0x01, 0x75, 0x65, 0x71, 0x06, 0x68, 0x04, 0x4b, 0x00, 0x4b, 0x01, 0x86, 0x75, 0x65,
	0x71, 0x07, 0x65, 0x71, 0x08, 0x58, 0x01, 0x00, 0x00, 0x00, 0x6c, 0x71, 0x09, 0x5d, 0x28,
	0x7d, 0x28, 0x68, 0x01, 0x4b, 0x01, 0x75, 0x7d, 0x28, 0x75, 0x65, 0x71, 0x0a, 0x58, 0x04,
	0x00, 0x00, 0x00, 0x72, 0x65, 0x73, 0x74, 0x71, 0x0b, 0x5d, 0x28, 0x7d, 0x28, 0x68, 0x01,
	0x4b, 0x02, 0x75, 0x65, 0x71, 0x0c, 0x75, 0x2e
};

struct taken {
	struct pickle *values;
	char text[200];
	const struct pickle_value *first; /* what is kept of the first item */
};

static enum status take_one_text(void *user, size_t list, size_t ordinal, struct pickle_value *item,
				 struct error *err)
{
	struct taken *t = user;
	size_t at = strlen(t->text);

	if (list == 0 && CHECK_U64(item->count, 4)) {
		const struct pickle_value *kept = pickle_keep(t->values, &item->items[1]);

		if (!t->first)
			t->first = kept;
		CHECK(kept == t->first && item->items[1] == kept);
		CHECK_U64(pickle_count(kept), 1);
	}
	snprintf(t->text + at, sizeof(t->text) - at, "%zu.%zu:%zu ", list, ordinal,
		 pickle_count(item));
	(void)err;
	return ST_OK;
}

/* What is asked for comes item by item, equal lists are one, and all else is as it is. */
void test_pickle_stream(void)
{
	static const struct pickle_list lists[] = { { "n", true },
						    { "l", false },
						    { NULL, false } };
	static const struct {
		const uint8_t *bytes;
		size_t len;
	} rows[] = { { streamed_python, sizeof(streamed_python) },
		     { streamed_cpp, sizeof(streamed_cpp) } };
	struct folder s;

	folder_make(&s);
	for (size_t i = 0; i < 2; i++) {
		struct taken t = { .values = NULL };
		struct pickle_taker taker = { .lists = lists, .take = take_one_text, .user = &t };

		for (size_t len = 0; len <= rows[i].len; len++) {
			struct error err = { .at = NOWHERE };
			const struct pickle_value *root = NULL;
			struct input *in = NULL;
			enum status status;

			t.text[0] = '\0';
			t.first = NULL;
			CHECK_OK(input_open(&in, folder_write(&s, "a.pickle", rows[i].bytes, len),
					    "/tmp", &err),
				 &err);
			status = pickle_stream(&t.values, &root, in, &taker, CEILING, &err);
			CHECK((status == ST_OK) == (len == rows[i].len));
			if (status == ST_OK) {
				CHECK_STR(t.text, "0.0:4 0.0:4 0.1:4 1.0:2 1.0:0 ");
				CHECK_U64(pickle_count(pickle_get(root, "n")), 2);
				CHECK_U64(pickle_count(pickle_get(root, "l")), 0);
				CHECK_U64(pickle_count(pickle_get(root, "rest")), 1);
			}
			pickle_free(t.values);
			input_close(in);
		}
	}
	folder_remove(&s);
}
