# SPDX-License-Identifier: Apache-2.0
"""Reads one Kineto JSON file into plain objects, for the oracle only.

Times are integer nanoseconds: `baseTimeNanoseconds` (0 where absent) plus the decimal text of `ts`
times 1000. Numbers with a fraction are read as Decimal, never as float, so nothing is rounded by
the reader; should a file carry more than three decimals the half is rounded up. The end of an
event is its begin plus its `dur`, each made an integer first.
"""
import gzip
import json
import re
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

GPU_CATEGORIES = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "graph": "graph",       # a whole launch in one record; logs only
}
CALL_CATEGORIES = {"cuda_runtime", "cuda_driver", "runtime", "driver"}
OPERATOR_CATEGORIES = {"cpu_op", "operator"}
OLD_OPERATOR = "operator"


@dataclass(slots=True)
class Event:
    """One `ph` X event that has a `dur`."""
    index: int          # place in traceEvents: the last resort of every tie
    category: str       # lower case
    name: str
    pid: object
    tid: object         # an int where the file has an int or digits, else the text
    begin: int          # ns
    end: int            # ns
    args: dict
    early: bool = False     # a cut took its begin away
    cut: bool = False       # the recording or a cut took one of its ends away
    whole: object = None    # what a cut has left this of

    @property
    def length(self):
        return self.end - self.begin


@dataclass(slots=True)
class Amount:
    """Memory that was given out, or that was got back, or a sample of it: an instant."""
    index: int
    begin: int
    pid: object
    tid: object
    device: object      # None: the host's
    size: int           # bytes, below 0 where it got them back
    address: int
    total: object       # in all after it, where the file says so
    reserved: object    # that it holds, likewise
    what: str = "allocator"     # or cuda, pinned; in_use, and peak: samples, `total` being them

    @property
    def pool(self):
        """(device, what) that it is of: what is pinned is the host's."""
        return (None if self.what == "pinned" else self.device,
                "in_use" if self.what == "peak" else self.what)

    category = "[memory]"

    @property
    def end(self):
        return self.begin


@dataclass
class Trace:
    path: str
    header: dict                                   # every top-level key but traceEvents
    events: list                                   # of Event
    entries: int = 0                               # rows of traceEvents, all phases
    without_dur: int = 0                           # X rows that do not count
    thread_names: dict = field(default_factory=dict)   # (pid, tid) -> name
    process_names: dict = field(default_factory=dict)
    flows: list = field(default_factory=list)
    windows: list = field(default_factory=lambda: [(None, None)])   # [begin, end); None: unknown
    losses: list = field(default_factory=list)     # [begin, end) of which records are missing
    is_log: bool = False
    lost: list = field(default_factory=list)       # of Event: of these only the tables still tell
    instants: list = field(default_factory=list)   # begins of what has no length
    memory: list = field(default_factory=list)     # of Amount


def plain_int(value):
    """The integer in an int, a digit string, `stream 7` or `thread 12 (name)`; else the value."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"-?\d+", text):
            return int(text)
    return value


def nanoseconds(value):
    """Microseconds of a JSON number (int or Decimal) as integer nanoseconds."""
    if isinstance(value, int):
        return value * 1000
    if isinstance(value, str):
        value = Decimal(value)
    return int((value * 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def amount(index, begin, pid, tid, args):
    number = args.get("Device Id", -1)
    return Amount(index=index, begin=begin, pid=pid, tid=tid,
                  device=number if args.get("Device Type") == 1 and number >= 0 else None,
                  size=args.get("Bytes", 0), address=args.get("Addr", 0),
                  total=args.get("Total Allocated"), reserved=args.get("Total Reserved"))


def sample(index, begin, pid, device, name, value):
    """Of a counter: whole bytes, none below 0."""
    return Amount(index=index, begin=begin, pid=pid, tid=None, device=device, size=0, address=0,
                  total=max(0, int(value)), reserved=None,
                  what="peak" if name == "peak_bytes_in_use" else "in_use")


def is_number(value):
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, Decimal))


def read_text(path):
    with open(path, "rb") as stream:
        raw = stream.read()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return raw.decode("utf-8", errors="replace")


def load(path):
    document = json.loads(read_text(path), parse_float=Decimal, strict=False)
    if isinstance(document, list):
        document = {"traceEvents": document}
    base = document.get("baseTimeNanoseconds", 0)
    base = int(base) if base else 0
    header = {key: value for key, value in document.items() if key != "traceEvents"}
    trace = Trace(path=path, header=header, events=[])
    for index, row in enumerate(document["traceEvents"]):
        trace.entries += 1
        args = row.get("args")
        args = args if isinstance(args, dict) else {}
        phase = row.get("ph")
        pid, tid = plain_int(row.get("pid")), plain_int(row.get("tid"))
        if phase == "M":
            if row.get("name") == "thread_name":
                trace.thread_names[(pid, tid)] = str(args.get("name", ""))
            if row.get("name") == "process_name":
                trace.process_names[pid] = str(args.get("name", ""))
            continue
        if phase in ("s", "f"):
            trace.flows.append(row)
            continue
        if phase in ("i", "I") and is_number(row.get("ts")):
            trace.instants.append(base + nanoseconds(row["ts"]))
            if row.get("name") == "[memory]":
                trace.memory.append(amount(index, trace.instants[-1], pid, tid, args))
        if phase == "C" and is_number(row.get("ts")):
            trace.instants.append(base + nanoseconds(row["ts"]))
            if row.get("name") in ("bytes_in_use", "peak_bytes_in_use"):
                trace.memory.append(sample(index, trace.instants[-1], pid, None, row["name"],
                                           args["value"]))
        if phase != "X":
            continue
        if not is_number(row.get("dur")) or not is_number(row.get("ts")):
            trace.without_dur += 1
            continue
        begin = base + nanoseconds(row["ts"])
        trace.events.append(Event(
            index=index,
            category=str(row.get("cat", "")).lower(),
            name=str(row.get("name", "")),
            pid=pid, tid=tid,
            begin=begin, end=begin + nanoseconds(row["dur"]),
            args=args))
    return trace
