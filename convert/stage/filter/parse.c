/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/filter/filter.h"

#include "schemas/model/records.h"
#include "schemas/base/quantity.h"

#include <string.h>

#define ROW(member, arg, help)                                                                     \
	{                                                                                          \
#member, 0, OPTION_TEXT, arg, help, offsetof(struct filter, member), NULL          \
	}
const struct option filter_options[] = {
	ROW(steps, "A-B", "only steps A to B, excluding B; a single number is one step"),
	ROW(from, "T", "only from T on: 1.5s after the job's first event, or 2026-11-20T12:00:00Z"),
	ROW(to, "T", "only before T"),
	ROW(ranks, "LIST", "only these ranks: 0,2-5"),
	ROW(devices, "LIST", "only GPU events of these devices"),
	ROW(kinds, "LIST", "only these kinds: kernel memcpy memset graph sync api range ..."),
	ROW(names, "GLOB", "only events whose names match a shell pattern"),
	{ 0 },
};
#undef ROW

/* Returns the number of digits at the beginning of a text. */
static size_t digits(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] >= '0' && text[n] <= '9')
		n++;
	return n;
}

/* Parses "7" or "2-5"; *is_pair: there are two numbers. */
static enum status parse_pair(const char *option, const char *text, size_t len, uint64_t *first,
			      uint64_t *last, bool *is_pair, struct error *err)
{
	size_t n = digits(text, len);

	*is_pair = n < len && text[n] == '-';
	if (!n || (n < len && !*is_pair) || (*is_pair && digits(text + n + 1, len - n - 1) == 0) ||
	    (*is_pair && digits(text + n + 1, len - n - 1) != len - n - 1))
		return fail(err, ST_USAGE, NOWHERE,
			    "--%s %.*s: must be a number or a range such as 2-5", option,
			    (int)(len > 40 ? 40 : len), text);
	TRY(unit_parse_count(text, n, first, err));
	*last = *first;
	return *is_pair ? unit_parse_count(text + n + 1, len - n - 1, last, err) : ST_OK;
}

static enum status take_numbers(struct filter_list *list, const char *option, const char *part,
				size_t len, struct error *err)
{
	uint64_t first, last;
	bool is_pair;

	TRY(parse_pair(option, part, len, &first, &last, &is_pair, err));
	if (last < first || last >= UINT32_MAX)
		return fail(err, ST_USAGE, NOWHERE, "--%s %.*s: not a valid range", option,
			    (int)(len > 40 ? 40 : len), part);
	if (list->count == sizeof(list->first) / sizeof(list->first[0]))
		return fail(err, ST_USAGE, NOWHERE, "--%s: more than %zu parts", option,
			    list->count);
	list->first[list->count] = (uint32_t)first;
	list->last[list->count++] = (uint32_t)last;
	return ST_OK;
}

static enum status take_kind(uint32_t *mask, const char *option, const char *part, size_t len,
			     struct error *err)
{
	unsigned kind = kind_of_word(part, len);

	if (kind == KIND_UNKNOWN) {
		struct similar s = { .name = part, .len = len };
		char meant[SIMILAR_TEXT];

		for (kind = 1; kind < KIND_END; kind++)
			if (*kind_word(kind))
				similar_try(&s, kind_word(kind));
		return fail(err, ST_USAGE, NOWHERE, "--%s: there is no kind '%.*s'%s", option,
			    (int)(len > 40 ? 40 : len), part, similar_text(&s, meant));
	}
	*mask |= UINT32_C(1) << kind;
	return ST_OK;
}

/* Parses the parts between commas: as ranges of numbers into `list`, or if that is NULL as kinds
 * into `mask`. */
static enum status parse_list(const char *option, const char *text, struct filter_list *list,
			      uint32_t *mask, struct error *err)
{
	for (;; text++) {
		size_t len = strcspn(text, ",");

		TRY(list ? take_numbers(list, option, text, len, err)
			 : take_kind(mask, option, text, len, err));
		text += len;
		if (!*text)
			return ST_OK;
	}
}

/* An instant has a T after its date; a duration never contains a T. */
static enum status parse_time(const char *option, const char *text, uint64_t *ns, bool *relative,
			      struct error *err)
{
	size_t len = strlen(text);
	struct error own = { 0 };

	*relative = !strchr(text, 'T');
	enum status status = *relative ? unit_parse_time(text, len, ns, &own)
				       : unit_parse_instant(text, len, ns, &own);
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "--%s: %s", option, own.text);
	return ST_OK;
}

enum status filter_parse(struct filter *filter, struct error *err)
{
	filter->has_steps = false;
	filter->rank_list.count = filter->device_list.count = 0;
	filter->kinds_mask = 0;
	if (filter->steps) {
		bool is_pair;

		TRY(parse_pair("steps", filter->steps, strlen(filter->steps), &filter->first_step,
			       &filter->end_step, &is_pair, err));
		if (!is_pair)
			filter->end_step++;
		if (filter->end_step <= filter->first_step)
			return fail(err, ST_USAGE, NOWHERE,
				    "--steps %s: the end is before the beginning", filter->steps);
		filter->has_steps = true;
	}
	bool from_relative = false, to_relative = false;

	filter->from_ns = 0;
	filter->to_ns = UINT64_MAX;
	if (filter->from)
		TRY(parse_time("from", filter->from, &filter->from_ns, &from_relative, err));
	if (filter->to)
		TRY(parse_time("to", filter->to, &filter->to_ns, &to_relative, err));
	if (filter->from && filter->to && from_relative != to_relative)
		return fail(err, ST_USAGE, NOWHERE,
			    "--from %s --to %s: one is relative and the other absolute",
			    filter->from, filter->to);
	if (filter->from_ns >= filter->to_ns)
		return fail(err, ST_USAGE, NOWHERE, "--from %s --to %s: the interval is empty",
			    filter->from ? filter->from : "0", filter->to);
	filter->times_relative = from_relative || to_relative;
	if (filter->ranks)
		TRY(parse_list("ranks", filter->ranks, &filter->rank_list, NULL, err));
	if (filter->devices)
		TRY(parse_list("devices", filter->devices, &filter->device_list, NULL, err));
	if (filter->kinds)
		TRY(parse_list("kinds", filter->kinds, NULL, &filter->kinds_mask, err));
	filter->has_ranks = filter->rank_list.count;
	filter->has_devices = filter->device_list.count;
	return ST_OK;
}

bool filter_is_empty(const struct filter *filter)
{
	return !filter->steps && !filter->from && !filter->to && !filter->ranks &&
	       !filter->devices && !filter->kinds && !filter->names;
}

bool filter_lists(const struct filter_list *list, uint32_t number)
{
	for (size_t i = 0; i < list->count; i++)
		if (number >= list->first[i] && number <= list->last[i])
			return true;
	return false;
}

bool filter_wants_rank(const struct filter *filter, uint32_t rank)
{
	return !filter->has_ranks || filter_lists(&filter->rank_list, rank);
}
