#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of NCCL's inspector plugin: what ranks waited for each other, by brute force, and who was late.

    check_inspector.py --bin DIR

The plugin runs with NCCL only; write_job() follows its writer (inspector_json.cc, output format 4):
a line for each collective of each communicator, in the order in which they completed.
"""
import argparse
import json
import os
import random
import subprocess
import tempfile

EPOCH_US = 1_760_000_000_000_000
bad = good = 0


def expect(holds, what):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print("not ok - " + what)


def make_job(seed, ranks, steps, late_rank=None, late_us=0):
    """Per rank the collectives as (communicator, operation, number, bytes, begin, end) in us: a rank
    comes when its work is done, and all leave together."""
    rng = random.Random(seed)
    now, numbers = [EPOCH_US] * ranks, {}
    done = [[] for _ in range(ranks)]
    groups = [("0x1a", "world", list(range(ranks)))]
    groups += [(f"0x2{i}", "TP", [2 * i, 2 * i + 1]) for i in range(ranks // 2)]
    for _ in range(steps):
        for group, name, members in groups:
            operation = rng.choice(("AllReduce", "AllGather", "ReduceScatter")) if name == "world" else "AllReduce"
            for rank in members:
                now[rank] += rng.randrange(900, 1100) + (late_us if rank == late_rank else 0)
            size, transfer = rng.randrange(1, 64) * 65536, rng.randrange(200, 400)
            end = max(now[rank] for rank in members) + transfer
            number = numbers[group] = numbers.get(group, 0) + 1
            for rank in members:
                done[rank].append((group, name, members, operation, number, size, now[rank], end))
                now[rank] = end
    return done


def write_job(folder, done, verbose, drop=()):
    """One file a process; `drop`: (rank, group, number) that the ring of the plugin had no place for."""
    os.makedirs(folder, exist_ok=True)
    for rank, rows in enumerate(done):
        with open(os.path.join(folder, f"node{rank // 4}-pid{1000 + rank}.log"), "w", encoding="utf-8") as file:
            for group, name, members, operation, number, size, begin, end in rows:
                if (rank, group, number) in drop:
                    continue
                perf = {"coll": operation, "coll_sn": number, "coll_msg_size_bytes": size,
                        "coll_exec_time_us": end - begin, "coll_timing_source": "kernel_gpu",
                        "coll_algobw_gbs": 1.5, "coll_busbw_gbs": 2.5}
                if verbose:
                    perf["event_trace_ts"] = {
                        "coll_start_ts": begin - 50, "coll_stop_ts": begin - 20, "kernel_events": [
                            {"channel_id": c, "kernel_start_ts": begin + c, "kernel_stop_ts": end - c,
                             "kernel_record_ts": end} for c in range(3)]}
                line = {"header": {"id": group, "comm_name": name, "rank": members.index(rank),
                                   "n_ranks": len(members), "nnodes": 1},
                        "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "",
                                     "rec_mechanism": "nccl_profiler_interface",
                                     "dump_timestamp_us": end // 500_000 * 500_000 + 500_000,
                                     "hostname": f"node{rank // 4}", "pid": 1000 + rank},
                        "coll_perf": perf}
                file.write(json.dumps(line) + "\n")


def brute_force(done, drop=()):
    """Waiting by rank: own time less the shortest over the communicator, of what all have."""
    calls = {}
    for rank, rows in enumerate(done):
        for group, _, members, operation, number, _, begin, end in rows:
            if (rank, group, number) not in drop:
                calls.setdefault((group, operation, number), ({}, members))[0][rank] = end - begin
    waits, transfer, matched = {}, {}, {}
    for times, members in calls.values():
        if len(times) == len(members):
            least = min(times.values())
            for rank, own in times.items():
                waits[rank] = waits.get(rank, 0) + (own - least) * 1000
                transfer[rank] = transfer.get(rank, 0) + least * 1000
                matched[rank] = matched.get(rank, 0) + 1
    return waits, transfer, matched


class Tool:
    def __init__(self, binaries):
        self.binaries = binaries

    def run(self, name, *words):
        return subprocess.run([os.path.join(self.binaries, name), *words, "-q"], capture_output=True)

    def report(self, path, *words):
        done = self.run("tacho-analyze", path, "-f", "json", "-r", "summary,comm,ranks,check", *words)
        expect(done.returncode == 0, f"{path}: {done.stderr.decode()[:200]}")
        return json.loads(done.stdout)


def check_waits(tool, folder):
    for seed in range(8):
        ranks, verbose = random.Random(seed).choice((2, 4, 8)), seed % 2 == 0
        done = make_job(seed, ranks, 30)
        drop = set()
        if seed >= 4:  # the ring was full: ranks lack different ones
            rng = random.Random(seed)
            drop = {(rng.randrange(ranks), "0x1a", rng.randrange(2, 28)) for _ in range(5)}
        path = os.path.join(folder, f"waits{seed}")
        write_job(path, done, verbose, drop)
        report = tool.report(path)
        waits, transfer, matched = brute_force(done, drop)
        expect(len(report["ranks"]) == ranks, f"{len(report['ranks'])} ranks of {ranks}")
        for rank in report["ranks"]:
            number = rank["rank"]
            expect(rank["world_size"] == ranks, f"world of {rank['world_size']}")
            got = (rank["waits"]["wait_ns"], rank["waits"]["transfer_ns"], rank["waits"]["matched"])
            want = (waits[number], transfer[number], matched[number])
            expect(got == want, f"job {seed}, rank {number}: {got}, by hand {want}")
            lost = sum(rank["losses"].values())
            missing = len([d for d in drop if d[0] == number])
            expect(lost == missing, f"job {seed}, rank {number}: {lost} lost, {missing} dropped")
        sizes = {(c["operation"], c["size_bytes"]) for r in report["ranks"] for c in r["comm"]}
        rows = {({"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}[o],
                 s * (1 if o == "AllReduce" else len(m))) for r in done for _, _, m, o, _, s, _, _ in r}
        expect(sizes <= rows, f"sizes {sorted(sizes - rows)[:3]}")


def check_late(tool, folder):
    """Rank 1 is 200 ms late in each step; the all-reduce makes all equally long, and the files still
    name it."""
    for late, verbose in ((1, True), (1, False), (5, True), (6, False)):
        path = os.path.join(folder, f"late{late}{verbose}")
        done = make_job(11, 8, 12, late, 200_000)
        write_job(path, done, verbose)
        report = tool.report(path)
        made = max(report["ranks"], key=lambda r: r["waits"]["made_wait_ns"])
        expect(made["rank"] == late, f"rank {made['rank']} made others wait, not {late}")
        text = tool.run("tacho-analyze", path).stdout.decode()
        expect(f"rank {late}" in text, f"the page does not name rank {late}: {text[:600]}")
        expect("nothing hidden" not in text, "the files do not say what was hidden")
        worst = max(report["stragglers"], key=lambda s: s["made_wait_ns"])
        expect(worst["rank"] == late, f"straggler {worst['rank']}, not {late}")


def make_ddp(late, late_us=200_000, ranks=4, steps=8):
    """Data-parallel training in which one rank is late in each backward, on the host, as an experiment of users of TraceML had it:
    the all-reduce makes the backwards of all ranks equally long.  Kineto documents, and what the inspector would have written."""
    documents, done, begin, correlation = [], [], [EPOCH_US] * ranks, 1
    events = [[] for _ in range(ranks)]
    done = [[] for _ in range(ranks)]

    def put(rank, cat, name, tid, ts, dur, **args):
        events[rank].append({"ph": "X", "cat": cat, "name": name, "pid": 0 if cat in ("kernel", "gpu_memcpy") else 100 + rank,
                             "tid": tid, "ts": ts, "dur": dur, "args": args})

    for step in range(steps):
        ready = []
        for rank in range(ranks):
            at = begin[rank]
            gpu = at + 200

            def kernels(count, name, host, length):
                nonlocal gpu, correlation
                for _ in range(count):
                    correlation += 1
                    put(rank, "cuda_runtime", "cudaLaunchKernel", 100 + rank, host, 8, correlation=correlation)
                    gpu = max(gpu, host + 12)
                    put(rank, "kernel", name, 7, gpu, length - 2, device=0, stream=7, correlation=correlation)
                    gpu += length
                    host += 30
                return host
            host = kernels(20, "gemm_forward", at + 300, 2000)
            forward = (at + 250, host)
            backward_at = host + 50
            host = kernels(10, "gemm_backward", backward_at + 20, 2000)
            host += late_us if rank == late else 0  # a hook of this rank that computes on the host
            host = kernels(10, "gemm_backward", host, 2000)
            ready.append((at, forward, backward_at, host, gpu))
        end = max(gpu for *_, gpu in ready) + 6000
        for rank, (at, forward, backward_at, host, gpu) in enumerate(ready):
            correlation += 1
            put(rank, "cuda_runtime", "cudaLaunchKernelExC", 100 + rank, host, 8, correlation=correlation)
            come = max(gpu, host + 12)
            put(rank, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, come, end - come,
                **{"device": 0, "stream": 20, "correlation": correlation, "Collective name": "allreduce", "In msg nelems": 1 << 20,
                   "Out msg nelems": 1 << 20, "Group size": ranks, "dtype": "Float", "Process Group Name": "0",
                   "Process Group Ranks": json.dumps(list(range(ranks))), "Seq": step})
            put(rank, "user_annotation", "forward", 100 + rank, forward[0], forward[1] - forward[0])
            put(rank, "cuda_runtime", "cudaStreamSynchronize", 100 + rank, host + 20, end - host - 10)
            put(rank, "user_annotation", "backward", 100 + rank, backward_at, end + 20 - backward_at)
            put(rank, "user_annotation", "optimizer", 100 + rank, end + 40, 500)
            put(rank, "user_annotation", f"ProfilerStep#{step}", 100 + rank, at, end + 600 - at)
            done[rank].append(("0x1a", "world", list(range(ranks)), "AllReduce", step + 1, 4 << 20, come, end))
            begin[rank] = end + 620
    for rank in range(ranks):
        documents.append({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
                          "deviceProperties": [{"id": 0, "name": "H100", "numSms": 132}], "traceEvents": events[rank]})
    return documents, done


def check_equal_backwards(tool, folder):
    """The backwards are equally long and the culprit is named: by traces, by the inspector's files, by both together."""
    for late in (1, 2):
        documents, done = make_ddp(late)
        lengths = [sorted({e["dur"] for e in d["traceEvents"] if e["name"] == "backward"}) for d in documents]
        expect(max(map(max, lengths)) - min(map(min, lengths)) < 2000, "the backwards are not equal")
        for what in ("traces", "inspector", "both"):
            path = os.path.join(folder, f"equal{late}{what}")
            os.makedirs(path)
            if what != "inspector":
                for rank, document in enumerate(documents):
                    with open(os.path.join(path, f"rank{rank}.pt.trace.json"), "w", encoding="utf-8") as file:
                        json.dump(document, file)
            if what != "traces":
                write_job(path, done, late == 1)
            report = tool.report(path)
            made = max(report["ranks"], key=lambda r: r["waits"]["made_wait_ns"])
            expect(made["rank"] == late and made["waits"]["matched"] == 8, f"{what}: rank {made['rank']}, {made['waits']}")
            page = " ".join(tool.run("tacho-analyze", path).stdout.decode().split())
            verdict = page[:page.find("GPU TIME")] if "GPU TIME" in page else page[:1500]
            expect("4 of 4 ranks" in page, f"{what}: ranks are counted twice: {page[:300]}")
            expect(f"rank {late}" in verdict, f"late rank {late}, {what}: the first page says {verdict[:700]}")


def write_silent_traces(folder, done, first, end, generic):
    """Traces of the collectives `first` to `end` of each rank, whose kernels say neither communicator nor size; the times are a
    little off what the plugin measured. One in nine was too small for the plugin. What each rank then has, by communicator."""
    rng, told = random.Random(end), []
    for rank, rows in enumerate(done):
        events, kept = [], {}
        for at, (group, _, members, operation, _, size, begin, stop) in enumerate(rows[first:end]):
            name = "ncclDevKernel_Generic_1" if generic else f"ncclDevKernel_{operation}_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
            size *= 1 if operation == "AllReduce" else len(members)
            key = ("", "other" if generic else OPERATIONS[operation], None) if at % 9 == 5 else (group, OPERATIONS[operation], size)
            dur = rng.randrange(15, 40) if at % 9 == 5 else stop - begin + rng.randrange(-2, 3)
            kept.setdefault(key, []).append(dur * 1000)
            stream = 20 + int(group, 16) % 16
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": begin, "dur": dur,
                           "args": {"device": 0, "stream": stream, "correlation": at + 1}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 77, "tid": 77, "ts": begin - 9,
                           "dur": 5, "args": {"correlation": at + 1}})
        told.append(kept)
        with open(os.path.join(folder, f"rank{rank}.pt.trace.json"), "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": len(done)},
                       "deviceProperties": [{"id": 0, "name": "H100"}], "traceEvents": events}, file)
    return told


OPERATIONS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}


def check_joined(tool, folder):
    """Traces that say nothing of their collectives get it from the inspector's files of the same ranks: in one run, in partial
    results of any grouping, whether the files have times or not. What is ambiguous stays unknown."""
    for seed, verbose, generic in ((1, True, False), (2, False, False), (3, False, True)):
        path = os.path.join(folder, f"joined{seed}")
        done = make_job(seed, 4, 40)
        drop = {(rank, row[0], row[4]) for rank, rows in enumerate(done) for at, row in enumerate(rows[30:60]) if at % 9 == 5}
        write_job(path, done, verbose, drop)
        files = sorted(os.path.join(path, name) for name in os.listdir(path))
        told = write_silent_traces(path, done, 30, 60, generic)
        traces = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".json"))
        alone = json.loads(tool.run("tacho-analyze", *traces, "-f", "json", "-r", "summary,comm").stdout)
        report = tool.report(path)
        expect(len(report["ranks"]) == 4, f"{len(report['ranks'])} ranks of 4")
        expect({one["format"] for one in report["inputs"]} == {"Kineto JSON"}, f"inputs {report['inputs']}")
        for rank, before in zip(report["ranks"], alone["ranks"]):
            got = {((row["group"] or "").split(" ")[-1], row["operation"], row["size_bytes"]):
                   (row["count"], row["total_ns"], row["min_ns"], row["max_ns"]) for row in rank["comm"]}
            want = {key: (len(all_ns), sum(all_ns), min(all_ns), max(all_ns)) for key, all_ns in told[rank["rank"]].items()}
            expect(got == want, f"job {seed}, rank {rank['rank']}: {sorted(got.items(), key=str)[:4]}, by hand {sorted(want.items(), key=str)[:4]}")
            for figure in ("exposed_ns", "hidden_ns", "count"):
                sums = [sum(row[figure] for row in of["comm"]) for of in (rank, before)]
                expect(sums[0] == sums[1], f"job {seed}: {figure} {sums}")
            for gpu, gpu_before in zip(rank["gpus"], before["gpus"]):
                for figure in ("span_ns", "compute_ns", "exposed_comm_ns", "idle_ns"):
                    expect(gpu[figure] == gpu_before[figure], f"{figure} is another with the inspector's files")
            expect(rank["waits"]["matched"] > 20 and before["waits"]["matched"] < rank["waits"]["matched"], f"{rank['waits']}")
            expect(all(row["algorithm_gb_per_s"] for row in rank["comm"] if row["group"]), "no bandwidth")
        for shares in ([traces, files], [files, traces], [[path] for path in files + traces], [traces[:2] + files[2:], traces[2:] + files[:2]]):
            parts = []
            for number, share in enumerate(shares):
                parts.append(os.path.join(folder, f"part{number}"))
                expect(not tool.run("tacho-analyze", *share, "--partial", parts[-1]).returncode, "a partial result")
            merged = tool.run("tacho-analyze", "--merge", *parts, "-f", "json", "-r", "summary,comm,ranks,check")
            expect(json.loads(merged.stdout)["ranks"] == report["ranks"], f"job {seed}: merged results differ {merged.stderr[:200]}")
    path = os.path.join(folder, "ambiguous")
    done = [[row[:6] + (EPOCH_US + 1000 * at, EPOCH_US + 1000 * at + 300) for at, row in enumerate(rows)] for rows in make_job(4, 2, 40)]
    write_job(path, done, False)
    write_silent_traces(path, [[row[:3] + ("AllReduce",) + row[4:] for row in rows] for rows in done], 30, 60, True)
    report = tool.report(path)
    expect(all(not row["group"] for rank in report["ranks"] for row in rank["comm"]), "of equal times one was chosen")


def check_point(tool, folder):
    path = os.path.join(folder, "point")
    os.makedirs(path)
    with open(os.path.join(path, "node0-pid1.log"), "w", encoding="utf-8") as file:
        for number, kind in enumerate(("Send", "Recv", "Send")):
            file.write(json.dumps({
                "header": {"id": "0x7", "comm_name": "unknown", "rank": 0, "n_ranks": 2, "nnodes": 1},
                "metadata": {"dump_timestamp_us": EPOCH_US + number, "hostname": "node0", "pid": 1},
                "p2p_perf": {"p2p": kind, "p2p_sn": number, "p2p_peer": 1, "p2p_msg_size_bytes": 9000,
                             "p2p_exec_time_us": 20}}) + "\n")
    text = tool.run("tacho-convert", path, "-t", "text", "--args", "full").stdout.decode()
    expect(text.count("ncclDevKernel_Send") == 2 and text.count("ncclDevKernel_Recv") == 1, text[-400:])
    expect("src_rank=0 dst_rank=1" in text and "src_rank=1 dst_rank=0" in text, text[-400:])


def check_damage(tool, folder):
    path = os.path.join(folder, "node0-pid77.log")
    write_job(os.path.join(folder, "whole"), make_job(3, 2, 4), True)
    with open(os.path.join(folder, "whole", "node0-pid1000.log"), "rb") as file:
        whole = file.read()
    lines, rng = whole.count(b"\n"), random.Random(8)
    for end in sorted({*range(0, 900), *(rng.randrange(len(whole)) for _ in range(100))}):
        with open(path, "wb") as file:
            file.write(whole[:end])
        done = tool.run("tacho-convert", path, "-t", "text")
        kernels = done.stdout.count(b" kernel ")
        ended = whole[:end].count(b"\n")
        # the last line may be whole without its newline
        expect(kernels in (ended, ended + 1) and (done.returncode == 0) == (kernels > 0 and whole[:end][-2:-1] != b"")
               or done.returncode in (2, 4), f"cut at {end}: {kernels} of {ended}, exit {done.returncode}")
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(len(whole) // 100):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        with open(path, "wb") as file:
            file.write(damaged)
        done = tool.run("tacho-convert", path, "-t", "text")
        expect(done.returncode in (0, 2, 4) and done.stderr.count(b"\n") <= 2,
               f"damage: exit {done.returncode} {done.stderr[:200]}")
    for key, values in {"coll_sn": (-1, 1e300, "x", None), "coll_exec_time_us": (-5, 1e300, [], None),
                        "coll_msg_size_bytes": (-1, 1e300), "coll": (7, "", "Other" * 90)}.items():
        for value in values:
            rows = [json.loads(line) for line in whole.splitlines()]
            rows[2]["coll_perf"][key] = value
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            done = tool.run("tacho-convert", path, "-t", "text")
            expect(done.stdout.count(b" kernel ") >= lines - 1 and done.returncode in (0, 4), f"{key} {value}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    tool = Tool(os.path.abspath(parser.parse_args().bin))
    with tempfile.TemporaryDirectory() as folder:
        check_waits(tool, folder)
        check_late(tool, folder)
        check_equal_backwards(tool, folder)
        check_joined(tool, folder)
        check_point(tool, folder)
        check_damage(tool, folder)
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
