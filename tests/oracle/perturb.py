# SPDX-License-Identifier: Apache-2.0
"""Pauses of a whole machine, put into the rows of a Kineto file: all later begins later, what is open
grows.  So one cause becomes longer by a known amount, and nothing else changes."""
import bisect

GPU = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
CALLS = ("cuda_runtime", "cuda_driver", "Runtime", "Driver")


def spans(rows):
    return [row for row in rows if row.get("ph") == "X" and "dur" in row and row.get("cat") != "Trace"]


def pause(rows, pauses):
    """`pauses`: (at, length) in us, at no instant at which anything begins or ends."""
    pauses = sorted(pauses)
    times, moved = [at for at, _ in pauses], [0]
    for _, length in pauses:
        moved.append(moved[-1] + length)

    def shift(at):
        return moved[bisect.bisect_right(times, at)]

    for row in rows:
        if not isinstance(row.get("ts"), (int, float)):
            continue
        begin = row["ts"]
        row["ts"] = begin + shift(begin)
        if "dur" in row:
            row["dur"] += shift(begin + row["dur"]) - shift(begin)
    return rows


def marks(rows):
    return sorted((row for row in spans(rows) if str(row["name"]).startswith("ProfilerStep")
                   and row["cat"] in ("user_annotation", "Operator")), key=lambda row: row["ts"])


def covers(rows):
    """Whether any of the rows is open at an instant."""
    merged = []
    for begin, end in sorted((row["ts"], row["ts"] + row["dur"]) for row in rows):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    begins = [begin for begin, _ in merged]

    def is_open(at):
        place = bisect.bisect_right(begins, at) - 1
        return place >= 0 and at <= merged[place][1]
    return is_open


def middle(row):
    """An instant inside at which, as times are whole, nothing begins or ends."""
    return int(row["ts"] + row["dur"] / 2) + 0.4321


def alone(rows, chosen):
    """(middle, row) of those of the chosen GPU events beside which no other is open then."""
    work = [row for row in spans(rows) if row["cat"] in GPU]
    ends = sorted(row["ts"] + row["dur"] for row in work)
    begins = sorted(row["ts"] for row in work)
    found = []
    for row in chosen:
        at = middle(row)
        if bisect.bisect_left(begins, at) - bisect.bisect_left(ends, at) == 1:
            found.append((at, row))
    return found


def quiet(rows, mark, where=None):
    """An instant of a step at which its thread is in an operator or in `where`, and neither the GPU
    nor a call does anything, and no work that was launched has yet to begin."""
    every = spans(rows)
    end = mark["ts"] + mark["dur"]
    inside = [row for row in every if mark["ts"] < row["ts"] and row["ts"] + row["dur"] < end]
    calls = {row["args"].get("correlation"): row["ts"] for row in every
             if row["cat"] in CALLS and row.get("args")}
    waits = [{"ts": calls[number], "dur": row["ts"] - calls[number]} for number, row in
             ((row["args"].get("correlation"), row) for row in every if row["cat"] in GPU)
             if calls.get(number, row["ts"]) < row["ts"]]
    busy = covers([row for row in every if row["cat"] in (*GPU, *CALLS)] + waits)
    for row in sorted(inside, key=lambda row: -row["dur"] if where else row["ts"]):
        is_one = where in str(row["name"]) if where else row["cat"] in ("cpu_op", "Operator") and \
            "#" not in str(row["name"]) and row["tid"] == mark["tid"]
        for part in range(1, 20):
            at = int(row["ts"] + row["dur"] * part / 20) + 0.4321
            if is_one and row["dur"] > 3 and at < row["ts"] + row["dur"] and not busy(at):
                return at
    return None
