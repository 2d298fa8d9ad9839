/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/command.h"

#include "schemas/base/buf.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { COMMAND_MAX = 8192 };

static const char *const secrets[] = { "key",    "token",      "passw", "pwd",
				       "secret", "credential", "auth",  "bearer" };

static bool is_secret(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		size_t word = strlen(secrets[i]);

		for (size_t k = 0; k + word <= len; k++)
			if (!strncasecmp(name + k, secrets[i], word))
				return true;
	}
	return false;
}

/* A word is "--name=value", "NAME=value", or anything else; returns the length of the name. */
static size_t name_length(const char *word, size_t len)
{
	const char *equals = memchr(word, '=', len);
	size_t i, name = equals ? (size_t)(equals - word) : len;

	for (i = 0; i < name; i++)
		if (!isalnum((unsigned char)word[i]) && !strchr("-_.", word[i]))
			return 0;
	return name;
}

static void put_word(const char *word, size_t len, bool *hide_next, struct buf *out)
{
	size_t name = name_length(word, len);
	bool is_option = len && word[0] == '-';

	if (*hide_next && !is_option) {
		buf_put_text(out, "***");
		*hide_next = false;
		return;
	}
	*hide_next = false;
	if (name < len && name && is_secret(word, name)) {
		buf_put(out, word, name + 1);
		buf_put_text(out, "***");
		return;
	}
	buf_put(out, word, len);
	*hide_next = is_option && name == len && is_secret(word, len);
}

void command_mask(const char *args, size_t len, struct buf *out)
{
	bool hide_next = false;
	size_t at = 0;

	while (at < len) {
		size_t word = strnlen(args + at, len - at);
		if (at)
			buf_put_byte(out, ' ');
		put_word(args + at, word, &hide_next, out);
		at += word + 1;
	}
}

static size_t read_own(char *args, size_t cap)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	ssize_t n = read(fd, args, cap);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

void command_read(struct buf *out)
{
	char args[COMMAND_MAX];

	command_mask(args, read_own(args, sizeof(args)), out);
}

/* Python's spawn and forkserver, joblib's loky. */
bool command_names_worker(const char *args, size_t len)
{
	static const char *const marks[] = { "--multiprocessing-fork", "multiprocessing.forkserver",
					     "multiprocessing.resource_tracker", "popen_loky_" };

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (memmem(args, len, marks[i], strlen(marks[i])))
			return true;
	return false;
}

bool command_is_worker(void)
{
	char args[COMMAND_MAX];

	return command_names_worker(args, read_own(args, sizeof(args)));
}
