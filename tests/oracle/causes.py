# SPDX-License-Identifier: Apache-2.0
"""Why a GPU does nothing, by brute force: analyze/DEFINITIONS.md 6.

Every gap is cut at every begin and end that might matter, and each of the small intervals is asked
the questions of the text one after the other. Equal neighbours are then one piece.

Readings of the text:
 * a gap is a longest run of idle instants, lead and tail included, in which no GPU event begins;
 * what is open at t has begin <= t < end; of several things with one cause that are open, the one
   that began first is named (then the longer, then the earlier in the file);
 * the innermost range of a piece is that which began last of those that cover over half of it.
"""
import bisect
import re
from dataclasses import dataclass

import gpu
import kineto
import phases

BEGINS_WITHIN = 1_000_000   # work behind its launch, where the GPU does nothing
SLACK = 50000       # a call and its work may be so far in the wrong order
CALL_PARTS = [      # the first part that is in the name decides
    ("Node", "other"), ("Synchronize", "sync"), ("ModuleLoad", "compile"),
    ("LibraryLoad", "compile"), ("LinkCreate", "compile"), ("LinkAdd", "compile"),
    ("LinkComplete", "compile"), ("rtcCompileProgram", "compile"),
] + [(part, "allocator") for part in
     "Malloc MemAlloc MemHostAlloc HostAlloc HostRegister HostUnregister MemFree cudaFree hipFree "
     "HostFree MemCreate MemMap MemUnmap MemRelease MemSetAccess MemAddress MemPoolTrim".split()]
SETUP = ("StreamCreate", "EventCreate", "CtxCreate", "CtxRetain", "cuInit", "hipInit", "SetDevice",
         "GetStreamPriorityRange",
         "FuncGetAttribute", "FuncSetAttribute", "GetFunction", "GetFuncBySymbol", "Occupancy")
LAUNCHED = ("graph_internal", "stream_wait", "launch", "dispatch")


@dataclass
class Gap:
    device: object
    begin: int
    end: int
    event: object       # that ends it; None: the tail
    before: object      # that ended last of those before


@dataclass
class Piece:
    begin: int
    end: int
    cause: str
    thread: object = None
    call: str = None
    range: str = None
    python: str = None
    after_sync: bool = False


def call_class(name):
    for part, kind in CALL_PARTS:
        if part in name:
            return kind
    if any(part in name for part in SETUP):
        return "setup"
    if "Memcpy" in name:
        return "copy" if "Async" in name else "blocking_copy"
    return "other"


def launches_kernels(name):
    """Calls that put kernels on a GPU, one by one or as a graph."""
    return "Launch" in name and "HostFunc" not in name


def overhead_cause(name):
    if "Loading" in name or "Compiler" in name:
        return "compile"
    return None if "Command Buffer Full" in name else "profiler"


def order(event):
    return (event.begin, -event.end, event.index)


def is_mark(event):
    return phases.is_mark(event)


def is_range(event):
    return (phases.is_annotation(event) or phases.is_operator(event)) and not is_mark(event)


def is_python(event):
    return event.category in ("python_function", "python")


COMPILES = re.compile(r"\(dynamo_timed\)|torch/_dynamo/convert_frame\.py"
                      r"|triton/compiler/compiler\.py.*(\): |^\$.* )_*compile$"
                      r"|(\): |^\$.* )_*(backend_compile|compile_or_get_cached)")


class Causes:
    def __init__(self, oracle):
        self.oracle = oracle
        self.host = oracle.host
        self.step_thread = oracle.host.step_thread
        self.by_name = {}
        self.threads = {}
        for event in sorted(self.host.events, key=order):
            self.threads.setdefault(phases.thread(event), []).append(event)
        self.at_launch = {}     # what was open when a call began, whatever a cut has left of it
        for event in getattr(oracle, "whole", oracle).host.events:
            self.at_launch.setdefault(phases.thread(event), []).append(event)
        rows = sorted(oracle.trace.events, key=order)
        self.first_work = min((event.begin for events in oracle.devices.values()
                               for event in events), default=float("inf"))
        over = [(overhead_cause(event.name), event) for event in rows
                if event.category == "overhead"]
        calls = [event for event in self.host.events if phases.is_call(event)]
        firsts = {}
        for call in sorted(calls, key=order):
            if call_class(call.name) != "other" or launches_kernels(call.name):
                firsts.setdefault(phases.thread(call)[0], call)
        self.first_calls = {call.index for call in firsts.values()}
        self.profiler = [event for cause, event in over if cause == "profiler"]
        self.compile = sorted([event for cause, event in over if cause == "compile"]
                              + [call for call in calls if self.loads(call)]
                              + [event for event in self.host.events if event.category == "jit"
                                 or (is_range(event) or is_python(event))
                                 and COMPILES.search(event.name)],
                              key=order)
        self.collections = [event for event in rows if event.category == "gc"]
        self.waits = [event for event in rows if event.category == "cuda_sync"
                      and event.name == "Stream Wait Event"]
        self.classes = {"sync": {}, "allocator": {}, "blocking_copy": {}}
        for call in calls:
            kind = call_class(call.name)
            if kind in self.classes and not self.loads(call):
                self.classes[kind].setdefault(phases.thread(call), []).append(
                    (call.begin, call.end, order(call), call.name, 0))
        self.add_sync_rows(rows)
        self.add_pageable()
        self.covers = {}
        self.index_work()
        self.with_work = {self.key(call) for call in self.launches.values() if call is not None}
        self.kernel_calls = self.outer_kernel_calls()

    def in_step(self, call):
        marks = getattr(self.oracle, "whole", self.oracle).host.marks
        begun = [mark for mark in marks if mark.begin <= call.begin]
        return bool(begun) and begun[-1].end > call.begin

    def is_long(self, call):
        """So long that something is used for the first time: over 1 ms, in a marked step 10."""
        return call.end - call.begin > (10_000_000 if self.in_step(call) else 1_000_000)

    def loads(self, call):
        """Whether the call loads code or starts the driver, by its name and length."""
        kind = call_class(call.name)
        return (kind == "compile" or kind == "setup" and self.is_long(call)
                or kind == "allocator" and call.begin > self.first_work
                and call.end - call.begin > 50_000_000
                or kind == "allocator" and call.begin <= self.first_work
                and call.end - call.begin > 10_000_000
                and ("Host" not in call.name
                     or call.index in self.first_calls and not self.in_step(call)))

    def index_work(self):
        """Only to be quick on large files: launches, the order on each stream, latest ends."""
        self.launches, self.asked, self.before, self.seen = {}, {}, {}, {}
        self.first_of_name = set()
        for device, events in self.oracle.devices.items():
            on_stream, best, seen = {}, None, None
            names = {event.name: event for event in reversed(events) if event.kind == "kernel"}
            self.first_of_name |= {event.index for event in names.values()}
            window = None
            for event in events:
                if self.host.place_of_window(event.begin) != window:
                    window, best = self.host.place_of_window(event.begin), None
                call = self.launches[event.index] = self.host.launch(event)
                self.asked[event.index] = on_stream.get(event.stream, -1)
                on_stream[event.stream] = call.begin if call is not None else event.begin
                self.before[event.index] = best     # that ended last of all before this one
                if best is None or (event.end, event.order) > (best.end, best.order):
                    best = event
                if call is not None and seen is None:
                    seen = event.order
            self.seen[device] = seen

    @staticmethod
    def key(call):
        """Of a call, whatever a cut has left of it."""
        return call.begin, phases.thread(call), call.args.get("correlation")

    def outer_kernel_calls(self):
        """Calls that put kernels on the only GPU; of a call in another the outer one counts."""
        if len(getattr(self.oracle, "whole", self.oracle).devices) > 1:
            return []
        found, ends = [], {}
        for event in sorted(self.host.events, key=order):
            thread = phases.thread(event)
            if not phases.is_call(event) or not launches_kernels(event.name) or event.early \
                    or event.begin < ends.get(thread, -1) \
                    or not kineto.plain_int(event.args.get("correlation")):
                continue
            ends[thread] = event.end
            found.append(event)
        return found

    def unrecorded_since(self, gap, call):
        """(instant, call) from which on the work of the gap is not in the file."""
        begun = [self.launches[event.index] for event in self.oracle.devices[gap.device]
                 if event.begin < gap.end]
        asked = max((one.begin for one in begun if one is not None), default=0)
        found = [one for one in self.kernel_calls
                 if one.begin > asked and (gap.event is None or one.begin < call.begin)]
        if call is not None and self.after_launch(gap, call)(gap.end) == "dispatch":
            found.append(call)
        first = min(found, key=lambda one: one.end, default=None)
        if first is not None and gap.end - max(first.end, gap.begin) > BEGINS_WITHIN:
            return max(first.end, gap.begin), first
        lost = [one for one in found if self.key(one) not in self.with_work] if gap.event else []
        first = min(lost, key=lambda one: one.end, default=None)
        if first is None or first.end >= gap.end:
            return gap.end, None
        return max(first.end, gap.begin), first

    def call_of_row(self, row):
        call = self.host.launch(row_as_work(row))
        return call if call is not None and call.begin <= row.begin + SLACK else None

    def add_sync_rows(self, rows):
        for row in rows:
            if row.category != "cuda_sync" or row.name == "Stream Wait Event":
                continue
            call = self.call_of_row(row)
            if call is None or call_class(call.name) in ("copy", "blocking_copy"):
                continue
            self.classes["sync"].setdefault(phases.thread(call), []).append(
                (row.begin, row.end, order(row), call.name, 0))

    def add_pageable(self):
        for events in self.oracle.devices.values():
            for event in events:
                call = self.host.launch(event) if event.kind == "memcpy" else None
                if call is None or call_class(call.name) != "copy" or "Pageable" not in event.name:
                    continue
                self.classes["blocking_copy"].setdefault(phases.thread(call), []).append(
                    (call.begin, call.end, order(event), call.name, event.begin))

    def gaps(self, device):
        """Lead, the idle time within and the tail."""
        for first, last, events in self.host.windows_of(device):
            busy = phases.merged((event.begin, event.end) for event in events)
            begins = sorted({event.begin for event in events})
            edges = [first] + [point for interval in busy for point in interval] + [last]
            for place in range(0, len(edges), 2):
                cuts = [edges[place]] + [point for point in begins
                                         if edges[place] < point < edges[place + 1]]
                for begin, end in zip(cuts, cuts[1:] + [edges[place + 1]]):
                    if begin < end:
                        yield self.gap(device, events, begin, end)

    def gap(self, device, events, begin, end):
        """`events` of its window."""
        place = bisect.bisect_left(events, end, key=lambda event: event.begin)
        event = events[place] if place < len(events) else None
        if event is None:
            return Gap(device, begin, end, None, None)
        return Gap(device, begin, end, event, self.before[event.index])

    def cover(self, thread):
        if thread not in self.covers:
            self.covers[thread] = phases.merged(
                (event.begin, event.end) for event in self.threads.get(thread, [])
                if phases.is_call(event) or is_range(event) or is_python(event))
        return self.covers[thread]

    def near(self, thread, gap):
        """The stretches of a thread's cover that touch the gap."""
        cover = self.cover(thread)
        low = bisect.bisect_right(cover, gap.begin, key=lambda pair: pair[1])
        return cover[low:bisect.bisect_left(cover, gap.end, key=lambda pair: pair[0])]

    def is_active(self, thread, instant):
        cover = self.cover(thread)
        place = bisect.bisect_right(cover, instant, key=lambda pair: pair[0])
        return place > 0 and instant < cover[place - 1][1]

    def looked_up(self, gap, call, instant):
        """The thread on which calls are looked up at this instant."""
        if call is None or not self.is_active(phases.thread(call), instant):
            return self.step_thread
        return phases.thread(call)

    def open_call(self, kind, thread, instant, gap):
        found = [row for row in self.classes[kind].get(thread, [])
                 if row[0] <= instant < row[1] and row[4] <= gap.end]
        return min(found, key=lambda row: (row[0], -row[1], row[4], row[2]), default=None)

    def has_waited(self, event, call):
        asked = self.asked[event.index]
        return any(asked <= wait.begin <= call.begin for wait in self.waits
                   if kineto.plain_int(wait.args.get("stream")) == event.stream
                   and kineto.plain_int(wait.args.get("device", wait.pid)) == event.device)

    def whole(self, gap, call):
        """The cause of a gap that touches a loss or has no launch, or None."""
        if any(low < gap.end and high > gap.begin for low, high in self.oracle.trace.losses):
            return "lost"
        if gap.event is None or call is not None:
            return None
        first = self.seen[gap.device]
        seen = first is not None and first < gap.event.order
        return "unknown" if seen else "before_window"

    def after_launch(self, gap, call):
        event, before = gap.event, gap.before
        if before is not None and event.correlation and before.correlation == event.correlation:
            return lambda instant: "graph_internal"
        if self.has_waited(event, call):
            return lambda instant: "stream_wait"
        word = "launch"
        if event.index in self.first_of_name and self.is_long(call):
            word = "compile"
        return lambda instant: word if instant < call.end else "dispatch"

    def before_launch(self, gap, call, instant):
        """(cause, thread, call) of one instant."""
        for cause, rows in (("profiler", self.profiler), ("compile", self.compile)):
            row = next((row for row in rows if row.begin <= instant < row.end), None)
            if row is not None:
                return cause, phases.thread(row), row.name
        thread = self.looked_up(gap, call, instant)
        for kind in ("sync", "blocking_copy", "allocator"):
            row = self.open_call(kind, thread, instant, gap)
            if row is not None:
                return kind, thread, row[3]
        row = next((row for row in self.collections if row.begin <= instant < row.end), None)
        if row is not None:
            return "gc", phases.thread(row), row.name
        phase = self.host.phase_at(instant)
        return ("data" if phase == "data" else "host:" + phase), self.step_thread, None

    def points(self, gap, call):
        """Every instant of the gap at which an answer may change."""
        found = {gap.begin, gap.end}
        rows = [(row.begin, row.end) for row in self.profiler + self.compile + self.collections]
        threads = {self.step_thread} | ({phases.thread(call)} if call is not None else set())
        for thread in threads:
            for kind in self.classes:
                rows += [row[:2] for row in self.classes[kind].get(thread, [])]
            if thread != self.step_thread:
                rows += self.near(thread, gap)
        if call is not None:
            rows.append((call.begin, call.end))
        for begin, end in rows:
            if begin < gap.end and end > gap.begin or begin == end:
                found |= {point for point in (begin, end) if gap.begin < point < gap.end}
        found |= {low for low, _, _ in self.host.between(gap.begin, gap.end)}
        return sorted(found)

    def pieces(self, gap):
        call = self.launches[gap.event.index] if gap.event is not None else None
        whole = self.whole(gap, call)
        sync = self.open_call("sync", self.looked_up(gap, call, gap.begin), gap.begin, gap)
        if whole is not None:
            return [Piece(gap.begin, gap.end, whole, after_sync=sync is not None)]
        after = self.after_launch(gap, call) if call is not None else None
        since, missing = self.unrecorded_since(gap, call)
        points, found = sorted({since, *self.points(gap, call)}), []
        for begin, end in zip(points, points[1:]):
            if begin >= since:
                answer = ("unrecorded", None, missing.name)
            elif call is not None and begin >= call.begin:
                answer = (after(begin), phases.thread(call), call.name)
            else:
                answer = self.before_launch(gap, call, begin)
            last = found[-1] if found else None
            if last is not None and (last.cause, last.thread, last.call) == answer:
                last.end = end
            else:
                found.append(Piece(begin, end, *answer, after_sync=sync is not None))
        return found

    def own(self, piece, call):
        mine = self.threads.get(piece.thread, [])
        if piece.cause in LAUNCHED:
            mine = self.at_launch.get(piece.thread, [])
            over = [event for event in mine if order(event) < order(call)
                    and event.begin <= call.begin < event.end]
        else:
            over = [event for event in mine if 2 * (
                min(event.end, piece.end) - max(event.begin, piece.begin))
                > piece.end - piece.begin]
        for field, wanted in (("range", is_range), ("python", is_python)):
            best = max((event for event in over if wanted(event) and event.begin < event.end),
                       key=order, default=None)
            setattr(piece, field, None if best is None else best.name)

    def causes(self, device):
        """(cause -> ns, ns after a synchronisation)."""
        sums, after_sync = {}, 0
        for gap in self.gaps(device):
            for piece in self.pieces(gap):
                sums[piece.cause] = sums.get(piece.cause, 0) + piece.end - piece.begin
                after_sync += piece.end - piece.begin if piece.after_sync else 0
        return sums, after_sync

    def owners(self, device):
        """(cause, thread id, range, python, call) -> [ns, pieces]."""
        rows = {}
        for gap in self.gaps(device):
            call = self.launches[gap.event.index] if gap.event is not None else None
            for piece in self.pieces(gap):
                self.own(piece, call)
                tid = piece.thread[1] if piece.thread is not None else None
                row = rows.setdefault((piece.cause, tid, piece.range, piece.python, piece.call),
                                      [0, 0])
                row[0] += piece.end - piece.begin
                row[1] += 1
        return rows


def row_as_work(row):
    """A synchronisation row with what `launch` asks of it."""
    return gpu.GpuEvent(device=None, stream=0,
                        correlation=kineto.plain_int(row.args.get("correlation")), kind="sync",
                        group="", name=row.name, bytes=0, begin=row.begin, end=row.end,
                        index=row.index)
