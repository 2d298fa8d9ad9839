/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of rules, a NUL, then names: the file is taken or refused; whatever was taken answers for
 * any name.
 */
#include "convert/name/rules.h"
#include "tests/fuzz/target.h"

static void ask(const struct name_rules *r, const char *name)
{
	char out[200];
	uint64_t number;
	unsigned phase = name_rules_phase(r, name);
	size_t len;

	if (phase != PHASE_NONE &&
	    (phase >= name_rules_phase_count(r) || !name_rules_phase_name(r, phase)))
		abort();
	name_rules_pushed(r, name);
	name_rules_step(r, name, &number);
	name_rules_communicates(r, name);
	name_is_autograd(name);
	len = name_short(name, 40, out, sizeof(out));
	if (len >= sizeof(out) || strlen(out) != len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	size_t len = end ? (size_t)(end - data) : size;
	struct name_rules *r = NULL;
	char *text;

	/* Long expressions of many repetitions are slow in any regular expression library. */
	if (len > 2048 || size > 4096)
		return 0;
	if (name_rules_new(&r, (const char *)data, len, NULL) != ST_OK &&
	    name_rules_new(&r, NULL, 0, NULL) != ST_OK)
		return 0;
	text = fuzz_all(data + len, size - len);
	ask(r, text + (size > len));
	free(text);
	name_rules_free(r);
	return 0;
}
