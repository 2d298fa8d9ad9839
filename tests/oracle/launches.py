# SPDX-License-Identifier: Apache-2.0
"""Launches of one device by brute force: analyze/DEFINITIONS.md 6.

A launch is a call of which GPU work came; what is asked of its work is asked of the first, in the
order of gpu.py. The length of the queue is counted anew at the begin of each launch, which for what
a cut has parted from its launch is where the cut begins.
"""
import phases

CALL_KEYS = ("count", "gpu_events", "api_ns", "api_max_ns", "queue_ns", "queue_max_ns", "gpu_ns",
             "short", "waited")
QUEUE_KEYS = ("launches", "gpu_events", "graph_launches", "graph_events", "short", "waited",
              "queued_ns", "queue_max")


def waiting_gaps(oracle, device, launch):
    """The launches that began when the GPU was idle, and whose work ended that."""
    for first, last, events in oracle.host.windows_of(device):
        busy = phases.merged((event.begin, event.end) for event in events)
        edges = [first] + [point for interval in busy for point in interval] + [last]
        begins = sorted({event.begin for event in events})
        for place in range(0, len(edges), 2):
            cuts = [edges[place]] + [point for point in begins
                                     if edges[place] < point < edges[place + 1]]
            for begin, end in zip(cuts, cuts[1:] + [edges[place + 1]]):
                call = waited_for(events, launch, begin, end)
                if call is not None:
                    yield call


def waited_for(events, launch, begin, end):
    """The launch that the GPU waited for in this gap, or None."""
    ending = [event for event in events if event.begin == end]
    if begin >= end or not ending or launch[ending[0].index] is None:
        return None
    earlier = [event for event in events if event.order < ending[0].order]
    before = max(earlier, key=lambda one: (one.end, one.order), default=None)
    if before is not None and ending[0].correlation and before.correlation == ending[0].correlation:
        return None
    call = launch[ending[0].index]
    return call if call.begin >= begin else None


def figures(oracle, device):
    events = oracle.devices[device]
    launch = {event.index: oracle.host.launch(event) for event in events}
    calls, waits, seen = {}, [], {}
    queue = dict.fromkeys(QUEUE_KEYS, 0)
    for event in events:
        call = launch[event.index]
        if call is None or event.early:
            continue
        row = calls.setdefault(call.name, dict.fromkeys(CALL_KEYS, 0))
        is_graph = "GraphLaunch" in call.name
        row["gpu_events"] += 1
        row["gpu_ns"] += event.length
        short = not is_graph and event.length < call.length
        row["short"] += short
        queue["gpu_events"] += 1
        queue["graph_events"] += is_graph
        queue["short"] += short
        if call.index in seen:
            continue
        seen[call.index] = event
        delay = max(0, event.begin - call.end)
        row["count"] += 1
        row["api_ns"] += call.length
        row["api_max_ns"] = max(row["api_max_ns"], call.length)
        row["queue_ns"] += delay
        row["queue_max_ns"] = max(row["queue_max_ns"], delay)
        queue["launches"] += 1
        queue["graph_launches"] += is_graph
        begin = max(call.begin, getattr(oracle, "low", 0))
        queue["queued_ns"] += max(0, event.begin - begin)
        waits.append((begin, event.begin))
    for call in waiting_gaps(oracle, device, launch):
        calls.setdefault(call.name, dict.fromkeys(CALL_KEYS, 0))["waited"] += 1
        queue["waited"] += 1
    queue["queue_max"] = max((sum(begin <= at < end for begin, end in waits)
                              for at, _ in waits), default=0)
    return calls, queue


def rows_of(rank, device):
    return {row["call"]: {key: row[key] for key in CALL_KEYS} for row in rank["launches"]
            if row["device"] == device}


def queue_of(rank, device):
    row = next(row for row in rank["launch_queues"] if row["device"] == device)
    return {key: row[key] for key in QUEUE_KEYS}
