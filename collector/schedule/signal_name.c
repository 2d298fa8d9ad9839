/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/schedule/signal_name.h"

#include "schemas/base/quantity.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

static const struct {
	const char *name;
	int number;
} names[] = {
	{ "USR1", SIGUSR1 },   { "USR2", SIGUSR2 }, { "HUP", SIGHUP }, { "URG", SIGURG },
	{ "WINCH", SIGWINCH }, { "IO", SIGIO },     { "PWR", SIGPWR },
};

enum status signal_parse(const char *text, size_t len, int *out, struct error *err)
{
	const char *name = text;
	size_t name_len = len;
	uint64_t number;

	if (len > 3 && !memcmp(text, "SIG", 3)) {
		name += 3;
		name_len -= 3;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == name_len && !memcmp(names[i].name, name, name_len)) {
			*out = names[i].number;
			return ST_OK;
		}
	if (unit_parse_count(text, len, &number, NULL) == ST_OK) {
		*out = number <= 64 ? (int)number : 0;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (names[i].number == *out)
				return ST_OK;
		if (*out >= SIGRTMIN && *out <= SIGRTMAX)
			return ST_OK;
	}
	return fail(err, ST_USAGE, NOWHERE,
		    "signal=%.*s: neither USR1, USR2, HUP, URG, WINCH, IO, PWR nor the number of a "
		    "real-time signal",
		    (int)(len < 40 ? len : 40), text);
}
