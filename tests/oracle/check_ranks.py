# SPDX-License-Identifier: Apache-2.0
"""Collectives over ranks, against a slow and plain reading of DEFINITIONS.md 7.

usage: check_ranks.py --bin BUILD [--random N]

Small random jobs as Kineto files: communicators with and without Seq, kernels that name none, lost
events, ranks that began late, SendRecv. Then generated jobs with a slow rank, whose waits are known
by construction: 8, 64 and 1,024 ranks, the last within 256 MB; merged on one timeline; and hosts
whose clocks are wrong by a known amount.
"""
import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile

MOST_KB = 256 * 1024
NOISE_US = 5
PIECES_KEPT = 6  # exposed stretches of a collective that are kept one by one
OPERATIONS = {"allreduce": ("all_reduce", "AllReduce"), "_allgather_base": ("all_gather", "AllGather"),
              "reduce_scatter_tensor": ("reduce_scatter", "ReduceScatter"),
              "broadcast": ("broadcast", "Broadcast"), "send_recv": ("send_recv", "SendRecv"),
              "all_to_all": ("all_to_all", "SendRecv")}
FACTORS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
           "reduce_scatter": lambda n: (n - 1) / n, "broadcast": lambda n: 1,
           "all_to_all": lambda n: (n - 1) / n, "send_recv": lambda n: 1}
SIZES = {"Float": 4, "BFloat16": 2, "Long": 8}


class Collective:
    """One kernel of one rank; times in whole microseconds of that rank's clock; `step` is a place
    among those of the job."""

    def __init__(self, group, ranks, word, step, begin, end, seq, elements, dtype, stream):
        self.group, self.ranks, self.word, self.step = group, ranks, word, step
        self.begin, self.end, self.seq = begin, end, seq
        self.elements, self.dtype, self.stream = elements, dtype, stream
        self.exposed = []
        self.correlation = 0

    def operation(self):
        return OPERATIONS[self.word][0]

    def label(self):
        return f"{self.group} {self.ranks}" if self.group else ""

    def bytes(self):
        return self.elements * SIZES[self.dtype] if self.group else None

    def length(self):
        return self.end - self.begin

    def exposed_us(self):
        return sum(b - a for a, b in self.exposed)


class Job:
    def __init__(self, seed, numbers=None, parts=1):
        self.random = random.Random(seed)
        r = self.random
        self.count = r.choice([2, 3, 4])
        self.named = r.random() < 0.75     # the files say communicators
        self.with_seq = r.random() < 0.5
        self.on_op = r.random() < 0.3      # not on kernels, but on the op that launched them
        self.numbers = numbers or self.some_numbers()   # of steps, by place
        self.parts = parts                 # files of a rank
        self.collectives = {k: [] for k in range(self.count)}
        self.compute = {k: [] for k in range(self.count)}
        self.marks = {k: [] for k in range(self.count)}
        self.calls = {k: [] for k in range(self.count)}
        self.make()

    def some_numbers(self):
        """Of steps; in every third job they come again."""
        r = self.random
        if r.random() < 0.67:
            return list(range(7, 7 + r.randint(2, 4)))
        return [r.choice([7, 8, 9]) for _ in range(r.randint(2, 6))]

    def make(self):
        r = self.random
        seqs = collections.Counter()
        at = [1000 + 70 * k for k in range(self.count)]
        late = r.randrange(self.count) if r.random() < 0.3 else None
        most = 5 if len(self.numbers) < 10 else 2
        for step in range(len(self.numbers)):
            begins = list(at)
            for _ in range(r.randint(1, most)):
                self.meet(at, step, seqs)
            for k in range(self.count):
                at[k] += r.randint(5, 50)
                self.marks[k].append((step, begins[k], at[k]))
                at[k] += r.randint(1, 2)
        if late is not None:  # began a step later than the others
            first = self.marks[late].pop(0)
            for rows in (self.collectives, self.compute):
                rows[late] = [c for c in rows[late] if self.begin_of(c) >= first[2]]
        if r.random() < 0.3:  # one event is lost
            rows = self.collectives[r.randrange(self.count)]
            if rows:
                rows.pop(r.randrange(len(rows)))
        for k in range(self.count):
            self.find_exposed(k)

    @staticmethod
    def begin_of(c):
        return c.begin if isinstance(c, Collective) else c[0]

    def meet(self, at, step, seqs):
        """All ranks of a communicator come at their own times and leave together."""
        r = self.random
        members = list(range(self.count))
        group = "0"
        if self.named and self.count > 2 and r.random() < 0.3:
            members, group = members[:2], "1"
        word = r.choice(["allreduce", "allreduce", "_allgather_base", "reduce_scatter_tensor",
                         "broadcast", "all_to_all", "send_recv"])
        if not self.named:
            word = r.choice(["allreduce", "all_to_all", "send_recv"])
        slow = r.choice(members)
        spread = r.choice([3, 40, 900])  # within the noise, or not
        begins = {k: at[k] + r.randint(1, 20) for k in members}
        latest = max(begins[k] + (spread if k == slow else r.randint(0, 2)) for k in members)
        length = r.randint(60, 400)
        seqs[group] += 1
        elements, dtype = r.choice([1000, 4096, 70000]), r.choice(list(SIZES))
        for k in members:
            begin = begins[k] + (spread if k == slow else r.randint(0, 2))
            end = latest + length + r.randint(0, 1)
            stream = 20 + (int(group) if self.named else 0)
            self.collectives[k].append(Collective(
                group if self.named else "", members, word, step, begin, end,
                seqs[group] if self.with_seq and self.named else None, elements, dtype, stream))
            most = 3 if self.parts == 1 else 0  # what reaches into the file before is in none
            cuts = sorted(r.sample(range(begin - 30, end + 30), 2 * r.randint(0, most)))
            for i in range(0, len(cuts), 2):
                self.compute[k].append((cuts[i], cuts[i + 1]))
            at[k] = end + 40

    def find_exposed(self, rank):
        """Exposed stretches, by owner: comm that runs, began first, no compute."""
        comm, compute = self.collectives[rank], self.compute[rank]
        for i, c in enumerate(comm):
            c.correlation = 100 + 2 * i
        times = sorted({t for c in comm for t in (c.begin, c.end)} |
                       {t for pair in compute for t in pair})
        for a, b in zip(times, times[1:]):
            running = [c for c in comm if c.begin <= a and c.end >= b]
            if not running or any(x <= a and y >= b for x, y in compute):
                continue
            owner = min(running, key=lambda c: (c.begin, c.stream, c.correlation))
            if owner.exposed and owner.exposed[-1][1] == a:
                owner.exposed[-1][1] = b
            else:
                owner.exposed.append([a, b])

    @staticmethod
    def event(cat, name, pid, tid, begin, end, args):
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": begin,
                "dur": end - begin, "args": args}

    def launched(self, events, rank, name, correlation, begin, end, stream, args, step,
                 says=""):
        mark = next(m for m in self.marks[rank] if m[0] == step)
        call = max(mark[1] + 1, min(begin - 6, mark[2] - 5))
        if says:
            while any(abs(call - c) < 5 for c in self.calls[rank]):
                call += 5
            self.calls[rank].append(call)
            # No annotation, which would be a phase of its own for what else is launched in it.
            events.append(self.event("cpu_op", f"nccl:{says}", 400 + rank, 400 + rank,
                                     call - 1, call + 3, {"Ev Idx": correlation}))
        if self.on_op and args and all(abs(call - c) > 5 for c in self.calls[rank]):
            self.calls[rank].append(call)
            events.append(self.event("cpu_op", "record_param_comms", 400 + rank, 400 + rank,
                                     call - 1, call + 3, args))
            args = {}
        events.append(self.event("cuda_runtime", "cudaLaunchKernel", 400 + rank, 400 + rank, call,
                                 call + 2, {"correlation": correlation}))
        events.append(self.event("kernel", name, 0, stream, begin, end, {
            "device": 0, "context": 1, "stream": stream, "correlation": correlation, **args}))

    def write(self, folder):
        """Files of each rank: its steps in order, as many in each."""
        places = range(len(self.numbers))
        return [self.write_part(folder, rank, part, [n for n in places if self.part_of(n) == part])
                for rank in range(self.count) for part in range(self.parts)]

    def write_part(self, folder, rank, part, places):
        marks = [m for m in self.marks[rank] if m[0] in places]
        events = [self.event("user_annotation", f"ProfilerStep#{self.numbers[n]}", 400 + rank,
                             400 + rank, b, e, {}) for n, b, e in marks]
        for i, c in enumerate(self.collectives[rank]):
            if c.step in places:
                self.write_collective(events, rank, c)
        for i, (a, b) in enumerate(self.compute[rank]):
            step = next((n for n, x, y in self.marks[rank] if x <= a - 6 < y),
                        self.marks[rank][0][0])
            if step in places:
                self.launched(events, rank, "gemm", 101 + 2 * i, a, b, 7, {}, step)
        path = f"{folder}/rank{rank}.{part}.json"
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1,
                       "distributedInfo": {"backend": "nccl", "rank": rank,
                                           "world_size": self.count},
                       "traceEvents": events}, f)
        return path

    def write_collective(self, events, rank, c):
        args = {}
        if c.group:
            args = {"Collective name": c.word, "In msg nelems": c.elements,
                    "Out msg nelems": c.elements, "Group size": len(c.ranks),
                    "dtype": c.dtype, "Process Group Name": c.group,
                    "Process Group Ranks": str(c.ranks)}
        if c.seq is not None:
            args["Seq"] = c.seq
        self.launched(events, rank, f"ncclDevKernel_{OPERATIONS[c.word][1]}_Sum_f32_RING_LL(x)",
                      c.correlation, c.begin, c.end, c.stream, args, c.step,
                      "" if c.group or c.word != "all_to_all" else c.word)

    # What DEFINITIONS.md 7 says of it.

    def members_of(self, label):
        return [k for k in range(self.count)
                if any(c.label() == label for c in self.collectives[k])]

    def part_of(self, place):
        return place // -(-len(self.numbers) // self.parts)

    def step_of(self, rank, one):
        """(number, how many of that number came before, how many there are) on this rank, of those
        files that have such a collective in a step of this number."""
        number = self.numbers[one.step]
        files = {self.part_of(c.step) for c in self.collectives[rank]
                 if self.numbers[c.step] == number and c.label() == one.label()
                 and c.operation() == one.operation()}
        same = [m[0] for m in self.marks[rank] if self.numbers[m[0]] == number
                and self.part_of(m[0]) in files]
        return number, same.index(one.step), len(same)

    def step_of_job(self, rank, place):
        """Of ranks that had a number differently often nobody knows which steps are one."""
        number = self.numbers[place]
        nth = [m[0] for m in self.marks[rank] if self.numbers[m[0]] == number].index(place)
        often = {sum(self.numbers[m[0]] == number for m in self.marks[k])
                 for k in range(self.count)
                 if any(self.numbers[c.step] == number for c in self.collectives[k])}
        return number, nth if len(often) == 1 else None

    def nameless_may_meet(self, operation):
        """One stream, and equal counts in each step that all recorded whole."""
        counts = collections.defaultdict(dict)
        for k in range(self.count):
            for c in self.collectives[k]:
                if c.operation() == operation:
                    row = counts[self.step_of(k, c)]
                    row[k] = row.get(k, 0) + 1
        return all(len(row) < self.count or len(set(row.values())) == 1
                   for row in counts.values())

    def keys(self, rank):
        """(communicator, operation, index) of each collective of a rank."""
        rows = self.collectives[rank]
        for c in rows:
            same = [d for d in rows if d.label() == c.label() and d.operation() == c.operation()
                    and d.step == c.step]
            if c.operation() == "send_recv":
                continue
            if not c.group and not self.nameless_may_meet(c.operation()):
                continue
            if c.seq is not None:
                yield (c.label(), c.operation(), "seq", c.seq), c
            else:  # ranks with different counts miss something, and do not meet
                yield (c.label(), c.operation(), self.step_of(rank, c), len(same),
                       same.index(c)), c

    def expected(self):
        table = collections.defaultdict(dict)
        for rank in range(self.count):
            for key, c in self.keys(rank):
                table[key][rank] = c
        waits = {k: collections.Counter() for k in range(self.count)}
        alone = {k: collections.defaultdict(list) for k in range(self.count)}  # by who waited for it
        exact = True
        for key, met in table.items():
            members = self.members_of(key[0]) if key[0] else list(range(self.count))
            if sorted(met) != members or len(members) < 2:
                continue
            order = sorted(met, key=lambda k: met[k].length())
            least, second = met[order[0]].length(), met[order[1]].length()
            noise = max(NOISE_US * 1000, least * 1000 // 100 * 5)
            named = (second - least) * 1000 > noise
            for rank, c in met.items():
                w = waits[rank]
                wait = c.length() - least
                w["matched"] += 1
                w["transfer_ns"] += least * 1000
                w["wait_ns"] += wait * 1000
                exact &= len(c.exposed) <= PIECES_KEPT
                w["exposed_ns"] += 1000 * c.exposed_us()
                w["exposed_wait_ns"] += 1000 * sum(
                    max(0, min(b, c.begin + wait) - a) for a, b in c.exposed)
                if named and rank != order[0]:
                    waits[order[0]]["made_wait_ns"] += wait * 1000
                    alone[order[0]][rank].append(1000 * max(0, c.exposed_us() -
                                                            met[order[0]].exposed_us()))
            waits[order[0]]["after_next_ns"] += (second - least) * 1000
            if named:
                waits[order[0]]["times_last"] += 1
                waits[order[0]]["late_ns"] += (second - least) * 1000
        for rank, w in waits.items():
            most = max(map(len, alone[rank].values()), default=0)
            w["saving_ns"] = min(w["after_next_ns"], min((
                max(sum(each), (waits[other]["exposed_ns"] - w["exposed_ns"]) *
                    (waits[other]["matched"] == w["matched"]))
                for other, each in alone[rank].items() if 2 * len(each) >= most), default=0))
        return waits, exact


# The frontier, by the microsecond.

class Frontier:
    """Meetings, each with the one that the rank that came last had before it."""

    def __init__(self, job):
        self.job = job
        table = collections.defaultdict(dict)
        for rank in range(job.count):
            for key, c in job.keys(rank):
                table[key][rank] = c
        self.meetings = {}
        for key, met in table.items():
            members = job.members_of(key[0]) if key[0] else list(range(job.count))
            if sorted(met) == members and len(members) > 1:
                self.meetings[key] = met
        self.ends, self.before, self.of_rank = {}, {}, {}
        for rank in range(job.count):
            latest = 0
            for c in sorted(job.collectives[rank], key=lambda c: c.begin):
                latest = max(latest, c.end)
                self.ends[rank, c] = latest
            mine = sorted((met[rank].begin, key) for key, met in self.meetings.items()
                          if rank in met)
            self.of_rank[rank] = [key for _, key in mine]
            for a, b in zip(self.of_rank[rank], self.of_rank[rank][1:]):
                self.before[rank, b] = a
        self.classes = {rank: self.by_microsecond(rank) for rank in range(job.count)}

    def by_microsecond(self, rank):
        ends = [c.end for c in self.job.collectives[rank]] + \
               [b for _, b in self.job.compute[rank]]
        row = ["idle"] * (max(ends, default=0) + 1)
        for c in self.job.collectives[rank]:
            row[c.begin:c.end] = ["exposed_comm"] * c.length()
        for a, b in self.job.compute[rank]:
            row[a:b] = ["compute"] * (b - a)
        return row

    def last(self, key):
        """Who came last, and whether it is to be named."""
        met = self.meetings[key]
        order = sorted(met, key=lambda k: (met[k].length(), k))
        least, second = (met[k].length() for k in order[:2])
        return order[0], (second - least) * 1000 > max(NOISE_US * 1000, least * 1000 // 100 * 5)

    def previous(self, key):
        return self.before.get((self.last(key)[0], key))

    def stretch(self, rank, key):
        met, previous = self.meetings[key][rank], self.before[rank, key]
        return self.ends[rank, self.meetings[previous][rank]], self.ends[rank, met]

    def way(self, key):
        keys = [key]
        while self.previous(keys[0]) is not None:
            keys.insert(0, self.previous(keys[0]))
        return keys

    def length(self, way):
        return sum(b - a for a, b in (self.stretch(self.last(k)[0], k) for k in way[1:]))

    def groups(self):
        """Meetings that ranks went through one after the other."""
        group = {key: key for key in self.meetings}

        def top(key):
            while group[key] != key:
                key = group[key]
            return key
        for (_, b), a in self.before.items():
            group[top(a)] = top(b)
        found = collections.defaultdict(list)
        for key in self.meetings:
            found[top(key)].append(key)
        return list(found.values())

    def expected(self):
        """Of each rank, None for nobody: ns by class; and ns by step, and how many steps; and the
        mean of compute."""
        ways = [max(map(self.way, keys), key=self.length) for keys in self.groups()]
        if not ways:
            return {}, collections.Counter(), None, {}
        longest = self.last(max(ways, key=self.length)[-1])[0]
        ways = [way for way, keys in zip(ways, self.groups())
                if any(longest in self.meetings[key] for key in keys)]
        step_of = {key: self.job.step_of_job(self.last(key)[0],
                                             self.meetings[key][self.last(key)[0]].step)
                   for way in ways for key in way}
        counted = [key for way in ways for key in way[1:] if step_of[key] != step_of[way[0]]]
        counted = counted or [key for way in ways for key in way[1:]]
        shares = collections.defaultdict(collections.Counter)
        steps, means = collections.Counter(), collections.Counter()
        for key in counted:
            rank, named = self.last(key)
            a, b = self.stretch(rank, key)
            for what in self.classes[rank][a:b]:
                shares[rank if named else None][what] += 1000
            steps[step_of[key][0]] += 1000 * (b - a)
            same = [k for k in self.meetings[key]
                    if self.before.get((k, key)) == self.before[rank, key]]
            for k in same:
                a, b = self.stretch(k, key)
                means[rank if named else None] += \
                    1000 * self.classes[k][a:b].count("compute") / len(same)
        turns = sum(step_of[key] != step_of[self.previous(key)] for key in counted)
        return shares, steps, max(1, turns) if counted else None, means


def check_frontier(t, what, job, got):
    shares, steps, count, means = Frontier(job).expected()
    found = collections.defaultdict(collections.Counter)
    mean = collections.Counter()
    per = max(1, (got.get("frontier_total") or {}).get("steps", 1))
    for row in got["frontier"]:
        kind = row["kind"] if row["kind"] in ("compute", "exposed_comm") else "idle"
        found[row["rank"]][kind] += row["ns"]
        if kind == "compute":
            mean[row["rank"]] += row["mean_ns_per_step"] * per
    t.equal(f"{what}, frontier", found, {k: +v for k, v in shares.items() if +v})
    t.equal(f"{what}, frontier, how many steps", (got["frontier_total"] or {}).get("steps"), count)
    t.equal(f"{what}, frontier by step", {s["step"]: s["ns"] for s in got["frontier_steps"]
                                          if s["ns"]}, +steps)
    for s in got["frontier_steps"]:
        t.equal(f"{what}, pieces of step {s['step']}", sum(p["ns"] for p in s["pieces"]), s["ns"])
    for rank, ns in mean.items():
        t.true(f"{what}, mean of the ranks: {ns} for {means[rank]}",
               abs(ns - means[rank]) <= 5 * per)
    return sum(steps.values())


def report(tool, paths, reports="comm,ranks,summary", more=()):
    out = subprocess.run([tool, "-q", "--format", "json", "--report", reports, *more, *paths],
                         capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"tacho-analyze failed on {paths[:3]}: {out.stderr}")
    return json.loads(out.stdout)


class Checks:
    def __init__(self):
        self.good = self.bad = 0

    def equal(self, what, got, want):
        if got == want:
            self.good += 1
        else:
            self.bad += 1
            print(f"not ok - {what}: got {got}, want {want}")

    def true(self, what, is_so):
        self.equal(what, bool(is_so), True)


KEYS = ("matched", "transfer_ns", "wait_ns", "exposed_wait_ns", "times_last", "late_ns",
        "made_wait_ns", "saving_ns", "exposed_ns", "after_next_ns")


def check_classes(t, seed, job, rank, row):
    want = collections.Counter()
    for c in job.collectives[rank]:
        key = (c.label(), c.operation(), c.bytes())
        want[key + ("count",)] += 1
        want[key + ("total_ns",)] += 1000 * c.length()
        want[key + ("exposed_ns",)] += 1000 * sum(b - a for a, b in c.exposed)
    got = collections.Counter()
    for r in row["comm"]:
        for k in ("count", "total_ns", "exposed_ns"):
            got[(r["group"], r["operation"], r["size_bytes"], k)] += r[k]
        n = r["group_size"]
        if r["algorithm_gb_per_s"] is not None and n:
            t.true(f"seed {seed}, bus bandwidth of {r['operation']}",
                   abs(r["bus_gb_per_s"] - r["algorithm_gb_per_s"] *
                       FACTORS[r["operation"]](n)) < 1e-6 * r["algorithm_gb_per_s"])
    t.equal(f"seed {seed}, rank {rank}, classes", +got, +want)
    if row["gpus"]:
        t.equal(f"seed {seed}, rank {rank}, exposed", sum(r["exposed_ns"] for r in row["comm"]),
                row["gpus"][0]["exposed_comm_ns"])


def check_job(t, args, folder, seed, job):
    got = report(f"{args.bin}/tacho-analyze", job.write(folder))
    want, exact = job.expected()
    met = 0
    for row in got["ranks"]:
        rank = row["rank"]
        check_classes(t, seed, job, rank, row)
        if not row.get("waits"):
            t.equal(f"seed {seed}, rank {rank}: nothing", len(job.collectives[rank]), 0)
            continue
        for key in KEYS:
            if key in ("exposed_wait_ns", "exposed_ns", "saving_ns") and not exact:
                continue
            t.equal(f"seed {seed}, rank {rank}, {key}", row["waits"][key] or 0, want[rank][key])
        pairs = sum(p["wait_ns"] for p in row["waits_for"])
        t.true(f"seed {seed}, rank {rank}, pairs", pairs <= (row["waits"]["wait_ns"] or 0))
        met += want[rank]["matched"]
    if job.parts == 1:
        check_frontier(t, f"seed {seed}", job, got)
    t.equal(f"seed {seed}, matched", sum(c["matched"] for c in got["communicators"]), met)
    t.equal(f"seed {seed}, last", sum(s["times_last"] for s in got["stragglers"]),
            sum(w["times_last"] for w in want.values()))
    return met


def check_again(t, args, folder):
    """Numbers that come again long after, next to each other, and in another file of the rank."""
    met = 0
    for seed in range(1000, 1012):
        epochs = list(range(5, 5 + 3 * (seed % 4) ** 3)) or [3]
        met += check_job(t, args, folder, seed, Job(seed, 2 * epochs))
        met += check_job(t, args, folder, seed, Job(seed, 2 * [7, 8, 9], parts=2))
        met += check_job(t, args, folder, seed, Job(seed, [7, 8, 8, 8, 7, 9, 9, 7], parts=2))
    print(f"numbers of steps that come again: {met} kernels matched")
    paths = [late_rank(folder, rank, 2, 1, 900, 40, [7, 7, 7, 7]) for rank in range(2)]
    for more, matched in (((), 4), (("--from", "600us"), 3)):    # into the first of them
        got = report(f"{args.bin}/tacho-analyze", paths, "ranks", more)
        for row in got["ranks"]:
            t.equal(f"all steps are number 7 {more}, matched", row["waits"]["matched"], matched)
        t.equal(f"all steps are number 7 {more}, steps of the job", got["frontier_total"]["steps"],
                matched - 1)


def measured(command, path):
    """Peak resident memory in KB of a command whose output goes to `path`."""
    with open(path, "w") as out:
        child = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{command[:6]} failed")
    return usage.ru_maxrss


def generate(args, folder, ranks, *more):
    subprocess.run([f"{args.bin}/samples/generate", "--out", folder, "--ranks", str(ranks), *more],
                   check=True)
    with open(f"{folder}/truth.json") as f:
        return json.load(f), [f"{folder}/r{r}.tacho" for r in range(ranks)]


def check_slow(t, args, folder, ranks, slow):
    truth, paths = generate(args, f"{folder}/slow{ranks}", ranks, "--events", "1500",
                            "--slow-rank", str(slow))
    out = f"{folder}/out.json"
    peak = measured([f"{args.bin}/tacho-analyze", "-q", "--format", "json", "--report",
                     "comm,ranks,summary", *paths], out)
    with open(out) as f:
        got = json.load(f)
    what = f"{ranks} ranks"
    t.true(f"{what}: {peak} KB", sys.platform != "linux" or "san" in args.bin or peak < MOST_KB)
    t.equal(f"{what}, who came last", {s["rank"] for s in got["stragglers"]}, {slow})
    t.equal(f"{what}, in steps", {s["step"] for s in got["stragglers"]},
            set(range(truth[0]["steps"])))
    t.equal(f"{what}, in phases", {s["phase"] for s in got["stragglers"]}, {"backward"})
    worst = max(got["ranks"], key=lambda r: r["balance"]["ns_per_step"])
    t.equal(f"{what}, who computes most", worst["rank"], slow)
    t.equal(f"{what}, all matched", {r["waits"]["matched"] == r["waits"]["collectives"]
                                     for r in got["ranks"]}, {True})
    t.equal(f"{what}, waits", [r["waits"]["wait_ns"] for r in got["ranks"]],
            [r["wait_ns"] for r in truth])
    t.equal(f"{what}, for whom", {w["for_rank"] for r in got["ranks"] for w in r["waits_for"]},
            {slow})
    saving = next(r["waits"]["saving_ns"] for r in got["ranks"] if r["rank"] == slow)
    found = next(f for f in got["findings"] if f["rule"] == "straggler")
    t.true(f"{what}, finding", f"Rank {slow} comes last" in found["evidence"] and abs(
        found["saving_ns_per_step"] - saving / truth[0]["steps"]) <= 1)
    equal, _ = generate(args, f"{folder}/equal{ranks}", min(ranks, 8), "--events", "1500",
                        "--slow-rank", "0", "--slow-percent", "0")
    # At the end of a step the ranks wait without a collective: for the slow one's optimizer.
    gain = (truth[slow]["wall_ns"] - max(r["wall_ns"] for r in equal) -
            truth[slow]["optimizer_ns"] + equal[0]["optimizer_ns"]) / truth[0]["steps"]
    t.true(f"{what}, {found['saving_ns_per_step']} bounds the {gain:.0f} ns by which a step is longer "
           "than the same job's", gain <= found["saving_ns_per_step"] <= 1.25 * gain)
    check_slow_frontier(t, what, got, truth, slow)
    t.true(f"{what}, finding says what is slow: {found['evidence']}",
           "most extra time in compute launched in" in found["evidence"] and "clocks" in found["advice"])
    for r in got["ranks"]:
        g = r["gpus"][0]
        if not g["exposed_comm_wait_ns"] <= min(g["exposed_comm_ns"], r["waits"]["wait_ns"]):
            t.true(f"{what}, rank {r['rank']}: waits more than it communicates", False)
    print(f"{ranks} ranks: {peak} KB")
    return paths, got


def check_slow_frontier(t, what, got, truth, slow):
    """The job's steps take what the slow rank takes: they are its own, to the nanosecond."""
    total, rows = got["frontier_total"], got["frontier"]
    t.equal(f"{what}, whose frontier", {r["rank"] for r in rows}, {slow})
    t.equal(f"{what}, frontier steps", total["steps"], truth[0]["steps"] - 1)
    t.equal(f"{what}, frontier adds up", sum(r["ns"] for r in rows), total["ns"])
    walls = {s["step"]: s["wall_ns"] for s in got["ranks"][slow]["steps"]}
    for s in got["frontier_steps"]:
        t.equal(f"{what}, step {s['step']} of the job", s["ns"], walls[s["step"]])
        t.equal(f"{what}, step {s['step']}, pieces", sum(p["ns"] for p in s["pieces"]), s["ns"])
    over = max(rows, key=lambda r: r["ns_per_step"] - r["mean_ns_per_step"])
    t.equal(f"{what}, most over the mean", (over["kind"], over["phase"] in ("forward", "backward")),
            ("compute", True))


def late_rank(folder, rank, ranks, slow, data, host, numbers=range(4), more=0):
    """Steps of one rank: input, code of the loop, a kernel, an all-reduce that ends with the slow
    rank's, and more of them to which all come together; times in us."""
    events, at = [], 1000
    for step, shown in enumerate(numbers):
        mine = (data, host) if rank == slow else (300, 40)
        latest = at + max(data, 300) + max(host, 40) + 10 + 200
        begin = at + sum(mine)
        end = latest + 120 + 100 * more
        lines = [("user_annotation", f"ProfilerStep#{shown}", at, end, {}),
                 ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                  at, at + mine[0], {})]
        reduces = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
        for k, (name, first, last, stream) in enumerate((
                ("gemm", begin + 10, begin + 210, 7), (reduces, begin + 210, latest + 100, 20),
                *((reduces, latest + 120 + 100 * i, latest + 200 + 100 * i, 20)
                  for i in range(more)))):
            number = 100 + 100 * step + k
            lines.append(("cuda_runtime", "cudaLaunchKernel", begin + 2 * k, begin + 2 * k + 2,
                          {"correlation": number}))
            events.append(Job.event("kernel", name, 0, stream, first, last, {
                "device": 0, "context": 1, "stream": stream, "correlation": number}))
        events += [Job.event(cat, name, 400 + rank, 400 + rank, b, e, args)
                   for cat, name, b, e, args in lines]
        at = end
    path = f"{folder}/late{rank}.json"
    with open(path, "w") as f:
        json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank,
                                                           "world_size": ranks},
                   "traceEvents": events}, f)
    return path


def check_late(t, args, folder):
    """What makes a rank late is what its frontier says."""
    for data, host, kind, least, advice in ((900, 40, "data", 900, "loader"),
                                            (300, 500, "host:other", 500, "NUMA")):
        paths = [late_rank(folder, rank, 4, 2, data, host) for rank in range(4)]
        got = report(f"{args.bin}/tacho-analyze", paths, "ranks,findings")
        what = f"late by {kind}"
        t.equal(f"{what}, who", {r["rank"] for r in got["frontier"]}, {2})
        over = max(got["frontier"], key=lambda r: r["ns_per_step"] - r["mean_ns_per_step"])
        t.equal(f"{what}, by what", over["kind"], kind)
        t.true(f"{what}, how long: {over['ns_per_step']}",
               least * 1000 <= over["ns_per_step"] <= (least + 25) * 1000)
        found = next(f for f in got["findings"] if f["rule"] == "straggler")
        t.true(f"{what}, finding: {found['evidence']} {found['advice']}",
               kind in found["evidence"] and advice in found["advice"])
        pages = [subprocess.run([f"{args.bin}/tacho-analyze", "-q", "--format", form, "--report",
                                 name, *paths], capture_output=True, text=True, check=True).stdout
                 for form, name in (("text", "ranks"), ("html", "summary"))]
        top = got["frontier"][0]
        for page in pages:
            t.true(f"{what}, on a page", f"{top['ns_per_step'] / 1e6:.2f}" in page and
                   "A step of the job takes" in page and top["kind"] in page)


def run_job(r, slow, kind):
    """Times in us of each rank's work in the steps of a job, in which one rank is slower; kind None:
    nobody is. Computing goes on beside the all-reduces, which take turns on a stream of their own."""
    ranks, steps, parts = r.choice((2, 4, 8)), r.choice((4, 6)), r.choice((1, 3, 6))
    data, host, part, transfer = (r.randint(100, 400), r.randint(20, 90), r.randint(80, 300),
                                  r.randint(50, 300))
    more = r.randint(200, 900)
    late = {"some steps": {s for s in range(steps) if r.random() < 0.6} or {0, 1}}.get(
        kind, set(range(steps)))
    at, work = 1000, [[] for _ in range(ranks)]
    for step in range(steps):
        begins, lines = [], []
        for rank in range(ranks):
            own = rank == slow and kind is not None and step in late
            mine = [data + more * (own and kind == "loader"),
                    host + more * (own and kind in ("host", "some steps")),
                    part + more // parts * (own and kind == "compute")]
            start = at + mine[0] + mine[1]
            lines.append(mine)
            begins.append([start + mine[2] * (i + 1) for i in range(parts)])
        ends, busy = [], [0] * ranks
        for i in range(parts):
            began = [max(begins[rank][i], busy[rank]) for rank in range(ranks)]
            end = max(began) + transfer
            ends.append((began, end))
            busy = [end] * ranks
        end = max(busy) + 20
        for rank in range(ranks):
            work[rank].append((step, at, end, lines[rank], begins[rank],
                               [(began[rank], last) for began, last in ends]))
        at = end
    return work


def put_job(folder, work):
    paths = []
    for rank, steps in enumerate(work):
        events, number = [], 0

        def gpu(name, stream, begin, end, called):
            events.append(Job.event("cuda_runtime", "cudaLaunchKernel", 400 + rank, 400 + rank,
                                    called, called + 1, {"correlation": number}))
            events.append(Job.event("kernel", name, 0, stream, begin, end, {
                "device": 0, "context": 1, "stream": stream, "correlation": number}))

        for step, at, end, (data, host, _), computed, reduced in steps:
            tid = 400 + rank
            events.append(Job.event("user_annotation", f"ProfilerStep#{step}", tid, tid, at, end,
                                    {}))
            events.append(Job.event(
                "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                tid, tid, at, at + data, {}))
            begin = called = at + data + host
            for i, last in enumerate(computed):
                number += 1
                gpu("gemm", 7, begin, last, called + 4 * i)
                number += 1
                gpu("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20, *reduced[i],
                    called + 4 * i + 2)
                begin = last
        paths.append(f"{folder}/kind{rank}.json")
        with open(paths[-1], "w") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {
                "backend": "nccl", "rank": rank, "world_size": len(work)}, "traceEvents": events}, f)
    return paths


def check_kinds(t, args, folder):
    """Whatever makes a rank late, the finding bounds what the job without it gains."""
    for seed in range(args.random if args.random < 40 else 40):
        kind = ("loader", "host", "compute", "some steps")[seed % 4]
        slow = seed % 2
        late, whole = (run_job(random.Random(seed), slow, of) for of in (kind, None))
        got = report(f"{args.bin}/tacho-analyze", put_job(folder, late), "ranks,findings")
        found = next((f for f in got["findings"] if f["rule"] == "straggler"), None)
        what = f"kind of straggler {seed}, {kind} of {len(late)} ranks"
        t.true(f"{what}: rank {slow} is found", found and f"Rank {slow} comes last" in
               found["evidence"])
        gain = 1000 * (late[0][-1][2] - whole[0][-1][2]) / len(whole[0])
        t.true(f"{what}: {found and found['saving_ns_per_step']} bounds {gain:.0f}",
               found and gain - 1 <= found["saving_ns_per_step"] <= 1.25 * gain)


def check_first_of_step(t, args, folder):
    """A rank that is late once in a step, of many collectives; and nobody late."""
    paths = [late_rank(folder, rank, 4, 2, 900, 40, more=9) for rank in range(4)]
    got = report(f"{args.bin}/tacho-analyze", paths, "ranks,findings")
    found = next((f for f in got["findings"] if f["rule"] == "straggler"), None)
    t.equal("late once in each step", found and found["saving_ns_per_step"], 600000)
    t.true(f"late once in each step, in words: {found}", found and "1.8 ms of 1.8 ms" in
           found["brief"] and "Rank 2 comes last in 4 of 40" in found["evidence"])
    whole = [late_rank(folder, rank, 4, 2, 300, 40, more=9) for rank in range(4)]
    got = report(f"{args.bin}/tacho-analyze", whole, "ranks,findings")
    t.equal("nobody is late", [f for f in got["findings"] if f["rule"] == "straggler"], [])


def check_unmarked(t, args, folder):
    """Without marks and Seq collectives are one if all ranks have the same ones in one order."""
    paths = [late_rank(folder, rank, 2, 1, 900, 40, more=2) for rank in range(2)]

    def change(rank, how):
        with open(paths[rank]) as f:
            trace = json.load(f)
        rows = [row for row in trace["traceEvents"] if "ProfilerStep" not in row["name"]]
        kernels = [row for row in rows if row["name"].startswith("nccl")]
        for row in how(rows, kernels):
            rows.remove(row)
        trace["traceEvents"] = rows
        with open(paths[rank], "w") as f:
            json.dump(trace, f)

    def waits(how):
        late_rank(folder, 1, 2, 1, 900, 40, more=2)
        change(1, how)
        got = report(f"{args.bin}/tacho-analyze", paths, "comm,findings")
        return got, [(row["waits"]["collectives"], row["waits"]["matched"])
                     for row in got["ranks"]]

    def other_type(_, kernels):
        kernels[5]["name"] = kernels[5]["name"].replace("f32", "bf16")
        return []

    def other_order(_, kernels):
        kernels[4]["name"] = kernels[4]["name"].replace("AllReduce", "AllGather")
        return []

    change(0, lambda rows, kernels: [])
    got, found = waits(lambda rows, kernels: [])
    t.equal("unmarked, all matched", found, [(12, 12), (12, 12)])
    t.equal("unmarked, who waited", [row["waits"]["wait_ns"] for row in got["ranks"]],
            [4 * 600000, 0])
    t.true("unmarked, who is late", "Rank 1 comes last in 4 of 12" in next(
        f["evidence"] for f in got["findings"] if f["rule"] == "straggler"))
    for what, how in (("one is lost", lambda rows, kernels: kernels[7:8]),
                      ("another type", other_type), ("another order", other_order)):
        got, found = waits(how)
        t.equal(f"unmarked, {what}", [matched for _, matched in found], [0, 0])
        t.true(f"unmarked, {what}: why", re.search(
            "and the ranks differ|ranks have different counts", json.dumps(
                [row["unmatched_because"] for row in got["communicators"]])))


def check_silent(t, args, folder):
    """One rank of many whose kernels nobody knows to communicate is doubted, on the first page too."""
    for kernel, world, verdict in (("my_own_exchange", 4, "doubt"), ("my_own_exchange", 1, "good"),
                                   ("dpsk::ep::internode::combine(int)", 4, "good")):
        path = f"{folder}/silent.json"
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": world},
                       "traceEvents": [Job.event("kernel", name, 0, 7, at, at + 50, {
                           "device": 0, "stream": 7, "correlation": at})
                           for at, name in ((100, "gemm"), (200, kernel))]}, f)
        got = report(f"{args.bin}/tacho-analyze", [path], "check")
        rows = {row["check"]: row["verdict"] for row in got["ranks"][0]["checks"]}
        t.equal(f"{kernel} of {world} ranks", rows["silent"], verdict)
        page = subprocess.run([f"{args.bin}/tacho-analyze", "-q", path],
                              capture_output=True, text=True, check=True).stdout
        t.equal(f"{kernel} of {world} ranks, page", "! SILENT" in page, verdict == "doubt")


def check_hidden(t, args, folder):
    """The page of one rank says how much of its communication is hidden, and what links could do."""
    for compute, words in (((2000, 2200), "all exposed"), ((900, 2200), "all hidden beside compute"),
                           ((1000, 1250), "0.75 exposed and 0.25 hidden beside compute")):
        rows = [Job.event("user_annotation", "ProfilerStep#1", 400, 400, 900, 3000, {}),
                Job.event("kernel", "gemm", 0, 7, *compute, {"device": 0, "stream": 7}),
                Job.event("kernel", "ncclDevKernel_AllReduce(x)", 0, 20, 1000, 2000, {
                    "device": 0, "stream": 20, "Collective name": "allreduce", "dtype": "Float",
                    "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "Group size": 2,
                    "Process Group Name": "0", "Process Group Ranks": "[0, 1]"})]
        path = f"{folder}/hidden.json"
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2},
                       "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
                       "traceEvents": rows}, f)
        page = subprocess.run([f"{args.bin}/tacho-analyze", "-q", path],
                              capture_output=True, text=True, check=True).stdout
        for said in (f"1 collective a step, 1.00 ms: {words}", "4.0 MiB: bus > 4.2 GB/s",
                     "the links carry 450 GB/s"):
            t.true(f"{said!r} on a page", said in page)
        comm, = report(f"{args.bin}/tacho-analyze", [path], "comm")["ranks"][0]["comm"]
        t.equal("what links carry", comm["link_gb_per_s"], 450)


def check_dlrm(t, args):
    """A real job of eight ranks, and what an engineer said of it."""
    traces = os.environ.get("TACHO_TRACES", "../shared/traces")
    folder = f"{traces}/judged/dlrm_8ranks"
    if not os.path.isdir(folder):
        print(f"# skipped: {folder} is not there")
        return
    got = report(f"{args.bin}/tacho-analyze", [folder], "ranks,findings")
    made = {r["rank"]: r["waits"]["made_wait_ns"] for r in got["ranks"]}
    t.true(f"dlrm, rank 7 makes the others wait: {made}", abs(made[7] - 35.6e6) < 1e5)
    t.true("dlrm, what ranks wait",
           abs(sum(r["waits"]["wait_ns"] for r in got["ranks"]) - 46.8e6) < 1e5)
    t.true(f"dlrm, verdict {got['verdict']}", got["verdict"]["bound"] == "UNBALANCED" and
           "rank 7" in got["verdict"]["sentence"])
    first = got["findings"][0]
    t.equal("dlrm, first finding", first["rule"], "straggler")
    one, all_at_once = (f"{ns / 1e6:.1f} ms" for ns in (
        first["saving_ns_per_step"], got["verdict"]["ns_per_step"]))
    most = max(r["waits"]["exposed_ns"] for r in got["ranks"])
    t.true(f"dlrm, no rank gains more than it communicates, {most}: {got['verdict']}",
           got["verdict"]["ns_per_step"] <= most)
    t.true(f"dlrm, whose share is said: {got['verdict']}",
           "rank 7: of the 46.8 ms that all ranks together wait in a step, it causes 35.5 ms" in got["verdict"]["sentence"])
    t.true(f"dlrm, verdict and finding say both savings: {got['verdict']} {first}",
           all(ms in text for ms in (one, all_at_once)
               for text in (got["verdict"]["sentence"], first["evidence"])))


def check_together(t, args, folder):
    """Of two that begin together the one on the lower stream owns the time, else the earlier id."""
    events = [Job.event("user_annotation", "ProfilerStep#1", 400, 400, 900, 9000, {})]
    for number, group, stream, first, last in ((2, "a", 20, 1000, 2000), (1, "b", 21, 1000, 3000),
                                               (5, "e", 23, 2600, 3500),
                                               (3, "c", 22, 5000, 6000), (4, "d", 22, 5000, 7000)):
        events.append(Job.event("cuda_runtime", "cudaLaunchKernel", 400, 400, first - number * 10,
                                first - number * 10 + 5, {"correlation": number}))
        events.append(Job.event("kernel", "ncclDevKernel_AllReduce(x)", 0, stream, first, last, {
            "device": 0, "stream": stream, "correlation": number, "Collective name": "allreduce",
            "In msg nelems": 8, "dtype": "Float", "Process Group Name": group,
            "Process Group Ranks": "[0, 1]", "Group size": 2}))
    with open(f"{folder}/together.json", "w") as f:
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2},
                   "traceEvents": events}, f)
    got = report(f"{args.bin}/tacho-analyze", [f"{folder}/together.json"], "comm")
    t.equal("begun together, exposed", {row["group"].split()[0]: row["exposed_ns"] // 1000
                                        for row in got["ranks"][0]["comm"]},
            {**dict.fromkeys("abcd", 1000), "e": 500})
    got = report(f"{args.bin}/tacho-analyze", [f"{folder}/together.json"], "comm,summary",
                 ("--from", "1300us"))     # inside of the second, which began earlier then
    rank, = got["ranks"]
    t.equal("begun before the cut, exposed", {row["group"].split()[0]: row["exposed_ns"] // 1000
                                              for row in rank["comm"]},
            {"c": 1000, "d": 1000, "e": 500})


def check_crossed(t, args, folder):
    """Ranks that meet in another order, each last where the other was first: no way goes round."""
    paths = []
    for rank in range(2):
        events = [Job.event("user_annotation", "ProfilerStep#1", 400 + rank, 400, 900, 9000, {})]
        for place, group in enumerate("ab" if rank else "ba"):
            first, last = ((1000, 3000), (3900, 4000))[place]     # the second is the shorter one
            number = place + 1
            events.append(Job.event("cuda_runtime", "cudaLaunchKernel", 400 + rank, 400,
                                    first - 20, first - 10, {"correlation": number}))
            events.append(Job.event("kernel", "ncclDevKernel_AllReduce(x)", 0, 20, first, last, {
                "device": 0, "stream": 20, "correlation": number, "Collective name": "allreduce",
                "Process Group Name": group, "Process Group Ranks": "[0, 1]", "Group size": 2,
                "Seq": 1, "In msg nelems": 8, "dtype": "Float"}))
        paths.append(f"{folder}/crossed{rank}.json")
        with open(paths[-1], "w") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
                       "traceEvents": events}, f)
    got = report(f"{args.bin}/tacho-analyze", paths, "ranks")
    t.equal("crossed, matched", [row["waits"]["matched"] for row in got["ranks"]], [2, 2])
    t.equal("crossed, one stretch", (got["frontier_total"]["meetings"],
                                     got["frontier_total"]["ns"]), (1, 1_000_000))


def check_windows(t, args, folder):
    """A second window of each rank, a minute later: twice the first, and nothing of the minute."""
    paths, later = [late_rank(folder, rank, 4, 2, 900, 40) for rank in range(4)], []
    for path in paths:
        with open(path) as f:
            window = json.load(f)
        for event in window["traceEvents"]:
            event["ts"] += 60_000_000
            if event["name"].startswith("ProfilerStep#"):
                event["name"] = f"ProfilerStep#{10 + int(event['name'][13:])}"
        later.append(f"{path}.later.json")
        with open(later[-1], "w") as f:
            json.dump(window, f)
    one, both = (report(f"{args.bin}/tacho-analyze", some, "ranks") for some in (paths,
                                                                                paths + later))
    for key, times in (("ns", 2), ("steps", 2), ("meetings", 2), ("ns_per_step", 1)):
        t.equal(f"two windows, {key}", both["frontier_total"][key],
                times * one["frontier_total"][key])


def check_even(t, args, folder):
    """Nobody is slow; parts of a job, merged, give the bytes of the whole."""
    _, paths = generate(args, f"{folder}/even", 5, "--events", "3000")
    tool, parts = f"{args.bin}/tacho-analyze", []
    for i, some in enumerate((paths[3:], paths[:1], paths[1:3])):
        parts.append(f"{folder}/part{i}")
        subprocess.run([tool, "-q", "--partial", parts[-1], *some], check=True)
    names = ["-q", "--format", "json", "--report", "comm,ranks"]
    whole, merged, one = (subprocess.run(command, capture_output=True, text=True,
                                         check=True).stdout
                          for command in ([tool, *names, *paths],
                                          [tool, *names, "--merge", *parts],
                                          ["taskset", "-c", "0", tool, *names, *paths]))
    t.true("merged of parts: the same bytes", whole == merged)
    t.true("on one core: the same bytes", whole == one)
    got = json.loads(whole)
    t.true("all matched", all(c["matched"] == c["count"] for c in got["communicators"]))
    t.true("nobody is blamed for most of the frontier", sum(
        r["ns"] for r in got["frontier"] if r["rank"] is None) > got["frontier_total"]["ns"] / 2)
    t.true("balance within 2 %", all(98 < r["balance"]["share_of_mean"] < 102
                                     for r in got["ranks"]))


def all_reduce_ends(path):
    """Ends in ns of each rank's all-reduces, as a text file of one timeline has them."""
    ends = collections.defaultdict(list)
    with open(path) as f:
        for line in f:
            if "ncclDevKernel_AllReduce" in line:
                begin, length, _, rank = line.split()[:4]
                ends[rank].append(round(float(begin) * 1e6) + round(float(length) * 1e6))
    return list(ends.values())


def convert(args, folder, paths, *more):
    out = f"{folder}/merged.txt"
    run = subprocess.run([f"{args.bin}/tacho-convert", "-t", "text", "-o", out, *more, *paths],
                         capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"tacho-convert failed: {run.stderr}")
    return all_reduce_ends(out), run.stderr


def spread(ends):
    """The most that two ranks are apart where they end one all-reduce."""
    return max(max(same) - min(same) for same in zip(*ends))


def check_clocks(t, args, folder):
    skew = 250_000
    _, paths = generate(args, f"{folder}/skew", 8, "--events", "1500", "--ranks-per-host", "2",
                        "--slow-rank", "3", "--skew-ns", str(skew))
    for how, apart in (("anchors", 3 * skew), ("none", 3 * skew), ("collectives", 0)):
        ends, told = convert(args, folder, paths, "--align", how)
        t.equal(f"--align {how}: hosts apart", spread(ends), apart)
        t.equal(f"--align {how}: each rank", [len(e) for e in ends], [len(ends[0])] * 8)
        t.equal(f"--align {how}: offsets told",
                [w for w in ("+250.0", "+500.0", "+750.0") if f"{w} us from that of" in told],
                [] if how == "none" else ["+250.0", "+500.0", "+750.0"])
        t.equal(f"--align {how}: not applied", told.count("not applied"),
                3 if how == "anchors" else 0)
    drift = 30_000  # ns a second and host, over twelve seconds
    _, paths = generate(args, f"{folder}/drift", 2, "--events", "1000000", "--ranks-per-host", "1",
                        "--slow-rank", "1", "--skew-ns", str(skew), "--drift-ns", str(drift))
    ends, told = convert(args, folder, paths, "--align", "collectives", "--kinds", "kernel",
                         "--names", "nccl*")
    t.true(f"a clock that drifts: {told}", "drift +30.0" in told or "drift +29.99" in told)
    t.true(f"a clock that drifts is set: {spread(ends)} ns apart", spread(ends) <= 100)


def check_merged(t, args, folder, paths):
    peak = measured([f"{args.bin}/tacho-convert", "-q", "-t", "text", "--kinds", "kernel",
                     *paths], f"{folder}/merged.txt")
    ends = all_reduce_ends(f"{folder}/merged.txt")
    t.equal("1,024 ranks on one timeline", len(ends), len(paths))
    t.equal("1,024 ranks end together", spread(ends), 0)
    print(f"{len(paths)} ranks merged: {peak} KB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--random", type=int, default=60)
    args = parser.parse_args()
    t = Checks()
    met = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.random):
            met += check_job(t, args, folder, seed, Job(seed))
        t.true(f"{met} collectives met", met > args.random)
        print(f"random jobs: {met} kernels matched")
        check_again(t, args, folder)
        check_even(t, args, folder)
        check_late(t, args, folder)
        check_unmarked(t, args, folder)
        check_kinds(t, args, folder)
        check_first_of_step(t, args, folder)
        check_silent(t, args, folder)
        check_hidden(t, args, folder)
        check_windows(t, args, folder)
        check_together(t, args, folder)
        check_crossed(t, args, folder)
        for ranks, slow in ((8, 5), (64, 0), (1024, 700)):
            paths, _ = check_slow(t, args, folder, ranks, slow)
        check_merged(t, args, folder, paths)
        check_clocks(t, args, folder)
    check_dlrm(t, args)
    print(f"ranks: {t.good} passed, {t.bad} failed")
    return t.bad != 0


if __name__ == "__main__":
    sys.exit(main())
