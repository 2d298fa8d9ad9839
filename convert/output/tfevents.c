/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/output/tfevents.h"

#include "schemas/base/crc32c.h"
#include "schemas/proto/tfevents.pb-c.h"

enum { CLASS_TENSOR = 2, TYPE_STRING = 7 };

#define VERSION_TEXT "brain.Event:2"
#define WRITER_TEXT  "tacho"

void tfevents_put_record(struct buf *out, const void *message, size_t len)
{
	uint8_t length[8];

	put_u64(length, len);
	buf_put(out, length, sizeof(length));
	buf_put_u32(out, crc32c_masked(length, sizeof(length)));
	buf_put(out, message, len);
	buf_put_u32(out, crc32c_masked(message, len));
}

static void put_event(struct buf *out, const Tacho__Tfevents__Event *e)
{
	struct buf bytes;
	uint8_t *at;

	buf_init(&bytes, out->ceiling);
	at = buf_reserve(&bytes, tacho__tfevents__event__get_packed_size(e));
	if (at)
		bytes.len = tacho__tfevents__event__pack(e, at);
	if (bytes.status == ST_OK)
		tfevents_put_record(out, bytes.data, bytes.len);
	else
		out->status = bytes.status;
	buf_release(&bytes);
}

static Tacho__Tfevents__Event event_at(uint64_t wall_ns)
{
	Tacho__Tfevents__Event e = TACHO__TFEVENTS__EVENT__INIT;

	e.has_wall_time = 1;
	e.wall_time = (double)wall_ns / 1e9;
	return e;
}

void tfevents_put_version(struct buf *out, uint64_t wall_ns)
{
	Tacho__Tfevents__Event e = event_at(wall_ns);
	Tacho__Tfevents__SourceMetadata source = TACHO__TFEVENTS__SOURCE_METADATA__INIT;

	source.writer = (char *)(uintptr_t)WRITER_TEXT;
	e.file_version = (char *)(uintptr_t)VERSION_TEXT;
	e.source_metadata = &source;
	put_event(out, &e);
}

static void put_value(struct buf *out, uint64_t wall_ns, int64_t step, Tacho__Tfevents__Value *v)
{
	Tacho__Tfevents__Event e = event_at(wall_ns);
	Tacho__Tfevents__Summary summary = TACHO__TFEVENTS__SUMMARY__INIT;

	summary.n_value = 1;
	summary.value = &v;
	e.has_step = 1;
	e.step = step;
	e.summary = &summary;
	put_event(out, &e);
}

void tfevents_put_scalar(struct buf *out, uint64_t wall_ns, int64_t step, const char *tag,
			 double value)
{
	Tacho__Tfevents__Value v = TACHO__TFEVENTS__VALUE__INIT;

	v.tag = (char *)(uintptr_t)tag;
	v.has_simple_value = 1;
	v.simple_value = (float)value;
	put_value(out, wall_ns, step, &v);
}

void tfevents_put_text_card(struct buf *out, uint64_t wall_ns, int64_t step, const char *tag,
			    const char *text, size_t len)
{
	Tacho__Tfevents__Value v = TACHO__TFEVENTS__VALUE__INIT;
	Tacho__Tfevents__TensorProto tensor = TACHO__TFEVENTS__TENSOR_PROTO__INIT;
	Tacho__Tfevents__SummaryMetadata metadata = TACHO__TFEVENTS__SUMMARY_METADATA__INIT;
	Tacho__Tfevents__PluginData plugin = TACHO__TFEVENTS__PLUGIN_DATA__INIT;
	ProtobufCBinaryData card = { .len = len, .data = (uint8_t *)(uintptr_t)text };

	plugin.plugin_name = (char *)(uintptr_t) "text";
	metadata.plugin_data = &plugin;
	metadata.has_data_class = 1;
	metadata.data_class = CLASS_TENSOR;
	tensor.has_dtype = 1;
	tensor.dtype = TYPE_STRING;
	tensor.n_string_val = 1;
	tensor.string_val = &card;
	v.tag = (char *)(uintptr_t)tag;
	v.tensor = &tensor;
	v.metadata = &metadata;
	put_value(out, wall_ns, step, &v);
}
