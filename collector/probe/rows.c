/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/rows.h"

#include "collector/probe/nvtx/names.h"
#include "collector/arena/texts.h"
#include "collector/session/session.h"
#include "collector/store/writer.h"
#include "schemas/base/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMM_MAX = 32 };

size_t probe_read(const char *path, char *text, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, cap - 1) : -1;

	if (fd >= 0)
		close(fd);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

uint32_t probe_name(struct writer *w, uint32_t id)
{
	size_t len;
	const char *text = name_text(id, &len);

	return len ? writer_name(w, text, len) : 0;
}

uint32_t probe_thread_track(struct writer *w, uint32_t tid, const char *fallback)
{
	struct track track = { .type = TRACK_THREAD, .device = NO_ID, .context = NO_ID, .id = tid };
	uint32_t given = nvtx_object_name(NVTX_THREAD, tid);
	char path[64], comm[COMM_MAX];
	const char *text = comm;
	size_t len;

	snprintf(path, sizeof(path), "%s/task/%u/comm", session_proc(), tid);
	if (given)
		text = name_text(given, &len);
	else
		len = probe_read(path, comm, sizeof(comm));
	if (!given && !len && fallback) {
		text = fallback;
		len = strlen(fallback);
	}
	track.name = given || len ? writer_name(w, text, len) : 0;
	return writer_track(w, &track);
}

void probe_put_counter(struct writer *w, uint32_t *desc, uint32_t device, const char *name,
		       uint8_t unit, uint64_t at_ns, double value)
{
	struct event e = { .begin_ns = at_ns, .end_ns = at_ns, .value = value };
	struct track track = {
		.type = TRACK_COUNTER, .context = NO_ID, .unit = unit, .device = device
	};
	struct event_desc made = { .kind = KIND_COUNTER };

	if (!*desc) {
		track.name = made.name = writer_name(w, name, strlen(name));
		made.track = writer_track(w, &track);
		*desc = writer_desc(w, &made);
	}
	writer_put(w, &e, *desc);
}

void probe_clip(const struct writer *w, struct event *e)
{
	if (!writer_clips(w) || e->begin_ns >= writer_window_begin(w))
		return;
	e->begin_ns = writer_window_begin(w);
	e->flags |= EVENT_BEGAN_EARLIER;
}

enum { DESC_ROWS = 4096 };

uint32_t *desc_cache_find(struct desc_cache *c, const struct writer *w, uint32_t track,
			  const struct ring_record *r, uint64_t word)
{
	const uint64_t key[] = { (uint64_t)track << 32 | r->name,
				 (uint64_t)r->kind << 8 | r->subkind, word };
	uint64_t hash = hash_word(hash_word(hash_word(0, key[0]), key[1]), key[2]);
	size_t i = hash % DESC_ROWS;
	static uint32_t none;

	if (!c->rows)
		c->rows = calloc(DESC_ROWS, sizeof(c->rows[0]));
	if (!c->rows)
		return none = 0, &none;
	if (writer_log_changed(w, &c->log))
		memset(c->rows, 0, DESC_ROWS * sizeof(c->rows[0]));
	if (memcmp(c->rows[i].key, key, sizeof(key)) != 0) {
		memcpy(c->rows[i].key, key, sizeof(key));
		c->rows[i].desc = 0;
	}
	return &c->rows[i].desc;
}
