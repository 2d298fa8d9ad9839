# SPDX-License-Identifier: Apache-2.0
"""Steps of one file by brute force: analyze/DEFINITIONS.md 3, 6 (slow steps) and 8.

Each figure of a step is asked of its own begin and end anew: which GPU time lies inside, which
pieces of idle time, which instants of S, which kernels begin.
"""
import math
from fractions import Fraction

GREW_MOST = 3
SLOW_MOST = 8
CLOCK_KEYS = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "comm_count", "idle_ns")
COLUMN = {"compute": "compute_ns", "comm": "exposed_comm_ns", "copy": "exposed_copy_ns"}


def overlap(begin, end, low, high):
    return max(0, min(end, high) - max(begin, low))


def within(oracle, device, step):
    """What a GPU did between begin and end of a step, by the clock."""
    row = dict.fromkeys(CLOCK_KEYS, 0)
    for begin, end, group, _ in oracle.owned(device):
        inside = overlap(begin, end, step.begin, step.end)
        if group in COLUMN and oracle.host.inferred:
            inside = end - begin
        row[COLUMN.get(group, "idle_ns")] += inside if group in COLUMN else 0
    row["comm_count"] = sum(event.group == "comm" and not event.early and (
        oracle.host.inferred or step.begin <= event.begin < step.end)
        for event in oracle.devices[device])
    row["idle_ns"] = step.wall - sum(row[key] for key in COLUMN.values())
    return row


def table(oracle):
    """(number, begin) -> row."""
    rows = {}
    for step in oracle.host.steps:
        rows[(step.number, step.begin)] = {
            "wall_ns": step.wall, "flags": step.flags, "complete": step.whole,
            "counted": step.counted, "inferred": oracle.host.inferred,
            "gpus": {device: within(oracle, device, step) for device in oracle.devices}}
    return rows


def middle(walls):
    """Twice the median."""
    walls = sorted(walls)
    return walls[(len(walls) - 1) // 2] + walls[len(walls) // 2]


def not_passed(walls, percent):
    """The least of them that so many percent of them do not pass."""
    return next(wall for wall in sorted(walls)
                if Fraction(sum(other <= wall for other in walls), len(walls))
                >= Fraction(percent, 100))


def stats(oracle):
    steps = oracle.host.steps
    walls = [step.wall for step in steps if step.counted]
    if not walls:
        return None
    return {
        "counted": len(walls), "settling": sum(step.settling for step in steps),
        "cut_off": sum(not step.whole for step in steps),
        "slow": sum(4 * wall > 3 * middle(walls) for wall in walls),
        "sum_ns": sum(walls), "mean_ns": sum(walls) // len(walls), "min_ns": min(walls),
        "median_ns": middle(walls) // 2, "max_ns": max(walls),
        "p90_ns": not_passed(walls, 90) if len(walls) >= 20 else None,
        "p99_ns": not_passed(walls, 99) if len(walls) >= 200 else None,
    }


def in_windows(oracle):
    """(steps that the windows hold, of these the settling ones that do not count)."""
    steps = oracle.host.steps
    walls = [step.wall for step in steps if step.counted]
    settling = sum(step.settling and step.whole and not step.counted for step in steps)
    cut = [step.wall for step in steps if not step.whole and not step.counted and not step.settling]
    part = sum(min(wall / (sum(walls) / len(walls)), 1) for wall in cut) if walls else 0
    return len(walls) + settling + math.floor(part + 0.5), settling


def median_step(steps):
    """Nearest to the median; of two the later."""
    twice = middle([step.wall for step in steps])
    return min(reversed(steps), key=lambda step: abs(2 * step.wall - twice))


class Slow:
    """What grew in slow steps against the median one."""

    def __init__(self, oracle, answer):
        """`answer`: causes.Causes of the oracle."""
        self.oracle, self.host = oracle, oracle.host
        self.pieces = [piece for device in oracle.devices for gap in answer.gaps(device)
                       for piece in answer.pieces(gap)]

    def parts(self, step):
        """(what, name) -> ns."""
        found = {}

        def add(what, name, ns):
            if ns:
                found[(what, name)] = found.get((what, name), 0) + ns

        for low, high, phase in self.host.between(step.begin, step.end):
            add("phase", phase, high - low)
        for piece in self.pieces:
            add("idle", piece.cause, overlap(piece.begin, piece.end, step.begin, step.end))
        for events in self.oracle.devices.values():
            for event in events:
                if event.kind == "kernel" and not event.early \
                        and step.begin <= event.begin < step.end:
                    add("kernel", event.name, event.length)
        return found

    def explained(self):
        """(step explained, step it is compared with)."""
        steps = [step for step in self.host.steps if step.counted]
        if self.host.inferred or len(steps) < 2:
            return []
        typical, twice = median_step(steps), middle([step.wall for step in steps])
        by_wall = sorted(steps, key=lambda step: (step.wall, step.begin), reverse=True)
        slow = [step for step in by_wall if 4 * step.wall > 3 * twice] or by_wall[:1]
        return [(step, typical) for step in slow[:SLOW_MOST] if step is not typical]

    def grown(self):
        """(number, begin) -> {what: {name: (ns, ns in the median step)}}, all that grew."""
        rows = {}
        for step, typical in self.explained():
            mine, usual = self.parts(step), self.parts(typical)
            row = rows.setdefault((step.number, step.begin), {})
            for (what, name), ns in mine.items():
                if ns > usual.get((what, name), 0):
                    row.setdefault(what, {})[name] = (ns, usual.get((what, name), 0))
        return rows


def odd_rows(rank, grown):
    """What the report says of slow steps otherwise, in words; of equals any may be named."""
    got = {}
    for row in rank.get("slow_steps", []):
        got.setdefault((row["step"], row["begin_ns"]), {}).setdefault(row["what"], {})[
            row["name"]] = (row["in_step_ns"], row["median_ns"])
    odd = [f"steps {sorted(got)} beside {sorted(key for key in grown if grown[key])}"] \
        if set(got) != {key for key in grown if grown[key]} else []
    for key in set(got) & set(grown):
        for what in ("phase", "idle", "kernel"):
            mine, all_of = got[key].get(what, {}), grown[key].get(what, {})
            most = sorted((ns - usual for ns, usual in all_of.values()), reverse=True)[:GREW_MOST]
            if sorted((ns - usual for ns, usual in mine.values()), reverse=True) != most \
                    or any(all_of.get(name) != value for name, value in mine.items()):
                odd.append(f"step {key} {what}: got {mine}, of {all_of}")
    return odd
