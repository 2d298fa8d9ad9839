/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas, enums and payloads of NVTX as a program may hand them over: any types, flags, lengths,
 * offsets, nestings; the bytes of an event may be fewer than the schema says.
 */
#include "collector/probe/nvtx/schema.c" /* its tables only grow; here each run begins anew */

#include "collector/probe/nvtx/payload.h"
#include "schemas/base/buf.h"
#include "tests/fuzz/target.h"

enum { SCHEMAS_OF_RUN = 4, ENTRIES_OF_RUN = 12 };

static const char *const words_of_run[] = { "",     "a",        "b",
					    "loss", "rank",     "a longer name",
					    NULL,   "\xff\xfe", "x[0]" };

static const char *word(struct fuzz_bytes *b)
{
	return words_of_run[fuzz_below(b, sizeof(words_of_run) / sizeof(words_of_run[0]))];
}

/* A type of the list, a schema of this run, or any number. */
static uint64_t type_of(struct fuzz_bytes *b)
{
	unsigned how = fuzz_below(b, 8);

	if (how < 5)
		return fuzz_below(b, NVTX_TYPE_END);
	if (how < 7)
		return NVTX_SCHEMA_DYNAMIC + fuzz_below(b, SCHEMAS_OF_RUN + 1);
	return fuzz_number(b, 8);
}

static void put_schema(struct fuzz_bytes *b, uint32_t domain)
{
	struct nvtx_entry entry[ENTRIES_OF_RUN];
	struct nvtx_schema s = { .mask = fuzz_number(b, 2), .entries = entry };
	size_t i;

	s.name = word(b);
	s.type = 1 + fuzz_below(b, 3);
	s.entry_count = fuzz_below(b, ENTRIES_OF_RUN);
	s.size = fuzz_number(b, 2);
	s.align = fuzz_number(b, 1);
	s.id = NVTX_SCHEMA_STATIC + fuzz_number(b, 1);
	for (i = 0; i < s.entry_count; i++) {
		/* what points elsewhere is followed in our own memory only where it is a text */
		entry[i] = (struct nvtx_entry){ .flags = fuzz_number(b, 2),
						.type = type_of(b),
						.name = word(b),
						.detail = fuzz_number(b, 2),
						.offset = fuzz_number(b, 2) };
	}
	nvtx_schema_put(domain, &s);
}

static void put_enum(struct fuzz_bytes *b, uint32_t domain)
{
	struct nvtx_word word_of[ENTRIES_OF_RUN];
	struct nvtx_enum e = { .mask = fuzz_number(b, 1), .words = word_of };
	size_t i;

	e.name = word(b);
	e.word_count = fuzz_below(b, ENTRIES_OF_RUN);
	e.size = fuzz_number(b, 1);
	e.id = NVTX_SCHEMA_STATIC + fuzz_number(b, 1);
	for (i = 0; i < e.word_count; i++)
		word_of[i] = (struct nvtx_word){ .name = word(b),
						 .value = fuzz_number(b, 4),
						 .is_flag = (int8_t)fuzz_below(b, 2) };
	nvtx_enum_put(domain, &e);
}

static void note(const struct nvtx_field *f, void *arg)
{
	struct buf *last_window = arg;

	buf_put(last_window, f->key, f->key_len);
	if (f->text)
		buf_put(last_window, f->text, f->len);
}

static void tell(struct fuzz_bytes *b, uint32_t domain)
{
	static struct nvtx_draft draft;
	struct nvtx_data data = { .schema = type_of(b) };
	struct nvtx_payload_header payload;
	struct buf last_window;
	const uint8_t *at;
	uint8_t *exact;

	data.size = (size_t)(b->end - b->at);
	exact = malloc(data.size + 1);
	memcpy(exact, b->at, data.size);
	data.bytes = exact;
	nvtx_draft_init(&draft, domain);
	nvtx_payload_copy(&draft, domain, &data, false);
	free(exact);
	if (!nvtx_draft_tail(&draft)->payloads)
		return;
	at = draft.bytes + sizeof(struct nvtx_tail);
	memcpy(&payload, at, sizeof(payload));
	exact = malloc((size_t)payload.size + payload.extra + 1);
	memcpy(exact, at + sizeof(payload), (size_t)payload.size + payload.extra);
	buf_init(&last_window, 1 << 22);
	nvtx_payload_decode(domain, &payload, exact, note, &last_window);
	buf_release(&last_window);
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, data + size };
	unsigned count = fuzz_below(&b, SCHEMAS_OF_RUN + 1), i;

	if (size > 4096)
		return 0;
	schema_count = 0;
	entry_count = word_count = 0;
	for (i = 0; i < count; i++)
		if (fuzz_below(&b, 4))
			put_schema(&b, i % 2);
		else
			put_enum(&b, i % 2);
	tell(&b, fuzz_below(&b, 2));
	return 0;
}
