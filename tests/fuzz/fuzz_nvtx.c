/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas, enums and payloads of NVTX as a program may hand them over: any types, flags, lengths,
 * offsets, nestings; the bytes of an event may be fewer than the schema says.
 */
#include "collector/probe/nvtx/payload.c" /* its tables only grow; here each run begins anew */

#include "convert/source/log/internal.h"
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

static void register_schema(struct fuzz_bytes *b, uint32_t domain)
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

static void register_enum(struct fuzz_bytes *b, uint32_t domain)
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

/* The event that the collector would make of the draft, decoded as the source of logs does. */
static void decode(const struct nvtx_draft *draft, uint32_t domain, uint64_t schema)
{
	const uint8_t *bytes = draft->bytes + sizeof(struct nvtx_tail);
	size_t size = draft->size - sizeof(struct nvtx_tail);
	uint64_t words[LOG_PAYLOAD_ARGS] = { 0 };
	struct event e = { .kind = KIND_RANGE, .args = words };
	struct attr consts[2], arg = { .type = ATTR_U64 };
	struct arg_schema s = { consts, &arg, 1, 1 };
	struct trace *t;
	struct buf text;

	if (trace_new(&t, 1 << 24, NULL) != ST_OK)
		return;
	arg.key = trace_name(t, NVTX_PAYLOAD_KEY, 8, NULL);
	memcpy(words, bytes, size < 8 ? size : 8);
	consts[0] = arg;
	consts[0].type = ATTR_TEXT;
	consts[0].bits = trace_name(t, (const char *)bytes + 8, size < 8 ? 0 : size - 8, NULL);
	buf_init(&text, 1 << 20);
	nvtx_schema_write(&text, domain, schema);
	if (text.len) {
		consts[1].key = trace_name(t, NVTX_SCHEMAS_KEY, 8, NULL);
		consts[1].type = ATTR_TEXT;
		consts[1].bits = trace_name(t, buf_text(&text), text.len, NULL);
		s.const_count = 2;
	}
	buf_release(&text);
	e.schema = trace_schema(t, &s, NULL);
	log_payload_decode(t, &e, words);
	trace_free(t);
}

static void tell(struct fuzz_bytes *b, uint32_t domain)
{
	static struct nvtx_draft draft;
	struct nvtx_data data = { .schema = type_of(b) };
	uint8_t *exact;

	data.size = (size_t)(b->end - b->at);
	exact = malloc(data.size + 1);
	memcpy(exact, b->at, data.size);
	data.bytes = exact;
	nvtx_draft_init(&draft, domain);
	nvtx_payload_copy(&draft, domain, &data);
	free(exact);
	if (nvtx_draft_tail(&draft)->payloads)
		decode(&draft, domain, data.schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, data + size };
	unsigned count = fuzz_below(&b, SCHEMAS_OF_RUN + 1), i;

	if (size > 4096)
		return 0;
	nvtx_names_lock();
	struct nvtx_schemas *schemas = nvtx_schemas_own();

	atomic_store(&schemas->count, 0);
	schemas->entry_count = 0;
	nvtx_names_unlock();
	for (i = 0; i < count; i++)
		if (fuzz_below(&b, 4))
			register_schema(&b, i % 2);
		else
			register_enum(&b, i % 2);
	tell(&b, fuzz_below(&b, 2));
	return 0;
}
