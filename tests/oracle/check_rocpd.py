#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Databases of rocpd and JSON, both of ROCm's rocprofv3, against the jobs that they were made of.

    check_rocpd.py --bin DIR

No database of a real run is at hand, so write_database() makes them after the published schema of
versions 3.0.0 to 3.0.5 (rocpd_tables.sql) and the order in which generateRocpd.cpp fills it: ids per
process, joins by (id, guid), calls and GPU work that share a stack id, grids in work-items. The same
job is written as rocprofv3's JSON, after what generateJSON.cpp and serialization.hpp write, and as
Kineto's, and the reports of all have to agree.  A JSON of a real run, where there is one, is read by plain
Python beside.
"""
import argparse
import collections
import gzip
import json
import os
import random
import re
import sqlite3
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "hunter2-of-the-environment"
VERSIONS = ("3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.5")
bad = good = 0


def expect(holds, what):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print("not ok - " + what)


TABLES = {
    "metadata": "id INTEGER PRIMARY KEY, tag TEXT, value TEXT",
    "string": "id INTEGER PRIMARY KEY, guid TEXT, string TEXT",
    "info_node": "id INTEGER PRIMARY KEY, guid TEXT, hash BIGINT, machine_id TEXT, system_name TEXT, hostname TEXT",
    "info_process": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, ppid INTEGER, pid INTEGER, init BIGINT,"
                    "fini BIGINT, start BIGINT, end BIGINT, command TEXT, environment JSONB, extdata JSONB",
    "info_thread": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, ppid INTEGER, pid INTEGER, tid INTEGER, name TEXT",
    "info_agent": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER,"
                  "logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT,"
                  "vendor_name TEXT, product_name TEXT, user_name TEXT, extdata JSONB",
    "info_kernel_symbol": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, code_object_id INTEGER,"
                          "kernel_name TEXT, display_name TEXT, group_segment_size INTEGER, arch_vgpr_count INTEGER",
    "info_pmc": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, agent_id INTEGER, name TEXT",
    "track": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, name_id INTEGER",
    "event": "id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER,"
             "correlation_id INTEGER, call_stack JSONB, line_info JSONB, extdata JSONB",
    "region": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT,"
              "name_id INTEGER, event_id INTEGER, extdata JSONB",
    "sample": "id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, timestamp BIGINT, event_id INTEGER",
    "kernel_dispatch": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER,"
                       "kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT,"
                       "end BIGINT, private_segment_size INTEGER, group_segment_size INTEGER,"
                       "workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER,"
                       "grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, region_name_id INTEGER,"
                       "event_id INTEGER, extdata JSONB",
    "memory_copy": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT,"
                   "end BIGINT, name_id INTEGER, dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER,"
                   "src_address INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER",
    "memory_allocate": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER,"
                       "type TEXT, level TEXT, start BIGINT, end BIGINT, address INTEGER, size INTEGER,"
                       "queue_id INTEGER, stream_id INTEGER, event_id INTEGER",
    "pmc_event": "id INTEGER PRIMARY KEY, guid TEXT, event_id INTEGER, pmc_id INTEGER, value REAL",
}
GPUS = {4: 0, 5: 1}  # agents: 0 is a processor


def make_job(seed, steps=6):
    """Ranges, calls and GPU work of one process, times in ns since the machine started."""
    rng, at, stack, rows = random.Random(seed), 9_000_000_000_000_000 + seed, 0, []
    busy = {gpu: at for gpu in GPUS}
    for step in range(steps):
        step_begin = at
        for _ in range(rng.randrange(4, 9)):
            stack += 1
            gpu, call, length = rng.choice(list(GPUS)), at + rng.randrange(500, 9000), rng.randrange(800, 4000)
            begin = max(call + rng.randrange(300, 5000), busy[gpu])
            end = begin + rng.randrange(1000, 90_000)
            busy[gpu] = end
            kind = rng.choice(("kernel", "kernel", "kernel", "HtoD", "DtoH", "DtoD", "PtoP"))
            rows.append({"kind": kind, "gpu": gpu, "stack": stack, "call": (call, call + length),
                         "work": (begin, end), "name": rng.choice(("gemm_a(float*)", "norm<4>", "relu")),
                         "bytes": rng.randrange(1, 1 << 20), "stream": rng.choice((0, 3)) if gpu == 4 else 0,
                         "grid": [rng.randrange(1, 2000) for _ in range(3)],
                         "group": [rng.choice((1, 4, 64)) for _ in range(3)]})
            at = call + length
        if step % 2:
            rows.append({"kind": "sync", "stack": stack + 1000, "call": (at, max(busy.values()) + 500)})
            at = max(busy.values()) + 500
        at += 2000
        rows.append({"kind": "range", "name": f"ProfilerStep#{step}", "call": (step_begin, at)})
        at += 100
    return rows


def write_set(db, version, uuid, pid, rows, counters):
    guid, late = uuid.replace("_", "-"), VERSIONS.index(version)
    for name, columns in TABLES.items():
        if name == "kernel_dispatch" and late >= 2:
            columns += ", graph_exec_id INTEGER, graph_node_id INTEGER"
        if name == "memory_allocate" and late == 0:
            columns = columns.replace("queue_id INTEGER, ", "")
        db.execute(f"CREATE TABLE rocpd_{name}{uuid} ({columns})")
    if late >= 2:
        db.execute(f"CREATE TABLE rocpd_graph_launch{uuid} (id INTEGER PRIMARY KEY, guid TEXT, start BIGINT)")
        db.execute(f"INSERT INTO rocpd_graph_launch{uuid} VALUES (1, '{guid}', 5)")

    def put(table, **row):
        row = {"guid": guid, **row}
        db.execute(f"INSERT INTO rocpd_{table}{uuid} ({','.join(row)}) VALUES ({','.join('?' * len(row))})",
                   list(row.values()))
    strings = {}

    def text(value):
        if value not in strings:
            strings[value] = len(strings) + 1
            put("string", id=strings[value], string=value)
        return strings[value]

    db.execute(f"INSERT INTO rocpd_metadata{uuid} (tag, value) VALUES ('schema_version', ?)", [version])
    put("info_node", id=77, hash=1, machine_id="m", hostname="node7")
    put("info_process", id=pid, nid=77, pid=pid, command="python train.py",
        environment=json.dumps({"TOKEN": SECRET}))
    put("info_thread", id=pid + 1, nid=77, pid=pid, tid=pid + 1, name="main")
    put("info_agent", id=0, nid=77, pid=pid, type="CPU", type_index=0, name="EPYC")
    for agent, index in GPUS.items():
        put("info_agent", id=agent, nid=77, pid=pid, type="GPU", type_index=index, logical_index=agent,
            name="gfx942", product_name="AMD Instinct MI300X")
    symbols, events = {}, 0

    def event(category, stack, message=None):
        nonlocal events
        events += 1
        put("event", id=events, category_id=text(category), stack_id=stack, correlation_id=0,
            extdata=json.dumps({"message": message}) if message else "{}")
        return events

    if counters:
        put("info_pmc", id=9, nid=77, pid=pid, agent_id=4, name="SQ_WAVES")
    for number, row in enumerate(rows, 1):
        call = row["call"]
        if row["kind"] == "range":
            put("region", id=number, nid=77, pid=pid, tid=pid + 1, start=call[0], end=call[1],
                name_id=text("roctxThreadRangeA"),
                event_id=event("MARKER_CORE_RANGE_API", 90_000 + number, row["name"]))
            continue
        name = {"kernel": "hipLaunchKernel", "sync": "hipDeviceSynchronize"}.get(row["kind"], "hipMemcpyAsync")
        put("region", id=number, nid=77, pid=pid, tid=pid + 1, start=call[0], end=call[1], name_id=text(name),
            event_id=event("HIP_RUNTIME_API_EXT", row["stack"]))
        if row["kind"] == "sync":
            continue
        begin, end = row["work"]
        of = event("KERNEL_DISPATCH" if row["kind"] == "kernel" else "MEMORY_COPY", row["stack"])
        if row["kind"] == "kernel":
            if row["name"] not in symbols:
                symbols[row["name"]] = len(symbols) + 1
                put("info_kernel_symbol", id=symbols[row["name"]], nid=77, pid=pid, code_object_id=1,
                    kernel_name="_Z" + row["name"], display_name=row["name"], arch_vgpr_count=32)
            more = {"graph_exec_id": 0, "graph_node_id": 0} if late >= 2 else {}
            put("kernel_dispatch", id=number, nid=77, pid=pid, tid=pid + 1, agent_id=row["gpu"],
                kernel_id=symbols[row["name"]], dispatch_id=number, queue_id=1, stream_id=row["stream"],
                start=begin, end=end, group_segment_size=128, event_id=of,
                **{f"grid_size_{a}": g * w for a, g, w in zip("xyz", row["grid"], row["group"])},
                **{f"workgroup_size_{a}": w for a, w in zip("xyz", row["group"])}, **more)
            if counters:
                put("pmc_event", event_id=of, pmc_id=9, value=number * 0.5)
        else:
            other = {4: 5, 5: 4}[row["gpu"]]
            source, to = {"HtoD": (0, row["gpu"]), "DtoH": (row["gpu"], 0), "DtoD": (row["gpu"],) * 2,
                          "PtoP": (row["gpu"], other)}[row["kind"]]
            put("memory_copy", id=number, nid=77, pid=pid, tid=pid + 1, start=begin, end=end,
                name_id=text("MEMORY_COPY_" + row["kind"]), dst_agent_id=to, src_agent_id=source,
                size=row["bytes"], stream_id=row["stream"], event_id=of)
    begin = rows[0]["call"][0]
    for i, (what, address, size) in enumerate((("ALLOC", 1000, 4096), ("ALLOC", 9000, 100), ("FREE", 1000, 0),
                                               ("FREE", 0, 0))):
        put("memory_allocate", nid=77, pid=pid, tid=pid + 1, agent_id=4, type=what, level="REAL",
            start=begin + i, end=begin + i + 1, address=address, size=size, event_id=event("MEMORY_ALLOCATION", 0))


def write_database(path, version, jobs, counters=False):
    if os.path.exists(path):
        os.unlink(path)
    db = sqlite3.connect(path)
    for pid, rows in jobs.items():
        write_set(db, version, f"_00000{pid}_b88d_7f27", pid, rows, counters)
    for name in ("kernel_dispatch", "region"):
        db.execute(f"CREATE VIEW rocpd_{name} AS SELECT * FROM rocpd_{name}_00000{list(jobs)[0]}_b88d_7f27")
    db.commit()
    db.close()


KINDS = {"NONE": [], "HIP_RUNTIME_API_EXT": ["hipLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize"],
         "MARKER_CORE_RANGE_API": ["roctxMarkA", "roctxThreadRangeA"],
         "KERNEL_DISPATCH": ["NONE", "ENQUEUE", "COMPLETE"],
         "MEMORY_COPY": ["MEMORY_COPY_" + d for d in ("NONE", "HtoD", "DtoH", "DtoD", "PtoP")],
         "MEMORY_ALLOCATION": ["MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",
                               "MEMORY_ALLOCATION_VMEM_FREE"]}
HANDLES = {0: 37944, 4: 37946, 5: 37947}


def json_process(pid, rows, counters=False):
    """What rocprofv3 writes of one process: all texts first, then lists of records by their domains."""
    kinds = list(KINDS)

    def record(kind, operation, begin, end, stack, **more):
        return {"size": 184, "kind": kinds.index(kind), "operation": KINDS[kind].index(operation),
                "thread_id": pid + 1, "correlation_id": {"internal": stack, "external": 0},
                "start_timestamp": begin, "end_timestamp": end, **more}

    def handle(value):
        return {"handle": value}

    def xyz(values):
        return dict(zip("xyz", values))
    symbols, markers, collected = {}, [], []
    domains = {name: [] for name in ("kernel_dispatch", "hip_api", "hsa_api", "marker_api", "rccl_api",
                                     "memory_copy", "memory_allocation", "scratch_memory", "rocdecode_api")}
    for number, row in enumerate(rows, 1):
        call = row["call"]
        if row["kind"] == "range":
            domains["marker_api"].append(record("MARKER_CORE_RANGE_API", "roctxThreadRangeA", *call, 90_000 + number))
            markers.append({"key": 90_000 + number, "value": row["name"]})
            continue
        name = {"kernel": "hipLaunchKernel", "sync": "hipDeviceSynchronize"}.get(row["kind"], "hipMemcpyAsync")
        domains["hip_api"].append(record("HIP_RUNTIME_API_EXT", name, *call, row["stack"]))
        if row["kind"] == "sync":
            continue
        stream, agent = handle(row["stream"]), handle(HANDLES[row["gpu"]])
        if row["kind"] == "kernel":
            info = {"size": 72, "agent_id": agent, "queue_id": handle(1),
                    "kernel_id": symbols.setdefault(row["name"], len(symbols) + 1), "dispatch_id": number,
                    "private_segment_size": 0, "group_segment_size": 128, "workgroup_size": xyz(row["group"]),
                    "grid_size": xyz(g * w for g, w in zip(row["grid"], row["group"]))}
            one = record("KERNEL_DISPATCH", "COMPLETE", *row["work"], row["stack"], dispatch_info=info)
            domains["kernel_dispatch"].append({**one, "stream_id": stream})
            if counters:
                collected.append({"thread_id": pid + 1, "dispatch_data": one, "arch_vgpr_count": 32,
                                  "records": [{"counter_id": handle(9), "value": number * 0.5}]})
        else:
            other = {4: 5, 5: 4}[row["gpu"]]
            source, to = {"HtoD": (0, row["gpu"]), "DtoH": (row["gpu"], 0), "DtoD": (row["gpu"],) * 2,
                          "PtoP": (row["gpu"], other)}[row["kind"]]
            domains["memory_copy"].append(record(
                "MEMORY_COPY", "MEMORY_COPY_" + row["kind"], *row["work"], row["stack"], stream_id=stream,
                dst_agent_id=handle(HANDLES[to]), src_agent_id=handle(HANDLES[source]), bytes=row["bytes"]))
    begin = rows[0]["call"][0]
    for i, (what, address, size) in enumerate((("ALLOCATE", 1000, 4096), ("ALLOCATE", 9000, 100),
                                               ("VMEM_FREE", 1000, 0), ("VMEM_FREE", 0, 0))):
        domains["memory_allocation"].append(record(
            "MEMORY_ALLOCATION", "MEMORY_ALLOCATION_" + what, begin + i, begin + i + 1, 0,
            agent_id=handle(HANDLES[4]), address=f"0x{address:016x}", allocation_size=size))
    return {
        "metadata": {"node": {"id": 0, "hostname": "node7"}, "pid": pid, "init_time": 1, "fini_time": 2,
                     "command": ["python", "train.py"], "config": {"output_path": "/x"}},
        "agents": [{"size": 312, "id": handle(HANDLES[0]), "type": 1, "logical_node_type_id": 0, "gpu_index": -1,
                    "name": "EPYC", "product_name": "EPYC", "mem_banks": [{"flags": {"type": 2}}]}] +
                  [{"size": 312, "id": handle(HANDLES[a]), "type": 2, "logical_node_type_id": i, "gpu_index": i,
                    "name": "gfx942", "product_name": "AMD Instinct MI300X"} for a, i in GPUS.items()],
        "counters": [{"agent_id": handle(HANDLES[4]), "id": handle(9), "name": "SQ_WAVES"}] if counters else [],
        "strings": {"callback_records": [{"kind": k, "operations": ["no"] * 4} for k in kinds],
                    "buffer_records": [{"kind": k, "operations": o} for k, o in KINDS.items()],
                    "marker_api": markers, "correlation_id": {"external": []}, "att_filenames": ["a", "b"]},
        "code_objects": [],
        "kernel_symbols": [{"size": 88, "kernel_id": i, "kernel_name": "_Z" + n + ".kd", "arch_vgpr_count": 32,
                            "formatted_kernel_name": n, "demangled_kernel_name": n + ".kd"}
                           for n, i in [("0", 0), ("never launched", 77), *symbols.items()]],
        "host_functions": [], "summary": [], "callback_records": {"counter_collection": collected},
        "buffer_records": domains}


def write_json(path, jobs, counters=False):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"rocprofiler-sdk-tool": [json_process(*job, counters) for job in jobs.items()]}, file)


def write_kineto(path, pid, rows):
    events = []
    for row in rows:
        call = row["call"]
        name = {"kernel": "hipLaunchKernel", "sync": "hipDeviceSynchronize",
                "range": row.get("name")}.get(row["kind"], "hipMemcpyAsync")
        events.append({"ph": "X", "cat": "user_annotation" if row["kind"] == "range" else "cuda_runtime",
                       "name": name, "pid": pid, "tid": pid + 1, "ts": call[0] / 1000,
                       "dur": (call[1] - call[0]) / 1000, "args": {"correlation": row.get("stack", 0)}})
        if "work" in row:
            copy = row["kind"] != "kernel"
            events.append({"ph": "X", "cat": "gpu_memcpy" if copy else "kernel",
                           "name": f"Memcpy {row['kind']}" if copy else row["name"], "pid": GPUS[row["gpu"]],
                           "tid": row["stream"], "ts": row["work"][0] / 1000,
                           "dur": (row["work"][1] - row["work"][0]) / 1000,
                           "args": {"correlation": row["stack"], "device": GPUS[row["gpu"]],
                                    "stream": row["stream"], **({"bytes": row["bytes"]} if copy else {})}})
    base = rows[0]["call"][0] // 1000 * 1000
    for e in events:  # us with three digits, which floating numbers of this size do not have
        e["ts"] = None
    for e, ns in zip(events, [b for row in rows for b in
                              [row["call"][0]] + ([row["work"][0]] if "work" in row else [])]):
        e["ts"] = (ns - base) / 1000
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "traceEvents": events}, file)


class Tool:
    def __init__(self, binaries):
        self.binaries = binaries

    def run(self, name, *words):
        return subprocess.run([os.path.join(self.binaries, name), *words, "-q"], capture_output=True)

    def report(self, path):
        done = self.run("tacho-analyze", path, "-f", "json", "-r", "summary,kernels,copies,launches,steps")
        expect(done.returncode == 0, f"{path}: {done.stderr.decode()[:200]}")
        return json.loads(done.stdout)


def figures(rank):
    """What both files of a job say."""
    return {
        "gpus": [(g["device"], g["span_ns"], g["compute_ns"], g["exposed_copy_ns"], g["idle_ns"], g["kernels"],
                  g["copies"], g["unattributed_ns"], sorted((c["cause"], c["ns"]) for c in g["idle_causes"]))
                 for g in rank["gpus"]],
        "kernels": sorted((k["name"], k["count"], k["total_ns"], k["min_ns"], k["max_ns"]) for k in rank["kernels"]),
        "copies": sorted((c["direction"], c["count"], c["bytes"], c["total_ns"]) for c in rank["copies"]),
        "launches": sorted((str(c["call"]), c["count"], c["gpu_events"]) for c in rank["launches"]),
        "steps": [(s["step"], s["wall_ns"]) for s in rank["steps"]],
        "phases": sorted((p["name"], p["wall_ns"]) for p in rank["phases"]),
    }


def check_jobs(tool, folder):
    path, other, third = (os.path.join(folder, name) for name in ("a.db", "a.json", "a_results.json"))
    for seed in range(12):
        version = VERSIONS[seed % len(VERSIONS)]
        rows = make_job(seed)
        write_database(path, version, {100: rows})
        write_kineto(other, 100, rows)
        write_json(third, {100: rows})
        got, want, also = (figures(tool.report(p)["ranks"][0]) for p in (path, other, third))
        for key in want:
            expect(got[key] == want[key], f"job {seed} ({version}): {key}: {got[key]} and {want[key]}")
            expect(also[key] == want[key], f"job {seed} (JSON): {key}: {also[key]} and {want[key]}")
        expect(len(got["kernels"]) > 1 and len(got["copies"]) > 1, f"job {seed} has little")


def check_two(tool, path, write):
    """Two processes whose ids are the same ids: each row has its own process's names."""
    jobs = {100: make_job(50), 200: make_job(51)}
    for row in jobs[200]:
        if row["kind"] == "kernel":
            row["name"] = "other_" + row["name"]
    write(path, jobs)
    text = tool.run("tacho-convert", path, "-t", "text", "--args", "full").stdout.decode()
    for pid, rows in jobs.items():
        kernels = [r for r in rows if r["kind"] == "kernel"]
        names = [r["name"] for r in kernels]
        one = tool.report(path)
        rank = [r for r in one["ranks"] if r["pid"] == pid][0]
        expect(sorted((k["name"], k["count"]) for k in rank["kernels"]) ==
               sorted((n, names.count(n)) for n in set(names)), f"kernels of {pid}")
        for r in kernels[:5]:
            grid = " ".join(f"grid_{a}={g}" for a, g in zip("xyz", r["grid"]))
            expect(re.search(re.escape(r["name"]) + ".*registers=32.*" + re.escape(grid.split()[0]), text),
                   f"{r['name']} with {grid}")
    waves = [float(v) for v in re.findall(r"counter +p\d+ GPU \d counter +SQ_WAVES +value=([\d.]+)", text)]
    want = [n * 0.5 for rows in jobs.values() for n, r in enumerate(rows, 1) if r["kind"] == "kernel"]
    expect(sorted(waves) == sorted(want), f"counters {len(waves)} of {len(want)}")
    expect(text.count(" alloc ") == 4 and text.count(" free ") == 2, "allocations")
    expect(SECRET not in text and SECRET.encode() not in tool.run("tacho-convert", path, "-t", "log").stdout,
           "the environment stays where it is")
    expect("node7" in text and "AMD Instinct MI300X" in text and "python train.py" in text, "names")


def check_damage(tool, path, write, every):
    write(path, {100: make_job(7, steps=30)})
    with open(path, "rb") as file:
        whole = file.read()
    rng, codes = random.Random(3), set()
    cuts = [whole[:end] for end in list(range(0, 200)) + [rng.randrange(len(whole)) for _ in range(60)]]
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(len(whole) // every):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        cuts.append(bytes(damaged))
    for data in cuts:
        with open(path, "wb") as file:
            file.write(data)
        done = tool.run("tacho-convert", path, "-t", "text")
        codes.add(done.returncode)
        lines = done.stderr.decode(errors="replace").splitlines()
        expect(done.returncode in (0, 2, 4) and len(lines) <= 2, f"{len(data)} bytes: {done.returncode} {lines}")
        expect(done.returncode == 0 or os.path.basename(path) in "".join(lines), f"no name in {lines}")
    expect(4 in codes and codes <= {0, 2, 4}, f"codes {codes}")


def without_begin(lines):
    """Times count from the first event of the file, which a cut may take away."""
    return collections.Counter(line.split(None, 1)[1] for line in lines)


def check_cuts(tool, folder):
    """A JSON that ends early gives what was whole in it, never more and never another figure."""
    path = os.path.join(folder, "cut_results.json")
    write_json(path, {100: make_job(1, steps=1)}, counters=True)
    with open(path, "rb") as file:
        whole = file.read()
    lines = tool.run("tacho-convert", path, "-t", "text", "--args", "full").stdout.splitlines()
    events, last = [line for line in lines if line[:1] != b"#"], 0
    whole_events = without_begin(events)
    for end in range(40, len(whole) - 2, 97):
        with open(path, "wb") as file:
            file.write(whole[:end])
        done = tool.run("tacho-convert", path, "-t", "text", "--args", "full")
        got = [line for line in done.stdout.splitlines() if line[:1] != b"#"]
        expect(done.returncode in (2, 4) and b"truncated" in done.stderr, f"cut at {end}: {done.stderr[:99]}")
        expect(len(got) >= last, f"cut at {end}: {len(got)} events, {last} before")
        expect(not without_begin(got) - whole_events, f"cut at {end}: another event than in the whole")
        last = max(last, len(got))
    expect(0 < last <= len(events), f"{last} of {len(events)} events")


def check_work_alone(tool, folder):
    """Without calls no cause of idle time is known; what the GPU did is."""
    path = os.path.join(folder, "work_results.json")
    row = {"kind": "kernel", "call": (0, 1), "gpu": 4, "stream": 1, "group": (1, 1, 1), "grid": (1, 1, 1)}
    rows = [dict(row, name="ncclDevKernel_Generic_1" if i % 4 else "gemm", stack=i + 1,
                 work=(1_000_000 * i, 1_000_000 * i + 250_000)) for i in range(40)]
    one = json_process(100, rows)
    for domain in ("hip_api", "memory_allocation"):
        one["buffer_records"][domain] = []
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"rocprofiler-sdk-tool": [one]}, file)
    page = " ".join(tool.run("tacho-analyze", path).stdout.decode().split())
    expect("NO VERDICT" in page and "Of what it shows, COMM weighs most: the GPU communicates" in page, page[:500])
    expect("1 of 7.5 exposed_comm" in page, f"the first finding is of another family: {page[-900:]}")
    expect("launch unknown" in page and "before window" not in page, "phases without launches")


# What AMD's TraceLens (171dd747, generate_perf_report_rocprof) says of the same file: names by their beginning, count, ns, shortest,
# longest; its milliseconds of kernels are microseconds.  Its total is from the begin of the process, ours from the first kernel.
TRACELENS_BUSY_NS = 4_233_112_334
TRACELENS = (("ncclDevKernel_Generic_1", 1310, 4_158_756_678, 70_280, 733_003_332),
             ("__amd_rocclr_fillBufferAligned", 3213, 13_047_568, 560, 85_561),
             ("__amd_rocclr_copyBuffer", 3153, 10_051_659, 640, 35_161))
TRACELENS_KERNELS, TRACELENS_ELEMENTWISE = 43_915, (16_971, 74_340_648)


def check_tracelens(rank):
    kernels, gpu = rank["kernels"], rank["gpus"][0]
    expect(gpu["busy_ns"] == TRACELENS_BUSY_NS, f"busy {gpu['busy_ns']}, TraceLens {TRACELENS_BUSY_NS}")
    expect(sum(k["count"] for k in kernels) == TRACELENS_KERNELS, "kernels that TraceLens counts")
    for name, count, ns, least, most in TRACELENS:
        rows = [k for k in kernels if k["name"].startswith(name)]
        got = (sum(k["count"] for k in rows), sum(k["total_ns"] for k in rows), min(k["min_ns"] for k in rows), max(k["max_ns"] for k in rows))
        expect(got == (count, ns, least, most), f"{name}: {got}, TraceLens {(count, ns, least, most)}")
    rows = [k for k in kernels if "vectorized_elementwise_kernel" in k["name"]]
    got = sum(k["count"] for k in rows), sum(k["total_ns"] for k in rows)
    expect(got == TRACELENS_ELEMENTWISE, f"vectorized_elementwise_kernel: {got}, TraceLens {TRACELENS_ELEMENTWISE}")


def check_real(tool, traces):
    path = os.path.join(traces, "rocprof", "908_results.json.gz")
    if not os.path.exists(path):
        print("# no " + path)
        return
    with gzip.open(path) as file:
        one = json.load(file)["rocprofiler-sdk-tool"][0]
    names = {s["kernel_id"]: s["formatted_kernel_name"] for s in one["kernel_symbols"]}
    want, spans = {}, []
    for k in one["buffer_records"]["kernel_dispatch"]:
        row = want.setdefault(names[k["dispatch_info"]["kernel_id"]], [0, 0])
        row[0] += 1
        row[1] += k["end_timestamp"] - k["start_timestamp"]
        spans.append((k["start_timestamp"], k["end_timestamp"]))
    busy, until = 0, 0
    for begin, end in sorted(spans):
        busy, until = busy + max(0, end - max(begin, until)), max(until, end)
    rank = tool.report(path)["ranks"][0]
    expect(sorted((k["name"], k["count"], k["total_ns"]) for k in rank["kernels"]) ==
           sorted((n, *row) for n, row in want.items()), "kernels of the real run")
    gpu = rank["gpus"][0]
    expect(gpu["span_ns"] - gpu["idle_ns"] == busy, f"busy {gpu['span_ns'] - gpu['idle_ns']} and {busy}")
    expect(rank["pid"] == one["metadata"]["pid"], "process of the real run")
    check_tracelens(rank)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    tool = Tool(os.path.abspath(parser.parse_args().bin))
    with tempfile.TemporaryDirectory() as folder:
        check_jobs(tool, folder)
        for name, write in (("two.db", lambda p, jobs: write_database(p, "3.0.4", jobs, counters=True)),
                            ("two_results.json", lambda p, jobs: write_json(p, jobs, counters=True))):
            check_two(tool, os.path.join(folder, name), write)
        check_damage(tool, os.path.join(folder, "d.db"), lambda p, jobs: write_database(p, "3.0.5", jobs), 100)
        for every in (100, 10_000):
            check_damage(tool, os.path.join(folder, "d_results.json"), write_json, every)
        check_cuts(tool, folder)
        check_work_alone(tool, folder)
    check_real(tool, os.environ.get("TACHO_TRACES") or os.path.join(HERE, "../../../shared/traces"))
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
