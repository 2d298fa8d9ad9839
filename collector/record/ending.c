/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"

#include "collector/arena/arena.h"
#include "collector/config/config.h"
#include "schemas/base/buf.h"
#include "schemas/base/quantity.h"
#include "schemas/log/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { TABLES_MAX = 64 << 20, LINE_MAX_BYTES = 65536, BLOCK_LEAST = 4096 };

struct sum {
	uint64_t logs, events, steps, bytes, truncated_logs;
	uint64_t lost[LOSS_END];
};

/* ---- contents of the logs, from block headers and tables ---- */

/* Reads the block at the file's position; returns false if there is none. */
static bool take_block(FILE *f, struct log_translation *x, struct sum *sum)
{
	uint8_t header[LOG_HEADER_BYTES], payload[LOG_BLOCK_BYTES];
	struct log_block block;
	size_t skipped;

	if (fread(header, 1, sizeof(header), f) != sizeof(header) ||
	    log_find_block(header, sizeof(header), 0, &block, &skipped, NULL) != ST_OK || skipped)
		return false;
	if (block.kind == LOG_EVENTS) {
		const struct log_layout *layout = log_layout(x, block.layout);

		sum->events += block.rows;
		sum->steps += layout && layout->kind == KIND_STEP ? block.rows : 0;
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

/* Opens a log.  Only regular files are opened, because a FIFO would block us. */
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

static void put_refused(const struct seen *seen, struct buf *out)
{
	char size[UNIT_TEXT];

	unit_format_size(seen->limit, size);
	if (seen->refusal == REFUSED_RECORDER)
		buf_put_text(out, "the recorder could not be reached from where it runs");
	else if (seen->refusal == REFUSED_DESCRIPTORS)
		buf_putf(out, "of %llu descriptors none was free, see ulimit -n",
			 (unsigned long long)seen->limit);
	else if (seen->refusal == REFUSED_FILTER)
		buf_put_text(out, "before its first event it was under a seccomp filter of its "
				  "own, which may forbid the system calls that recording takes");
	else if (seen->refusal == REFUSED_CLONE)
		buf_put_text(out, "it was forked in the middle of an event");
	else if (seen->refusal == REFUSED_FILE_SIZE)
		buf_putf(out, "its files are limited to %s, see ulimit -f", size);
	else if (seen->refusal == REFUSED_SPACE && seen->limit != RLIM_INFINITY)
		buf_putf(out, "its address space is limited to %s, see ulimit -v", size);
	else
		buf_put_text(out, "it had no memory for its rings");
}

static uint64_t free_bytes(const char *folder)
{
	struct statvfs v;

	return statvfs(folder, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize : UINT64_MAX;
}

static void put_losses(const struct ending *e, const struct sum *sum, struct buf *out)
{
	const struct seen *seen = &e->seen;
	const char *before = "; lost: ";

	for (int why = 1; why < LOSS_END; why++) {
		if (!sum->lost[why])
			continue;
		buf_putf(out, "%s%llu %s", before, (unsigned long long)sum->lost[why],
			 loss_text((enum loss)why));
		before = ", ";
	}
	/* of logs that are not closed it is not known */
	if (before[0] == ';' && !sum->truncated_logs && !seen->refused)
		buf_put_text(out, "; nothing was lost");
	if (sum->truncated_logs)
		buf_putf(out, "; %llu not closed (%s)", (unsigned long long)sum->truncated_logs,
			 free_bytes(e->config->out) < BLOCK_LEAST ? "the disk is full"
								  : "the process was killed");
	if (seen->refused) {
		buf_putf(out, "; %llu process%s could not be recorded%s: ",
			 (unsigned long long)seen->refused, seen->refused == 1 ? "" : "es",
			 seen->refused == 1 ? "" : ", the latest because");
		put_refused(seen, out);
	}
}

static void put_size(struct buf *out, uint64_t bytes)
{
	if (bytes < 10 << 20)
		buf_putf(out, "%.1f KiB", (double)bytes / 1024);
	else
		buf_putf(out, "%.1f MiB", (double)bytes / (1 << 20));
}

/* ---- reasons why there is no log ---- */

bool ending_put_disk(const struct config *c, struct buf *out)
{
	const char *folder = c->ring ? config_ring_dir(c) : c->out;
	uint64_t has = free_bytes(folder);
	char text[2][UNIT_TEXT];

	if (has >= c->ring && has - c->ring >= c->min_free)
		return false;
	buf_putf(out, "%s has %.1f MiB left, ", folder, (double)has / (1 << 20));
	if (c->ring)
		buf_putf(out, "the ring needs %s and ", unit_format_size(c->ring, text[0]));
	buf_putf(out, "--min-free leaves %s", unit_format_size(c->min_free, text[1]));
	return true;
}

static void put_window(const struct ending *e, struct buf *out)
{
	const struct config *c = e->config;
	const struct window_spec *w = &c->window_spec;
	bool counts = w->first_step || w->active || w->warmup || w->wait || w->every_steps;

	if (e->seen.steps)
		buf_putf(out, "%llu steps were seen, and the window %s did not come",
			 (unsigned long long)e->seen.steps, c->window);
	else if (counts)
		buf_putf(out,
			 "the window %s waits for a step, and no step was marked: call "
			 "tacho.step() or tacho_step() as each begins",
			 c->window);
	else if (strcmp(c->window, "all") != 0)
		buf_putf(out, "the window %s did not come, or the program made no event in it",
			 c->window);
	else
		buf_put_text(out, "the program made no event: no step was marked (tacho.step(), "
				  "tacho_step()), no GPU and no NVTX was used");
}

/* Returns whether a word of options before the program's name contains one of these letters. */
static bool has_option(char *const *words, const char *letters)
{
	for (; *words && (*words)[0] == '-'; words++)
		if ((*words)[1] != '-' && strpbrk(*words, letters))
			return true;
	return false;
}

/* Appends why a command without steps may have none: it leaves out what tacho-record sets for it.
 */
static void put_hidden(const struct ending *e, struct buf *out)
{
	for (char *const *word = e->command; word && *word; word++) {
		const char *slash = strrchr(*word, '/'), *name = slash ? slash + 1 : *word;

		if (!strcmp(name, "env") && word[1] &&
		    (!strcmp(word[1], "-") || !strcmp(word[1], "--ignore-environment") ||
		     has_option(word + 1, "i")))
			buf_put_text(out, "; what env -i starts is not recorded");
		else if (!strncmp(name, "python", 6) && has_option(word + 1, "ISE"))
			buf_put_text(out, "; python -I, -S and -E load no hook, so steps and "
					  "phases are not detected");
	}
}

static void put_reason(const struct ending *e, struct buf *out)
{
	const struct config *c = e->config;
	struct rlimit space = { 0 };
	struct stat st;
	bool wanted = true;

	getrlimit(RLIMIT_AS, &space); /* the recorder has the same limit */
	struct seen no_space = { .refusal = REFUSED_SPACE, .limit = space.rlim_cur };

	rank_is_wanted(c->ranks, c->rank.rank, &wanted, NULL);
	if (!c->enabled)
		buf_put_text(out, "recording is switched off by --no-enabled or TACHO_ENABLED");
	else if (!wanted)
		buf_putf(out, "rank %u is not in --ranks %s", c->rank.rank, c->ranks);
	else if (e->rings_left)
		buf_put_text(out, "the ring could not be saved, and is left");
	else if (stat(c->out, &st) != 0)
		buf_putf(out, "%s: %s", c->out,
			 e->had_folder && errno == ENOENT ? "it was removed meanwhile"
							  : strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		buf_putf(out, "%s is no folder", c->out);
	else if (access(c->out, W_OK | X_OK) != 0)
		buf_putf(out, "%s: %s", c->out, strerror(errno));
	else if (ending_put_disk(c, out))
		;
	else if (e->seen.refused || e->lacks_space) {
		buf_put_text(out, "the program could not be recorded: ");
		put_refused(e->seen.refused ? &e->seen : &no_space, out);
	} else if (e->seen.is_known && !e->seen.loaded)
		buf_put_text(out, "the command ran without libtacho.so: it is linked statically "
				  "or has the rights of another user (setuid)");
	else if (e->recorder_killed)
		buf_put_text(out, "the recorder was killed before it knew of the program");
	else if (c->ring && e->seen.steps)
		buf_putf(out, "nothing happened that --save-on %s waits for", c->save_on);
	else
		put_window(e, out);
}

/* ---- the lines ---- */

static void print_line(struct buf *out)
{
	fprintf(stderr, "tacho-record: %s\n", buf_text(out));
	buf_clear(out);
}

/* Appends a word, quoted for a shell. */
static void put_quoted(struct buf *out, const char *text)
{
	if (!strpbrk(text, " \t\n'\"\\$`*?[]()<>|&;!#~")) {
		buf_put_text(out, text);
		return;
	}
	buf_put_byte(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_put_text(out, "'\\''");
		else
			buf_put_byte(out, (uint8_t)*text);
	buf_put_byte(out, '\'');
}

static void put_next_step(const struct ending *e, const char *path, struct buf *out)
{
	char self[4096], beside[4200];
	const char *tool = "tacho-analyze";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	/* If tacho-record was not found through PATH, tacho-analyze is not either. */
	if (strchr(e->name, '/') && n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		snprintf(beside, sizeof(beside), "%s/%s", self, tool);
		tool = beside;
	}
	buf_put_text(out, "see it with: ");
	put_quoted(out, tool);
	buf_put_byte(out, ' ');
	put_quoted(out, path);
}

static void put_logs(const struct ending *e, const struct sum *sum, const char *path,
		     struct buf *out)
{
	if (sum->logs == 1)
		buf_putf(out, "%s: ", path);
	else
		buf_putf(out, "%s/: %llu logs, ", e->config->out, (unsigned long long)sum->logs);
	buf_putf(out, "%llu events, ", (unsigned long long)sum->events);
	if (sum->steps)
		buf_putf(out, "%llu steps, ", (unsigned long long)sum->steps);
	put_size(out, sum->bytes);
	put_losses(e, sum, out);
	if (e->seen.slow)
		buf_putf(out,
			 "; %llu slow steps were not saved, the longest is step %llu with %.3f ms",
			 (unsigned long long)e->seen.slow, (unsigned long long)e->seen.longest_step,
			 (double)e->seen.longest_ns / 1e6);
	buf_put_text(out, e->note);
}

void ending_print(const struct ending *e, const struct found *before, const struct found *after)
{
	struct sum sum = { 0 };
	char path[8192], first[8192] = "";
	struct buf out;

	for (size_t i = 0; i < after->count; i++) {
		if (found_holds(before, after->names[i]))
			continue;
		snprintf(path, sizeof(path), "%s/%s", e->config->out, after->names[i]);
		FILE *f = open_log(path);
		if (!f)
			continue;
		if (!*first)
			memcpy(first, path, sizeof(first));
		add_log(f, &sum);
		fclose(f);
	}
	buf_init(&out, LINE_MAX_BYTES);
	if (sum.logs) {
		put_logs(e, &sum, first, &out);
		if (!sum.steps)
			put_hidden(e, &out);
		print_line(&out);
		put_next_step(e, sum.logs == 1 ? first : e->config->out, &out);
	} else {
		buf_put_text(&out, "no log was written: ");
		put_reason(e, &out);
		put_hidden(e, &out);
		buf_put_text(&out, e->note);
	}
	print_line(&out);
	buf_release(&out);
}
