# SPDX-License-Identifier: Apache-2.0
"""What a cut leaves of one file: analyze/DEFINITIONS.md 1.

`from` and `to` clip events, and what is computed of events is computed of those. Steps, phases,
threads and launches are facts of the whole file: no cut moves them; a step is left where some of
its mark is, and is complete if all of its mark is. What began before `from` still lasts, but counts
no more. A window is clipped like everything else; `--steps` leaves of it what the chosen events and
marks reach. GPU events and waits belong to the step of their launch, all others to the step that
they begin in; up to 1 % of a mark behind its end what begins there is of that step, whether the gap
joins or not.
"""
import copy
import dataclasses
import random

import gpu
import phases

ON_GPU = tuple(gpu.kineto.GPU_CATEGORIES) + ("cuda_sync",)


@dataclasses.dataclass
class Cut:
    begin_ns: int = 0       # after the first event
    end_ns: int = None
    steps: tuple = None     # half-open
    devices: set = None

    def options(self):
        found = ["--from", f"{self.begin_ns}ns"] if self.begin_ns else []
        found += ["--to", f"{self.end_ns}ns"] if self.end_ns is not None else []
        found += ["--steps", "%d-%d" % self.steps] if self.steps else []
        found += ["--devices", ",".join(map(str, sorted(self.devices)))] if self.devices else []
        return found


def make(seed):
    """A cut that leaves something of most files."""
    rng = random.Random(seed)
    cut = Cut()
    kind = rng.choice(["times", "times", "steps", "devices", "both"])
    if kind in ("times", "both"):
        extent = rng.choice([30_000, 200_000, 3_000_000])
        cut.begin_ns = rng.choice([0, rng.randrange(1, extent), rng.randrange(1, extent)])
        cut.end_ns = rng.choice([None, cut.begin_ns + rng.randrange(1, extent)])
    if kind in ("steps", "both"):
        first = rng.randint(7, 10)
        cut.steps = (first, first + rng.choice([1, 1, 2, 5]))
    if kind == "devices":
        cut.devices = set(rng.sample([0, 1, 2], rng.randint(1, 2)))
    return cut


class Clipper:
    def __init__(self, oracle, cut):
        rows = oracle.trace.events
        origin = min([event.begin for event in rows] + oracle.trace.instants, default=0)
        self.host, self.cut = oracle.host, cut
        self.low = origin + cut.begin_ns if cut.begin_ns else 0
        self.high = origin + cut.end_ns if cut.end_ns is not None else phases.ENDLESS

    def has_step(self, event):
        if not self.cut.steps:
            return True
        if event.category in ON_GPU:
            correlation = gpu.kineto.plain_int(event.args.get("correlation"))
            calls = self.host.calls.get(correlation)
            if not calls:
                return False
            begin = min(calls, key=lambda call: (call.begin, -call.end, call.index)).begin
        else:
            begin = event.begin
        step = self.host.step_near(begin)
        return step is not None and self.cut.steps[0] <= step < self.cut.steps[1]

    def has_device(self, event):
        if not self.cut.devices or event.category not in ON_GPU:
            return True
        return gpu.kineto.plain_int(event.args.get("device", event.pid)) in self.cut.devices

    def has_amount(self, row):
        return (self.low <= row.begin < self.high and self.has_step(row)
                and (not self.cut.devices or row.device is None or row.device in self.cut.devices))

    def clip(self, event):
        """The event, a clipped copy of it, or None."""
        if event.begin >= self.high or event.begin < self.low and event.end <= self.low:
            return None
        if event.begin >= self.low and event.end <= self.high:
            return dataclasses.replace(event, whole=event)
        return dataclasses.replace(event, whole=event, begin=max(event.begin, self.low),
                                   end=min(event.end, self.high),
                                   early=event.early or event.begin < self.low, cut=True)

    def step(self, one):
        if self.cut.steps and not self.cut.steps[0] <= one.number < self.cut.steps[1]:
            return None
        if one.begin >= self.high or one.mark_end <= self.low:
            return None
        whole = one.whole and one.begin >= self.low and one.mark_end <= self.high
        return dataclasses.replace(one, begin=max(one.begin, self.low),
                                   end=min(one.end, self.high), whole=whole)

    def window(self, bounds):
        opened, closed = bounds
        if self.cut.steps:
            return (None, None)
        return (max(opened, self.low) if opened is not None else None,
                min(closed, self.high) if closed is not None else None)


def apply(oracle, cut):
    """An oracle of what the cut leaves."""
    clipper = Clipper(oracle, cut)
    made, host = copy.copy(oracle), copy.copy(oracle.host)
    made.trace = copy.copy(oracle.trace)
    made.whole, made.low = oracle, clipper.low
    rows = [clipper.clip(event) for event in sorted(oracle.trace.events, key=true_order)
            if clipper.has_step(event) and clipper.has_device(event)]
    made.trace.events = [row for row in rows if row is not None]
    for index, event in enumerate(made.trace.events):
        event.index = index
    made.trace.memory = [row for row in oracle.trace.memory if clipper.has_amount(row)]
    made.devices = gpu.events_by_device(made.trace)
    made.host = host
    host.spans, host.devices = {}, made.devices
    host.bounds = [clipper.window(bounds) for bounds in phases.apart(oracle.trace.windows)]
    host.events = [event for event in made.trace.events if phases.is_host(event)]
    host.marks = [event for event in host.events if is_one_of(event, oracle.host.marks)]
    host.steps = []
    if oracle.host.has_marks:
        host.steps = [step for step in map(clipper.step, oracle.host.steps) if step is not None]
        host.count_steps(host.steps)
    host.inferred = not host.steps and not cut.steps
    if host.inferred:
        host.steps = host.window_step()
    made.compute()
    return made


def true_order(event):
    return (event.begin, -event.end, event.index)


def is_one_of(event, marks):
    """Whether it is what is left of a mark."""
    names = {(mark.category, mark.name, mark.args.get("number")) for mark in marks}
    threads = {phases.thread(mark) for mark in marks}
    return (event.category, event.name, event.args.get("number")) in names \
        and phases.thread(event) in threads
