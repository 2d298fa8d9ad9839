# SPDX-License-Identifier: Apache-2.0
"""GPU time of one file by brute force: analyze/DEFINITIONS.md 1, 2 and 8.

All begins and ends of a device are sorted; between two neighbours nothing changes, so each such
elementary interval gets the plain set of the events that are open in it, and every figure is a sum
over the intervals. Nothing is merged, swept or kept running.

Readings of the text:
 * an event is open at the instants begin <= t < end; one of length 0 is never open, but it counts,
   stretches the span and ends a gap;
 * the order of a device's events is (begin, stream, correlation, place in the file); a missing
   correlation sorts as 0;
 * a busy instant is owned by the least event, in that order, of the winning class that is open; an
   idle instant by the least event among those that begin later.
"""
import bisect
import re
from dataclasses import dataclass

import kineto

LIBRARIES = """nccl rccl msccl mscclpp nvshmem nvshmemi nvshmemx deepep dpskep dpsk2ep hybridep uccl morimoe mori3moe
    moricollective epdispatch epcombine pplx quickreduce crossdevicereduce userbuffers kuserbuffers symmetricmemory
    hybridcubemesh pushpullhalos fusedmoecomm oneccl hccl hcom bytedanceflux bytedance4flux""".split()
OPERATIONS = "allreduce allgather allgatherv reducescatter alltoall alltoallv all2all a2a".split()
WITHIN_GPU = "warp block quad wave lane thread group cluster cta".split()
COMPUTING = re.compile("gemm|matmul|attention|attn|cutlass", re.IGNORECASE)


def spelled(words):
    """A pattern of a word whose letters anything may separate that is neither letter nor digit."""
    return "|".join("[^a-zA-Z0-9]*".join(word) for word in words)


# (?i:...) ignores case; where a word begins and ends it counts.
BEGIN = "(?:(?<![a-zA-Z])|(?<=[a-z])(?=[A-Z]))"
LIBRARY = re.compile(f"{BEGIN}(?i:{spelled(sorted(LIBRARIES, key=len, reverse=True))})(?![a-z])")
OPERATION = re.compile(f"{BEGIN}(?i:{spelled(sorted(OPERATIONS, key=len, reverse=True))})(?![a-z])")
INSIDE = re.compile(f"(?:{'|'.join(WITHIN_GPU)})[^a-zA-Z0-9]*$", re.IGNORECASE)
CLASSES = ("compute", "comm", "copy")       # the first that is open wins


@dataclass(slots=True)
class GpuEvent:
    device: object
    stream: int
    correlation: int        # None: the file has none
    kind: str               # kernel, memcpy, memset, graph
    group: str              # compute, comm, copy
    name: str
    bytes: int
    begin: int
    end: int
    index: int
    early: bool = False     # a cut took its begin away: it lasts, but counts no more

    @property
    def length(self):
        return self.end - self.begin

    @property
    def order(self):
        return (self.begin, self.stream, self.correlation or 0, self.index)


def communicates(name):
    function = re.match(r"(?:[^<(]|\(anonymous namespace\))*", name).group()
    if COMPUTING.search(function) or (name.startswith("triton_") and "_fused_" in name):
        return False
    return bool(LIBRARY.search(function)) or any(
        not INSIDE.search(function[:found.start()]) for found in OPERATION.finditer(function))


def classify(kind, name):
    if kind not in ("kernel", "graph"):
        return "copy"
    if kind == "graph":
        return "compute"
    if communicates(name):
        return "comm"
    return "compute"


def stream_of(event):
    stream = kineto.plain_int(event.args.get("stream", event.tid))
    if isinstance(stream, int):
        return stream
    digits = re.search(r"-?\d+", str(stream))
    return int(digits.group()) if digits else 0


def events_by_device(trace):
    devices = {}
    for event in trace.events:
        kind = kineto.GPU_CATEGORIES.get(event.category)
        if kind is None:
            continue
        device = kineto.plain_int(event.args.get("device", event.pid))
        correlation = kineto.plain_int(event.args.get("correlation"))
        devices.setdefault(device, []).append(GpuEvent(
            device=device, stream=stream_of(event), correlation=correlation,
            kind=kind, group=classify(kind, event.name), name=event.name,
            bytes=int(event.args.get("bytes", 0)),
            begin=event.begin, end=event.end, index=event.index, early=event.early))
    for events in devices.values():
        events.sort(key=lambda event: event.order)
    return devices


def elementary(events, extra=()):
    """[(begin, end, [events open between them])] from the first begin to the last end."""
    points = {event.begin for event in events} | {event.end for event in events} | set(extra)
    points = sorted(points)
    members = [[] for _ in points]
    for event in events:
        place = bisect.bisect_left(points, event.begin)
        while points[place] < event.end:
            members[place].append(event)
            place += 1
    return [(points[i], points[i + 1], members[i]) for i in range(len(points) - 1)]


def figures(events):
    """The figures of analyze/DEFINITIONS.md 2 for one device."""
    result = dict.fromkeys(("span_ns", "busy_ns", "compute_ns", "comm_ns", "copy_ns",
                            "exposed_comm_ns", "exposed_copy_ns", "overlap_comm_ns", "idle_ns"), 0)
    for begin, end, members in elementary(events):
        length = end - begin
        groups = {event.group for event in members}
        result["span_ns"] += length
        result["busy_ns"] += length if groups else 0
        result["idle_ns"] += 0 if groups else length
        result["compute_ns"] += length if "compute" in groups else 0
        result["comm_ns"] += length if "comm" in groups else 0
        result["copy_ns"] += length if "copy" in groups else 0
        if "comm" in groups and "compute" not in groups:
            result["exposed_comm_ns"] += length
        if "comm" in groups and "compute" in groups:
            result["overlap_comm_ns"] += length
        if groups == {"copy"}:
            result["exposed_copy_ns"] += length
    counted = [event for event in events if not event.early]
    result["kernels"] = sum(event.kind == "kernel" for event in counted)
    result["copies"] = sum(event.kind not in ("kernel", "graph") for event in counted)
    return result


def added(rows):
    """Figures of several windows, added up."""
    return {key: sum(row[key] for row in rows) for key in rows[0]}


def identity_holds(row):
    whole = (row["compute_ns"] + row["exposed_comm_ns"] + row["exposed_copy_ns"] + row["idle_ns"])
    return whole == row["span_ns"] and row["busy_ns"] + row["idle_ns"] == row["span_ns"]


def owned(events):
    """[(begin, end, class or "idle", owner)] that tile the span of one device."""
    ordered = sorted(events, key=lambda event: event.order)
    begins = [event.begin for event in ordered]
    tiles = []
    for begin, end, members in elementary(events):
        groups = {event.group for event in members}
        winner = next((group for group in CLASSES if group in groups), "idle")
        if winner == "idle":
            owner = ordered[bisect.bisect_right(begins, begin)]
        else:
            owner = min((event for event in members if event.group == winner),
                        key=lambda event: event.order)
        tiles.append((begin, end, winner, owner))
    return tiles


def kernel_table(devices):
    """name -> count, total_ns, min_ns, max_ns, the two middle lengths; over all devices."""
    lengths = {}
    for events in devices.values():
        for event in events:
            if event.kind in ("kernel", "graph") and not event.early:
                lengths.setdefault(event.name, []).append(event.length)
    table = {}
    for name, values in lengths.items():
        values.sort()
        table[name] = {
            "count": len(values), "total_ns": sum(values),
            "min_ns": values[0], "max_ns": values[-1],
            "middle_ns": (values[(len(values) - 1) // 2], values[len(values) // 2]),
        }
    return table


def direction(event):
    if event.kind == "memset":
        return "memset"
    match = re.match(r"Memcpy\s+(\w+)", event.name)
    return match.group(1) if match else event.name


def copy_table(devices):
    table = {}
    for events in devices.values():
        for event in events:
            if event.kind in ("kernel", "graph") or event.early:
                continue
            row = table.setdefault(direction(event).lower(),
                                   {"count": 0, "bytes": 0, "total_ns": 0})
            row["count"] += 1
            row["bytes"] += event.bytes
            row["total_ns"] += event.length
    return table
