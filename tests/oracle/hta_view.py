# SPDX-License-Identifier: Apache-2.0
"""What HTA 0.6.1 would say about a file: its filter, its classes, its rounding, then brute force.

It exists to prove that where HTA's answer and ours differ, the difference is one of these:
 * HTA drops the last profiler step when a file has two or more step names: host rows that begin
   before it stay, and of the GPU rows those that share a correlation with one of them (so GPU rows
   without a launch go too, which we keep);
 * a row with a stream is a GPU row, so synchronisation rows count as time in which the GPU works;
 * fractions of a microsecond are cut: the begin is rounded up, the end down, and a short kernel can
   get a negative length;
 * kernels are sorted by other names: one that contains `Sync` or `dma` is nothing, one that begins
   with `hip` is communication; communication by the substrings of our table is not known to it.
same_events_by_our_rules() gives our figures for the events that HTA keeps: in files of whole
microseconds without synchronisation rows they are HTA's to the last nanosecond.
"""
import bisect
import re
from dataclasses import dataclass

import gpu
import kineto

COMM = re.compile(r"(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)")
MEMORY = re.compile(r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
NOT_COMPUTE = re.compile(r"(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(^Stream Wait Event)"
                         r"|(cuda.*LaunchKernel)|(^runFunction)|(^hip)")
STEP = re.compile(r"^ProfilerStep\s*#\s*(\d+)")


@dataclass
class Row:
    begin: int      # whole microseconds
    end: int
    name: str
    stream: int     # -1: a host row
    correlation: object
    rate: float = 0.0   # GB/s that the file says of a copy


def kind(name):
    if COMM.match(name):
        return "COMMUNICATION"
    if MEMORY.match(name):
        return "MEMORY"
    return "OTHER" if NOT_COMPUTE.match(name) else "COMPUTATION"


def rows_of(trace):
    rows = []
    for event in trace.events:
        if event.category in ("", "trace"):
            continue
        stream = kineto.plain_int(event.args.get("stream", -1))
        stream = stream if isinstance(stream, int) else -1
        rows.append(Row(begin=-(-event.begin // 1000), end=event.end // 1000, name=event.name,
                        stream=stream, correlation=event.args.get("correlation", -1),
                        rate=float(event.args.get("memory bandwidth (GB/s)", 0))))
    return rows


def filtered(rows, keep_last):
    """HTA's filter: what is left after the last step is dropped (or what follows it)."""
    host = [row for row in rows if row.stream == -1]
    device = [row for row in rows if row.stream != -1]
    names = {row.name for row in rows if STEP.match(row.name)}
    if len(names) < 2 or not host:
        return rows
    marks = [row for row in host if STEP.match(row.name)]
    if keep_last:
        limit = max(row.end for row in marks)
        host = [row for row in host if row.begin <= limit]
    else:
        limit = max(row.begin for row in marks)
        host = [row for row in host if row.begin < limit]
    known = {row.correlation for row in host}
    return host + [row for row in device if row.correlation in known]


def union(rows):
    """Merged intervals; a row of negative length that touches no other stays negative."""
    merged, reach = [], None
    for row in sorted(rows, key=lambda row: row.begin):
        if reach is None or row.begin > reach:
            merged.append([row.begin, row.end])
        else:
            merged[-1][1] = max(merged[-1][1], row.end)
        reach = row.end if reach is None else max(reach, row.end)
    return merged


def total(intervals):
    return sum(end - begin for begin, end in intervals)


def temporal(rows):
    """(idle, compute, non_compute, kernel_time) in us."""
    device = [row for row in rows if row.stream != -1]
    every = union(device)
    whole = every[-1][1] - every[0][0]
    idle = whole - total(every)
    compute = total(union([row for row in device if kind(row.name) == "COMPUTATION"]))
    return idle, compute, whole - compute - idle, whole


def types(rows):
    """Exclusive time of every mixture of the three types, in HTA's words."""
    device = [row for row in rows if row.stream != -1]
    unions = {name: union([row for row in device if kind(row.name) == name])
              for name in ("COMPUTATION", "COMMUNICATION", "MEMORY")}
    points = sorted({p for intervals in unions.values() for pair in intervals for p in pair})
    members = [set() for _ in points]
    for name, intervals in unions.items():
        for begin, end in intervals:
            place = bisect.bisect_left(points, begin)
            while points[place] < end:
                members[place].add(name)
                place += 1
    sums = {}
    for place in range(len(points) - 1):
        if members[place]:
            words = [name for name in unions if name in members[place]]
            label = " overlapping ".join(words)
            sums[label] = sums.get(label, 0) + points[place + 1] - points[place]
    return sums


def overlap_percent(rows):
    """Share of communication that computation covers; None without communication."""
    sums = types(rows)
    both = sum(value for label, value in sums.items()
               if "COMMUNICATION" in label and "COMPUTATION" in label)
    device = [row for row in rows if row.stream != -1]
    comm = total(union([row for row in device if kind(row.name) == "COMMUNICATION"]))
    return None if comm == 0 else 100 * both / comm


def kernel_sums(rows):
    """(type, name) -> [count, sum, min, max] in us."""
    table = {}
    for row in rows:
        if row.stream == -1:
            continue
        length = row.end - row.begin
        entry = table.setdefault((kind(row.name), row.name), [0, 0, length, length])
        entry[0] += 1
        entry[1] += length
        entry[2] = min(entry[2], length)
        entry[3] = max(entry[3], length)
    return table


def bandwidth(trace, rows):
    """name -> GB/s after each change, what ends first; of copies as the file times them, in ns."""
    kept = {(row.name, row.stream, row.correlation, row.begin) for row in rows}
    edges = {}
    for event in trace.events:
        stream = kineto.plain_int(event.args.get("stream", -1))
        key = (event.name, stream, event.args.get("correlation", -1), -(-event.begin // 1000))
        if kind(event.name) != "MEMORY" or key not in kept:
            continue
        name = "Memset" if event.name.startswith("Memset") else event.name[:11]
        length = event.end - event.begin
        rate = event.args.get("memory bandwidth (GB/s)")
        rate = float(event.args["bytes"]) / (length or 1000) if rate is None else float(rate)
        edges.setdefault(name, []).extend([(event.begin, 1, rate),
                                           (event.begin + (length or 1000), -1, rate)])
    found = {}
    for name, changes in edges.items():
        running, points = [], []
        for _, step, rate in sorted(changes):
            (running.append if step > 0 else running.remove)(rate)
            points.append(sum(running))
        found[name] = points
    return found


def same_events_by_our_rules(trace, devices, host):
    """Our figures over the GPU events that HTA keeps: those launched before the last step."""
    marks = [event for event in trace.events if STEP.match(event.name)
             and not event.category.startswith("gpu")]
    names = {event.name for event in trace.events if STEP.match(event.name)}
    limit = max(event.begin for event in marks) if len(names) > 1 else None
    result = {}
    for device, events in devices.items():
        kept = events
        if limit is not None:
            kept = [event for event in events
                    if host.launch(event) is not None and host.launch(event).begin < limit]
        result[device] = gpu.figures(kept)
    return result
