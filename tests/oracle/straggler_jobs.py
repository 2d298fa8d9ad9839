#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes inputs of the jobs that "Understanding Stragglers in Large Model Training Using What-if
Analysis" publishes (ByteDance-Seed/StragglerAnalysis, Apache-2.0).

    straggler_jobs.py TRACE.parquet META.yaml OUT

writes OUT/rank-N.json, a PyTorch profiler's file for each worker: distributedInfo with the
coordinates dp and pp, a kernel for each operation, named after its type, with the step and what it
communicates.  Needs pyarrow.

Published begins are relative to their step, so that each step gets one offset for all workers.
They are single floats of several clocks: where an operation seems to begin up to 0.3 ms before the
end of the one before it, that one is cut.
"""
import collections
import json
import os
import sys

CUT_NS = 300_000
BEFORE_NS = 1_000_000  # from the begin of a step to its first operation

COLLECTIVES = {
    "params-all-gather": "all_gather",
    "grads-reduce-scatter": "reduce_scatter",
    "embedding-grads-all-reduce": "allreduce",
    "layernorm-grads-all-reduce": "allreduce",
    "optimizer-clip-main-grad": "allreduce",
    "forward-send": "send",
    "forward-recv": "recv",
    "backward-send": "send",
    "backward-recv": "recv",
}
STREAMS = {t: 20 + i for i, t in enumerate(COLLECTIVES)}


def read_meta(path):
    """The flat "key: value" lines of the file."""
    with open(path, encoding="utf-8") as f:
        rows = [line.split(":", 1) for line in f if ":" in line]
    return {key.strip(): value.strip() for key, value in rows}


class Job:
    def __init__(self, rows, meta):
        self.meta = meta
        self.stages = int(meta.get("pp_size", 0)) or 1 + max(r["stage"] for r in rows)
        self.rank = {(r["dp_rank"], r["stage"]): r["rank"] for r in rows}
        self.rows = collections.defaultdict(list)
        for r in rows:
            r["begin"] = round(r["start_ts"] * 1e9)
            r["end"] = r["begin"] + round(r["duration"] * 1e9)
            self.rows[r["dp_rank"], r["stage"]].append(r)
        self.offsets = self.place(rows)
        self.steps = {step: i for i, step in enumerate(sorted(self.offsets))}
        for rows in self.rows.values():
            self.cut(rows)
        self.number()

    @staticmethod
    def place(rows):
        """Steps one behind the other, each with one offset for all workers."""
        first, last = {}, {}
        for r in rows:
            first[r["step"]] = min(first.get(r["step"], r["begin"]), r["begin"])
            last[r["step"]] = max(last.get(r["step"], r["end"]), r["end"])
        at, offsets = 1_000_000_000, {}
        for step in sorted(first):
            offsets[step] = at + BEFORE_NS - first[step]
            at += last[step] - first[step] + 2 * BEFORE_NS
        for r in rows:
            r["begin"] += offsets[r["step"]]
            r["end"] += offsets[r["step"]]
        return {step: (offsets[step] + first[step] - BEFORE_NS, offsets[step] + last[step])
                for step in first}

    @staticmethod
    def cut(rows):
        rows.sort(key=lambda r: (r["begin"], r["end"]))
        for i, r in enumerate(rows):
            for before in rows[max(0, i - 4):i]:
                if before["begin"] < r["begin"] < before["end"] < r["begin"] + CUT_NS:
                    before["end"] = r["begin"]

    def number(self):
        """Seq: the place among the step's operations of the type, over all steps."""
        of_step = collections.defaultdict(list)
        for worker, rows in self.rows.items():
            for r in rows:
                of_step[worker, r["step"], r["optype"]].append(r)
        most = max(len(x) for x in of_step.values())
        for (_, step, _), some in of_step.items():
            some.sort(key=lambda r: (r["seq_id"], r["mc"]))
            for i, r in enumerate(some):
                r["seq"] = self.steps[step] * most + i

    def members(self, r):
        """Name and coordinates of those that an operation communicates with."""
        kind, dp, stage = r["optype"], r["dp_rank"], r["stage"]
        workers = sorted(self.rows)
        if kind in ("params-all-gather", "grads-reduce-scatter"):
            return f"dp_{stage}", [w for w in workers if w[1] == stage]
        if kind == "embedding-grads-all-reduce":
            return f"embedding_{dp}", [w for w in workers
                                       if w[0] == dp and w[1] in (0, self.stages - 1)]
        if kind == "optimizer-clip-main-grad":
            return "world", workers
        if kind == "layernorm-grads-all-reduce":
            return f"tp_{dp}_{stage}", [(dp, stage)]
        return f"pp_{dp}", [w for w in workers if w[0] == dp]

    def peer(self, r):
        """Who sends, who receives; None where it is no point-to-point operation, or the other has
        no rows."""
        if COLLECTIVES[r["optype"]] not in ("send", "recv"):
            return None
        other = r["stage"] + (1 if r["optype"] in ("forward-send", "backward-recv") else -1)
        own = self.rank[r["dp_rank"], r["stage"]]
        other = self.rank.get((r["dp_rank"], other % self.stages))
        if other is None:
            return None
        return (own, other) if r["optype"].endswith("-send") else (other, own)

    def document(self, worker):
        dp, stage = worker
        rank = self.rank[worker]
        events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1,
                   "tid": 1, "ts": begin / 1000, "dur": (end - begin) / 1000}
                  for step, (begin, end) in sorted(self.offsets.items())]
        for number, r in enumerate(self.rows[worker], 1):
            kind = r["optype"]
            args = {"device": 0, "stream": STREAMS.get(kind, 7), "correlation": number,
                    "step": r["step"]}
            if kind in COLLECTIVES:
                name, group = self.members(r)
                args |= {"Collective name": COLLECTIVES[kind], "Process Group Name": name,
                         "Process Group Ranks": str([self.rank[w] for w in group]),
                         "Group size": len(group), "Seq": r["seq"]}
                pair = self.peer(r)
                if pair:
                    # Forward and backward are two communicators, each with an order of its own.
                    args["Process Group Name"] = f"{name}_{kind.split('-')[0]}"
                    args |= {"Src Rank": pair[0], "Dst Rank": pair[1]}
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1,
                           "tid": 1, "ts": (r["begin"] - 10_000) / 1000, "dur": 5,
                           "args": {"correlation": number}})
            events.append({"ph": "X", "cat": "kernel", "name": kind, "pid": 0,
                           "tid": args["stream"], "ts": r["begin"] / 1000,
                           "dur": (r["end"] - r["begin"]) / 1000, "args": args})
        return {"schemaVersion": 1,
                "distributedInfo": {"backend": "nccl", "rank": rank,
                                    "world_size": int(self.meta.get("world_size", 0)),
                                    "coords": {"dp": dp, "pp": stage}},
                "deviceProperties": [{"id": 0, "name": "GPU"}],
                "traceEvents": events}


def write(rows, meta, out):
    job = Job(rows, meta)
    os.makedirs(out, exist_ok=True)
    for worker in sorted(job.rows):
        with open(os.path.join(out, f"rank-{job.rank[worker]}.json"), "w",
                  encoding="utf-8") as f:
            json.dump(job.document(worker), f, separators=(",", ":"))


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: straggler_jobs.py TRACE.parquet META.yaml OUT")
    import pyarrow.parquet
    rows = pyarrow.parquet.read_table(sys.argv[1]).to_pylist()
    write(rows, read_meta(sys.argv[2]), sys.argv[3])


if __name__ == "__main__":
    main()
