/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/found.h"

#include "collector/store/store.h"
#include "schemas/base/buf.h"
#include "schemas/base/vec.h"
#include "schemas/log/tables.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TABLES_MAX = 64 << 20, LOGS_MAX = 100000 };

struct sum {
	uint64_t logs, events, bytes, truncated_logs;
	uint64_t lost[LOSS_END];
};

void found_init(struct found *f)
{
	memset(f, 0, sizeof(*f));
}

void found_release(struct found *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->names[i]);
	free(f->names);
	found_init(f);
}

static bool is_named(const char *name, const char *host, const char *ending)
{
	size_t len = strlen(name), host_len = strlen(host), end_len = strlen(ending);

	return len > host_len + end_len + 1 && !strncmp(name, host, host_len) &&
	       name[host_len] == '.' && !strcmp(name + len - end_len, ending);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add(struct found *f, const char *name)
{
	if (vec_reserve(&f->names, &f->cap, f->count + 1, NULL) != ST_OK)
		return false;
	f->names[f->count] = strdup(name);
	return f->names[f->count] && ++f->count;
}

static void look(struct found *f, const char *folder, const char *host, const char *ending)
{
	DIR *d = opendir(folder);
	struct dirent *entry;

	while (d && f->count < LOGS_MAX && (entry = readdir(d)) != NULL)
		if (is_named(entry->d_name, host, ending) && !add(f, entry->d_name))
			break;
	if (d)
		closedir(d);
	if (f->count)
		qsort(f->names, f->count, sizeof(*f->names), compare);
}

void found_look(struct found *f, const char *folder, const char *host)
{
	look(f, folder, host, ".tacho");
}

static bool is_in(const struct found *f, const char *name)
{
	return f->count && bsearch(&name, f->names, f->count, sizeof(*f->names), compare) != NULL;
}

/* One block at the file's place; false: there is no other. */
static bool take_block(FILE *f, struct log_translation *x, struct sum *sum)
{
	uint8_t header[LOG_HEADER_BYTES], payload[LOG_BLOCK_BYTES];
	struct log_block block;
	size_t skipped;

	if (fread(header, 1, sizeof(header), f) != sizeof(header) ||
	    log_find_block(header, sizeof(header), 0, &block, &skipped, NULL) != ST_OK || skipped)
		return false;
	if (block.kind == LOG_EVENTS) {
		sum->events += block.rows;
		return fseek(f, block.size, SEEK_CUR) == 0;
	}
	if (block.size > sizeof(payload) || fread(payload, 1, block.size, f) != block.size ||
	    log_check(&block, payload, NULL) != ST_OK)
		return false;
	log_take_table(x, &block, payload, NULL);
	return true;
}

static void add_log(FILE *f, struct sum *sum)
{
	struct log_translation *x = NULL;
	struct trace *t = NULL;
	uint64_t events;
	int why;

	if (trace_new(&t, TABLES_MAX, NULL) != ST_OK ||
	    log_translation_new(&x, t, TABLES_MAX, NULL) != ST_OK)
		goto out;
	sum->logs++;
	fseek(f, LOG_FILE_HEADER_BYTES, SEEK_SET);
	while (take_block(f, x, sum))
		;
	sum->truncated_logs += !log_translation_ended(x, &events);
	log_translation_finish(x);
	for (why = 1; why < LOSS_END; why++)
		sum->lost[why] += trace_lost(t, 0, (enum loss)why);
	fseek(f, 0, SEEK_END);
	sum->bytes += (uint64_t)ftell(f);
out:
	log_translation_free(x);
	trace_free(t);
}

/* A FIFO that somebody has put there would make us wait. */
static FILE *open_log(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fdopen(fd, "rb");
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void put_losses(struct buf *out, const struct sum *sum)
{
	const char *before = "; lost: ";

	for (int why = 1; why < LOSS_END; why++) {
		if (!sum->lost[why])
			continue;
		buf_putf(out, "%s%llu %s", before, (unsigned long long)sum->lost[why],
			 loss_text((enum loss)why));
		before = ", ";
	}
	if (before[0] == ';')
		buf_put_text(out, "; nothing was lost");
	if (sum->truncated_logs)
		buf_putf(out, "; %llu not closed (the process was killed)",
			 (unsigned long long)sum->truncated_logs);
}

static void put_size(struct buf *out, uint64_t bytes)
{
	if (bytes < 10 << 20)
		buf_putf(out, "%.1f KiB", (double)bytes / 1024);
	else
		buf_putf(out, "%.1f MiB", (double)bytes / (1 << 20));
}

void found_print(const struct found *before, const struct found *after, const char *folder,
		 const char *note)
{
	struct sum sum = { 0 };
	const char *first = NULL;
	char path[8192];
	struct buf out;

	for (size_t i = 0; i < after->count; i++) {
		if (is_in(before, after->names[i]))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, after->names[i]);
		FILE *f = open_log(path);
		if (!f)
			continue;
		first = first ? first : after->names[i];
		add_log(f, &sum);
		fclose(f);
	}
	if (!sum.logs) {
		fprintf(stderr,
			"tacho-record: no log was written: no window came, or the program "
			"made no event%s\n",
			note);
		return;
	}
	buf_init(&out, 65536);
	if (sum.logs == 1)
		buf_putf(&out, "tacho-record: %s/%s: ", folder, first);
	else
		buf_putf(&out, "tacho-record: %s/: %llu logs, ", folder,
			 (unsigned long long)sum.logs);
	buf_putf(&out, "%llu events, ", (unsigned long long)sum.events);
	put_size(&out, sum.bytes);
	put_losses(&out, &sum);
	buf_put_text(&out, note);
	fprintf(stderr, "%s\n", buf_text(&out));
	buf_release(&out);
}

/* ---- rings ---- */

static void take_ring(const char *path, const char *folder, const char *word, bool save)
{
	struct error err;
	uint64_t bytes;
	enum status status = store_save_left(path, save ? folder : NULL, word, &bytes, &err);

	/* one whose process lives is its own; one that cannot be saved now may be later */
	if (status == ST_OK || status == ST_END)
		unlink(path);
	else if (status != ST_ABSENT)
		fprintf(stderr, "tacho-record: %s is left as it is: %s\n", path, err.text);
}

void found_rings(const char *rings, const char *host, const char *folder, bool save, pid_t pid,
		 int status)
{
	char path[8192], word[64];
	struct found f;

	found_init(&f);
	look(&f, rings, host, ".ring");
	for (size_t i = 0; i < f.count; i++) {
		snprintf(path, sizeof(path), "%s/%s", rings, f.names[i]);
		const char *name = f.names[i] + strlen(host);
		size_t cap = sizeof(word);
		const char *at = strstr(name, ".p");
		bool is_child = pid && at && strtol(at + 2, NULL, 10) == pid;

		if (is_child && WIFSIGNALED(status))
			snprintf(word, cap, "death, signal %d", WTERMSIG(status));
		else if (is_child && WIFEXITED(status))
			snprintf(word, cap, "death, exit %d", WEXITSTATUS(status));
		else
			snprintf(word, cap, "death");
		take_ring(path, folder, word, save);
	}
	found_release(&f);
}
