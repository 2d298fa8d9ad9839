/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/source.h"

#include "convert/input/input.h"
#include "convert/source/source_list.h"
#include "convert/source/spooled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEAD_BYTES = 64 * 1024,
	SHOWN_BYTES = 16,
	CLAIM = 50 /* a bid that means it */
};

/* The best bidder that was not asked yet, marked as asked; NULL: there is none. */
static const struct source_type *best_bidder(int bids[SOURCE_TYPES])
{
	size_t best = 0, i;

	for (i = 1; source_types[i]; i++)
		if (bids[i] > bids[best])
			best = i;
	if (bids[best] <= 0)
		return NULL;
	bids[best] = 0;
	return source_types[best];
}

static void ask_bidders(int bids[SOURCE_TYPES], const uint8_t *head, size_t len)
{
	for (size_t i = 0; source_types[i]; i++)
		bids[i] = source_types[i]->bid(head, len < HEAD_BYTES ? len : HEAD_BYTES);
}

/* What stands there instead: as text where it is text, else in hexadecimal. */
static enum status refuse(const uint8_t *head, size_t len, struct error *err)
{
	char shown[SHOWN_BYTES * 3 + 1] = "";
	size_t i, used = 0, n = len < SHOWN_BYTES ? len : SHOWN_BYTES;
	bool is_text = true;

	for (i = 0; i < n; i++)
		is_text = is_text && ((head[i] >= 0x20 && head[i] < 0x7f) ||
				      (head[i] >= '\t' && head[i] <= '\r'));
	for (i = 0; i < n; i++)
		used += (size_t)snprintf(shown + used, sizeof(shown) - used,
					 is_text ? "%c"
					 : i     ? " %02x"
						 : "%02x",
					 head[i]);
	return fail(err, ST_FORMAT, 0, "not a trace that Tacho reads (it begins with %s%s%s%s)",
		    is_text ? "'" : "the bytes ", shown, is_text ? "'" : "", len > n ? " ..." : "");
}

enum status source_open_as(struct source **out, const struct source_type *type, struct input *in,
			   struct trace *trace, const struct budget *budget,
			   const struct filter *wanted, struct error *err)
{
	return type->spooled ? spool_source_open(out, type, in, trace, budget, err)
			     : type->open(out, in, trace, budget, wanted, err);
}

enum status source_open(struct source **out, struct input *in, struct trace *trace,
			const struct budget *budget, const struct filter *wanted, struct error *err)
{
	const struct source_type *type;
	struct error own = { 0 }, first = { 0 };
	enum status status, worst = ST_OK;
	const uint8_t *head;
	int bids[SOURCE_TYPES];
	size_t len;

	*out = NULL;
	TRY(input_peek(in, HEAD_BYTES, &head, &len, err));
	if (!len)
		return fail(err, ST_FORMAT, 0, "the input is empty");
	ask_bidders(bids, head, len);
	type = best_bidder(bids);
	if (!type)
		return refuse(head, len, err);
	for (; type; type = best_bidder(bids)) {
		status = source_open_as(out, type, in, trace, budget, wanted, &own);
		if (status == ST_OK)
			return ST_OK;
		*out = NULL;
		if (worst == ST_OK) { /* the best bidder knows best what is wrong */
			worst = status;
			first = own;
		}
		if (status != ST_FORMAT || input_at(in))
			break; /* past its first look: nobody else can start over */
	}
	if (err)
		*err = first;
	return worst;
}

/* Whether a file that was only found is one of ours.  A fault counts as a yes: it is reported when
 * the file is opened, and a log is never passed over. */
static bool is_claimed(const char *path, const char *scratch)
{
	struct input *in = NULL;
	const uint8_t *head;
	const char *slash = strrchr(path, '/'), *name = slash ? slash : path;
	const char *colon = strrchr(name, ':'); /* of a member of an archive */
	bool claimed = strstr(colon ? colon : name, ".tacho") != NULL;
	int bids[SOURCE_TYPES];
	size_t len;

	if (claimed)
		return true;
	if (input_open(&in, path, scratch, NULL) != ST_OK ||
	    input_peek(in, HEAD_BYTES, &head, &len, NULL) != ST_OK) {
		input_close(in);
		return true;
	}
	ask_bidders(bids, head, len);
	for (size_t i = 0; source_types[i]; i++)
		claimed = claimed || bids[i] >= CLAIM;
	input_close(in);
	return claimed;
}

enum status source_paths_find(struct input_paths *out, char *const *operands, size_t count,
			      const char *scratch, size_t *passed_over, struct error *err)
{
	size_t kept = 0;

	TRY(input_paths_find(out, operands, count, scratch, err));
	for (size_t i = 0; i < out->count; i++) {
		if (out->searched[i] && !is_claimed(out->paths[i], scratch)) {
			free(out->paths[i]);
			continue;
		}
		out->searched[kept] = out->searched[i];
		out->paths[kept++] = out->paths[i];
	}
	*passed_over = out->count - kept;
	out->count = kept;
	if (kept)
		return ST_OK;
	return fail(err, ST_FORMAT, NOWHERE, "none of the %zu JSON files found is a trace",
		    *passed_over);
}
