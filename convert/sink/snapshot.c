/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PyTorch memory snapshot for pytorch.org/memory_viz and torch.cuda._memory_viz: the entries
 * between --from and --to, and the segments and blocks at --to, from which both readers go
 * backwards.  These depend on entries before --from and after --to, so this sink filters by itself
 * (sink_type.cuts).
 *
 * The file is a pickle of protocol 2 with the opcodes of PyTorch's C++ writer.  Keys and stacks are
 * memoized and written as numbers, so an entry has about 70 bytes.  Entries wait in memory, because
 * readers want a list per device.
 */
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/stage/segments.h"
#include "schemas/base/map.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 64, ENTRIES_MAX = 1 << 30, NS = 1000, SMALL_SEGMENT = 2 << 20, BATCH = 1000 };
enum { LIST = ']', APPENDS = 'e', SETITEMS = 'u', TUPLE2 = 0x86 };

/* Texts of the pickle.  The memo number of each text is its place here; numbers of stacks follow.
 */
/* clang-format off */
#define WORD_LIST(X)                                                                               \
	X(action) X(addr) X(size) X(stream) X(time_us) X(frames) X(pool_id) X(device_free)         \
	X(user_metadata) X(compile_context) X(category) X(filename) X(line) X(name) X(stage)       \
	X(device) X(address) X(total_size) X(segment_type) X(segment_pool_id) X(is_expandable)     \
	X(allocated_size) X(active_size) X(requested_size) X(blocks) X(state) X(alloc)             \
	X(free_requested) X(free_completed) X(inactive) X(active_allocated) X(active_pending_free) \
	X(START) X(END) X(large) X(small) X(segments) X(device_traces) X(external_annotations)     \
	X(allocator_settings)
/* clang-format on */
enum word {
#define X(word) WORD_##word,
	WORD_LIST(X)
#undef X
		WORDS
};

struct snapshot_sink {
	struct sink base;
	const struct filter *filter;
	uint64_t from_ns, to_ns;
	bool has_origin;
	struct segments segments;
	size_t operations; /* number of operations before to_ns */
	struct live_blocks live;
	struct map stack_of; /* memo number of a stack, by the interned name of its text */
	struct buf stacks, annotations, state, entries[DEVICES];
	size_t annotation_count, entry_counts[DEVICES];
	size_t devices;
};

/* ---- the pickle ------------------------------------------------------------------------- */

static void put_word(struct buf *b, enum word word)
{
	buf_put_byte(b, 'h');
	buf_put_byte(b, (uint8_t)word);
}

/* Begins a new batch after every BATCH items of a list, because the page accepts only some ten
 * thousand items at once. */
static void put_between(struct buf *b, size_t n)
{
	if (n % BATCH == 0)
		buf_put(b, "e(", 2);
}

static void put_number(struct buf *b, uint64_t v)
{
	if (v < INT32_MAX) {
		buf_put_byte(b, 'J');
		buf_put_u32(b, (uint32_t)v);
	} else {
		buf_put(b, "\x8a\x08", 2);
		buf_put_u64(b, v);
	}
}

static void put_text(struct buf *b, const char *text, size_t len)
{
	size_t at = b->len + 1;

	buf_put(b, "X\0\0\0\0", 5);
	sink_put_utf8(text, len, false, b);
	if (b->status == ST_OK)
		put_u32(b->data + at, (uint32_t)(b->len - at - sizeof(uint32_t)));
}

static void put_pair(struct buf *b, enum word word, uint64_t number)
{
	put_word(b, word);
	put_number(b, number);
}

/* Appends a stack as a list of frames; each line of `text` is "FILE:LINE NAME". */
static void put_frames(struct buf *b, const char *text)
{
	buf_put(b, "](", 2);
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		size_t colon = 0, end;

		len = strcspn(text, "\n");
		for (end = 0; colon < len && end == 0; colon += !end) {
			end = text[colon] == ':'
				      ? colon + 1 + strspn(text + colon + 1, "0123456789")
				      : 0;
			end = end > colon + 1 && text[end] == ' ' ? end : 0;
		}
		if (!end)
			continue;
		buf_put(b, "}(", 2);
		put_word(b, WORD_filename);
		put_text(b, text, colon);
		put_pair(b, WORD_line, strtoull(text + colon + 1, NULL, 10));
		put_word(b, WORD_name);
		put_text(b, text + end + 1, len - end - 1);
		buf_put_byte(b, SETITEMS);
	}
	buf_put_byte(b, APPENDS);
}

/* Appends an event's stack, stream, pool and other texts. */
static enum status put_place(struct snapshot_sink *s, struct buf *b, uint32_t schema,
			     enum word pool, struct error *err)
{
	static const enum word texts[] = { WORD_user_metadata, WORD_compile_context,
					   WORD_category };
	static const char *const keys[] = { "user_metadata", "compile_context", "category" };
	const struct trace *t = s->base.trace;
	const struct attr *stack = trace_find_attr(t, schema, "stack");
	const char *text = trace_attr_text(t, schema, "pool");
	bool is_new = false;
	uint64_t *number = stack ? map_put(&s->stack_of, stack->bits, &is_new) : NULL;

	if (stack && !number)
		return fail_memory(err);
	if (is_new) {
		*number = WORDS + s->stack_of.count;
		put_frames(&s->stacks, trace_text(t, (uint32_t)stack->bits, NULL));
		buf_put_byte(&s->stacks, 'r');
		buf_put_u32(&s->stacks, (uint32_t)*number);
		put_between(&s->stacks, s->stack_of.count);
	}
	put_word(b, WORD_frames);
	buf_put_byte(b, number ? 'j' : LIST);
	if (number)
		buf_put_u32(b, (uint32_t)*number);
	put_pair(b, WORD_stream, trace_attr_number(t, schema, "stream"));
	put_word(b, pool);
	put_number(b, text ? strtoull(text, NULL, 10) : 0);
	put_number(b, text && strchr(text, ',') ? strtoull(strchr(text, ',') + 1, NULL, 10) : 0);
	buf_put_byte(b, TUPLE2);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		text = trace_attr_text(t, schema, keys[i]);
		if (!text)
			continue;
		put_word(b, texts[i]);
		put_text(b, text, strlen(text));
	}
	return ST_OK;
}

/* ---- entries ---------------------------------------------------------------------------- */

/* Appends an entry with the action `name`, or `word` if `name` is NULL. */
static enum status put_entry(struct snapshot_sink *s, const struct event *e, uint32_t device,
			     enum word word, const char *name, struct error *err)
{
	struct buf *b = &s->entries[device];
	bool is_oom = name && !strcmp(name, "oom");

	buf_put(b, "}(", 2);
	put_word(b, WORD_action);
	if (name)
		put_text(b, name, strlen(name));
	else
		put_word(b, word);
	put_pair(b, is_oom ? WORD_device_free : WORD_addr,
		 !name ? e->address
		       : segment_number(s->base.trace, e, is_oom ? "device_free" : "address"));
	put_pair(b, WORD_size, !name ? e->bytes : segment_number(s->base.trace, e, "bytes"));
	put_pair(b, WORD_time_us, e->begin_ns / NS);
	TRY(put_place(s, b, e->schema, WORD_pool_id, err));
	buf_put_byte(b, SETITEMS);
	put_between(b, ++s->entry_counts[device]);
	return buf_status(b, err);
}

static void put_annotation(struct snapshot_sink *s, const struct event *e, uint32_t device)
{
	const uint64_t at[] = { e->begin_ns, e->end_ns };
	struct buf *b = &s->annotations;

	for (size_t i = 0; i < 2; i++) {
		size_t len;
		const char *name = trace_text(s->base.trace, e->name, &len);

		buf_put(b, "}(", 2);
		put_word(b, WORD_name);
		put_text(b, name, len);
		put_word(b, WORD_stage);
		put_word(b, i ? WORD_END : WORD_START);
		put_pair(b, WORD_device, device);
		put_pair(b, WORD_time_us, at[i] / NS);
		buf_put_byte(b, SETITEMS);
		put_between(b, ++s->annotation_count);
	}
}

static enum status take_free(struct snapshot_sink *s, const struct event *e, uint32_t device,
			     bool is_shown, struct error *err)
{
	struct live_block *b = live_find(&s->live, e->address, device);

	if (is_shown && !(b && b->asked_ns))
		TRY(put_entry(s, e, device, WORD_free_requested, NULL, err));
	if (is_shown)
		TRY(put_entry(s, e, device, WORD_free_completed, NULL, err));
	if (b)
		live_remove(&s->live, b);
	return ST_OK;
}

static enum status take_mark(struct snapshot_sink *s, const struct event *e, uint32_t device,
			     bool is_before_end, bool is_shown, struct error *err)
{
	enum segment_mark mark;

	TRY(segments_put(&s->segments, s->base.trace, e, &mark, err));
	if (mark == MARK_SEGMENT || !is_before_end)
		return ST_OK;
	s->operations = s->segments.operation_count;
	if (mark == MARK_FREE_REQUESTED) {
		struct live_block *b =
			live_find(&s->live, segment_number(s->base.trace, e, "address"), device);

		if (b)
			b->asked_ns = e->begin_ns;
	}
	return is_shown ? put_entry(s, e, device, 0, trace_text(s->base.trace, e->name, NULL), err)
			: ST_OK;
}

static enum status snapshot_put(struct sink *sink, const struct event *e, struct error *err)
{
	struct snapshot_sink *s = (struct snapshot_sink *)sink;
	const struct track *k = trace_get_track(sink->trace, e->track);
	uint32_t device = k->type == TRACK_ALLOCATOR ? k->device : (uint32_t)k->id;
	bool is_before_end, is_shown;

	if (!s->has_origin) {
		s->has_origin = true;
		s->to_ns = UINT64_MAX;
		if (s->filter)
			filter_times(s->filter, e->begin_ns, &s->from_ns, &s->to_ns);
	}
	if (device >= DEVICES || (s->filter && s->filter->has_devices &&
				  !filter_lists(&s->filter->device_list, device))) {
		trace_lose(sink->trace, sink->process, LOSS_CUT_OUT, 1);
		return ST_OK;
	}
	s->devices = device >= s->devices ? device + 1 : s->devices;
	is_before_end = e->begin_ns < s->to_ns;
	is_shown = is_before_end && e->begin_ns >= s->from_ns && !(e->flags & EVENT_BEGAN_EARLIER);
	if (is_shown || (is_before_end && e->flags & EVENT_BEGAN_EARLIER))
		sink->written++;
	else if (e->kind == KIND_MARK && e->name == s->segments.names[MARK_SEGMENT])
		sink->written++;
	else
		trace_lose(sink->trace, sink->process, LOSS_CUT_OUT, 1);
	if (e->kind == KIND_MARK)
		return take_mark(s, e, device, is_before_end, is_shown, err);
	if (!is_before_end)
		return ST_OK;
	if (e->kind == KIND_RANGE && is_shown)
		put_annotation(s, e, device);
	if (e->kind == KIND_FREE)
		return take_free(s, e, device, is_shown, err);
	if (e->kind != KIND_ALLOC)
		return ST_OK;
	TRY(live_put(&s->live, e, device, err));
	return is_shown ? put_entry(s, e, device, WORD_alloc, NULL, err) : ST_OK;
}

/* ---- segments --------------------------------------------------------------------------- */

static void put_block(struct buf *b, uint64_t address, uint64_t size, uint64_t requested,
		      enum word state)
{
	buf_put(b, "}(", 2);
	put_pair(b, WORD_address, address);
	put_pair(b, WORD_size, size);
	put_pair(b, WORD_requested_size, requested);
	put_word(b, WORD_state);
	put_word(b, state);
}

/* Appends a segment and its blocks.  `blocks` are the live blocks in the segment, in order of
 * address. */
static enum status put_segment(struct snapshot_sink *s, const struct segment_range *g,
			       const struct live_block *blocks, size_t count, struct error *err)
{
	const struct trace *t = s->base.trace;
	const char *class = trace_attr_text(t, g->schema, "size_class");
	struct buf *b = &s->state;
	uint64_t at = g->begin, allocated = 0, active = 0, requested = 0;

	buf_put(b, "}(", 2);
	put_word(b, WORD_blocks);
	buf_put(b, "](", 2);
	for (size_t i = 0; i <= count; i++) {
		const struct live_block *one = i < count ? &blocks[i] : NULL;
		uint64_t begin = one ? one->address : g->end;
		uint64_t most = i + 1 < count ? blocks[i + 1].address : g->end, size;

		if (begin > at) {
			put_block(b, at, begin - at, 0, WORD_inactive);
			put_word(b, WORD_frames);
			buf_put(b, "]u", 2);
		}
		if (!one)
			break;
		size = (one->bytes + SEGMENT_GRAIN - 1) / SEGMENT_GRAIN * SEGMENT_GRAIN;
		size = size < most - begin ? size : most - begin;
		put_block(b, begin, size, one->bytes,
			  one->asked_ns ? WORD_active_pending_free : WORD_active_allocated);
		TRY(put_place(s, b, one->schema, WORD_pool_id, err));
		buf_put_byte(b, SETITEMS);
		put_between(b, i + 1);
		active += size;
		allocated += one->asked_ns ? 0 : size;
		requested += one->bytes;
		at = begin + size;
	}
	buf_put_byte(b, APPENDS);
	put_pair(b, WORD_device, g->device);
	put_pair(b, WORD_address, g->begin);
	put_pair(b, WORD_total_size, g->end - g->begin);
	put_pair(b, WORD_allocated_size, allocated);
	put_pair(b, WORD_active_size, active);
	put_pair(b, WORD_requested_size, requested);
	put_word(b, WORD_segment_type);
	put_word(b, class ? (*class == 'l' ? WORD_large : WORD_small)
			  : (g->end - g->begin > SMALL_SEGMENT ? WORD_large : WORD_small));
	put_word(b, WORD_is_expandable);
	buf_put_byte(b, trace_attr_number(t, g->schema, "expandable") ? 0x88 : 0x89);
	TRY(put_place(s, b, g->schema, WORD_segment_pool_id, err));
	buf_put_byte(b, SETITEMS);
	return buf_status(b, err);
}

static void put_settings(struct snapshot_sink *s, struct buf *b)
{
	const struct trace *t = s->base.trace;
	const struct process *p = trace_get_process(t, s->base.process ? s->base.process : 1);
	const struct arg_schema *all = trace_get_schema(t, p->schema);

	for (uint32_t i = 0; p->schema && i < all->const_count; i++) {
		const struct attr *a = &all->consts[i];
		bool is_text = a->type == ATTR_TEXT;
		size_t len;
		const char *text = trace_text(t, a->key, &len);

		if (!is_text && a->type != ATTR_U64 && a->type != ATTR_I64)
			continue;
		put_text(b, text, len);
		text = is_text ? trace_text(t, (uint32_t)a->bits, &len) : NULL;
		if (text)
			put_text(b, text, len);
		else
			put_number(b, a->bits);
	}
}

/* Appends the memoized texts, and begins the list of stacks after them. */
static void put_words(struct buf *b)
{
	static const char *const words[] = {
#define X(word) #word,
		WORD_LIST(X)
#undef X
	};

	buf_put(b, "\x80\x02}(", 4);
	put_text(b, "words", 5);
	buf_put(b, "](", 2);
	for (size_t i = 0; i < WORDS; i++) {
		put_text(b, words[i], strlen(words[i]));
		buf_put_byte(b, 'q');
		buf_put_byte(b, (uint8_t)i);
	}
	buf_put_byte(b, APPENDS);
	put_text(b, "stacks", 6);
	buf_put(b, "](", 2);
}

static enum status put_segments(struct snapshot_sink *s, struct error *err)
{
	struct segment_ranges all;
	enum status status = segments_at(&s->segments, s->operations, NO_ID, &all, err);
	size_t first = 0, end;

	if (s->live.count)
		SORT_BY(s->live.items, s->live.count, UP(struct live_block, device),
			UP(struct live_block, address));
	for (size_t i = 0; i < all.count && status == ST_OK; i++) {
		const struct segment_range *g = &all.items[i];

		while (first < s->live.count && (s->live.items[first].device < g->device ||
						 (s->live.items[first].device == g->device &&
						  s->live.items[first].address < g->begin)))
			first++;
		for (end = first; end < s->live.count && s->live.items[end].device == g->device &&
				  s->live.items[end].address < g->end;)
			end++;
		status = put_segment(s, g, s->live.items + first, end - first, err);
		put_between(&s->state, i + 1);
		first = end;
	}
	free(all.items);
	return status;
}

/* Writes a list whose items are the bytes in `b`, with the key `word` (WORDS: no key). */
static enum status flush_list(struct snapshot_sink *s, enum word word, const struct buf *b,
			      struct error *err)
{
	struct buf *lines = &s->base.lines;

	if (word != WORDS)
		put_word(lines, word);
	buf_put(lines, "](", 2);
	TRY(sink_flush(&s->base, 0, err));
	TRY(buf_status(b, err));
	TRY(out_write(s->base.out, b->data, b->len, err));
	buf_put_byte(lines, APPENDS);
	return ST_OK;
}

static enum status snapshot_close(struct sink *sink, struct error *err)
{
	struct snapshot_sink *s = (struct snapshot_sink *)sink;
	struct buf *b = &sink->lines;

	TRY(put_segments(s, err));
	put_words(b);
	TRY(sink_flush(sink, 0, err));
	TRY(buf_status(&s->stacks, err));
	TRY(out_write(sink->out, s->stacks.data, s->stacks.len, err));
	buf_put_byte(b, APPENDS);
	TRY(flush_list(s, WORD_segments, &s->state, err));
	put_word(b, WORD_device_traces);
	buf_put(b, "](", 2);
	for (size_t i = 0; i < s->devices; i++)
		TRY(flush_list(s, WORDS, &s->entries[i], err));
	buf_put_byte(b, APPENDS);
	TRY(flush_list(s, WORD_external_annotations, &s->annotations, err));
	put_word(b, WORD_allocator_settings);
	buf_put(b, "}(", 2);
	put_settings(s, b);
	buf_put(b, "uu.", 3);
	return sink_flush(sink, 0, err);
}

static enum status snapshot_open(struct sink *sink, const struct sink_request *req,
				 struct error *err)
{
	struct snapshot_sink *s = (struct snapshot_sink *)sink;
	const struct filter *f = req->filter;

	s->filter = f;
	buf_init(&s->stacks, ENTRIES_MAX);
	buf_init(&s->annotations, ENTRIES_MAX);
	buf_init(&s->state, ENTRIES_MAX);
	for (size_t i = 0; i < DEVICES; i++)
		buf_init(&s->entries[i], ENTRIES_MAX);
	if (!segments_begin(&s->segments, sink->trace))
		return fail(err, ST_USAGE, NOWHERE,
			    "-t snapshot needs a memory snapshot of PyTorch as input");
	if (f && (f->steps || f->kinds || f->names))
		return fail(err, ST_USAGE, NOWHERE,
			    "-t snapshot accepts only the filters --from, --to and --devices, "
			    "because the contents of a snapshot follow from all of its entries");
	return ST_OK;
}

static void snapshot_release(struct sink *sink)
{
	struct snapshot_sink *s = (struct snapshot_sink *)sink;

	segments_release(&s->segments);
	live_release(&s->live);
	map_release(&s->stack_of);
	buf_release(&s->stacks);
	buf_release(&s->annotations);
	buf_release(&s->state);
	for (size_t i = 0; i < DEVICES; i++)
		buf_release(&s->entries[i]);
}

const struct sink_type sink_snapshot = {
	.name = "snapshot",
	.help = "a memory snapshot, cut by --from, --to, --devices (PyTorch's memory_viz page)",
	.scope = SINK_PER_PROCESS,
	.is_binary = true,
	.cuts = true,
	.file_name = "snapshot_rank{rank}{.n}.pickle",
	.size = sizeof(struct snapshot_sink),
	.open = snapshot_open,
	.put_event = snapshot_put,
	.close = snapshot_close,
	.release = snapshot_release,
};
