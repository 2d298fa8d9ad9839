#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of Perfetto's own builder, as we and as Perfetto's trace processor read them.

usage: check_reading.py --bin BUILD

Slices by name (how many, sum of durations, how many never end), instants, samples of counters and
their sums, threads. Packets stand in the order of time of their track or in none, and
compressed; descriptors before or behind; a sequence has names of its own, a clock of its own, or
neither.
"""
import argparse
import collections
import csv
import io
import os
import random
import sys
import tempfile
import zlib

import world
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

QUERIES = {
    "slices": """select name, count(*), sum(max(dur, 0)), sum(dur = -1) from slice
                 where dur != 0 group by name""",
    "instants": "select name, count(*) from slice where dur = 0 group by name",
    "counters": """select t.name, count(*), sum(c.value) from counter c
                   join counter_track t on t.id = c.track_id group by t.name""",
    "threads": "select distinct name, tid from thread where name like 'worker%'",
}
BASE = 5_000_000_000
NAMES = [f"work {i}" for i in range(7)]


class Sequence:
    """Packets of one writer: with interned names, an incremental clock, neither or both."""

    def __init__(self, builder, number, interns, counts_up):
        self.builder, self.number, self.interns, self.counts_up = builder, number, interns, counts_up
        self.names, self.last = {}, BASE
        first = self.packet(BASE, clear=True)
        if counts_up:
            first.trace_packet_defaults.timestamp_clock_id = 64
            for clock, at, is_incremental in ((6, BASE, False), (64, 0, True)):
                first.clock_snapshot.clocks.add(clock_id=clock, timestamp=at, is_incremental=is_incremental)

    def packet(self, at, clear=False):
        packet = self.builder.add_packet()
        packet.trusted_packet_sequence_id = self.number
        packet.sequence_flags = 1 if clear else 2
        if not clear:
            packet.timestamp = at - self.last if self.counts_up else at
            self.last = at
        return packet

    def event(self, at, kind, track, name=None):
        packet = self.packet(at)
        packet.track_event.type, packet.track_event.track_uuid = kind, track
        if name and self.interns:
            if name not in self.names:
                self.names[name] = len(self.names) + 1
                packet.interned_data.event_names.add(iid=self.names[name], name=name)
            packet.track_event.name_iid = self.names[name]
        elif name:
            packet.track_event.name = name
        return packet.track_event


def nested(rng, sequence, track, flows):
    """Ranges within each other; some are left open at the end."""
    at, depth = BASE + rng.randrange(1000), 0
    for _ in range(200):
        at += rng.randrange(1, 500)
        if depth and rng.random() < 0.5:
            sequence.event(at, TrackEvent.TYPE_SLICE_END, track)
            depth -= 1
        elif depth < 6:
            event = sequence.event(at, TrackEvent.TYPE_SLICE_BEGIN, track, rng.choice(NAMES))
            if rng.random() < 0.2:
                event.flow_ids.append(flows.pop() if len(flows) > 4 else flows.insert(0, at) or at)
            depth += 1
        if rng.random() < 0.1:
            sequence.event(at, TrackEvent.TYPE_INSTANT, track, "now").debug_annotations.add(
                name="why", string_value="because")
    for _ in range(max(0, depth - 1)):  # the outermost stays open
        at += 7
        sequence.event(at, TrackEvent.TYPE_SLICE_END, track)


def make(seed, late):
    rng, builder = random.Random(seed), TraceProtoBuilder()
    described = TraceProtoBuilder() if late else builder
    packet = builder.add_packet()
    for clock, at in ((6, BASE), (1, 1_700_000_000_000_000_000), (3, BASE - 1000)):
        packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=at)
    process = described.add_packet().track_descriptor
    process.uuid, process.process.pid, process.process.process_name = 1, 77, "trainer"
    flows = []
    for i in range(4):
        thread = described.add_packet().track_descriptor
        thread.uuid, thread.thread.pid, thread.thread.tid, thread.thread.thread_name = 10 + i, 77, 100 + i, f"worker {i}"
        nested(rng, Sequence(builder, 20 + i, i % 2 == 0, i // 2 == 0), 10 + i, flows)
    row = described.add_packet().track_descriptor
    row.uuid, row.name, row.parent_uuid = 30, "row", 1
    pairs = Sequence(builder, 40, True, False)
    spans = [(BASE + 1000 * i, BASE + 1000 * i + rng.randrange(1, 900)) for i in range(50)]
    rng.shuffle(spans)  # each end behind its begin, in no order of time, as exporters have it
    for begin, end in spans:
        pairs.event(begin, TrackEvent.TYPE_SLICE_BEGIN, 30, "span")
        pairs.event(end, TrackEvent.TYPE_SLICE_END, 30)
    counter = builder.add_packet().track_descriptor  # a counter's must stand before its samples
    counter.uuid, counter.name, counter.parent_uuid = 50, "watts", 1
    counter.counter.unit_name = "W"
    for i in range(30):
        pairs.event(BASE + 100 * i, TrackEvent.TYPE_COUNTER, 50).double_counter_value = rng.random() * 700
    step = builder.add_packet().track_descriptor  # two writers, each with values that add up
    step.uuid, step.name, step.counter.is_incremental = 51, "added", True
    time = builder.add_packet().track_descriptor
    time.uuid, time.parent_uuid, time.counter.type, time.counter.is_incremental = 52, 10, 1, True
    others = Sequence(builder, 41, True, False)
    for i in range(30):
        if i == 20:
            others.packet(BASE, clear=True)
        for writer in (pairs, others):
            writer.event(BASE + 100 * i, TrackEvent.TYPE_COUNTER, 51).counter_value = rng.randrange(100)
        others.event(BASE + 100 * i, TrackEvent.TYPE_COUNTER, 52).counter_value = rng.randrange(100)
    return builder.serialize() + (described.serialize() if late else b"")


def ours(tool, path):
    rows = list(csv.DictReader(io.StringIO(world.run(tool, path, "-q", "-t", "csv"))))
    slices = collections.defaultdict(lambda: [0, 0, 0])
    instants, counters = collections.Counter(), collections.defaultdict(lambda: [0, 0.0])
    for row in rows:
        if row["kind"] == "mark":
            instants[row["name"]] += bool(row["name"])
        elif row["kind"] == "counter":
            counters[row["name"]][0] += 1
            counters[row["name"]][1] += float(row["value"])
        else:
            one = slices[row["name"]]
            is_open = "never_ended" in row["state"]
            one[0] += 1
            one[1] += 0 if is_open else int(row["dur_ns"])
            one[2] += is_open
    return {"slices": sorted([name, *one] for name, one in slices.items()),
            "instants": sorted([name, n] for name, n in instants.items() if n),
            "counters": sorted([name, n, round(total, 3)] for name, (n, total) in counters.items()),
            "threads": sorted({row["thread"] for row in rows if row["kind"] == "range" and
                               int(row["thread"]) < 1000}, key=int)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    tool = os.path.join(parser.parse_args().bin, "tacho-convert")
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(4):
            data = make(seed, late=seed % 2)
            forms = {"plain": data}
            packed = Trace()
            packed.packet.add().compressed_packets = zlib.compress(data)
            forms["compressed"] = packed.SerializeToString()
            for form, content in forms.items():
                path = os.path.join(folder, f"{form}{seed}.pftrace")
                with open(path, "wb") as file:
                    file.write(content)
                want, have = world.ask(path, QUERIES), ours(tool, path)
                want["counters"] = [[name, n, round(float(total), 3)] for name, n, total in want["counters"]]
                want["threads"] = sorted({str(tid) for _, tid in want["threads"]}, key=int)
                for what in ("slices", "instants", "counters", "threads"):
                    count += 1
                    if sorted(map(str, want[what])) != sorted(map(str, have[what])):
                        bad += 1
                        print(f"not ok - {form} {seed}: {what}: {have[what]}, "
                              f"the trace processor has {want[what]}")
    print(f"{count - bad} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
