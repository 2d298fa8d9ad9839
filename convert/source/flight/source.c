/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads dumps of PyTorch's Flight Recorder: the last collectives that each rank of a job issued
 * before the dump, usually because the job hung (FlightRecorderDetail.hpp; version 2.x, pickle or
 * JSON).
 *
 * A collective becomes a range on a track of its process group, from its creation until PyTorch
 * found that it was complete; an incomplete one has no end.  The report `hang` compares the ranks.
 */
#include "convert/input/input.h"
#include "convert/source/import.h"
#include "convert/source/pickle/pickle.h"
#include "convert/source/source.h"
#include "convert/source/spooled.h"
#include "schemas/base/json_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST   ((uint64_t)128 << 20)
#define VALUES_MOST ((size_t)512 << 20)
enum { TEXT_MOST = 4096, NEST_MOST = 8, RANK_DIGITS = 7 };

struct flight {
	struct import to;
	const struct pickle_value *groups; /* pg_config */
	const struct pickle_value *status; /* pg_status */
	int64_t last_ns;                   /* latest time in the dump */
	uint32_t process;
	uint64_t damaged;
};

static int flight_bid(const uint8_t *head, size_t len)
{
	bool is_pickle = len > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;

	if (!is_pickle && (!len || head[0] != '{'))
		return 0;
	return pickle_head_has(head, len, "collective_seq_id") ||
			       (pickle_head_has(head, len, "pg_config") &&
				pickle_head_has(head, len, "pg_status"))
		       ? 98
		       : 0;
}

/* ---- attributes ------------------------------------------------------------------------- */

/* Appends a value made of lists, numbers and texts to `out` as JSON, such as [[4, 8], [2]]. */
static void put_json(struct buf *out, const struct pickle_value *v, int depth)
{
	if (v && v->type == PICKLE_LIST && depth < NEST_MOST) {
		buf_put_text(out, "[");
		for (size_t i = 0; i < v->count; i++) {
			buf_put_text(out, i ? ", " : "");
			put_json(out, v->items[i], depth + 1);
		}
		buf_put_text(out, "]");
	} else if (v && v->type == PICKLE_INT) {
		buf_put_i64_text(out, v->number);
	} else if (v && v->type == PICKLE_TEXT) {
		json_put_text(out, v->text, v->len);
	} else {
		buf_put_text(out, "null");
	}
}

static enum status put_value(struct flight *f, const char *key, const struct pickle_value *v,
			     struct error *err)
{
	struct attr a = { .type = ATTR_JSON };
	struct buf text;
	uint32_t name = 0;
	enum status status;

	if (!v || v->type == PICKLE_NONE)
		return ST_OK;
	if (v->type == PICKLE_TEXT)
		return import_text(&f->to, key, v->text, v->len, err);
	buf_init(&text, TEXT_MOST);
	put_json(&text, v, 0);
	if (buf_status(&text, NULL) != ST_OK) { /* it exceeds TEXT_MOST */
		buf_clear(&text);
		buf_putf(&text, "\"%zu items\"", pickle_count(v));
	}
	status = import_name(&f->to, buf_text(&text), text.len, &name, err);
	a.bits = name;
	if (status == ST_OK)
		status = import_attr_named(&f->to, key, strlen(key), &a, false, err);
	buf_release(&text);
	return status;
}

/* Adds the Python frames that issued the collective as the attribute "where". */
static enum status put_frames(struct flight *f, const struct pickle_value *frames,
			      struct error *err)
{
	enum status status = ST_OK;
	struct buf text;

	buf_init(&text, TEXT_MOST);
	if (frames && frames->type == PICKLE_LIST)
		pickle_put_where(&text, frames);
	if (text.len)
		status = import_text(&f->to, "where", buf_text(&text), text.len, err);
	buf_release(&text);
	return status;
}

/* ---- a collective ----------------------------------------------------------------------- */

static enum status take_track(struct flight *f, const char *group, const char *about, int64_t id,
			      struct event *e, struct error *err)
{
	struct track track = { .type = TRACK_THREAD,
			       .process = f->process,
			       .device = NO_ID,
			       .context = NO_ID,
			       .id = (uint64_t)id };
	char text[160];
	uint32_t name;

	snprintf(text, sizeof(text), "process group %.60s%s%.60s", group, about[0] ? ", " : "",
		 about);
	e->track = trace_track(f->to.trace, &track, err);
	if (!e->track)
		return err->status;
	TRY(import_name(&f->to, text, strlen(text), &name, err));
	trace_set_track_name(f->to.trace, e->track, name);
	return ST_OK;
}

static int64_t number_of_entry(const struct pickle_value *entry)
{
	bool is_p2p = pickle_int(pickle_get(entry, "is_p2p"), 0) != 0;

	return pickle_int(pickle_get(entry, is_p2p ? "p2p_seq_id" : "collective_seq_id"), 0);
}

/*
 * Returns whether a collective was completed.  Gloo has no device events, so the state of its
 * entries remains "scheduled"; `retired` and the group's last completed number are better evidence.
 * An NCCL entry that was retired may have been aborted instead.
 */
static bool entry_is_done(const struct flight *f, const struct pickle_value *entry)
{
	bool is_nccl = !strncmp(pickle_text(pickle_get(entry, "profiling_name"), ""), "nccl:", 5);
	const struct pickle_value *last;
	char group[24];

	if (!strcmp(pickle_text(pickle_get(entry, "state"), ""), "completed") ||
	    (pickle_int(pickle_get(entry, "retired"), 0) && !is_nccl))
		return true;
	snprintf(group, sizeof(group), "%lld",
		 (long long)pickle_int(pickle_get(entry, "pg_id"), -1));
	last = pickle_get(pickle_get(f->status, group), "last_completed_collective");
	return !pickle_int(pickle_get(entry, "is_p2p"), 0) && /* JSON has this number as a text */
	       pickle_int(last, strtoll(pickle_text(last, "-1"), NULL, 10)) >=
		       number_of_entry(entry);
}

static enum status put_entry(struct flight *f, const struct pickle_value *entry,
			     const struct pickle_value *pair, bool is_done, struct event *e,
			     struct error *err)
{
	bool is_p2p = pickle_int(pickle_get(entry, "is_p2p"), 0) != 0;
	const char *name = pickle_text(pickle_get(entry, "profiling_name"), "");
	const char *word = strchr(name, ':');
	const struct pickle_value *group = pickle_get(f->groups, pickle_text(pair->items[0], ""));
	int64_t started = pickle_int(pickle_get(entry, "time_discovered_started_ns"), 0);

	word = word ? word + 1 : name;
	TRY(import_name(&f->to, name, strlen(name), &e->name, err));
	TRY(import_text(&f->to, "collective", word, strlen(word), err));
	TRY(put_value(f, "group_name", pair->items[0], err));
	TRY(put_value(f, "group_description", pair->items[1], err));
	TRY(put_value(f, "group_ranks", pickle_get(group, "ranks"), err));
	TRY(is_done ? import_text(&f->to, "state", "completed", 9, err)
		    : put_value(f, "state", pickle_get(entry, "state"), err));
	TRY(put_value(f, "in_sizes", pickle_get(entry, "input_sizes"), err));
	TRY(put_value(f, "out_sizes", pickle_get(entry, "output_sizes"), err));
	TRY(put_value(f, "in_types", pickle_get(entry, "input_dtypes"), err));
	TRY(put_value(f, "out_types", pickle_get(entry, "output_dtypes"), err));
	TRY(import_number(&f->to, "is_p2p", is_p2p, false, err));
	TRY(import_number(&f->to, "timeout_ms", pickle_int(pickle_get(entry, "timeout_ms"), 0),
			  false, err));
	TRY(put_frames(f, pickle_get(entry, "frames"), err));
	if (started > 0)
		TRY(import_number(&f->to, "started_ns", started, true, err));
	return import_number(&f->to, "collective_seq", number_of_entry(entry), true, err);
}

static enum status take_entry(struct flight *f, const struct pickle_value *entry, struct error *err)
{
	const struct pickle_value *pair = pickle_get(entry, "process_group");
	int64_t begin = pickle_int(pickle_get(entry, "time_created_ns"), -1);
	int64_t end = pickle_int(pickle_get(entry, "time_discovered_completed_ns"), 0);
	bool is_done = entry_is_done(f, entry);
	struct event e = { .kind = KIND_RANGE, .subkind = RANGE_OTHER };

	if (pickle_count(pair) != 2 || pair->type != PICKLE_LIST || begin < 0 ||
	    !pickle_get(entry, "state")) {
		f->damaged++;
		return ST_OK;
	}
	import_begin(&f->to);
	if (!is_done) {
		end = f->last_ns;
		e.flags |= EVENT_NEVER_ENDED;
	}
	if (!import_times(&f->to, &e, begin, end > begin ? end - begin : 0)) {
		import_lose(&f->to, LOSS_NO_TIME, 1);
		return ST_OK;
	}
	TRY(take_track(f, pickle_text(pair->items[0], ""), pickle_text(pair->items[1], ""),
		       pickle_int(pickle_get(entry, "pg_id"), 0), &e, err));
	TRY(put_entry(f, entry, pair, is_done, &e, err));
	TRY(import_schema(&f->to, &e, err));
	return import_put(&f->to, &e, err);
}

/* ---- the file --------------------------------------------------------------------------- */

/* Returns the number of ranks in a list that is a text, such as "[0, 1, 2]". */
static uint32_t ranks_in(const char *list)
{
	uint32_t count = 0;

	for (bool inside = false; *list; list++) {
		count += isdigit((unsigned char)*list) && !inside;
		inside = isdigit((unsigned char)*list);
	}
	return count;
}

/* Creates the process.  Its rank is the one in the file, or else the number at the end of the
 * file's name. */
static enum status take_process(struct flight *f, const struct pickle_value *root, const char *path,
				struct error *err)
{
	int64_t rank = pickle_int(pickle_get(root, "rank"), -1);
	const char *host = pickle_text(pickle_get(root, "host"),
				       pickle_text(pickle_get(root, "hostname"), ""));
	size_t len = strlen(path), digits = 0;
	struct process p = { .rank = NO_RANK };

	while (digits < len && digits < RANK_DIGITS &&
	       isdigit((unsigned char)path[len - 1 - digits]))
		digits++;
	if (rank < 0 && digits)
		rank = strtol(path + len - digits, NULL, 10);
	if (rank >= 0 && rank < NO_RANK)
		p.rank = (uint32_t)rank;
	for (size_t i = 1; i < pickle_count(f->groups); i += 2) {
		uint32_t ranks =
			ranks_in(pickle_text(pickle_get(f->groups->items[i], "ranks"), ""));

		p.world_size = ranks > p.world_size ? ranks : p.world_size;
	}
	TRY(import_name(&f->to, host, strlen(host), &p.host, err));
	f->process = f->to.process = trace_process(f->to.trace, &p, err);
	return f->process ? ST_OK : err->status;
}

static enum status take_dump(struct flight *f, const struct error *fault,
			     const struct pickle_value *root, const char *path, struct error *err)
{
	static const char *const times[] = { "time_created_ns", "time_discovered_started_ns",
					     "time_discovered_completed_ns" };
	const struct pickle_value *entries = pickle_get(root, "entries");

	f->groups = pickle_get(root, "pg_config");
	f->status = pickle_get(root, "pg_status");
	if (!entries || entries->type != PICKLE_LIST)
		return fail(err, ST_FORMAT, 0,
			    "a dump of PyTorch's Flight Recorder without entries");
	TRY(take_process(f, root, path, err));
	for (size_t i = 0; i < entries->count; i++)
		for (size_t k = 0; k < 3; k++) {
			int64_t at = pickle_int(pickle_get(entries->items[i], times[k]), 0);

			f->last_ns = at > f->last_ns && at < IMPORT_TIME_MOST ? at : f->last_ns;
		}
	for (size_t i = 0; i < entries->count; i++)
		TRY(take_entry(f, entries->items[i], err));
	if (f->damaged)
		import_lose(&f->to, LOSS_DAMAGED, f->damaged);
	return import_provenance(&f->to, "PyTorch Flight Recorder", fault, err);
}

static enum status read_all(struct input *in, uint8_t **out, size_t *len, struct error *err)
{
	uint64_t size;

	TRY(input_random(in, err));
	size = input_size(in);
	if (size > FILE_MOST)
		return fail(err, ST_CEILING, NOWHERE,
			    "a dump of over %llu MB, which is too large to read",
			    (unsigned long long)(FILE_MOST >> 20));
	*out = malloc((size_t)size + 1);
	return *out ? input_read_at(in, 0, *out, (size_t)size, len, err) : fail_memory(err);
}

static enum status flight_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct flight f = { .damaged = 0 };
	const struct pickle_value *root = NULL;
	struct pickle *values = NULL;
	uint8_t *bytes = NULL;
	size_t len = 0;
	enum status status = read_all(in, &bytes, &len, err);

	(void)left;
	import_init(&f.to, s->trace, s->spool, 0);
	if (status == ST_OK)
		status = len && bytes[0] == 0x80
				 ? pickle_read(&values, &root, bytes, len, VALUES_MOST, err)
				 : pickle_of_json(&values, &root, (const char *)bytes, len,
						  VALUES_MOST, err);
	if (status == ST_OK)
		status = take_dump(&f, &s->fault, root, input_path(in), err);
	spool_source_clock(s, 0, f.to.first_ns);
	import_release(&f.to);
	pickle_free(values);
	free(bytes);
	return status;
}

static const struct spool_reader reader = {
	.own_bytes = 16 << 20,
	.spools = 1,
	.read = flight_read,
};

const struct source_type source_flight = {
	.name = "flight",
	.help = "PyTorch's Flight Recorder, pickle or JSON (hangs)",
	.bid = flight_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};
