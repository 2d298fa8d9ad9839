/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - name, category and arguments of slices, as templates.
 *
 * Lean: what the name does not say and people ask for: bytes and bandwidth of copies, results of
 * calls that failed, what is wrong with the times.  Full: everything known.  Texts are numbers
 * (perfetto/file.h), so a template is short whatever the texts are.
 */
#ifndef CONVERT_SINK_PERFETTO_ARGS_H
#define CONVERT_SINK_PERFETTO_ARGS_H

#include "convert/sink/perfetto/file.h"
#include "convert/sink/template.h"

/*
 * Parts hold the keys of debug annotations; their placeholders' types are fields of
 * DebugAnnotation.  The last part is all that is the same for each event.
 */
struct perfetto_template {
	struct template base;
	bool has_text; /* an argument that differs from event to event is a text */
	uint8_t category[16], category_len; /* a field of TrackEvent, encoded */
	uint64_t name;         /* for events without one; 0: it is made of the event's number */
	uint32_t common_count; /* parts of every event; behind them those that few events have */
	uint32_t most;         /* bytes of all arguments, at most */
	uint32_t rare_most;    /* the same with those that few events have */
};
struct perfetto_args {
	struct perfetto_file *file; /* borrowed */
	bool all;
	struct templates templates;
};

enum status perfetto_args_init(struct perfetto_args *a, struct perfetto_file *file, bool all,
			       struct error *err);

enum status perfetto_args_make(struct perfetto_args *a, const struct event *e,
			       const struct perfetto_template **out, struct error *err);
/* How to write an event; the texts to which its arguments point are in the file then. */
static inline enum status perfetto_args_find(struct perfetto_args *a, const struct event *e,
					     const struct perfetto_template **out,
					     struct error *err)
{
	*out = (const struct perfetto_template *)template_find(&a->templates, e);
	return *out && !(*out)->has_text ? ST_OK : perfetto_args_make(a, e, out, err);
}

/* A call that failed, or times that are not the event's own. */
static inline bool perfetto_is_rare(const struct event *e)
{
	return (e->flags & (EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED)) ||
	       (e->flags & EVENT_RESULT && e->result);
}

/* Writes the arguments, at most t->most or ->rare_most bytes, and returns their end. */
uint8_t *perfetto_put_args(uint8_t *p, const struct perfetto_template *t, const struct event *e,
			   const struct track *k);

#endif
