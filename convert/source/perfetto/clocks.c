/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts times.  A snapshot reads several clocks at one instant, which gives each clock's
 * distance from the trace's clock, the one since boot, from then on.  At the end all distances are
 * moved to the epoch by the first snapshot that contains it, because a real-time clock that was set
 * during the recording would tear ranges apart.
 */
#include "convert/source/perfetto/event_fast.h"
#include "schemas/base/vec.h"

#define OLD_MOST_US ((uint64_t)IMPORT_TIME_MOST / 2000)
enum {
	REALTIME = 1,
	MONOTONIC = 3,
	BOOTTIME = PFTRACE_BOOTTIME,
	LOCAL_FIRST = 64, /* range of the clocks of a sequence */
	LOCAL_END = LOCAL_FIRST + PFTRACE_LOCAL_CLOCKS,
	READINGS_MOST = 1 << 14,
	UNIT_MOST = 1000000000,
};

/* Reads the next clock of a ClockSnapshot whose time is valid. */
static bool next_clock(struct bytes *snapshot, struct pftrace_clock *out)
{
	struct pb_field f, m;

	while (pb_next_padded(snapshot, &f)) {
		if (f.number != 1 || f.wire != PB_BYTES)
			continue;
		*out = (struct pftrace_clock){ .unit_ns = 1 };
		while (pb_next_padded(&f.bytes, &m)) {
			if (m.number == 1)
				out->id = (uint32_t)m.u64;
			else if (m.number == 2)
				out->time = (int64_t)m.u64;
			else if (m.number == 3)
				out->is_incremental = m.u64 != 0;
			else if (m.number == 4 && m.u64 && m.u64 <= UNIT_MOST)
				out->unit_ns = (int64_t)m.u64;
		}
		if (out->time >= 0 && out->time <= IMPORT_TIME_MOST / out->unit_ns)
			return true;
	}
	return false;
}

static bool is_local(uint32_t clock)
{
	return clock >= LOCAL_FIRST && clock < LOCAL_END;
}

/* Finds the distance of a time from the trace's clock: by the last reading of its clock before it,
 * or else the first one.  Returns false if the clock has no reading. */
static bool find_shift(struct pftrace_reader *r, uint32_t machine, uint32_t clock, int64_t ns,
		       struct pftrace_reading *out)
{
	const struct pftrace_reading *best = NULL;
	int64_t end_ns = INT64_MAX;

	for (size_t i = 0; i < r->reading_count; i++) {
		const struct pftrace_reading *x = &r->readings[i];

		if (x->machine != machine || x->clock != clock)
			continue;
		if (!best || x->ns <= ns)
			best = x;
		else if (x->ns < end_ns)
			end_ns = x->ns;
	}
	*out = (struct pftrace_reading){
		machine, clock, best && best->ns <= ns ? best->ns : 0, best ? best->shift_ns : 0,
		end_ns,  0
	};
	return best || clock == BOOTTIME;
}

enum status pftrace_clocks_add(struct pftrace_reader *r, uint32_t machine, struct bytes snapshot,
			       struct error *err)
{
	struct pftrace_reading shift = { 0 };
	struct pftrace_clock c;
	struct bytes b = snapshot;
	int64_t now_ns = 0;
	unsigned best = 0;

	while (next_clock(&b, &c)) { /* find the instant, by the best known clock */
		int64_t ns = c.time * c.unit_ns;
		bool is_known = find_shift(r, machine, c.id, ns, &shift);
		unsigned rank = c.id == BOOTTIME ? 3 : is_known ? 2 : 1;

		if (is_local(c.id) || rank <= best)
			continue;
		best = rank;
		now_ns = ns + shift.shift_ns;
	}
	while (next_clock(&snapshot, &c) && r->reading_count < READINGS_MOST) {
		if (is_local(c.id))
			continue;
		TRY(vec_reserve(&r->readings, &r->reading_cap, r->reading_count + 1, err));
		r->readings[r->reading_count++] = (struct pftrace_reading){
			.machine = machine,
			.clock = c.id,
			.ns = c.time * c.unit_ns,
			.shift_ns = now_ns - c.time * c.unit_ns,
		};
	}
	return ST_OK;
}

void pftrace_clocks_to_epoch(struct pftrace_reader *r)
{
	for (size_t i = 0; i < r->reading_count; i++) {
		struct pftrace_reading *x = &r->readings[i], *real = r->readings;

		/* The first reading of the real-time clock of each machine is moved last, because
		 * the loop reads it. */
		while (real < r->readings + r->reading_count &&
		       (real->machine != x->machine || real->clock != REALTIME))
			real++;
		if (real < r->readings + r->reading_count && real != x)
			x->shift_ns -= real->shift_ns;
	}
	for (size_t i = 0; i < r->reading_count; i++)
		if (r->readings[i].clock == REALTIME)
			r->readings[i].shift_ns = 0;
}

static bool to_epoch(struct pftrace_reader *r, uint32_t machine, uint32_t clock, int64_t *ns)
{
	struct pftrace_reading *x = &r->last_reading;

	if (!x->end_ns || x->machine != machine || x->clock != clock || *ns < x->ns ||
	    *ns >= x->end_ns) {
		r->is_clock_known = find_shift(r, machine, clock, *ns, x);
		if (r->is_clock_known && !machine && x->ns <= IMPORT_TIME_MOST)
			x->span_ns = (uint64_t)((x->end_ns <= IMPORT_TIME_MOST ? x->end_ns
									       : IMPORT_TIME_MOST) -
						x->ns);
	}
	*ns += x->shift_ns;
	return r->is_clock_known;
}

enum status pftrace_clocks_set(struct pftrace_reader *r, struct pftrace_sequence *q,
			       uint32_t machine, struct bytes snapshot, struct error *err)
{
	struct bytes b = snapshot;
	bool is_known = false;
	int64_t now_ns = 0;
	struct pftrace_clock c;

	while (!is_known && next_clock(&b, &c)) {
		now_ns = c.time * c.unit_ns;
		is_known = !is_local(c.id) && to_epoch(r, machine, c.id, &now_ns);
	}
	while (is_known && next_clock(&snapshot, &c)) {
		if (!is_local(c.id))
			continue;
		if (!q->clocks)
			TRY(vec_new(&q->clocks, PFTRACE_LOCAL_CLOCKS, err));
		c.trace_ns = now_ns;
		q->clocks[c.id - LOCAL_FIRST] = c;
	}
	return ST_OK;
}

bool pftrace_time_at(struct pftrace_reader *r, struct pftrace_sequence *q, uint32_t machine,
		     uint32_t clock, uint64_t time, int64_t *out)
{
	struct pftrace_clock *local;

	clock = clock ? clock : q->clock ? q->clock : BOOTTIME;
	*out = (int64_t)time;
	if (time > IMPORT_TIME_MOST)
		return false;
	if (!is_local(clock))
		return to_epoch(r, machine, clock, out);
	local = q->clocks ? &q->clocks[clock - LOCAL_FIRST] : NULL;
	if (!local || !local->unit_ns || *out > IMPORT_TIME_MOST / local->unit_ns ||
	    local->trace_ns > IMPORT_TIME_MOST)
		return false;
	*out = local->trace_ns +
	       (*out - (local->is_incremental ? 0 : local->time)) * local->unit_ns;
	if (local->is_incremental)
		local->trace_ns = *out;
	return true;
}

bool pftrace_old_time(struct pftrace_reader *r, struct pftrace_sequence *q, uint32_t machine,
		      uint64_t time_us, bool is_delta, int64_t *out)
{
	uint64_t ns = time_us * 1000;

	if (time_us > OLD_MOST_US)
		return false;
	if (is_delta) {
		if (q->event_ns < 0 || q->event_ns > IMPORT_TIME_MOST / 2)
			return false;
		q->event_ns += (int64_t)ns;
		ns = (uint64_t)q->event_ns;
	}
	return pftrace_time_at(r, q, machine, MONOTONIC, ns, out) ||
	       pftrace_time_at(r, q, machine, BOOTTIME, ns, out);
}

void pftrace_old_begin(struct pftrace_sequence *q, struct bytes thread)
{
	struct pb_field f;

	while (pb_next_padded(&thread, &f))
		if (f.number == 6 && f.u64 <= OLD_MOST_US)
			q->event_ns = (int64_t)f.u64 * 1000;
}

bool pftrace_time(struct pftrace_reader *r, struct pftrace_sequence *q,
		  const struct pftrace_packet *p, int64_t *out)
{
	return PFTRACE_HAS(p, TIME) &&
	       pftrace_time_at(r, q, (uint32_t)p->numbers[PFTRACE_MACHINE],
			       (uint32_t)p->numbers[PFTRACE_CLOCK], p->numbers[PFTRACE_TIME], out);
}
