#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `tacho-analyze --format json` with the oracle, on real files and on random ones.

    check_traces.py --bin DIR [--traces DIR] [--random N] [--only TEXT] [--oracle-only]

Prints one line per check and at the end `N passed, N failed`; exit 1 on any failure. Where the
folder of real traces is absent those checks are skipped with a message.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import gpu              # noqa: E402
import hta_view         # noqa: E402
import instants         # noqa: E402
import kineto           # noqa: E402
import phases           # noqa: E402
import random_traces    # noqa: E402
import units            # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPU_KEYS = ("span_ns", "busy_ns", "compute_ns", "comm_ns", "copy_ns", "exposed_comm_ns",
            "exposed_copy_ns", "overlap_comm_ns", "idle_ns", "kernels", "copies")
CELL_KEYS = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
NO_STEP = ("before_window", "unattributed")

# Percent of the step time as analyze/DEFINITIONS.md 4 quotes them; decimals as quoted.
QUOTED = {
    "v100_ddp_rank1of2_memory": (1, {"optimizer": 6.9, "backward": 73.2, "forward": 18.0,
                                     "other": 1.9}),
    "v100_resnet50_slow_loader_2021": (2, {"data": 39.62, "forward": 21.81, "backward": 20.44,
                                           "optimizer": 14.21, "other": 3.92}),
    "a100_ddp_rank0of2_nccl_args": (2, {"backward": 46.55, "forward": 46.4, "optimizer": 6.94,
                                        "other": 0.12}),
    "mi300_resnet_act_checkpoint": (2, {"backward": 57.91, "forward": 35.29, "optimizer": 3.52,
                                        "other": 3.28}),
}
# HTA's file -> (our file for a rank, is the last step kept)
HTA_FILES = {"job128_sampled_2ranks": "job128_sampled_rank{rank}"}


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def say(self, good, label, detail=""):
        self.passed += good
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {label}{': ' + detail if detail and not good else ''}")

    def same(self, label, got, want):
        """Both dicts: names only what differs."""
        if isinstance(got, dict) and isinstance(want, dict):
            odd = [f"{key!r}: got {got.get(key)}, want {want.get(key)}"
                   for key in {**want, **got} if got.get(key) != want.get(key)]
            more = f" and {len(odd) - 4} more" if len(odd) > 4 else ""
            self.say(not odd, label, "; ".join(odd[:4]) + more)
        else:
            self.say(got == want, label, f"got {got}, want {want}")


class Oracle:
    def __init__(self, path, trace=None):
        self.path = path
        self.trace = trace or kineto.load(path)
        self.devices = gpu.events_by_device(self.trace)
        self.host = phases.Host(self.trace, self.devices)
        self.compute()

    def compute(self):
        self.figures = {key: gpu.added([gpu.figures(work)
                                        for _, _, work in self.host.windows_of(key)])
                        for key in self.devices}
        self.cells = self.host.cells()

    def owned(self, device):
        return self.host.owned(device)


def analyze(binary, path, *options):
    """The report as a dict, or a sentence that says why there is none."""
    run = subprocess.run([binary, path, "--format", "json", *options], capture_output=True)
    if run.returncode != 0:
        words = run.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"exit {run.returncode}: {words[-1] if words else 'no message'}"
    try:
        report = json.loads(run.stdout)
    except ValueError as error:
        return f"no JSON: {error}"
    wrong = units.mixed_in_report(report)
    return f"units differ: {wrong[0]}" if wrong else report


def check_gpus(checks, name, rank, oracle):
    rows = {row["device"]: row for row in rank["gpus"]}
    checks.same(f"{name} devices", sorted(rows, key=str), sorted(oracle.devices, key=str))
    for device, want in oracle.figures.items():
        row = rows.get(device, {})
        label = f"{name} gpu {device}"
        checks.same(f"{label} figures", {key: row.get(key) for key in GPU_KEYS}, want)
        checks.say(bool(row) and gpu.identity_holds(row), f"{label} identity to the ns", str(row))
        spans = oracle.host.windows_of(device)
        whole = sum(end - begin for begin, end, _ in spans)
        lead = sum(min(event.begin for event in work) - begin for begin, _, work in spans)
        tail = sum(end - max(event.end for event in work) for _, end, work in spans)
        window = {"window_ns": whole, "lead_ns": lead, "tail_ns": tail,
                  "not_busy_ns": want["idle_ns"] + lead + tail}
        checks.same(f"{label} window", {key: row.get(key) for key in window}, window)


def check_kernels(checks, name, rank, oracle):
    want = gpu.kernel_table(oracle.devices)
    rows = {row["name"]: row for row in rank["kernels"]}
    middles = {key: row.pop("middle_ns") for key, row in want.items()}
    got = {key: {field: row.get(field) for field in ("count", "total_ns", "min_ns", "max_ns")}
           for key, row in rows.items()}
    checks.same(f"{name} kernel table, {len(want)} names", got, want)
    far = [f"{key[:40]}: {rows[key].get('median_ns')} beside {low}..{high}"
           for key, (low, high) in middles.items() if key in rows
           and not 0.99 * low - 1 <= (rows[key].get("median_ns") or 0) <= 1.01 * high + 1]
    checks.say(not far, f"{name} kernel medians within 1 %", "; ".join(far[:3]))
    got = {}
    for row in rank["copies"]:
        entry = got.setdefault(str(row["direction"]).lower(),
                               {"count": 0, "bytes": 0, "total_ns": 0})
        for field in entry:
            entry[field] += row.get(field) or 0
    got = {key: entry for key, entry in got.items() if any(entry.values())}
    want = {key: entry for key, entry in gpu.copy_table(oracle.devices).items()
            if any(entry.values())}
    checks.same(f"{name} copies by direction", got, want)


def check_phases(checks, name, rank, oracle):
    host = oracle.host
    want = {step.number: (step.begin, step.end - step.begin) for step in host.steps}
    got = {row["step"]: (row["begin_ns"], row["wall_ns"]) for row in rank["steps"]}
    checks.same(f"{name} steps, {len(want)}", got, want)
    sums = host.phase_sums()
    whole = sum(sums.values())
    rows = {row["name"]: row for row in rank["phases"]}
    got = {key: row["wall_ns"] for key, row in rows.items() if row["wall_ns"]}
    checks.same(f"{name} phases, wall ns", got, sums)
    far = [f"{key}: {row.get('wall_pct')}" for key, row in rows.items()
           if whole and abs((row.get("wall_pct") or 0) - 100 * sums.get(key, 0) / whole) > 0.2]
    total = sum(row.get("wall_pct") or 0 for row in rows.values())
    close = not whole or abs(total - 100) < 0.1 + 0.01 * len(rows)
    checks.say(not far and close, f"{name} phases, percent within 0.2 and adding to 100",
               "; ".join(far) + f" sum {total}")
    got = {row["name"]: row["wall_ns"] for row in rank["outside_steps"]}
    checks.same(f"{name} phases outside of steps", got, host.outside_sums())
    inferred = host.inferred_phases()
    got = {key: bool(row.get("inferred")) for key, row in rows.items() if row["wall_ns"]}
    checks.same(f"{name} phases, inferred", got, {key: key in inferred for key in sums})
    if oracle.devices:
        got = {key: row.get("gpu_idle_during_ns") for key, row in rows.items()
               if row.get("gpu_idle_during_ns")}
        checks.same(f"{name} phases, GPU idle meanwhile", got, host.idle_during())


def cell_key(row):
    step = row.get("step")
    return (row["device"], None if row["phase"] in NO_STEP else step, row["phase"])


def check_cells(checks, name, report, oracle, per_step):
    want = {}
    for (device, step, phase), row in oracle.cells.items():
        entry = want.setdefault((device, step if per_step else None, phase),
                                dict.fromkeys(CELL_KEYS, 0))
        for key in CELL_KEYS:
            entry[key] += row[key]
    label = f"{name} cells by step" if per_step else f"{name} cells"
    if isinstance(report, str):
        checks.say(False, label, report)
        return
    got = {}
    for row in report["ranks"][0]["cells"]:
        device, step, phase = cell_key(row)
        entry = got.setdefault((device, step if per_step else None, phase),
                               dict.fromkeys(CELL_KEYS, 0))
        for key in CELL_KEYS:
            entry[key] += row.get(key) or 0
    blank = dict.fromkeys(CELL_KEYS, 0)
    got = {key: row for key, row in got.items() if row != blank}
    want = {key: row for key, row in want.items() if row != blank}
    checks.same(f"{label}, {len(want)}", got, want)
    for device, figures in oracle.figures.items():
        sums = {key: sum(row[key] for cell, row in got.items() if cell[0] == device)
                for key in CELL_KEYS}
        checks.same(f"{label} of gpu {device} add to the span, per class", sums,
                    {key: figures[key] for key in CELL_KEYS})


def check_report(checks, binary, name, oracle):
    report = analyze(binary, oracle.path)
    if isinstance(report, str):
        checks.say(False, f"{name} runs", report)
        return
    checks.same(f"{name} schema", report.get("schema"), "tacho.report/1")
    checks.same(f"{name} ranks", len(report["ranks"]), 1)
    rank = report["ranks"][0]
    check_gpus(checks, name, rank, oracle)
    check_kernels(checks, name, rank, oracle)
    check_phases(checks, name, rank, oracle)
    if oracle.devices:
        check_cells(checks, name, report, oracle, False)
        check_cells(checks, name, analyze(binary, oracle.path, "--per-step"), oracle, True)


def check_oracle(checks, name, oracle):
    """The oracle against itself and against the figures that analyze/DEFINITIONS.md quotes."""
    for device, row in oracle.figures.items():
        checks.say(gpu.identity_holds(row), f"oracle {name} gpu {device} identity", str(row))
        sums = {key: sum(cell[key] for place, cell in oracle.cells.items() if place[0] == device)
                for key in CELL_KEYS}
        checks.same(f"oracle {name} gpu {device} cells add to the span", sums,
                    {key: row[key] for key in CELL_KEYS})
    sums = oracle.host.phase_sums()
    whole = sum(sums.values())
    checks.same(f"oracle {name} phases add to the steps", whole,
                sum(end - begin for begin, end in oracle.host.counted_time()))
    if name in QUOTED:
        digits, want = QUOTED[name]
        got = {key: round(100 * value / whole, digits) for key, value in sums.items()}
        checks.same(f"oracle {name} phases as quoted", got, want)
    if name == "v100_cuda_graphs_rank1of2":
        step = next(step for step in oracle.host.steps if step.number == 1010)
        part = oracle.host.phase_sums(step)["## sparse_data_dist ##"]
        checks.same(f"oracle {name} ## sparse_data_dist ## as quoted, ms",
                    (round(part / 1e6), round((step.end - step.begin) / 1e6)), (47, 122))


def rank_rows(table, rank):
    column = table["columns"].index("rank")
    return [dict(zip(table["columns"], row)) for row in table["data"] if row[column] == rank]


def check_hta_view(checks, label, rank, answer, oracle):
    """The oracle with HTA's rules gives HTA's answer, so the differences are the known ones."""
    rows = hta_view.filtered(hta_view.rows_of(oracle.trace),
                             answer["include_last_profiler_step"])
    row = rank_rows(answer["temporal_breakdown"], rank)[0]
    want = tuple(int(row[key]) for key in ("idle_time(us)", "compute_time(us)",
                                           "non_compute_time(us)", "kernel_time(us)"))
    checks.same(f"{label} temporal breakdown by HTA's rules", hta_view.temporal(rows), want)
    want = rank_rows(answer["comm_comp_overlap"], rank)[0]["comp_comm_overlap_pctg"]
    got = hta_view.overlap_percent(rows)
    checks.same(f"{label} overlap by HTA's rules", None if got is None else round(got, 2), want)
    if len(answer["ranks"]) == 1:       # the type table is summed over ranks
        want = {line[0]: line[1] for line in answer["kernel_type_breakdown"]["data"] if line[1]}
        checks.same(f"{label} kernel types by HTA's rules", hta_view.types(rows), want)
    table = hta_view.kernel_sums(rows)
    names = [line for line in rank_rows(answer["kernel_breakdown"], rank)
             if line["name"] != "others"]
    # With more than ten names HTA's own mean, min and max are wrong; its sums are right.
    got = {line["name"]: table[(line["kernel_type"], line["name"])][1] for line in names}
    checks.same(f"{label} kernel sums by HTA's rules", got,
                {line["name"]: int(line["sum (us)"]) for line in names})


def check_hta_same(checks, binary, label, rank, answer, oracle):
    """Our definitions give HTA's answer where the definitions are the same.

    They are the same for compute, communication and copies, for span and idle, if the file has
    whole microseconds (HTA rounds begins up and ends down), no synchronisation rows (HTA counts
    them as busy) and no kernel that HTA sorts by its name alone. HTA drops the last step; we get
    the same events by `--steps first-last`, which is half-open and goes by the launch, too.
    """
    if any(event.begin % 1000 or event.end % 1000 for event in oracle.trace.events):
        print(f"note {label}: fractions of a microsecond, only HTA's own rules can be compared")
        return
    row = rank_rows(answer["temporal_breakdown"], rank)[0]
    want = {"compute_ns": int(row["compute_time(us)"]) * 1000}
    synced = any(event.category == "cuda_sync" for event in oracle.trace.events)
    if synced:
        # HTA's span and busy time take in synchronisation rows; ours never do.
        print(f"note {label}: synchronisation rows, of the temporal breakdown only compute is"
              " the same")
    else:
        want["span_ns"] = int(row["kernel_time(us)"]) * 1000
        want["idle_ns"] = int(row["idle_time(us)"]) * 1000
    if len(answer["ranks"]) == 1:
        types = {line[0]: line[1] * 1000 for line in answer["kernel_type_breakdown"]["data"]}
        want["exposed_comm_ns"] = sum(value for key, value in types.items()
                                      if "COMMUNICATION" in key and "COMPUTATION" not in key)
        want["overlap_comm_ns"] = sum(value for key, value in types.items()
                                      if "COMMUNICATION" in key and "COMPUTATION" in key)
        want["exposed_copy_ns"] = types.get("MEMORY", 0)
    ours = hta_view.same_events_by_our_rules(oracle.trace, oracle.devices, oracle.host)
    device = next(iter(ours))
    checks.same(f"{label} equals our definitions on HTA's events",
                {key: ours[device][key] for key in want}, want)
    if binary is None:
        return
    marks = sorted({step.number for step in oracle.host.steps})
    cut = ("--steps", f"{marks[0]}-{marks[-1]}") if len(marks) > 1 else ()
    report = analyze(binary, oracle.path, *cut)
    label = f"{label} equals tacho-analyze {' '.join(cut)}".rstrip()
    if isinstance(report, str):
        checks.say(False, label, report)
        return
    rows = {line["device"]: line for line in report["ranks"][0]["gpus"]}
    checks.same(label, {key: rows.get(device, {}).get(key) for key in want}, want)


def check_hta(checks, binary, folder, oracles):
    for path in sorted(glob.glob(os.path.join(folder, "expected", "hta.*.json"))):
        with open(path, encoding="utf-8") as stream:
            answer = json.load(stream)
        source = answer["source"].split("/")[-1].removesuffix(".last_step")
        for rank in answer["ranks"]:
            name = HTA_FILES.get(source, source).format(rank=rank)
            oracle = oracles.get(name)
            if oracle is None:
                continue
            last = answer["include_last_profiler_step"]
            label = f"HTA {name}{' with its last step' if last else ''}"
            check_hta_view(checks, label, rank, answer, oracle)
            if not last:
                check_hta_same(checks, binary, label, rank, answer, oracle)


def check_random(checks, binary, count):
    """Figures, phases and cells of random files; one line, the first differences by seed."""
    quiet = Checks()
    wrong, slow = [], 0
    with tempfile.TemporaryDirectory(prefix="tacho-random-") as folder:
        for seed in range(count):
            path = os.path.join(folder, f"random_{seed}.json")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(random_traces.make(seed))
            silent = Silent()
            oracle = Oracle(path)
            check_oracle(silent, f"random {seed}", oracle)
            if instants.small_enough(oracle):
                odd = instants.differences(oracle)
                silent.say(not odd, f"oracle random {seed} instant by instant", "; ".join(odd[:3]))
                slow += 1
            if binary is not None:
                check_report(silent, binary, f"random {seed}", oracle)
            quiet.passed += silent.passed
            quiet.failed += silent.failed
            wrong += silent.lines
    for line in wrong[:20]:
        print(line)
    checks.say(not wrong, f"random files: {count} seeds, {quiet.passed + quiet.failed} comparisons,"
               f" the oracle itself instant by instant on {slow}", f"{quiet.failed} differ")


class Silent(Checks):
    """Keeps the failures instead of printing everything."""
    def __init__(self):
        super().__init__()
        self.lines = []

    def say(self, good, label, detail=""):
        self.passed += good
        self.failed += not good
        if not good:
            self.lines.append(f"     {label}: {detail}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build"),
                        help="folder of tacho-analyze")
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=200, help="how many random files")
    parser.add_argument("--only", default="", help="only files whose name has this text")
    parser.add_argument("--oracle-only", action="store_true", help="do not run tacho-analyze")
    return parser.parse_args()


def main():
    options = arguments()
    checks = Checks()
    binary = None if options.oracle_only else os.path.join(options.bin, "tacho-analyze")
    if binary is not None and not os.access(binary, os.X_OK):
        print(f"check_traces: there is no {binary}; build it or give --bin DIR", file=sys.stderr)
        return 1
    paths = sorted(glob.glob(os.path.join(options.traces, "kineto", "*.json.gz")))
    if not paths:
        print(f"skip real traces: no files in {options.traces}/kineto (set TACHO_TRACES)")
    oracles = {}
    for path in paths:
        name = os.path.basename(path).removesuffix(".json.gz")
        if options.only not in name:
            continue
        oracles[name] = Oracle(path)
        check_oracle(checks, name, oracles[name])
        if binary is not None:
            check_report(checks, binary, name, oracles[name])
    check_hta(checks, binary, options.traces, oracles)
    if options.random:
        check_random(checks, binary, options.random)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
