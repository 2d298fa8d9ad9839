/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/rows.h"

#include "collector/probe/nvtx/names.h"
#include "collector/arena/texts.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"
#include "schemas/base/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COMM_MAX = 32 };

/* Returns the length of the thread's current name; 0: the thread has ended. */
static size_t read_comm(uint32_t tid, char out[COMM_MAX])
{
	char path[64];
	ssize_t n = 0;

	snprintf(path, sizeof(path), "%s/task/%u/comm", session_proc(), tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, COMM_MAX);
		close(fd);
	}
	while (n > 0 && out[n - 1] == '\n')
		n--;
	return n > 0 ? (size_t)n : 0;
}

uint32_t probe_thread_track(struct writer *w, uint32_t tid, const char *fallback)
{
	struct track track = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = tid };
	uint32_t given = nvtx_object_name(NVTX_THREAD, tid);
	char comm[COMM_MAX];
	const char *text = comm;
	size_t len;

	if (given)
		text = name_text(given, &len);
	else
		len = read_comm(tid, comm);
	if (!given && !len && fallback) {
		text = fallback;
		len = strlen(fallback);
	}
	track.name = given || len ? writer_name(w, text, len) : 0;
	return writer_track(w, &track);
}

void probe_clip(const struct writer *w, struct event *e)
{
	if (!writer_clips(w) || e->begin_ns >= writer_window_begin(w))
		return;
	e->begin_ns = writer_window_begin(w);
	e->flags |= EVENT_BEGAN_EARLIER;
}

uint32_t *desc_cache_find(struct desc_cache *c, const struct writer *w, uint32_t track,
			  const struct ring_record *r, uint64_t word)
{
	const uint64_t key[] = { (uint64_t)track << 32 | r->name,
				 (uint64_t)r->kind << 8 | r->subkind, word };
	uint64_t hash = hash_word(hash_word(hash_word(0, key[0]), key[1]), key[2]);
	size_t i = hash % (sizeof(c->rows) / sizeof(c->rows[0]));

	if (writer_log_changed(w, &c->log))
		memset(c->rows, 0, sizeof(c->rows));
	if (memcmp(c->rows[i].key, key, sizeof(key)) != 0) {
		memcpy(c->rows[i].key, key, sizeof(key));
		c->rows[i].desc = 0;
	}
	return &c->rows[i].desc;
}
