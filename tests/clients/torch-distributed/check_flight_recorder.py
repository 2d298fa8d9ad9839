#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--report hang` beside PyTorch's own reader of Flight Recorder dumps, torchfrtrace.

    check_flight_recorder.py --bin DIR

The dumps are those of three processes of gloo that hang in a known way, and, as there is no GPU here, those of NCCL that
tests/oracle/check_hang.py makes. torchfrtrace wants all ranks, the ranks of each group, which dumps of gloo do not have, and
names of NCCL's: a copy for it says them.
"""
import argparse
import contextlib
import io
import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle"))

import check_hang       # noqa: E402
from check_hang import expect, ranks_of    # noqa: E402

RANKS, DONE, PREFIX = 3, 5, "comm_lib_trace_rank_"
GROUPS = {"0": ("default_pg", list(range(RANKS))), "1": ("undefined", [0, 1])}


# ---- a job of gloo ------------------------------------------------------------------------------

def run_rank(how, rank, folder):
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    pair = dist.new_group([0, 1])
    for step in range(DONE):
        dist.all_reduce(torch.ones(8 + step))
        if rank in (0, 1):
            dist.all_gather([torch.zeros(4), torch.zeros(4)], torch.ones(4), group=pair)
    is_late = how != "done" and rank == 1

    def last():
        if is_late and how == "other operation":
            dist.broadcast(torch.ones(64), 0)
        elif not is_late and how != "done":
            dist.all_reduce(torch.ones(64))

    def entries():
        return [e for e in pickle.loads(_dump_fr_trace())["entries"] if e["process_group"][0] == "0"]

    threading.Thread(target=last, daemon=True).start()
    while len(entries()) < DONE + (how != "done" and not (is_late and how == "never came")):
        time.sleep(0.1)
    for form, text in (("pickle", _dump_fr_trace()), ("json", _dump_fr_trace_json())):
        path = os.path.join(folder, form, PREFIX + str(rank))
        with open(path + ".part", "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.rename(path + ".part", path)
    # What a rank has open would end with an error once another one is gone.
    while not all(os.path.exists(os.path.join(folder, "json", PREFIX + str(r))) for r in range(RANKS)):
        time.sleep(0.1)
    os._exit(0)


def run_job(how, folder):
    for form in ("pickle", "json"):
        os.makedirs(os.path.join(folder, form))
    env = dict(os.environ, TORCH_FR_BUFFER_SIZE="2000", OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen([sys.executable, __file__, "--bin", "", "--job", how, str(rank), folder], env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for rank in range(RANKS)]
    said = [rank.communicate()[1].decode() for rank in ranks]
    expect(all(rank.returncode == 0 for rank in ranks), f"gloo, {how}: {said}")


# ---- both readers -------------------------------------------------------------------------------

def of_torch(folder):
    """Of the group of all ranks: its first collective that has not ended well, and the last before that."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir

    args = JobConfig().parse_args([folder, "-p", PREFIX])
    with contextlib.redirect_stdout(io.StringIO()):
        details, version = read_dir(args)
        database = build_db(details, args, version)
    last = None
    for c in sorted(database.collectives, key=lambda c: c.collective_seq_id):
        if c.pg_desc != "0:default_pg":
            continue
        if not c.pass_check or c.missing_ranks or c.collective_state == "started":
            return c, last
        last = c.collective_seq_id
    return None, last


def compare(rows, folder, label):
    c, last = of_torch(folder)
    rows = [row for row in rows if row["group"].startswith("0 ") or row["group"] == "0"]
    expect(bool(rows) == bool(c), f"{label}: {rows} beside {c}")
    if not rows or not c:
        return last
    row = rows[0]
    expect((row["seq"], row["completed_by_all"]) == (c.collective_seq_id, last),
           f"{label}: {row} beside {c.collective_seq_id} after {last}")
    expect(ranks_of(row["never_came"]) == (c.missing_ranks or set()), f"{label}: {row} beside missing {c.missing_ranks}")
    # It compares with the rank that it reads first: those that differ are the others where that one is odd.
    unlike = set(c.mismatch_collectives or ())
    odd = unlike if 2 * len(unlike) <= len(c.expected_ranks) else c.expected_ranks - unlike
    states = {mismatch.type_of_mismatch.state.name for mismatch in (c.mismatch_collectives or {}).values()}
    is_late = states == {"COLLECTIVE_STATE_MISMATCH"}
    expect(ranks_of(row["not_started"]) == (odd if is_late else set()), f"{label}: {row} beside {states} of {odd}")
    expect(bool(row["mismatch"]) == bool(states and not is_late), f"{label}: {row} beside {states} of {odd}")
    if row["mismatch"]:
        for rank in odd:
            expect(f"on rank {rank}," in row["mismatch"], f"{label}: {row['mismatch']} beside {odd}")
    return last


def check_gloo(tool, folder):
    for how in ("never came", "other operation", "done"):
        path = os.path.join(folder, how.replace(" ", "-"))
        run_job(how, path)
        config = {name: {"name": name, "desc": about, "ranks": json.dumps(ranks)} for name, (about, ranks) in GROUPS.items()}
        os.makedirs(os.path.join(path, "said"))
        for rank in range(RANKS):
            with open(os.path.join(path, "pickle", PREFIX + str(rank)), "rb") as file:
                dump = pickle.load(file)
            dump["pg_config"] = {name: of for name, of in config.items() if rank in json.loads(of["ranks"])}
            for entry in dump["entries"]:
                entry["profiling_name"] = entry["profiling_name"].replace("gloo:", "nccl:")
            with open(os.path.join(path, "said", PREFIX + str(rank)), "wb") as file:
                pickle.dump(dump, file)
        for form in ("pickle", "json"):
            rows = tool.hang(os.path.join(path, form))
            last = compare(rows, os.path.join(path, "said"), f"gloo, {how}, {form}")
            expect(last == DONE, f"gloo, {how}: torchfrtrace ends at {last}")
            expect(bool(rows) == (how != "done"), f"gloo, {how}, {form}: {rows}")
            expect(how != "never came" or ranks_of(rows[0]["never_came"]) == {1}, f"gloo, {how}, {form}: {rows}")


def check_nccl(tool, folder):
    for seed, how in enumerate(("never came", "mismatch", "other operation", "other type", "not started", "all wait") * 4):
        path = os.path.join(folder, f"nccl{seed}")
        dumps, truth = check_hang.make_job(seed, how, (4, 8, 16)[seed % 3], rings=(1000,))
        check_hang.write_job(path, dumps, ("protocol 2", "protocol 4")[seed % 2])
        last = compare(tool.hang(path), path, f"{seed}: {how}")
        expect(last == truth["done"], f"{seed}: {how}: torchfrtrace ends at {last}, not {truth['done']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--job", nargs=3)
    args = parser.parse_args()
    if args.job:
        return run_rank(args.job[0], int(args.job[1]), args.job[2])
    logging.disable(logging.ERROR)  # torchfrtrace prints each collective that has errors
    tool = check_hang.Tool(os.path.abspath(args.bin))
    with tempfile.TemporaryDirectory() as folder:
        check_nccl(tool, folder)
        check_gloo(tool, folder)
    print(f"{check_hang.good} passed, {check_hang.bad} failed")
    return check_hang.bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
