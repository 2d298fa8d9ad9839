# SPDX-License-Identifier: Apache-2.0
"""The definitions instant by instant, as a check of the oracle itself on small random files.

Only for files of whole microseconds: every microsecond is asked which events are open, and each
rule of gpu.py and phases.py is spelled out for it. No boundary points, no intervals.
"""
import phases

TICK = 1000


def open_at(events, instant):
    return [event for event in events if event.begin <= instant < event.end]


def gpu_by_instants(events):
    """(figures, [(instant, class, owner)]) of one device."""
    begin, end = min(event.begin for event in events), max(event.end for event in events)
    keys = ("span_ns busy_ns compute_ns comm_ns copy_ns exposed_comm_ns exposed_copy_ns "
            "overlap_comm_ns idle_ns").split()
    sums, owners = dict.fromkeys(keys, 0), []
    for instant in range(begin, end, TICK):
        now = open_at(events, instant)
        compute, comm, copy = ([event for event in now if event.group == group]
                               for group in ("compute", "comm", "copy"))
        truth = (True, now, compute, comm, copy, comm and not compute,
                 copy and not compute and not comm, comm and compute, not now)
        for key, value in zip(keys, truth):
            sums[key] += TICK if value else 0
        winner = compute or comm or copy
        later = [event for event in events if event.begin > instant]
        owner = min(winner or later, key=lambda event: event.order)
        owners.append((instant, owner.group if winner else "idle", owner))
    return sums, owners


def phase_by_instant(host, instant):
    """Rules 1 to 5 for one instant of S."""
    mine = open_at([event for event in host.events if phases.thread(event) == host.step_thread],
                   instant)
    mine = [event for event in mine if not phases.is_mark(event)]
    annotations = [event for event in mine if phases.is_annotation(event) and not phases.is_compiled(event)]
    mapped = phases.mapped_winner(annotations)
    if mapped is not None:
        return mapped
    if any(event.category == "python_function" and phases.SAVES.search(event.name)
           for event in mine):
        return "checkpoint"
    if any(gets_data(host, event, instant) for event in mine):
        return "data"
    if annotations:
        return min(annotations, key=lambda event: (event.begin, -event.end, event.index)).name
    if busy(host, instant):
        if any(phases.is_engine(event) for event in mine):
            return "backward"
        without = host.without_gradients([event for event in host.events
                                          if phases.thread(event) == host.step_thread])
        return "validation" if any(low <= instant < high for low, high in without) else "forward"
    first = last = instant
    low = min(event.begin for event in host.events) - TICK
    high = max(event.end for event in host.events) + TICK
    while first > low and not busy(host, first - TICK):
        first -= TICK
    while last < high and not busy(host, last + TICK):
        last += TICK
    active = [tick for tick in range(first, last + TICK, TICK) if autograd_at(host, tick)]
    return "backward" if active and active[0] <= instant <= active[-1] else "other"


def gets_data(host, event, instant):
    return (event.category == "python_function" and phases.GETS_DATA.search(event.name)
            and not any(phases.thread(call) == host.step_thread and "LaunchKernel" in call.name
                        and call.length and event.begin <= call.begin <= instant
                        for call in host.events if phases.is_call(call)))


def busy(host, instant):
    return any(phases.is_host_work(event)
               for event in open_at(host.events, instant)
               if phases.thread(event) == host.step_thread)


def autograd_at(host, instant):
    return any(phases.is_operator(event) or phases.is_call(event) or phases.is_annotation(event)
               for event in open_at(host.events, instant)
               if phases.thread(event) in host.autograd)


def differences(oracle):
    """What the oracle and the instants disagree about, in words."""
    odd = []
    for device, events in oracle.devices.items():
        sums, owners = gpu_by_instants(events)
        figures = oracle.figures[device]
        odd += [f"gpu {device} {key}: {figures[key]} beside {value}"
                for key, value in sums.items() if figures[key] != value]
        tiles = oracle.owned(device)
        for instant, group, owner in owners:
            tile = next(tile for tile in tiles if tile[0] <= instant < tile[1])
            if tile[2] != group or tile[3] is not owner:
                odd.append(f"gpu {device} owner at {instant}")
    sums = {}
    for step in oracle.host.steps:
        for instant in range(step.begin, step.end, TICK):
            phase = phase_by_instant(oracle.host, instant)
            sums[phase] = sums.get(phase, 0) + TICK
    if sums != oracle.host.phase_sums():
        odd.append(f"phases {oracle.host.phase_sums()} beside {sums}")
    return odd


def small_enough(oracle):
    events = [event for event in oracle.trace.events if event.category != "trace"]
    if not events or any(event.begin % TICK or event.end % TICK for event in events):
        return False
    extent = max(event.end for event in events) - min(event.begin for event in events)
    return extent <= 400 * TICK
