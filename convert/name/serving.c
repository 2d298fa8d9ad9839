/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name/name.h"

#include <stddef.h>
#include <string.h>

/* Reads the number at *at and moves *at after it.  Returns false if there is none, or it is too
 * large. */
static bool number_take(const char **at, uint32_t *out)
{
	uint64_t value = 0;
	const char *p = *at;

	for (; *p >= '0' && *p <= '9'; p++)
		if ((value = value * 10 + (uint64_t)(*p - '0')) >= SERVING_UNKNOWN)
			return false;
	if (p == *at)
		return false;
	*at = p;
	*out = (uint32_t)value;
	return true;
}

static bool text_take(const char **at, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

static uint32_t sum_of(uint32_t a, uint32_t b)
{
	if (a == SERVING_UNKNOWN || b == SERVING_UNKNOWN || b >= SERVING_UNKNOWN - a)
		return SERVING_UNKNOWN;
	return a + b;
}

/* Reads "context_2(14721)" or "generation_1(sq1sk12sqsq1sqsk12)": the number of requests, and of
 * their tokens. */
static bool group_take(const char **at, const char *word, uint32_t *requests, uint32_t *tokens)
{
	const char *end;

	if (!text_take(at, word) || !number_take(at, requests) || !text_take(at, "("))
		return false;
	text_take(at, "sq");
	if (!number_take(at, tokens))
		*tokens = SERVING_UNKNOWN;
	end = strchr(*at, ')');
	*at = end ? end + 1 : *at;
	return end != NULL;
}

/* Returns the number after `key`, such as " bs=". */
static uint32_t value_of(const char *name, const char *key)
{
	const char *at = strstr(name, key);
	uint32_t value;

	if (!at)
		return SERVING_UNKNOWN;
	at += strlen(key);
	return number_take(&at, &value) ? value : SERVING_UNKNOWN;
}

/* Parses vLLM's execute_[TOKENS_]context_N(TOKENS)_generation_N(TOKENS), also with detailed sums.
 */
static bool vllm_of(const char *at, struct serving_step *s)
{
	uint32_t prompt, generated, all;

	if (!text_take(&at, "execute_"))
		return false;
	if (number_take(&at, &all) && !text_take(&at, "_"))
		return false;
	if (!group_take(&at, "context_", &s->prefill, &prompt) ||
	    !group_take(&at, "_generation_", &s->decode, &generated))
		return false;
	s->batch = sum_of(s->prefill, s->decode);
	s->tokens = sum_of(prompt, generated);
	return true;
}

/* Parses SGLang's step[EXTEND bs=2 toks=14721], also with the detailed c= and g=. */
static bool sglang_of(const char *name, struct serving_step *s)
{
	bool is_decode = strncmp(name, "step[DECODE ", 12) == 0;

	if (strncmp(name, "step[", 5) != 0 ||
	    (s->batch = value_of(name, " bs=")) == SERVING_UNKNOWN)
		return false;
	s->prefill = value_of(name, " c=");
	s->decode = value_of(name, " g=");
	s->tokens = value_of(name, " toks=");
	if (s->tokens == SERVING_UNKNOWN)
		s->tokens = sum_of(value_of(name, " c_sq="), value_of(name, " g_sq="));
	if (s->tokens == SERVING_UNKNOWN && is_decode)
		s->tokens = s->batch;
	if (s->prefill == SERVING_UNKNOWN && s->decode == SERVING_UNKNOWN) {
		bool is_prefill = strncmp(name, "step[EXTEND ", 12) == 0;

		if (is_decode || is_prefill) {
			s->prefill = is_prefill ? s->batch : 0;
			s->decode = is_decode ? s->batch : 0;
		}
	}
	return true;
}

/* Parses ATOM's prefill[bs=2 tok=14721 ...] and decode[bs=117/128 tok=117 ...]. */
static bool atom_of(const char *name, struct serving_step *s)
{
	const char *at = name;
	bool is_prefill = text_take(&at, "prefill[bs=");

	if ((!is_prefill && !text_take(&at, "decode[bs=")) || !number_take(&at, &s->batch))
		return false;
	if (text_take(&at, "/"))
		number_take(&at, &s->padded);
	s->prefill = is_prefill ? s->batch : 0;
	s->decode = is_prefill ? 0 : s->batch;
	s->tokens = value_of(at, " tok=");
	return true;
}

bool serving_step_of(const char *name, struct serving_step *out)
{
	static const struct serving_step unknown = { SERVING_UNKNOWN, SERVING_UNKNOWN,
						     SERVING_UNKNOWN, SERVING_UNKNOWN,
						     SERVING_UNKNOWN };
	const char *at = name;

	*out = unknown;
	if (vllm_of(name, out))
		return true;
	*out = unknown;
	if (text_take(&at, "execute_diffusion_"))
		return number_take(&at, &out->batch) && *at == '_';
	return sglang_of(name, out) || atom_of(name, out);
}
