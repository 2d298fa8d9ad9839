/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config/config.h"

#include "schemas/base/buf.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { COMMAND_MAX = 8192 };

/* A name that contains one of these has a secret value. */
static const char *const secrets[] = { "key",    "token",      "pass", "pwd",
				       "secret", "credential", "auth", "bearer" };
/* Common words in trainings that contain one of the above but are no secrets. */
static const char *const harmless[] = { "tokens", "tokeniz", "author", "keyboard", "keypoint" };
/* Prefixes of secret values of well-known services. */
static const char *const prefixes[] = { "sk-", "ghp_",  "gho_",  "ghs_", "github_pat_", "glpat-",
					"hf_", "xoxb-", "xoxp-", "AKIA", "eyJ" };
/* Programs whose -p is a password, not a port. */
static const char *const p_is_password[] = { "sshpass",    "mysql", "mysqldump",
					     "mysqladmin", "mongo", "login" };
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum { PREFIX_REST = 8 }; /* fewer bytes after a prefix are no secret */

/* Finds one of the words in `name`: returns its length and sets *at to its place, or returns 0. */
static size_t find_word(const char *name, size_t len, const char *const *words, size_t count,
			size_t *at)
{
	for (size_t i = 0; i < count; i++) {
		size_t word = strlen(words[i]);

		for (*at = 0; *at + word <= len; ++*at)
			if (!strncasecmp(name + *at, words[i], word))
				return word;
	}
	return 0;
}

static bool is_secret(const char *name, size_t len)
{
	size_t at, covered;

	while ((covered = find_word(name, len, harmless, COUNT(harmless), &at)) != 0) {
		if (!strncasecmp(name + at, "author", 6) && at + 7 < len &&
		    !strncasecmp(name + at + 6, "iz", 2))
			return true;
		if (is_secret(name, at))
			return true;
		name += at + covered;
		len -= at + covered;
	}
	return find_word(name, len, secrets, COUNT(secrets), &at) != 0;
}

const char *command_stat(uint32_t pid, char text[COMMAND_STAT])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, COMMAND_STAT - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text = strrchr(text, ')'); /* the name may contain any byte */
	return text && text[1] ? text + 2 : NULL;
}

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("-_.", c));
}

static size_t name_at(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && is_name_byte(text[n]))
		n++;
	return n;
}

/* Returns where the value begins in the text after a name, such as "=v", ": v", "\":\"v\"" or
 * "']='v", or 0 if there is no value. */
static size_t value_at(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && strchr("\"'] \\", text[i]) && text[i])
		i++;
	if (i == len || (text[i] != '=' && text[i] != ':') ||
	    (text[i] == ':' && i + 1 < len && text[i + 1] == '/'))
		return 0;
	for (i++; i < len && strchr("=\"' \\", text[i]) && text[i]; i++)
		;
	return i < len ? i : 0;
}

/* Finds "user:pass@" or, after "://", "pass@": returns the length up to the @ and sets *secret to
 * the begin of the password, or returns 0. */
static size_t user_at(const char *text, size_t len, bool behind_scheme, size_t *secret)
{
	size_t i = 0;

	*secret = 0;
	for (; i < len && !isspace((unsigned char)text[i]) && !strchr("/\"'@", text[i]); i++)
		if (text[i] == ':' && !*secret)
			*secret = i + 1;
	if (i == len || text[i] != '@' || i == *secret)
		return 0;
	return *secret > 1 || behind_scheme ? i : 0;
}

static bool is_prefixed(const char *text, size_t len)
{
	for (size_t i = 0; i < COUNT(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (len >= n + PREFIX_REST && !memcmp(text, prefixes[i], n) &&
		    name_at(text + n, len - n) >= PREFIX_REST)
			return true;
	}
	return false;
}

static bool is_scheme_of_http(const char *name, size_t len)
{
	return (len == 6 && !strncasecmp(name, "bearer", 6)) ||
	       (len == 5 && !strncasecmp(name, "basic", 5));
}

/* Appends a word with its secrets masked.  The value after the name of a secret is masked to the
 * end of the word, because it may contain any byte. */
static void put_masked(const char *word, size_t len, struct buf *out)
{
	bool behind_scheme = false;
	size_t i = 0, secret;

	while (i < len) {
		size_t user = user_at(word + i, len - i, behind_scheme, &secret);

		if (user) {
			buf_put(out, word + i, secret);
			buf_put_text(out, "***");
			i += user;
		}
		size_t name = name_at(word + i, len - i);
		if (!name) {
			behind_scheme = i >= 2 && !memcmp(word + i - 2, "://", 3);
			buf_put_byte(out, (uint8_t)word[i++]);
			continue;
		}
		behind_scheme = false;
		if (is_prefixed(word + i, len - i)) {
			buf_put_text(out, "***");
			i += name;
			continue;
		}
		size_t value =
			is_secret(word + i, name) ? value_at(word + i + name, len - i - name) : 0;
		if (is_scheme_of_http(word + i, name) && i + name + 1 < len &&
		    word[i + name] == ' ')
			value = 1;
		buf_put(out, word + i, name + value);
		i += name + value;
		if (value) {
			buf_put_text(out, "***");
			return;
		}
	}
}

struct masking {
	bool hide_next;   /* the previous word was the name of a secret */
	bool p_is_secret; /* -p is a password of the program on the command line */
};

static bool is_p_program(const char *word, size_t len)
{
	const char *slash = memrchr(word, '/', len);
	size_t skip = slash ? (size_t)(slash - word) + 1 : 0;

	for (size_t i = 0; i < COUNT(p_is_password); i++)
		if (strlen(p_is_password[i]) == len - skip &&
		    !memcmp(word + skip, p_is_password[i], len - skip))
			return true;
	return false;
}

static void put_word(struct masking *m, const char *word, size_t len, struct buf *out)
{
	bool is_long = len > 1 && word[0] == '-' && word[1] == '-';
	bool is_option = len > 1 && word[0] == '-';

	if (m->hide_next && !is_long) {
		buf_put_text(out, "***");
		m->hide_next = false;
		return;
	}
	m->hide_next = false;
	if (m->p_is_secret && is_option && word[1] == 'p') {
		buf_put(out, word, 2);
		if (len > 2)
			buf_put_text(out, "***");
		m->hide_next = len == 2;
		return;
	}
	m->p_is_secret |= is_p_program(word, len);
	/* --user of curl and wget is user:password. */
	m->hide_next = is_option && name_at(word, len) == len &&
		       (is_secret(word, len) || (len == 6 && !memcmp(word, "--user", 6)));
	put_masked(word, len, out);
}

void command_mask(const char *args, size_t len, struct buf *out)
{
	struct masking m = { 0 };
	size_t at = 0;

	while (at < len) {
		size_t word = strnlen(args + at, len - at);
		if (at)
			buf_put_byte(out, ' ');
		put_word(&m, args + at, word, out);
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

/* The marks are those of Python's spawn and forkserver, and of joblib's loky. */
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
