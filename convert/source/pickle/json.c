/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/pickle/internal.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static enum status push_json(struct pickle *p, const cJSON *from);

/* Pushes the members of an array or object.  cJSON limits the nesting depth. */
static enum status push_members(struct pickle *p, const cJSON *from)
{
	size_t first = p->depth;
	const cJSON *item;

	cJSON_ArrayForEach(item, from)
	{
		if (cJSON_IsObject(from)) {
			p->bytes = (const uint8_t *)item->string;
			p->len = strlen(item->string);
			p->at = 0;
			TRY(pickle_push_text(p, p->len));
		}
		TRY(push_json(p, item));
	}
	return pickle_collect(p, cJSON_IsObject(from) ? PICKLE_DICT : PICKLE_LIST, first, first);
}

static enum status push_json(struct pickle *p, const cJSON *from)
{
	struct pickle_value *v;
	double number = from->valuedouble;

	if (cJSON_IsArray(from) || cJSON_IsObject(from))
		return push_members(p, from);
	if (cJSON_IsString(from)) {
		p->bytes = (const uint8_t *)from->valuestring;
		p->len = strlen(from->valuestring);
		p->at = 0;
		return pickle_push_text(p, p->len);
	}
	if (cJSON_IsBool(from))
		return pickle_push_int(p, PICKLE_BOOL, cJSON_IsTrue(from));
	if (cJSON_IsNumber(from) && number > -9223372036854775808.0 &&
	    number < 9223372036854775808.0 && number == trunc(number))
		return pickle_push_int(p, PICKLE_INT, (int64_t)number);
	v = pickle_value_new(p, cJSON_IsNumber(from) ? PICKLE_REAL : PICKLE_NONE);
	if (v && cJSON_IsNumber(from))
		v->real = number;
	return pickle_push(p, v);
}

enum status pickle_of_json(struct pickle **out, const struct pickle_value **root, const char *text,
			   size_t len, size_t ceiling, struct error *err)
{
	enum status status = pickle_new(out, NULL, 0, ceiling, err);
	const char *end = NULL;
	cJSON *json;

	TRY(status);
	json = cJSON_ParseWithLengthOpts(text, len, &end, false);
	status = json ? push_json(*out, json)
		      : fail(err, ST_FORMAT, end ? (uint64_t)(end - text) : 0, "damaged JSON");
	cJSON_Delete(json);
	if (status == ST_OK) {
		*root = (*out)->stack[0];
		return ST_OK;
	}
	pickle_free(*out);
	*out = NULL;
	return status;
}
