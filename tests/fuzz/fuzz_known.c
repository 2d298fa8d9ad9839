/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of a Kineto file that are found again instead of scanned (kineto/import_fast.h): any
 * bytes, twice and with other digits, between elements that come again and again, give the same
 * events as from the scanner alone.
 */
#include "tests/fuzz/target.h"
#include "tests/unit/kineto_twice.h"

#include <ctype.h>

static const char *const elements =
	",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":5,\"tid\":6,\"ts\":100,\"dur\":7,"
	"\"args\":{\"External id\":3,\"Ev Idx\":9}}"
	",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1.5,\"dur\":4,"
	"\"args\":{\"device\":0,\"stream\":7,\"correlation\":12,\"blocks per SM\":6.4,"
	"\"grid\":[1,2,3]}}"
	",{\"ph\":\"s\",\"id\":12,\"pid\":5,\"tid\":6,\"ts\":1,\"cat\":\"ac2g\",\"name\":\"ac2g\"}"
	",{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":5,\"tid\":6,\"ts\":1020.5,"
	"\"args\":{\"Bytes\":-512,\"Addr\":4096,\"Device Id\":0,\"Device Type\":1}}";

static void put_changed(struct buf *text, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_put_byte(text,
			     isdigit(data[i]) ? (uint8_t)('0' + (data[i] + i) % 10) : data[i]);
}

static void compare(const struct buf *text)
{
	struct kineto_digest scanned, known;
	char path[64];
	int fd = fuzz_file(text->data, text->len, path);

	kineto_digest_init(&scanned, path, true);
	kineto_digest_init(&known, path, false);
	if (!kineto_digest_same(&scanned, &known))
		abort();
	kineto_digest_release(&scanned);
	kineto_digest_release(&known);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text;

	if (size > 4096)
		return 0;
	buf_init(&text, 1 << 20);
	buf_put_text(&text, "[{\"ph\":\"M\"}");
	for (int i = 0; i < 2; i++) {
		buf_put_text(&text, elements);
		buf_put(&text, data, size);
	}
	put_changed(&text, data, size);
	buf_put_text(&text, elements);
	put_changed(&text, data, size);
	buf_put_byte(&text, ']');
	compare(&text);
	buf_release(&text);
	return 0;
}
