#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps of PyTorch's Flight Recorder: who hung, against jobs that were made to hang in a known way.

    check_hang.py --bin DIR

A PyTorch that dumps is not at hand, so dump() writes the dictionary of FlightRecorderDetail.hpp (2.x)
by Python's pickle module, by hand as PyTorch's C++ writer does (protocol 2, lists with their types),
and as JSON.
"""
import argparse
import json
import os
import pickle
import random
import struct
import subprocess
import tempfile

import snapshots

EPOCH_NS = 1_760_000_000_000_000_000
STATES = ("scheduled", "started", "completed")
bad = good = 0


def expect(holds, what):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print("not ok - " + what)


# ---- writers ------------------------------------------------------------------------------------

def torch_pickle(value):
    """As torch::jit's Pickler: no memo, 64-bit numbers as LONG1, lists of numbers and of texts typed."""
    out = bytearray(b"\x80\x02")

    def put(v):
        if v is None:
            out.extend(b"N")
        elif isinstance(v, bool):
            out.extend(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            if -2**31 <= v < 2**31:
                out.extend(b"J" + struct.pack("<i", v))
            else:
                out.extend(b"\x8a\x08" + struct.pack("<q", v))
        elif isinstance(v, float):
            out.extend(b"G" + struct.pack(">d", v))
        elif isinstance(v, str):
            out.extend(b"X" + struct.pack("<I", len(v.encode())) + v.encode())
        elif isinstance(v, tuple):
            out.extend(b"(")
            for item in v:
                put(item)
            out.extend(b"t")
        elif isinstance(v, list) and v and all(type(i) is int for i in v):
            out.extend(b"ctorch.jit._pickle\nbuild_intlist\n(](")
            for item in v:
                put(item)
            out.extend(b"etR")
        elif isinstance(v, list):
            out.extend(b"ctorch.jit._pickle\nrestore_type_tag\n(](")
            for item in v:
                put(item)
            out.extend(b"eX\x09\x00\x00\x00List[Any]tR")
        else:
            out.extend(b"}(")
            for key, item in v.items():
                put(key)
                put(item)
            out.extend(b"u")
    put(value)
    return bytes(out + b".")


WRITERS = {
    "protocol 2": lambda d: pickle.dumps(d, protocol=2),
    "protocol 4": lambda d: pickle.dumps(d, protocol=4),
    "PyTorch's": torch_pickle,
    "JSON": lambda d: json.dumps(d).encode(),
}


def make_dump(rank, groups, calls, frames=True):
    """groups: name -> (description, ranks); calls: (group, seq, operation, sizes, type, state, created_ns)."""
    entries = []
    for number, (group, seq, operation, sizes, kind, state, created) in enumerate(calls):
        gathered = [[len(groups[group][1]), *size] for size in sizes]
        entries.append({
            "record_id": number, "pg_id": int(group), "process_group": (group, groups[group][0]),
            "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": number, "profiling_name": "nccl:" + operation,
            "time_created_ns": created, "input_sizes": sizes, "input_dtypes": [kind],
            "output_sizes": gathered if operation == "all_gather" else sizes,
            "output_dtypes": [kind], "state": state,
            "time_discovered_started_ns": created + 1000 if state != "scheduled" else None,
            "time_discovered_completed_ns": created + 9000 if state == "completed" else None,
            "retired": state == "completed", "timeout_ms": 600000, "is_p2p": False,
            **({"frames": [{"name": "all_reduce", "filename": "/x/torch/distributed/c10d.py", "line": 1},
                           {"name": f"step_of_{rank}", "filename": "/home/me/train.py", "line": 91}]}
               if frames else {})})
    return {"version": "2.10", "pg_config": {
                name: {"name": name, "desc": about, "ranks": json.dumps(ranks)}
                for name, (about, ranks) in groups.items()},
            "pg_status": {}, "nccl_version": "2.27", "entries": entries}


def write_job(folder, dumps, writer, suffix=""):
    os.makedirs(folder, exist_ok=True)
    for rank, dump in dumps.items():
        with open(os.path.join(folder, f"comm_lib_trace_rank_{suffix}{rank}"), "wb") as file:
            file.write(WRITERS[writer](dump))


# ---- jobs that hang -----------------------------------------------------------------------------

def make_job(seed, how, ranks=8, rings=(40, 1000)):
    """A job in which all ranks do `done` collectives, then hang in the way `how`; and what is true."""
    rng = random.Random(seed)
    groups = {"0": ("default_pg", list(range(ranks)))}
    for i in range(ranks // 2):
        groups[str(1 + i)] = ("tp", [2 * i, 2 * i + 1])
    done, first = rng.randrange(5, 200), rng.randrange(1, 1000)
    late = rng.randrange(ranks)
    calls, at = {r: [] for r in range(ranks)}, EPOCH_NS
    for seq in range(first, first + done):
        at += 1_000_000
        for r in range(ranks):
            calls[r].append(("0", seq, "all_reduce", [[seq, 8]], "Float", "completed", at + r * 1000))
            calls[r].append((str(1 + r // 2), seq, "all_gather", [[4]], "BFloat16", "completed", at + 300_000))
    hangs, at = first + done, at + 2_000_000
    truth = {"group": "0", "seq": hangs, "done": hangs - 1, "late": late, "waiting": set(range(ranks))}
    gone = set()
    for r in range(ranks):
        row = ("0", hangs, "all_reduce", [[64]], "Float", "started", at + r * 1000)
        if how == "never came" and r == late:
            truth["waiting"].discard(r)
            continue
        if how == "no dump" and r == late:
            truth["waiting"].discard(r)
            gone.add(r)
        if how == "mismatch" and r == late:
            row = ("0", hangs, "all_reduce", [[63]], "Float", "started", at)
        if how == "other operation" and r == late:
            row = ("0", hangs, "broadcast", [[64]], "Float", "started", at)
        if how == "other type" and r == late:
            row = ("0", hangs, "all_reduce", [[64]], "Half", "started", at)
        if how == "not started" and r == late:
            row = row[:5] + ("scheduled",) + row[6:]
        calls[r].append(row)
        calls[r].append(("0", hangs + 1, "all_gather", [[1]], "Float", "scheduled", at + 500_000 + r))
    rng.shuffle(order := list(range(ranks)))
    dumps = {r: make_dump(r, groups, calls[r][-rng.choice(rings):], seed % 2 == 0)
             for r in order if r not in gone}
    return dumps, truth


def ranks_of(text):
    out = set()
    for part in (text or "").split(", "):
        if "-" in part:
            low, high = part.split("-")
            out |= set(range(int(low), int(high) + 1))
        elif part:
            out.add(int(part))
    return out


class Tool:
    def __init__(self, binaries):
        self.binaries = binaries

    def run(self, name, *words):
        return subprocess.run([os.path.join(self.binaries, name), *words, "-q"], capture_output=True)

    def hang(self, path):
        done = self.run("tacho-analyze", path, "-f", "json", "-r", "hang")
        expect(done.returncode == 0, f"{path}: {done.stderr.decode()[:300]}")
        return json.loads(done.stdout)["hang"] if done.stdout else []


def check_jobs(tool, folder):
    kinds = ("never came", "no dump", "mismatch", "other operation", "other type", "not started", "all wait")
    for seed, how in enumerate(kinds * 4):
        path = os.path.join(folder, f"job{seed}")
        dumps, truth = make_job(seed, how, ranks=random.Random(seed).choice((2, 4, 8, 16)))
        writer = list(WRITERS)[seed % len(WRITERS)]
        write_job(path, dumps, writer, random.Random(seed).choice(("", "node3_")))
        rows = tool.hang(path)
        label = f"{how}, {len(dumps)} dumps, {writer}"
        if not rows:
            expect(False, f"{label}: nothing hangs")
            continue
        row = rows[0]
        expect(row["group"].startswith("0 [0, 1") and row["description"] == "default_pg", f"{label}: {row}")
        expect((row["seq"], row["completed_by_all"]) == (truth["seq"], truth["done"]), f"{label}: {row}")
        expect(ranks_of(row["waiting"]) == truth["waiting"], f"{label}: {row['waiting']} wait")
        late = {truth["late"]}
        expect(ranks_of(row["never_came"]) == (late if how == "never came" else set()), f"{label}: {row}")
        expect(ranks_of(row["no_dump"]) == (late if how == "no dump" else set()), f"{label}: {row}")
        expect(ranks_of(row["not_started"]) == (late if how == "not started" else set()), f"{label}: {row}")
        is_unlike = how in ("mismatch", "other operation", "other type")
        expect(bool(row["mismatch"]) == is_unlike, f"{label}: {row}")
        if is_unlike and len(dumps) > 2:
            expect(f"on rank {truth['late']}," in row["mismatch"], f"{label}: {row['mismatch']}")
        if how != "all wait" and len(dumps) > 2:
            expect(f"rank {truth['late']} " in row["sentence"], f"{label}: {row['sentence']}")
        if how == "never came":
            expect(row["gap_ns"] > 1_000_000, f"{label}: gap {row['gap_ns']}")
            if seed % 2 == 0:
                expect(row["where"] == f"train.py:91 step_of_{truth['late']}", f"{label}: {row['where']}")
        page = tool.run("tacho-analyze", path).stdout.decode()
        expect("HANG" in page and f"number {truth['seq']}" in page or str(truth["seq"]) in page,
               f"{label}: not on the page: {page[:300]}")


def as_gloo(dump, is_json):
    """As PyTorch 2.9 dumps a group of gloo (looked at in dumps of a real job): the state of an entry remains "scheduled", what
    is done is retired, the list of groups is bare, what the group completed last is late by one; in JSON it is a text."""
    last = {}
    for entry in dump["entries"]:
        if entry["retired"]:
            last[str(entry["pg_id"])] = entry["collective_seq_id"] - 1
        entry.update(profiling_name=entry["profiling_name"].replace("nccl:", "gloo:"), state="scheduled", thread_id="140216310496128",
                     time_discovered_started_ns=0 if is_json else None, time_discovered_completed_ns=0 if is_json else None)
    dump["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[]"}}
    dump["pg_status"] = {group: {f"last_{word}_collective": str(seq) if is_json else seq for word in ("enqueued", "completed")}
                         for group, seq in last.items()}
    return dump


def check_gloo(tool, folder):
    """Ranks are those that have dumps; files are named as the job wants, without a word that we know."""
    for seed, how in enumerate(("never came", "other operation", "all wait", "never came")):
        path = os.path.join(folder, f"gloo{seed}")
        dumps, truth = make_job(seed, how, ranks=4)
        os.makedirs(path)
        for rank, dump in dumps.items():
            with open(os.path.join(path, ("trace_", "")[seed % 2] + str(rank)), "wb") as file:
                file.write(WRITERS["JSON" if seed % 2 else "protocol 2"](as_gloo(dump, seed % 2 == 1)))
        rows = [row for row in tool.hang(path) if row["group"] == truth["group"]]
        expect(len(rows) == 1 and (rows[0]["seq"], rows[0]["completed_by_all"]) == (truth["seq"], truth["done"]), f"gloo, {how}: {rows}")
        expect(len(rows) == 1 and ranks_of(rows[0]["waiting"]) == truth["waiting"], f"gloo, {how}: {rows}")
        if how == "never came":
            expect(len(rows) == 1 and ranks_of(rows[0]["never_came"]) == {truth["late"]}, f"gloo, {how}: {rows}")
    # The rank that failed left no dump, and what the others do ended with an error, which looks as if it were done. (An allreduce of another
    # size, PyTorch 2.9; who is not in the group that was made last has the job's ranks under no name.)
    for form in ("JSON", "protocol 2"):
        path = os.path.join(folder, "died" + form)
        dumps, truth = make_job(1, "all wait", ranks=4)
        del dumps[2]
        for dump in dumps.values():
            for entry in dump["entries"]:
                entry["retired"] = True
            as_gloo(dump, form == "JSON")
        dumps[3]["pg_config"][""]["ranks"] = "[0, 1, 2, 3]"
        write_job(path, dumps, form)
        rows, page = tool.hang(path), tool.run("tacho-analyze", path).stdout.decode()
        expect(len(rows) == 1 and (rows[0]["seq"], rows[0]["no_dump"], rows[0]["waiting"]) == (truth["seq"] + 1, "2", None), f"gloo, died: {rows}")
        expect("NO DUMP" in page and "rank 2 left no dump and may have died" in page.replace("\n              ", " ") and "HANG" not in page, f"gloo, died: {page[:400]}")
    # An entry of NCCL that was retired before it began may have been aborted; what its group completed is not.
    groups, open_row = {"0": ("default_pg", [0, 1])}, ("0", 7, "all_reduce", [[4]], "Float", "scheduled", EPOCH_NS)
    for last, is_open in ((6, True), (7, False), ("6", True), ("7", False)):
        path = os.path.join(folder, f"retired{last}{type(last).__name__}")
        dumps = {r: make_dump(r, groups, [open_row]) for r in (0, 1)}
        for dump in dumps.values():
            dump["entries"][0]["retired"] = True
            dump["pg_status"] = {"0": {"last_completed_collective": last}}
        write_job(path, dumps, "JSON")
        expect(bool(tool.hang(path)) == is_open, f"retired by NCCL, last completed {last!r}")


def check_whole(tool, folder):
    """Nothing hangs where all is done."""
    groups = {"0": ("default_pg", [0, 1])}
    rows = [("0", seq, "all_reduce", [[4]], "Float", "completed", EPOCH_NS + seq) for seq in range(9)]
    path = os.path.join(folder, "whole")
    write_job(path, {r: make_dump(r, groups, rows) for r in (0, 1)}, "protocol 4")
    expect(tool.hang(path) == [], "a job that is done does not hang")
    one = os.path.join(path, "comm_lib_trace_rank_1")  # NCCL completes what all took part in: the others' files are just not here
    page = tool.run("tacho-analyze", one).stdout.decode()
    expect(tool.hang(one) == [] and "NO DUMP" not in page and "HANG" not in page, f"one dump of a job that is done: {page[:400]}")
    text = tool.run("tacho-convert", path, "-t", "text", "--args", "full").stdout.decode()
    expect(text.count("nccl:all_reduce") == 18 and "where=\"train.py:91 step_of_1\"" in text, text[:400])


def check_many(tool, folder):
    """1,024 ranks, of which one never came."""
    dumps, truth = make_job(5, "never came", ranks=1024)
    path = os.path.join(folder, "many")
    write_job(path, dumps, "protocol 4")
    row = tool.hang(path)[0]
    expect(ranks_of(row["never_came"]) == {truth["late"]}, f"of 1,024: {row['never_came']}")


def check_hostile(tool, folder):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {folder}/owned",)

    path = os.path.join(folder, "x_trace_rank_0")
    whole = WRITERS["protocol 4"](make_job(3, "mismatch", 4)[0][0])
    rng = random.Random(1)
    cuts = [pickle.dumps({"entries": [Evil()], "collective_seq_id": 1}, protocol=p) for p in (2, 4)]
    cuts += [whole[:end] for end in list(range(300)) + [rng.randrange(len(whole)) for _ in range(100)]]
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(len(whole) // 100):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        cuts.append(bytes(damaged))
    for data in cuts:
        with open(path, "wb") as file:
            file.write(data)
        done = tool.run("tacho-analyze", path, "-r", "hang")
        lines = done.stderr.decode(errors="replace").splitlines()
        expect(done.returncode in (0, 2, 4) and len(lines) <= 2, f"{data[:20]!r}: {done.returncode} {lines}")
        expect(done.returncode == 0 or "x_trace_rank_0" in "".join(lines), f"{lines}")
    with open(path, "wb") as file:
        file.write(cuts[0])
    said = tool.run("tacho-analyze", path).stderr.decode()
    expect("posix.system" in said or "os.system" in said, said)
    expect(not os.path.exists(os.path.join(folder, "owned")), "something was run")


def check_fields(tool, folder):
    path = os.path.join(folder, "y_trace_rank_0")
    for at, value, document in snapshots.odd_documents(make_job(1, "never came", 4)[0][0]):
        with open(path, "wb") as file:
            file.write(WRITERS["protocol 4"](document))
        done = tool.run("tacho-analyze", path, "-r", "hang")
        said = done.stderr.decode(errors="replace")
        expect(done.returncode == 0 or (done.returncode == 4 and "without entries" in said), f"{at} is {value}: {done.returncode} {said[:200]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    tool = Tool(os.path.abspath(parser.parse_args().bin))
    with tempfile.TemporaryDirectory() as folder:
        check_jobs(tool, folder)
        check_whole(tool, folder)
        check_gloo(tool, folder)
        check_many(tool, folder)
        check_hostile(tool, folder)
        check_fields(tool, folder)
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
