/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/perfetto/internal.h"

#include "convert/source/chrome/pairs.h"
#include "convert/source/kineto/import.h"
#include "schemas/model/records.h"

#include <strings.h>

enum { ASK_AGAIN = 1 << 30 }; /* the category alone does not determine the class */

/* Classifies by words of categories that only Tacho writes. */
static bool own_class(const struct json *cat, struct event *e)
{
	e->kind = (uint8_t)kind_of_word(cat->text, cat->len);
	e->subkind = 0;
	if (e->kind != KIND_UNKNOWN)
		return true;
	if (cat->len == 6 && !memcmp(cat->text, "driver", 6)) {
		e->kind = KIND_API;
		e->subkind = API_DRIVER;
		return true;
	}
	for (unsigned i = RANGE_OP; i <= RANGE_GC; i++)
		if (strlen(range_class_word(i)) == cat->len &&
		    !memcmp(range_class_word(i), cat->text, cat->len)) {
			e->kind = KIND_RANGE;
			e->subkind = (uint8_t)i;
			return true;
		}
	return false;
}

/* Classifies by categories of rocprofv3 and rocprofiler-systems. */
static bool rocm_class(const struct json *cat, struct event *e)
{
	static const struct {
		const char *begins;
		uint8_t kind, subkind;
	} rows[] = {
		{ "kernel_dispatch", KIND_KERNEL, 0 },    { "memory_copy", KIND_MEMCPY, 0 },
		{ "hip_", KIND_API, API_RUNTIME },        { "hsa_", KIND_API, API_DRIVER },
		{ "marker_api", KIND_RANGE, RANGE_NVTX },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (cat->len >= strlen(rows[i].begins) &&
		    !memcmp(cat->text, rows[i].begins, strlen(rows[i].begins))) {
			e->kind = rows[i].kind;
			e->subkind = rows[i].subkind;
			return true;
		}
	return false;
}

enum status pftrace_classify(struct pftrace_reader *r, uint32_t category, uint32_t name_id,
			     struct event *e, bool *is_known, struct error *err)
{
	/* Only for the category of operators the name matters; other classes are cached. */
	uint64_t *at = map_find(&r->classes, category), class;
	struct json cat, name;

	if (!at || *at == ASK_AGAIN) {
		cat = pftrace_named(r, category);
		name = pftrace_named(r, name_id);
		*is_known = category && ((r->is_own && own_class(&cat, e)) ||
					 kineto_category(&cat, &name, e) || rocm_class(&cat, e));
		if (!*is_known) {
			e->kind = KIND_RANGE;
			e->subkind = chrome_range_class(&cat);
		}
		class = (uint64_t)e->kind << 16 | (uint64_t)e->subkind << 8 | *is_known;
		at = map_put(&r->classes, category, NULL);
		if (!at)
			return fail_memory(err);
		*at = cat.len == 8 && !strncasecmp(cat.text, "operator", 8) ? ASK_AGAIN : class;
		return ST_OK;
	}
	e->kind = (uint8_t)(*at >> 16);
	e->subkind = (uint8_t)(*at >> 8);
	*is_known = *at & 1;
	return ST_OK;
}

void pftrace_step_name(const struct pftrace_reader *r, struct event *e)
{
	static const char word[] = "step ";
	struct json name = pftrace_named(r, e->name);
	uint64_t number;

	if (name.len <= sizeof(word) - 1 || memcmp(name.text, word, sizeof(word) - 1) != 0 ||
	    !json_u64(name.text + sizeof(word) - 1, name.len - (sizeof(word) - 1), &number))
		return;
	e->number = number;
	e->name = 0;
}

/* Returns the direction in the name of a copy of rocprofv3. */
static uint8_t copy_direction(const struct json *name)
{
	static const struct {
		const char *word;
		uint8_t kind;
	} rows[] = { { "HOST_TO_DEVICE", 1 },
		     { "DEVICE_TO_HOST", 2 },
		     { "DEVICE_TO_DEVICE", 8 },
		     { "HOST_TO_HOST", 9 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (memmem(name->text, name->len, rows[i].word, strlen(rows[i].word)))
			return rows[i].kind;
	return 0;
}

void pftrace_name_subkind(const struct pftrace_reader *r, struct event *e)
{
	struct json name;

	if (e->kind != KIND_MEMCPY && e->kind != KIND_SYNC)
		return;
	name = pftrace_named(r, e->name);
	kineto_name_subkind(&name, e);
	if (e->kind == KIND_MEMCPY && !e->subkind)
		e->subkind = copy_direction(&name);
}
