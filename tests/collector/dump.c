/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c - what the collector's tests look at: a log, told in lines that a shell can grep.
 *
 *	log whole=1 events=12 unread=0         whole: closed with END
 *	process pid=7 rank=3 world=8 host=... command=...
 *	about tacho_clock=tsc
 *	window spec=all cut=0 ns=1234
 *	lost 5 ring full
 *	track tid=7 name=...
 *	sum kind=range name=forward count=3 early=0 open=1 tracks=1
 *	step number=4 early=0 open=0
 *	counter name=loss device=- count=3 last=0.5
 *
 * Reads the schemas floor only, so it says what the file holds and not what a source makes of it.
 */
#include "schemas/log/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CEILING = 64 << 20, ROWS = 1 << 16 };

struct row {
	uint32_t name, kind, tracks, last_track;
	uint64_t count, early, open;
	double last;
	uint32_t track;
};
static struct row rows[ROWS];
static size_t row_count;
static uint64_t event_count;

static uint8_t *load(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(CEILING);

	*len = f && bytes ? fread(bytes, 1, CEILING, f) : 0;
	if (f)
		fclose(f);
	return bytes;
}

static void count_event(const struct event *e)
{
	bool per_track = e->kind == KIND_COUNTER;
	size_t i;

	for (i = 0; i < row_count; i++)
		if (rows[i].name == e->name && rows[i].kind == e->kind &&
		    (!per_track || rows[i].track == e->track))
			break;
	if (i == ROWS) {
		printf("more than %d names\n", ROWS);
		exit(1);
	}
	if (i == row_count)
		rows[row_count++] =
			(struct row){ .name = e->name, .kind = e->kind, .track = e->track };
	rows[i].count++;
	rows[i].early += (e->flags & EVENT_BEGAN_EARLIER) != 0;
	rows[i].open += (e->flags & EVENT_NEVER_ENDED) != 0;
	rows[i].tracks += rows[i].last_track != e->track;
	rows[i].last_track = e->track;
	rows[i].last = e->value;
	event_count++;
	if (e->kind == KIND_STEP)
		printf("step number=%llu early=%d open=%d ns=%llu\n", (unsigned long long)e->number,
		       !!(e->flags & EVENT_BEGAN_EARLIER), !!(e->flags & EVENT_NEVER_ENDED),
		       (unsigned long long)(e->end_ns - e->begin_ns));
}

static void read_events(const struct log_translation *x, const struct log_block *block,
			const uint8_t *payload)
{
	const struct log_layout *layout = log_layout(x, block->layout);
	static uint64_t args[LOG_LAYOUT_ARG];
	const struct log_rows *decoded;
	struct log_decoder *d;
	struct event event;
	const struct log_desc *descs;
	size_t desc_count;

	if (!layout)
		return;
	descs = log_descs(x, &desc_count);
	d = malloc(log_decoder_size(layout, block, payload, LOG_CHUNK_ROWS));
	if (d && log_decode_init(d, block, payload, layout, descs, desc_count, LOG_CHUNK_ROWS,
				 NULL) == ST_OK)
		while ((decoded = log_decode_rows(d)))
			for (uint32_t i = 0; i < decoded->count; i++) {
				log_rows_event(decoded, i, &event, args);
				count_event(&event);
			}
	free(d);
}

static void print_about(const struct trace *t, uint32_t schema)
{
	const struct arg_schema *s = trace_get_schema(t, schema);
	uint32_t i;

	for (i = 0; i < s->const_count; i++) {
		printf("about %s=", trace_text(t, s->consts[i].key, NULL));
		if (s->consts[i].type == ATTR_U64)
			printf("%llu\n", (unsigned long long)s->consts[i].bits);
		else
			printf("%s\n", trace_text(t, (uint32_t)s->consts[i].bits, NULL));
	}
}

static void print_tables(const struct trace *t)
{
	uint32_t i;
	int why;

	for (i = 1; i <= trace_count(t, TRACE_PROCESSES); i++) {
		const struct process *p = trace_get_process(t, i);

		printf("process pid=%u rank=%d world=%u host=%s command=%s\n", p->pid, (int)p->rank,
		       p->world_size, trace_text(t, p->host, NULL),
		       trace_text(t, p->command, NULL));
		print_about(t, p->schema);
		for (why = 1; why < LOSS_END; why++)
			if (trace_lost(t, i, (enum loss)why))
				printf("lost %llu %s\n",
				       (unsigned long long)trace_lost(t, i, (enum loss)why),
				       loss_text((enum loss)why));
	}
	for (i = 1; i <= trace_count(t, TRACE_WINDOWS); i++) {
		const struct window *w = trace_get_window(t, i);

		printf("window spec=%s cut=%d closed=%d ns=%llu own=%llu begin=%llu\n",
		       trace_text(t, w->spec, NULL), w->cut_short, w->end_ns != 0,
		       (unsigned long long)(w->end_ns ? w->end_ns - w->begin_ns : 0),
		       (unsigned long long)w->own_ns, (unsigned long long)w->begin_ns);
	}
	printf("anchors %u\n", trace_count(t, TRACE_ANCHORS));
	for (i = 1; i <= trace_count(t, TRACE_TRACKS); i++) {
		const struct track *k = trace_get_track(t, i);

		if (k->type == TRACK_THREAD)
			printf("track tid=%llu name=%s\n", (unsigned long long)k->id,
			       trace_text(t, k->name, NULL));
	}
}

static void print_rows(const struct trace *t)
{
	size_t i;

	for (i = 0; i < row_count; i++) {
		const struct row *r = &rows[i];

		printf("sum kind=%u name=%s count=%llu early=%llu open=%llu tracks=%u", r->kind,
		       trace_text(t, r->name, NULL), (unsigned long long)r->count,
		       (unsigned long long)r->early, (unsigned long long)r->open, r->tracks);
		if (r->kind == KIND_COUNTER)
			printf(" device=%d last=%g", (int)trace_get_track(t, r->track)->device,
			       r->last);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct log_translation *x;
	struct log_block block;
	struct trace *t;
	struct error err;
	uint64_t told = 0;
	size_t len, at, skipped;
	uint8_t *bytes;
	bool whole;

	if (argc != 2)
		return 2;
	bytes = load(argv[1], &len);
	if (log_take_file_header(bytes, len, &err) != ST_OK) {
		fprintf(stderr, "dump: %s: %s\n", argv[1], err.text);
		return 4;
	}
	trace_new(&t, CEILING, &err);
	log_translation_new(&x, t, CEILING, &err);
	for (at = LOG_FILE_HEADER_BYTES;
	     log_find_block(bytes + at, len - at, at, &block, &skipped, NULL) == ST_OK;
	     at += skipped + LOG_HEADER_BYTES + block.size) {
		const uint8_t *payload = bytes + at + skipped + LOG_HEADER_BYTES;

		if (block.size > len - at - skipped - LOG_HEADER_BYTES ||
		    log_check(&block, payload, &err) != ST_OK)
			break;
		if (block.kind == LOG_EVENTS)
			read_events(x, &block, payload);
		else if (log_take_table(x, &block, payload, &err) != ST_OK)
			printf("table %u: %s\n", block.kind, err.text);
	}
	whole = log_translation_ended(x, &told);
	log_translation_finish(x);
	printf("log whole=%d events=%llu told=%llu unread=%zu bytes=%zu\n", whole,
	       (unsigned long long)event_count, (unsigned long long)told, len - at, len);
	print_tables(t);
	print_rows(t);
	log_translation_free(x);
	trace_free(t);
	free(bytes);
	return 0;
}
