# SPDX-License-Identifier: Apache-2.0
"""Memory of one rank by brute force: analyze/DEFINITIONS.md 8.

All that an allocator or CUDA gave out and got back on a device, or on the host, or what samples
say, one row after the other: a list of levels, a dict of what is live. Every figure of a step is asked of that list anew. Whose a row is, its step
and its phase are facts of the whole input; levels are of the rows that a cut has left.
"""
import collections
import math
import types

import causes
import phases

LEAK_STEPS, OWNERS_SHOWN = 20, 16


class Pool:
    def __init__(self):
        self.levels, self.live, self.total = [], {}, 0
        self.peak, self.owners, self.rising = None, {}, False
        self.reserved, self.most_reserved, self.absolute = 0, 0, False

    def fall(self):
        """The owners of a peak are those at the first fall behind it."""
        if self.rising:
            self.owners = collections.Counter()
            for owner, size in self.live.values():
                self.owners[owner] += size
        self.rising = False

    def put(self, row, owner):
        self.reserved = self.reserved if row.reserved is None else row.reserved
        self.most_reserved = max(self.most_reserved, self.reserved)
        if row.size < 0:
            self.fall()
            self.live.pop(row.address, None)
        elif row.address and row.size:
            self.live[row.address] = (owner, row.size)
        self.absolute |= row.total is not None
        level = max(self.total + row.size, 0) if row.total is None else row.total
        self.total = level
        self.level(row, level)

    def level(self, row, level):
        if self.levels and level < self.levels[-1][1]:
            self.fall()
        self.levels.append((row.begin, level))
        if self.peak is None or level > self.peak[0]:
            self.peak, self.rising = (level, row, self.reserved), True

    def sample(self, row):
        self.absolute = True
        if row.what == "in_use":
            self.level(row, row.total)
        elif self.peak is not None and row.total > self.peak[0]:
            self.peak = (row.total, row, 0)     # that no sample hit


def owner_of(oracle, row):
    """The innermost range open on its thread, else the Python function."""
    here = [event for event in oracle.host.events if phases.thread(event) == phases.thread(row)
            and event.begin <= row.begin < event.end]
    for wanted in (causes.is_range, causes.is_python):
        best = max((event for event in here if wanted(event)), key=causes.order, default=None)
        if best is not None:
            return best.name
    return ""


def pools_of(oracle):
    """(device or None, what) -> Pool."""
    whole, found = getattr(oracle, "whole", oracle), {}
    for row in sorted(oracle.trace.memory, key=lambda row: (row.begin, row.index)):
        pool = found.setdefault(row.pool, Pool())
        if row.pool[1] == "in_use":
            pool.sample(row)
        else:
            pool.put(row, owner_of(whole, row))
    for pool in found.values():
        pool.fall()
    return {key: pool for key, pool in found.items() if pool.levels}


def steps_of(oracle, pool):
    """[(step, least, most)] in order of time: from its begin to the next mark, with the level that
    it found there."""
    if oracle.host.inferred:
        levels = [level for _, level in pool.levels]
        return [(step, min(levels), max(levels)) for step in oracle.host.steps]
    rows = getattr(oracle, "whole", oracle).host.whole_steps
    left = {(step.number, step.begin): step for step in oracle.host.steps}
    found = []
    for place, one in enumerate(rows):
        step = left.get((one.number, max(one.begin, getattr(oracle, "low", 0))))
        end = rows[place + 1].begin if place + 1 < len(rows) else phases.ENDLESS
        seen = [level for at, level in pool.levels if at < one.begin][-1:]
        seen += [level for at, level in pool.levels if one.begin <= at < end]
        if seen and step is not None:
            found.append((step, min(seen), max(seen)))
    return found


def growth(levels):
    """(slope, its standard error) of the least levels of counted steps."""
    n = len(levels)
    xs = [place - (n - 1) / 2 for place in range(n)]
    mean = math.fsum(levels) / n
    squares_x = math.fsum(x * x for x in xs)
    slope = math.fsum(x * (y - mean) for x, y in zip(xs, levels)) / squares_x
    rest = [y - mean - slope * x for x, y in zip(xs, levels)]
    squares = math.fsum(r * r for r in rest)
    lagged = math.fsum(a * b for a, b in zip(rest, rest[1:]))
    near = min(max(lagged / squares, 0), 0.95) if squares > 0 else 0
    return slope, math.sqrt(squares / (n - 2) / squares_x) * math.sqrt((1 + near) / (1 - near))


def figures(oracle, pool):
    """What the row of a pool says; slope, error and leak apart."""
    level, row, reserved = pool.peak
    whole = getattr(oracle, "whole", oracle).host
    begun = [step for step in whole.whole_steps if step.begin <= row.begin]
    step = begun[-1].number if begun and not oracle.host.inferred else None
    phase = None    # of a sample nobody knows who took it
    if row.pool[1] != "in_use":
        phase = whole.cell_of_launch(types.SimpleNamespace(pid=row.pid, tid=row.tid,
                                                           begin=row.begin))[1]
    most = sorted(most for one, _, most in steps_of(oracle, pool)
                  if one.counted and not oracle.host.inferred)
    usual = most[(len(most) - 1) // 2] if len(most) > 2 else math.inf
    return {"absolute": pool.absolute, "samples": len(pool.levels), "peak_bytes": level,
            "peak_step": step, "peak_phase": phase, "reserved_bytes": pool.most_reserved or None,
            "spikes": sum(5 * one > 6 * usual for one in most),
            "peak": (level, row.begin, step, phase, reserved or None)}


def check_growth(counts, label, row, levels, peak):
    if len(levels) < 3:
        counts.same(f"{label} growth", (row["slope_bytes_per_step"], row["slope_error_bytes"],
                                        row["leak"]), (None, None, None))
        return
    if row["slope_bytes_per_step"] is None:
        counts.say(False, f"{label} growth", f"none, of {len(levels)} counted steps")
        return
    slope, error = growth(levels)
    close = 1e-6 * (1 + max(levels))
    counts.say(abs(row["slope_bytes_per_step"] - slope) <= close
               and abs(row["slope_error_bytes"] - error) <= close, f"{label} growth",
               f"{row['slope_bytes_per_step']} +- {row['slope_error_bytes']}, {slope} +- {error}")
    leak = slope > 3 * error and slope * len(levels) > 0.01 * peak
    counts.same(f"{label} leak", row["leak"], leak if len(levels) >= LEAK_STEPS else None)


def check(counts, name, rank, oracle):
    pools = pools_of(oracle)
    rows = {(row["device"], row["what"]): row for row in rank["memory"]}
    counts.same(f"{name} memory, devices", sorted(rows, key=str), sorted(pools, key=str))
    for key in set(rows) & set(pools):
        row, pool, label = rows[key], pools[key], f"{name} memory of {key}"
        counts.seen["memory: " + key[1]] += 1
        want = figures(oracle, pool)
        peak = row["peaks"][-1]
        got = {key: row[key] for key in want if key != "peak"}
        got["peak"] = tuple(peak[key] for key in ("bytes", "at_ns", "step", "phase",
                                                  "reserved_bytes"))
        counts.same(label, got, want)
        steps = steps_of(oracle, pool)
        counts.same(f"{label} steps", {
            (one["step"], one["begin_ns"]): (one["min_bytes"], one["max_bytes"], one["counted"])
            for one in row["steps"]}, {
            (step.number, step.begin): (least, most, step.counted and not oracle.host.inferred)
            for step, least, most in steps})
        check_growth(counts, label, row, [least for step, least, _ in steps if step.counted
                                          and not oracle.host.inferred], pool.peak[0])
        if key[1] == "in_use":
            counts.same(f"{label} owners", peak["owners"], [])
        else:
            check_owners(counts, label, peak["owners"], pool)


def check_owners(counts, label, rows, pool):
    """Of the 16 that hold most, of equals any, those with a name, and the rest as nobody's."""
    named = {owner: size for owner, size in pool.owners.items() if owner}
    first = sorted(pool.owners.items(), key=lambda one: (-one[1], one[0] != ""))[:OWNERS_SHOWN]
    most = [size for owner, size in first if owner]
    rest = pool.peak[0] - min(pool.peak[0], sum(most))
    got = {row["owner"]: row["live_bytes"] for row in rows}
    counts.same(f"{label} rest of the peak", got.pop("", 0), rest)
    counts.same(f"{label} owners of the peak", sorted(got.values(), reverse=True), most)
    counts.same(f"{label} owners by name", got, {owner: named.get(owner) for owner in got})
