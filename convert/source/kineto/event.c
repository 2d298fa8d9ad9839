/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/event.h"

#include <strings.h>

enum { MEMBERS_BYTES = 32 << 20 };

void kineto_event_init(struct kineto_event *e)
{
	*e = (struct kineto_event){ 0 };
	buf_init(&e->args, MEMBERS_BYTES);
	buf_init(&e->others, MEMBERS_BYTES);
}

void kineto_event_release(struct kineto_event *e)
{
	buf_release(&e->args);
	buf_release(&e->others);
}

static enum status collect_args(struct kineto_event *e, struct json_scan *s, struct error *err)
{
	struct kineto_member m;

	buf_clear(&e->args); /* of two members of this name the last counts */
	for (;;) {
		TRY(json_next(s, &m.key, err));
		if (m.key.type == JSON_OBJECT_END)
			return buf_status(&e->args, err);
		TRY(json_next(s, &m.value, err));
		TRY(json_raw(s, &m.value, err));
		buf_put(&e->args, &m, sizeof(m));
	}
}

static enum status collect(struct kineto_event *e, struct json_scan *s, struct error *err)
{
	struct kineto_member m;
	struct json *member;

	for (;;) {
		TRY(json_next(s, &m.key, err));
		if (m.key.type == JSON_OBJECT_END)
			return buf_status(&e->others, err);
		TRY(json_next(s, &m.value, err));
		if (m.value.type == JSON_OBJECT && kineto_is(&m.key, "args")) {
			TRY(collect_args(e, s, err));
			continue;
		}
		TRY(json_raw(s, &m.value, err));
		member = NULL;
#define X(name)                                                                                    \
	if (m.key.len == sizeof(#name) - 1 && memcmp(m.key.text, #name, sizeof(#name) - 1) == 0)   \
		member = &e->name;
		KINETO_MEMBER_LIST(X)
#undef X
		if (member)
			*member = m.value;
		else
			buf_put(&e->others, &m, sizeof(m));
	}
}

enum status kineto_event_next(struct kineto_event *e, struct json_scan *s, bool *end,
			      struct error *err)
{
	uint64_t begin = json_at(s);
	struct json token;

	do {
		json_hold(s);
		*e = (struct kineto_event){ .args = e->args, .others = e->others };
#define X(name) e->name.text = "";
		KINETO_MEMBER_LIST(X)
#undef X
		buf_clear(&e->args);
		buf_clear(&e->others);
		e->is_first = json_is_first(s);
		TRY(json_next(s, &token, err));
		*end = token.type == JSON_ARRAY_END;
		e->is_object = token.type == JSON_OBJECT;
		if (e->is_object)
			TRY(collect(e, s, err));
		else if (!*end)
			TRY(json_raw(s, &token, err));
	} while (json_again(s));
	e->text_len = (size_t)(json_at(s) - begin);
	e->text = (const char *)s->at - e->text_len;
	return ST_OK;
}

bool kineto_is(const struct json *value, const char *text)
{
	size_t len = strlen(text);

	return (value->type == JSON_STRING || value->type == JSON_KEY) && value->len == len &&
	       memcmp(value->text, text, len) == 0;
}

const struct kineto_member *kineto_find(const struct buf *list, const char *key)
{
	const struct kineto_member *m;

	for (size_t i = kineto_members(list, &m); i-- > 0;)
		if (kineto_is(&m[i].key, key))
			return &m[i];
	return NULL;
}

void kineto_drop_repeated(struct buf *list)
{
	struct kineto_member *m = (struct kineto_member *)(void *)list->data;
	size_t kept = 0, count = list->len / sizeof(*m);

	for (size_t i = 0; i < count; i++) {
		size_t j;

		for (j = i + 1; j < count; j++)
			if (m[j].key.len == m[i].key.len &&
			    memcmp(m[j].key.text, m[i].key.text, m[i].key.len) == 0)
				break;
		if (j == count)
			m[kept++] = m[i];
	}
	list->len = kept * sizeof(*m);
}

/* The category that sinks write for what it becomes stands first in each row of a kind. */
static const struct kineto_category categories[] = {
	{ "cpu_op", KIND_RANGE, RANGE_OP, true, true },
	{ "cuda_runtime", KIND_API, API_RUNTIME, true, true },
	{ "kernel", KIND_KERNEL, 0, true, false },
	{ "python_function", KIND_RANGE, RANGE_PYTHON, true, false },
	{ "gpu_memcpy", KIND_MEMCPY, 0, true, false },
	{ "gpu_memset", KIND_MEMSET, 0, true, false },
	{ "cuda_driver", KIND_API, API_DRIVER, true, true },
	{ "user_annotation", KIND_RANGE, RANGE_ANNOTATION, true, true },
	{ "gpu_user_annotation", KIND_RANGE, RANGE_GPU_ANNOTATION, true, false },
	{ "cuda_sync", KIND_SYNC, 0, true, false },
	{ "overhead", KIND_OVERHEAD, 0, true, false },
	{ "Trace", KIND_RANGE, RANGE_PROFILER, true, false },
	/* 2021 and 2022 */
	{ "Operator", KIND_RANGE, RANGE_OP, false, true },
	{ "Runtime", KIND_API, API_RUNTIME, false, true },
	{ "Driver", KIND_API, API_DRIVER, false, true },
	{ "Memcpy", KIND_MEMCPY, 0, false, false },
	{ "Memset", KIND_MEMSET, 0, false, false },
	{ "Python", KIND_RANGE, RANGE_PYTHON, false, false },
};
enum { CATEGORIES = sizeof(categories) / sizeof(categories[0]) };

const struct kineto_category *kineto_category_find(const struct json *cat)
{
	if (cat->type != JSON_STRING)
		return NULL;
	for (size_t i = 0; i < CATEGORIES; i++)
		if (kineto_is(cat, categories[i].word))
			return &categories[i];
	for (size_t i = 0; i < CATEGORIES; i++)
		if (strlen(categories[i].word) == cat->len &&
		    strncasecmp(categories[i].word, cat->text, cat->len) == 0)
			return &categories[i];
	return NULL;
}

bool kineto_is_derived_flow(const struct json *cat)
{
	static const char *const words[] = { "ac2g", "async_cpu_to_gpu", "async", "async_gpu" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (kineto_is(cat, words[i]))
			return true;
	return false;
}
