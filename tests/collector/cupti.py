#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CUPTI collector beside the stand-in of tests/fake: a row of ROWS is a program, what CUPTI is
made to do meanwhile, and what the log must hold.

    python3 tests/collector/cupti.py --bin build [--list] [NAME...]

Three parties tell what happened: the program (truth), the stand-in (what records it made, handed
over, dropped, and what the collector did that it must not), the log.  They have to agree:

    handed over, kind by kind = rows of the log + losses that it counts
    dropped = the loss "dropped by CUPTI"
"""
import argparse
import collections
import csv
import glob
import io
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

KERNEL, MEMCPY, MEMSET, GRAPH, SYNC, API, RANGE, JIT, OVERHEAD, STEP, MARK, ALLOC, FREE = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
EVENTS = (1, 2, 3, 4, 5, 10, 17, 22, 36, 38, 49, 50, 51, 52, 54)  # CUPTI's kinds that become rows
LOST = {"cupti": "dropped by CUPTI", "buffer": "no buffer left", "ceiling": "over a memory limit",
        "time": "without usable times", "cut": "cut out by an option",
        "place": "not representable in the output format", "ring": "ring full",
        "disk": "not written: disk full or over --max-disk",
        "death": "or more of the last second, held by CUPTI when the process died"}

B = None
SANITIZED = ""
# The thread sanitizer makes a program too slow for what these fill.
NOT_SLOWLY = ("storm", "tables-under-pressure", "pool-dry", "pool-dry-12")
FOLDER = None


class Log:
    """What tests/collector/dump.c tells of one log."""

    def __init__(self, text):
        self.text = text
        self.about = dict(re.findall(r"^about (\S+?)=(.*)$", text, re.M))
        self.lost = {key: sum(int(n) for n in re.findall(r"^lost (\d+) %s$" % re.escape(why), text, re.M))
                     for key, why in LOST.items()}
        self.whole = "log whole=1" in text
        self.rows = {}
        for kind, name, count in re.findall(r"^sum kind=(\d+) name=(.*?) count=(\d+) early=", text, re.M | re.S):
            key = (int(kind), name)
            self.rows[key] = self.rows.get(key, 0) + int(count)
        peaks = re.findall(r"^sum kind=14 name=peak_bytes_in_use .* device=-1 last=(\S+)$", text, re.M)
        self.peak_bytes = max([float(p) for p in peaks] or [0])
        self.windows = len(re.findall(r"^window .*closed=1", text, re.M))

    def count(self, kind, name=None):
        return sum(n for (k, who), n in self.rows.items()
                   if k == kind and (name is None or re.search(name, who)))


class Run:
    def __init__(self, row, result, folder):
        self.row, self.code, self.folder = row, result.returncode, folder
        self.out, self.err = result.stdout, result.stderr
        self.truth = last_json(self.out)
        self.cupti = read_json(os.path.join(folder, "cupti.json"))
        self.guard = read_json(os.path.join(folder, "guard.json"))
        self.logs = []
        place = os.path.join(folder, "log")
        until = time.monotonic() + 5
        while True:
            self.logs = [self.dump(os.path.join(place, name))
                         for name in (sorted(os.listdir(place)) if os.path.isdir(place) else [])]
            # the recorder closes the log of a program that has died, a moment after that
            closed = [log.whole for log in self.logs]
            if (any(closed) if row["during"] else self.code >= 0 or closed and all(closed)) or time.monotonic() > until:
                break
            time.sleep(0.05)
        self.bad = []
        self.bytes = sum(os.path.getsize(path) for path in glob.glob(os.path.join(place, "*")))

    @staticmethod
    def dump(path):
        told = subprocess.run([os.path.join(B, "tests/dump"), path], capture_output=True, text=True, errors="replace")
        return Log(told.stdout)

    def count(self, kind, name=None):
        return sum(log.count(kind, name) for log in self.logs)

    def lost(self, key):
        return sum(log.lost[key] for log in self.logs)

    def about(self, key):
        return "; ".join(log.about.get(key, "") for log in self.logs)

    def handed(self, *kinds):
        by_kind = (self.cupti or {}).get("handed_over_by_kind", {})
        return sum(by_kind.get(str(kind), 0) for kind in kinds)

    def calls(self, name):
        return (self.cupti or {}).get("calls", {}).get(name, 0)

    def equal(self, what, got, wanted):
        if got != wanted:
            self.bad.append("%s: %r, should be %r" % (what, got, wanted))
            if "Sanitizer" in self.err:  # once, and the part that says where
                self.bad += ["| " + line for line in self.err[self.err.index("Sanitizer"):].splitlines()[:60]]
                self.err = ""

    def holds(self, what, good):
        if not good:
            self.bad.append("does not hold: %s" % what)


def last_json(text):
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def whole_json(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


# ---- what must hold in every run ----

def rows_of_cupti(r):
    return (sum(r.count(k) for k in (KERNEL, MEMCPY, MEMSET, GRAPH, SYNC, JIT, OVERHEAD, ALLOC, FREE)) +
            r.count(API) + r.count(MARK, "^(CUDA event|memory pool)"))


def accounts(r):
    """Every record that was handed over is a row or a loss."""
    lost = sum(r.lost(k) for k in ("buffer", "time", "cut", "place", "ceiling", "disk"))
    strange = sum(n for k, n in (r.cupti or {}).get("handed_over_by_kind", {}).items()
                  if int(k) not in EVENTS and int(k) not in (8, 9, 37, 39))
    r.equal("rows + losses", rows_of_cupti(r) + lost, r.handed(*EVENTS) + strange +
            r.row.get("foreign_rows", lambda r: 0)(r))
    r.equal("dropped by CUPTI", r.lost("cupti"), (r.cupti or {}).get("dropped", 0))


def clean(r):
    """No fault, no crash, a log that was closed."""
    r.equal("exit code", r.code, r.row.get("code", 0))
    r.holds("the stand-in has told its side", r.cupti is not None)
    if r.cupti:
        r.equal("faults", r.cupti["fault_texts"], [])
    for log in r.logs:
        r.holds("the log was closed", log.whole)
    if r.guard and not SANITIZED:
        for deed in ("malloc", "free", "lock", "wait", "io", "map"):
            r.equal("%s in request" % deed, r.guard["request"].get(deed, 0), 0)
        for deed in ("malloc", "io", "map"):
            r.equal("%s in complete" % deed, r.guard["complete"].get(deed, 0), 0)
        r.equal("locks held over calls", r.guard["held"], 0)


def exact(r, losses=()):
    """All that the program did, nothing lost."""
    t = r.truth
    if not t:
        r.bad.append("the program told nothing: %s" % r.err[-300:])
        return
    by_node = r.about("cupti_graphs").find("graph") < 0
    graphs = t["graphs"]
    r.equal("kernels", r.count(KERNEL), t["kernels"] - (0 if by_node else 3 * graphs))
    r.equal("copies", r.count(MEMCPY), t["copies"] + t["peers"] + t["expands"] * (r.handed(54) > 0) -
            (0 if by_node else graphs))
    r.equal("sets", r.count(MEMSET), t["sets"] - (0 if by_node else graphs))
    r.equal("whole graphs", r.count(GRAPH), 0 if by_node else graphs)
    r.equal("waits", r.count(SYNC), t["syncs"])
    r.equal("CUDA events", r.count(MARK, "^CUDA event"), t["events"])
    r.equal("launches", r.count(API, "^cudaLaunchKernel$"), t["runtime"].get("211", 0))
    for key in ("ring", "cupti", "buffer", "ceiling", "time", "place", "death"):
        if key not in losses:
            r.equal("lost: %s" % LOST[key], r.lost(key), 0)


def names(r):
    """Each kernel under the name that it was launched by."""
    for i, count in enumerate(r.truth["by_name"]):
        r.equal("kernel_%d" % i, r.count(KERNEL, r"kernel_%dI" % i), count)


def quiet(r):
    """Nothing is doubted."""
    r.equal("doubts", r.about("cupti_doubts").strip("; "), "")


def behind(r):
    """All that was launched in the window came, though the GPU did it seconds later."""
    clean(r)
    accounts(r)
    r.holds("doubts: %s" % r.about("cupti_doubts"), not re.search("tool|waited for", r.about("cupti_doubts")))
    r.equal("kernels without times", r.lost("time"), 0)
    calls, kernels = r.count(API, "^cudaLaunchKernel$"), r.count(KERNEL)
    r.holds("%d launches, %d kernels" % (calls, kernels), kernels >= 200 and calls - 60 <= kernels <= calls + 100)
    told("cupti_behind", "the GPU was [1-9][.]. s behind")(r)
    r.equal("forced flushes", r.cupti["forced_flushes"], 0)


def rows_by_csv(r, *more):
    text = subprocess.run([os.path.join(B, "tacho-convert"), os.path.join(r.folder, "log"), "-t", "csv", "-q", "-o", "-", *more],
                          capture_output=True, text=True, errors="replace").stdout
    return csv.DictReader(io.StringIO(text))


def after_a_tool(r):
    """Windows behind another tool's session, whose clock counted ticks: times are right, or refused."""
    r.equal("exit code", r.code, 0)
    r.equal("faults", r.cupti["fault_texts"], [])
    took = [int(e["dur_ns"]) for e in rows_by_csv(r) if e["kind"] == "kernel"]
    r.holds("kernels: %d" % len(took), len(took) > 300)
    r.equal("of another length than 50 us", [ns for ns in took if not 49000 <= ns <= 51000][:5], [])
    told("cupti_doubts", "another tool set it")(r)


def taken_over(r):
    """Another tool's session in the middle of a window: recording goes on behind it."""
    r.equal("exit code", r.code, 0)
    r.holds("the tool got kernels: %d" % r.truth["tool"], r.truth["tool"] > 0)
    late = r.count(KERNEL)
    r.holds("kernels: %d of %d" % (late, r.truth["kernels"]), late > 0.4 * r.truth["kernels"])
    told("cupti_doubts", "until recording was enabled again")(r)


def queries(r):
    clean(r)
    accounts(r)
    r.equal("kernels", r.count(KERNEL), r.truth["kernels"])
    polls = r.truth["driver"]["120"] + r.truth["driver"]["125"]
    r.holds("%d waits, %d queries" % (r.count(SYNC), polls), r.count(SYNC) < polls / 10)
    made = r.cupti["made_by_kind"]["38"]
    r.holds("%d records of waits" % made, (made < polls / 10) == ("without" not in r.build))


def nothing(r):
    r.equal("rows of CUPTI", rows_of_cupti(r), 0)


def usual(r):
    clean(r)
    accounts(r)
    exact(r)
    names(r)


def report_of(path):
    """All tables of the ranks in a report, without what names files, windows and the recorder's effort."""
    told = subprocess.run([os.path.join(B, "tacho-analyze"), path, "--report", "summary,operators,copies,steps,memory",
                           "-f", "json"], capture_output=True, text=True, errors="replace").stdout
    ranks = (whole_json(told) or {}).get("ranks", [])
    return [{key: value for key, value in rank.items() if key not in ("windows",)} for rank in ranks]


def rotated(r):
    """Each record is whole in one of the logs, and their report is that of one log with all of them."""
    usual(r)
    quiet(r)
    r.holds("logs: %d" % len(r.logs), len(r.logs) > 3)
    r.equal("lost to the disk", r.lost("disk"), 0)
    r.equal("cut at a log's begin", [e["name"] for e in rows_by_csv(r) if "began" in e["state"]][:3], [])
    one = os.path.join(r.folder, "one.tacho")
    subprocess.run([os.path.join(B, "tacho-convert"), os.path.join(r.folder, "log"), "-t", "log", "-q", "-o", one], check=True)
    apart, whole = report_of(os.path.join(r.folder, "log")), report_of(one)
    r.equal("ranks", (len(apart), len(whole)), (1, 1))
    for key in whole[0]:
        r.equal("%s of the report" % key, apart[0].get(key), whole[0][key])
    trust = whole[0]["trust"]
    r.equal("GPU events with their launch", trust["with_launch"], trust["gpu_events"])


def newest_kept(r):
    """Of all rows those of the removed logs are counted, the newest are there, in no more than was allowed."""
    clean(r)
    quiet(r)
    r.holds("logs: %d" % len(r.logs), len(r.logs) > 3)
    limit = int(r.row["env"]["TACHO_MAX_DISK"][:-1]) << 10
    r.holds("bytes: %d" % r.bytes, limit / 2 < r.bytes <= limit)
    steps = [int(e["number"]) for e in rows_by_csv(r) if e["kind"] == "step"]
    r.holds("the last steps: %d to %d" % (min(steps), max(steps)), max(steps) == r.truth["steps"] - 1 and min(steps) > 0)
    own = sum(r.count(k) for k in (STEP, RANGE))
    lost = sum(r.lost(k) for k in ("buffer", "time", "cut", "place", "ceiling", "cupti"))
    r.equal("rows + losses", rows_of_cupti(r) + own + r.lost("disk") + lost - r.truth["steps"], r.handed(*EVENTS))
    r.holds("removed: %d" % r.lost("disk"), r.lost("disk") > r.handed(*EVENTS) / 4)


def constants_kept(r):
    """What is put once in each log is in those that are left."""
    clean(r)
    r.holds("removed: %d" % r.lost("disk"), r.lost("disk"))
    r.holds("power limit", r.count(14, "^power_limit$"))


def kill_all(process, folder):
    """The program and its recorder are killed, after some logs were closed."""
    stored = os.path.join(folder, "log", "*.tacho")
    while process.poll() is None and not any("_0003" in path for path in glob.glob(stored)):
        time.sleep(0.02)
    found = subprocess.run(["pgrep", "-f", "--", "--record-for %d$" % process.pid], capture_output=True, text=True).stdout.split()
    children = [pid for recorder in found for pid in subprocess.run(["pgrep", "-P", recorder], capture_output=True,
                                                                    text=True).stdout.split()]
    for pid in found + children + [process.pid]:
        os.kill(int(pid), signal.SIGKILL)


def all_killed(r):
    """The closed logs are whole, the last one is readable up to its last flush, and the report says so."""
    r.equal("exit code", r.code, -signal.SIGKILL)
    r.holds("logs: %d" % len(r.logs), len(r.logs) > 3)
    r.equal("closed", [log.whole for log in r.logs[:-1]], [True] * (len(r.logs) - 1))
    r.equal("the last", r.logs[-1].whole, False)
    r.holds("kernels", all(log.count(KERNEL) for log in r.logs[:-1]))
    closed = [c for rank in analyzed(r, "check").get("ranks", []) for c in rank["checks"] if c["check"] == "closed"]
    r.equal("the report", [c["verdict"] for c in closed], ["bad"])


def told(key, pattern):
    def check(r):
        if not re.search(pattern, r.about(key)):
            r.bad.append("%s does not say %r: %r" % (key, pattern, r.about(key)))
    return check


def refused(pattern):
    """Nothing of CUPTI, all else, and why."""
    def check(r):
        if r.cupti:
            clean(r)
        r.equal("exit code", r.code, 0)
        nothing(r)
        r.holds("there is a log", r.logs)
        told("cupti_problem", pattern)(r)
    return check


def check_report(r):
    """What `tacho-analyze --report check` says was lost, by reason, over all logs."""
    told = subprocess.run([os.path.join(B, "tacho-analyze"), os.path.join(r.folder, "log"), "--report", "check",
                           "-f", "json"], capture_output=True, text=True, errors="replace")
    losses = {}
    for rank in (whole_json(told.stdout) or {}).get("ranks", []):
        for reason, count in rank.get("losses", {}).items():
            losses[reason] = losses.get(reason, 0) + count
    return losses


REASONS = {"cupti": "cupti", "buffer": "buffer", "time": "no_time", "ring": "ring", "ceiling": "ceiling"}


def visible(r):
    """Each loss that the log counts stands in the report too."""
    losses = check_report(r)
    for key, reason in REASONS.items():
        r.equal("the report's %s" % reason, losses.get(reason, 0), r.lost(key))


def lossy(first, *more):
    """This loss, perhaps those too, no other; the accounts are right, and the report shows it."""
    keys = (first,) + more
    def check(r):
        clean(r)
        accounts(r)
        visible(r)
        r.holds("something was lost: %s" % first, r.lost(first) > 0)
        r.equal("other losses", [k for k in ("ring", "cupti", "buffer", "ceiling", "time", "place")
                                 if k not in keys and r.lost(k)], [])
    return check


# ---- checks of single rows ----

def kinds_of_others(r):
    usual(r)
    r.equal("JIT", r.count(JIT, "^JIT compilation$"), r.truth["jits"])
    r.equal("overheads", r.count(OVERHEAD), r.truth["overheads"])
    r.equal("by name", (r.count(OVERHEAD, "^Lazy Function Loading$"),
                        r.count(OVERHEAD, "^Command Buffer Full$")),
            (r.truth["jits"], r.truth["jits"]))


def threads_of_overhead(r):
    """Before CUDA 12.4 overhead does not say whose it is: no thread is made up for it."""
    kinds_of_others(r)
    threads = {int(e["thread"]) for e in rows_by_csv(r) if e["kind"] == "overhead"}
    r.holds("threads %r" % threads, threads and all(t < 1 << 22 for t in threads))


def one_call_each(r):
    """Of nested calls with one correlation the outer one is kept; what only the driver does stays."""
    usual(r)
    # one of each thread may stand in another buffer than the call that it is within
    for name in ("cuLaunchKernel", "cuStreamSynchronize"):
        count = r.count(API, "^%s$" % name)
        r.holds("%s: %d" % (name, count), count <= r.truth["threads"])
    r.equal("its own events", r.count(API, "^cuEventCreate$"), r.truth["driver"]["118"])


def counters(r):
    """Values by name and device, "" of the host."""
    values = collections.defaultdict(list)
    for e in rows_by_csv(r):
        if e["kind"] == "counter":
            values[e["name"], e["device"]].append(float(e["value"]))
    return values


def health(r):
    """Of the GPU that the process uses and of the host, once a second."""
    usual(r)
    told = counters(r)
    wanted = {"sm_clock": 1900, "memory_clock": 3201, "power": 512, "temperature": 55, "clock_limits": 4,
              "gpu_utilization": 87, "memory_utilization": 43, "pcie_width": 8, "pcie_generation": 5,
              "ecc_corrected": 3, "ecc_uncorrected": 0, "sm_activity": 21, "tensor_activity": 52.5, "dram_activity": 105,
              "sm_clock_max": 1980, "sm_clock_base": 1590, "power_limit": 700, "pcie_width_max": 16, "pcie_generation_max": 5,
              "gpu_numa_node": 1}
    for name, value in wanted.items():
        r.equal(name, set(told[name, "0"]), {value})
    r.holds("changes: %r" % told["xid_errors", "0"], told["xid_errors", "0"][-1] == 2)
    rates = told["pcie_sent_per_s", "0"] + [n / 1.024 for n in told["nvlink_sent_per_s", "0"]]
    r.holds("bytes a second: %r" % rates, rates and all(7e5 < n < 1.1e6 for n in rates))
    r.equal("what the driver does not tell", [n for n in ("pcie_received_per_s", "sm_occupancy") if told[n, "0"]], [])
    r.equal("what the other GPU does", [n for n, device in told if device == "1" and n != "bytes_in_use" and
                                        n != "peak_bytes_in_use"], [])
    r.holds("samples: %d" % len(told["power", "0"]), 2 <= len(told["power", "0"]) <= 5)
    r.equal("what stays", len(told["power_limit", "0"]), 1)
    r.holds("the host: %r" % told["processor_share", ""], any(n > 0 for n in told["processor_share", ""]))
    if os.path.exists("/sys/devices/system/node/node0/cpu0"):
        r.holds("its node", told["thread_numa_node", ""])
    r.holds("its waits and faults", told["page_faults", ""] and all(n >= 0 for n in told["page_faults", ""]))
    for form in ("perfetto", "chrome", "sqlite", "tensorboard"):
        out = os.path.join(r.folder, "out." + form)
        done = subprocess.run([os.path.join(B, "tacho-convert"), os.path.join(r.folder, "log"), "-t", form, "-q", "-o", out])
        held = b"".join(open(os.path.join(top, f), "rb").read() for top, _, files in os.walk(r.folder) for f in files
                        if os.path.join(top, f).startswith(out))
        r.holds("%s has them" % form, done.returncode == 0 and (b"clock_limits" in held or form == "tensorboard"))


def analyzed(r, report):
    told = subprocess.run([os.path.join(B, "tacho-analyze"), os.path.join(r.folder, "log"), "--report", report, "-f", "json"],
                          capture_output=True, text=True, errors="replace").stdout
    return whole_json(told) or {}


def health_found(*wanted):
    """The findings about GPUs, and the table that they rest on."""
    def check(r):
        usual(r)
        rules = {f["rule"] for f in analyzed(r, "findings").get("findings", [])}
        of_health = {"clock_below_base", "throttled", "slow_slot", "slow_gpu"}
        r.equal("findings", sorted(rules & of_health), sorted(wanted))
        env, told = r.row["env"], counters(r)
        for rank in analyzed(r, "health").get("ranks", []):
            for gpu in rank["health"]:
                clocks = told["sm_clock", str(gpu["device"])]
                r.equal("samples", gpu["samples"], len(clocks))
                r.equal("clock", gpu["sm_clock_mhz"], sum(clocks) / len(clocks))
                r.equal("lanes", [gpu["pcie_width"], gpu["pcie_width_max"]], [int(env.get("FAKE_NVML_WIDTH", 16)), 16])
                bits = int(env.get("FAKE_NVML_REASONS", 0))
                r.equal("held down", [gpu[k] > 0 for k in ("power_samples", "heat_samples", "hardware_samples")],
                        [bool(bits & 0x84), bool(bits & 0x60), bool(bits & 8)])
    return check


def own_memory(r):
    """Of the one GPU that the process uses, whatever its number in the driver's order, once a second."""
    usual(r)
    told = counters(r)
    r.equal("GPUs", sorted({device for n, device in told if n == "bytes_in_use" and device}), ["0"])
    r.equal("in use", set(told["bytes_in_use", "0"]), {(1024 + 5 * 100) * 2 ** 20})
    r.holds("samples: %d" % len(told["bytes_in_use", "0"]), 1 <= len(told["bytes_in_use", "0"]) <= 4)
    r.holds("of the host: %d" % len(told["bytes_in_use", ""]), len(told["bytes_in_use", ""]) >= 10)
    asked = read_json(os.path.join(r.folder, "nvml.json"))
    r.holds("questions: %r" % asked, asked.get("nvmlDeviceGetMemoryInfo", 0) == 0 < asked["nvmlDeviceGetMemoryInfo_v2"] <= 4)


def no_health(r):
    usual(r)
    told = counters(r)
    r.equal("of a GPU", [n for n, device in told if device and "bytes" not in n], [])
    r.holds("of the host", told["processor_share", ""])


def memory_kinds(r):
    usual(r)
    r.equal("allocations", r.count(ALLOC) + r.count(FREE), r.truth["memory"])
    r.equal("pools", r.count(MARK, "^memory pool created"), r.truth["pools"])


def told_by_chrome(r, names, text=None):
    """Rows of streams and threads that a viewer shows under these names."""
    chrome = subprocess.run([os.path.join(B, "tacho-convert"), os.path.join(r.folder, "log"), "-t", "chrome", "-q", "-o",
                             "-"], capture_output=True, text=True, errors="replace").stdout
    rows = [e["args"]["name"] for e in (whole_json(chrome) or {}).get("traceEvents", []) if e.get("name") == "thread_name"]
    r.holds("rows %r among %r" % (names, rows), set(names) <= set(rows))
    r.holds("it says %r" % text, text is None or text in chrome)


def named(r):
    usual(r)
    told_by_chrome(r, ["stream %d of thread %d" % (i, k) for i in (0, 1) for k in (0, 1)] +
                   ["launcher %d" % k for k in (0, 1)], '"given_name": "the named device"')


def demangled(r):
    """What other tools look for in a kernel's name; the log has what CUPTI gave."""
    clean(r)
    accounts(r)
    r.equal("as it came", r.count(KERNEL, "^_Z39ncclDevKernel_AllReduce"), r.truth["by_name"][0])
    chrome = subprocess.run([os.path.join(B, "tacho-convert"), os.path.join(r.folder, "log"), "-t", "chrome", "-q",
                             "--args", "full", "-o", "-"], capture_output=True, text=True, errors="replace").stdout
    kernels = [e for e in (whole_json(chrome) or {}).get("traceEvents", []) if e.get("cat") == "kernel"]
    for name, mangled in (("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "_Z39nccl"),
                          ("void (anonymous namespace)::kernel_1<float, 1>(float*)", "_ZN12_GLOBAL__N_18kernel_1I")):
        of_name = [e for e in kernels if e["name"] == name]
        r.equal(name, len(of_name), r.count(KERNEL, "^" + mangled))
        r.holds("its mangled name", all(e["args"].get("mangled", "").startswith(mangled) for e in of_name))
    hta = subprocess.run([os.path.join(B, "tacho-analyze"), os.path.join(r.folder, "log"), "--compat", "hta", "-f", "json"],
                         capture_output=True, text=True, errors="replace").stdout
    r.holds("HTA takes it for communication", re.search(r'"(kernel_)?type": ?"COMMUNICATION"', hta))


def steps_compared(r):
    """Median and number of steps in the window and around it."""
    r.equal("exit code", r.code, 0)
    around, recorded = (int(r.about("steps_" + word) or 0) for word in ("around", "recorded"))
    r.holds("%d steps around, %d recorded" % (around, recorded), 10 <= around <= 190 and 10 <= recorded <= 100)
    begin_to_end = [int(r.about("steps_%s_median_ns" % word) or 0) for word in ("around", "recorded")]
    r.holds("medians %r" % begin_to_end, all(10000 < ns < 1e9 for ns in begin_to_end))
    told_by = subprocess.run([os.path.join(B, "tacho-analyze"), os.path.join(r.folder, "log"), "--report", "check", "-f",
                              "json"], capture_output=True, text=True, errors="replace").stdout
    r.holds("the report says it", "the median step took" in told_by)


def only_kernels(r):
    clean(r)
    r.equal("kernels", r.count(KERNEL), r.truth["kernels"])
    r.equal("calls", r.count(API), 0)
    r.equal("kinds", r.about("cupti_kinds"), '{"on":[1,2,8,9,10,22],"off":{}}')


def graph_level(r):
    usual(r)
    r.holds("by graph", r.about("cupti_graphs") == "graph")


def node_level(r):
    usual(r)
    r.equal("by node", r.about("cupti_graphs"), "node")


def many_windows(r):
    clean(r)
    accounts(r)
    r.equal("windows", sum(log.windows for log in r.logs), 100)
    r.equal("registered", (r.cupti or {}).get("registered"), 100)
    r.holds("kernels of each window", r.count(KERNEL) >= 100)
    calls, kernels = r.count(API, "^cudaLaunchKernel$"), r.count(KERNEL)
    # Calls that the begin and the end of recording find on their way, one for each thread, may have a kernel only.
    r.holds("%d launches, %d kernels" % (calls, kernels), kernels - calls <= 2 * r.truth["threads"] * 100)
    # On go calls first: launches until kernels are on have a call only.  The thread sanitizer on a busy machine has
    # been seen to stretch that time to a quarter of a window; accounts() says that nothing was lost.
    r.holds("%d launches, %d kernels" % (calls, kernels),
            calls - kernels <= max(400, calls // (2 if SANITIZED == "tsan" else 20)))


def some_steps(r):
    clean(r)
    accounts(r)
    r.equal("steps", r.count(STEP), 20)
    r.holds("kernels of 20 steps: %d" % r.count(KERNEL), 380 <= r.count(KERNEL) <= 440)


def no_events_no_flush(r):
    r.equal("exit code", r.code, 0)
    r.equal("flushes", (r.cupti or {}).get("flushes", 0), 0)


def late_attach(r):
    r.equal("exit code", r.code, 0)
    accounts(r)
    r.holds("kernels after the first look", 0 < r.count(KERNEL) < r.truth["kernels"])


def died(number, kernels=1000):
    """The log has what came before, and says that what CUPTI held is missing; so do those that read it."""
    def check(r):
        r.equal("exit code", r.code, -number)
        r.holds("closed", r.logs and all(log.whole for log in r.logs))
        r.holds("kernels before it: %d" % r.count(KERNEL), r.count(KERNEL) >= kernels)
        r.equal("lost: %s" % LOST["death"], r.lost("death"), 1)
        r.equal("in the report", check_report(r).get("death"), 1)
        for words in (("--report", "check"), ()):
            text = subprocess.run([os.path.join(B, "tacho-analyze"), os.path.join(r.folder, "log"), *words],
                                  capture_output=True, text=True, errors="replace").stdout
            r.holds("it is said: %s" % text[-2000:], "the GPU's last second" in text and
                    not re.search("there are none|no record was lost", text))
    return check


def kill_writer(process, folder):
    """The process that reads for this program is killed, in the middle between two of its flushes."""
    stored = os.path.join(folder, "log", "*.tacho")
    while process.poll() is None and not any(os.path.getsize(path) > 10000 for path in glob.glob(stored)):
        time.sleep(0.02)
    time.sleep(0.5)
    found = subprocess.run(["pgrep", "-f", "--", "--record-for %d$" % process.pid], capture_output=True, text=True).stdout
    for recorder in found.split():
        children = subprocess.run(["pgrep", "-P", recorder], capture_output=True, text=True).stdout.split()
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)


def writer_was_killed(r):
    """What it had read and not stored is counted, as is what nobody read after it."""
    r.equal("exit code", r.code, 0)
    r.equal("faults", (r.cupti or {}).get("fault_texts"), [])
    lost = sum(r.lost(key) for key in ("buffer", "time", "cut", "place", "ceiling", "cupti"))
    r.holds("some was stored: %d" % r.count(KERNEL), r.count(KERNEL))
    r.holds("what is missing is counted: %d" % r.lost("buffer"), r.lost("buffer") > 0)
    held = (r.cupti or {}).get("dropped", 0) + r.handed(*EVENTS) - rows_of_cupti(r) - lost
    # what CUPTI hands over when the program ends reaches nobody: the log says that something is missing there
    r.holds("neither in the log nor counted: %d" % held, held == 0 or r.lost("death"))
    r.holds("neither in the log nor counted: %d" % held, 0 <= held < r.handed(*EVENTS) / 10)


def noticed_takeover(r):
    r.equal("exit code", r.code, 0)
    r.holds("told", re.search("another tool", r.about("cupti_doubts")))


def foreign_copied(r):
    clean(r)
    told("cupti_doubts", "buffers of another tool came here")(r)
    r.equal("kernels", r.count(KERNEL), r.truth["kernels"])


def unloaded(r):
    usual(r)


def quick(r):
    r.equal("exit code", r.code, 5)


def in_time(r):
    usual(r)
    r.holds("no step of the clock in the log", spread_ns(r) < 10e9)


def spread_ns(r):
    """From the first to the last event."""
    place = os.path.join(r.folder, "log")
    text = subprocess.run([os.path.join(B, "tacho-convert"), place, "-t", "text", "-q"],
                          capture_output=True, text=True, errors="replace").stdout
    times = [float(line.split()[0]) for line in text.splitlines() if line and line[0] == " "]
    return (max(times) - min(times)) * 1e6 if times else 0


def finalized(r):
    clean(r)
    accounts(r)
    r.holds("finalized: %s" % r.cupti["finalized"], r.cupti["finalized"] >= 3)
    r.holds("kernels in windows after it", r.count(KERNEL) > 0)
    told("cupti_detached", "yes")(r)


def not_finalized(r):
    clean(r)
    r.equal("finalized", r.cupti["finalized"], 0)
    r.equal("detached", r.about("cupti_detached"), "no")


def nothing_within(r):
    """The process ends while CUPTI works: not before it has returned to us, and soon."""
    usual(r)
    r.holds("%.1f s" % r.seconds, r.seconds < 30)  # the limits of what it waits for are 26 s together


def stopped_later(r):
    """A window that ended while another thread was at starting it: recording stops nevertheless."""
    clean(r)
    r.equal("kinds that are on", r.cupti["on"], [])
    r.holds("%d of %d kernels" % (r.handed(10), r.truth["kernels"]), r.handed(10) < r.truth["kernels"] / 2)


def pressed(r):
    """Fifty thousand kernels that differ in name or grid: none is lost, each with its grid."""
    usual(r)
    seen = collections.Counter()
    for e in rows_by_csv(r, "--args", "full"):
        if e["kind"] == "kernel":
            seen[e["name"], whole_json(e["args"])["grid_y"]] += 1
    r.equal("kinds of launches", len(seen), 50000)
    r.equal("of each", set(seen.values()), {2})


def storm(r):
    """Where calls cannot be left out one by one, those of the driver are not recorded while the runtime's say it all."""
    usual(r)
    made = r.cupti["made_by_kind"]
    r.holds("%d records of the driver, %d of the runtime" % (made["4"], made["5"]), made["4"] < made["5"] * 0.7)
    told("cupti_kinds", '"off":{"4":0')(r)


def driven_in_a_storm(r):
    """Kernels that the driver launches keep their calls, also those that begin when driver calls were off."""
    clean(r)
    accounts(r)
    calls = r.count(API, "^cuLaunchKernel$")
    r.holds("%d calls of %d" % (calls, r.truth["drives"]), r.truth["drives"] * (
        0.4 if "drives_from" in r.row["words"] else 1) <= calls)


def fewer(row):
    """The thread sanitizer makes the writer so slow that it does not end in its two seconds at the exit:
    by how much there is less to do."""
    word = {key: int(n) for key, n in re.findall(r"--(threads|steps|kernels) (\d+)", row["words"])}
    if int((re.findall(r"--step_us (\d+)", row["words"]) or [0])[0]) >= 3000:
        return 1  # it has time between its steps
    launches = word.get("threads", 1) * word.get("steps", 10) * word.get("kernels", 20)
    return -(-launches // 3000) if SANITIZED == "tsan" and row["window"] == "all" else 1


def words_of(row):
    return re.sub(r"--steps (\d+)", lambda m: "--steps %d" % (int(m[1]) // fewer(row)), row["words"]).split()


def flood(r):
    clean(r)
    accounts(r)
    visible(r)
    made = r.cupti["made"]
    r.holds("a million records: %d" % made, made > 1000000 // fewer(r.row))
    r.rate = made / r.seconds
    peak = max(log.peak_bytes for log in r.logs) / 1e6
    r.note = "%.2f M records/s, %.0f MB at most, %d lost" % (r.rate / 1e6, peak, r.lost("buffer"))
    # what was allowed, and what the program and its stand-in take by themselves
    r.holds("%.0f MB at most" % peak, 0 < peak < 128 * 1.05 + 120)


def doctor(pattern, calls=None):
    def check(r):
        r.equal("exit code", r.code, 0)
        r.holds("it says %r: %r" % (pattern, r.out), re.search(pattern, r.out, re.M))
        r.holds("we are no other tool: %r" % r.out, "others    NVTX" not in r.out)
        if calls is not None:  # not one
            r.equal("calls of CUPTI", sum((r.cupti or {}).get("calls", {}).values()), calls)
    return check


def same_as_without(r):
    """What the program prints and how it ends, as without a collector."""
    env = {k: v for k, v in environment(r.row, r.build, r.folder).items() if not k.startswith(("TACHO_", "CUDA_", "LD_PRE"))}
    env["FAKE_CUPTI_REPORT"] = ""
    alone = subprocess.run(r.command, capture_output=True, text=True, errors="replace", env=env)
    def own(text):  # but its number, and that we ask whether CUDA is alive (driver 2, 4)
        return re.sub(r'"(pid|calls|2|4)": \d+(, )?', "", text)
    r.equal("exit code", r.code, alone.returncode)
    r.equal("output", own(r.out), own(alone.stdout))
    r.equal("errors", r.err, alone.stderr)
    if r.code >= 0 and "--quick" not in r.row["words"]:
        r.holds("it was recorded", r.count(KERNEL) > 0)


def prints(*lines, err=""):
    def check(r):
        r.equal("exit code", r.code, r.row["code"])
        r.equal("output", [expand(line, r.build) for line in lines], r.out.split())
        r.holds("said: %r" % r.err, re.search(err, r.err))
    return check


NCCL_HASH = 0xfeedface00c0ffee


def nccl_events(r):
    """(name, arguments) of what the plugin has recorded."""
    for e in rows_by_csv(r, "--args", "full"):
        args = whole_json(e["args"]) or {}
        if args.get("domain") == "NCCL profiler":
            yield e["name"], args


def nccl(version, steps=10, channels=True, kernels=True):
    """All that was played is in the log with its fields, and a kernel has those of its call.
    kernels: CUPTI had time to begin before the window."""
    def check(r):
        t = r.truth
        r.equal("exit code", r.code, 0)
        r.holds("told %d and more" % steps, steps <= t["colls"] and t["points"] == 3 * t["colls"])
        r.equal("NCCL makes no events behind the window", t["mask"], 0)
        by = collections.defaultdict(list)
        for name, args in nccl_events(r):
            by[name].append(args)
        ranks = {} if version < 4 else {"group_size": 16}
        wanted = dict(ranks, bytes=4 << 20, comms_id=NCCL_HASH, collective="AllReduce", element_type="Float", algorithm="RING",
                      protocol="LL", channels=4, warps=16, root=0, group_rank=1)
        r.equal("collectives", [{k: a.get(k) for k in wanted} for a in by["AllReduce"]], [wanted] * steps)
        numbers = [a["collective_seq"] for a in by["AllReduce"]]
        r.equal("their numbers", numbers, list(range(numbers[0], numbers[0] + steps)) if numbers else [0])
        pair = [(a["bytes"], a["src_rank"], a["dst_rank"], a["element_type"]) for a in by["Send"] + by["Recv"]]
        r.equal("messages", pair, [(2000, 1, 7, "BFloat16")] * (2 * steps) + [(2000, 7, 1, "BFloat16")] * steps)
        of_step = {"kernel channel": 4 * (channels and version > 2), "proxy operation": 2 * channels}
        r.equal("by kind", {k: len(by[k]) for k in of_step}, {k: n * steps for k, n in of_step.items()})
        r.equal("by the GPU", sum(a["gpu_ns"] for a in by["kernel channel"]), 20006 * steps * (channels and version > 3))
        r.equal("bytes of proxies", sum(a["bytes"] for a in by["proxy operation"]), 2 * 3 * 4096 * steps * channels)
        for a in by["kernel channel"] + by["proxy operation"]:
            r.holds("of a collective: %r" % a, a["comms_id"] == NCCL_HASH and a["collective_seq"] in numbers)
        for a in by["proxy operation"]:
            r.holds("waits: %r" % a, a["network_wait_ns"] >= 900000 and a["gpu_wait_ns"] > 0 and a["took_ns"] >= a[
                "network_wait_ns"] + a["gpu_wait_ns"] and (a["peer_wait_ns"] > 0) == (version > 3 and a["src_rank"] == 1))
        if not kernels:
            return
        rows = {(c["operation"], c["group"]): c for rank in analyzed(r, "comm").get("ranks", []) for c in rank["comm"]}
        group = "%#x" % NCCL_HASH
        for key, bytes_of, kind in ((("all_reduce", group), 4 << 20, "Float"), (("send_recv", group + " 1>7"), 2000, "BFloat16"),
                                    (("send_recv", ""), None, "")):
            c = rows.get(key, {})
            r.equal("kernels of %r" % (key,), (c.get("size_bytes", 0), c.get("type")), (bytes_of, kind))
            r.holds("so many: %r" % c.get("count"), steps <= c.get("count", 0))
    return check


def nccl_windows(r):
    """Each window has its collectives, though the helper is busy with CUPTI while windows come and go."""
    r.equal("exit code", r.code, 0)
    r.equal("collectives", sum(name == "AllReduce" for name, _ in nccl_events(r)), 9)
    r.equal("NCCL makes no events behind the windows", r.truth["mask"], 0)


def nccl_hang(r):
    """Ranks 0 and 2 have called a collective that rank 1 has not, and all were killed then."""
    tables = analyzed(r, "hang")
    said = [row["sentence"] for row in tables["hang"]]
    r.equal("who waits for whom", said, ["AllReduce 30 of process group %#x hangs: rank 1 never requested it; ranks 0, 2 wait." % NCCL_HASH])
    r.holds("no dumps: %r" % tables["verdict"], "dumps" not in str(tables["verdict"]))
    r.equal("all hung", [rank["hang_open"] and rank["hang_open"]["step"] for rank in tables["ranks"]], [29] * 3)


def nccl_crowd(r):
    """More communicators than there are places: what has none is not recorded, and counted."""
    r.equal("exit code", r.code, 0)
    r.equal("collectives", sum(name == "AllReduce" for name, _ in nccl_events(r)), r.truth["colls"])
    r.equal("without a place", r.lost("ceiling"), 3000 - 1023)


def injects_another(r):
    """The other tool's library is loaded as CUDA would have done it, and has CUPTI's records or ours has."""
    r.equal("exit code", r.code, 0)
    other = read_json(os.path.join(r.folder, "mini.json"))
    r.holds("the other tool was there: %r" % other, other is not None)
    r.holds("there is a log", r.logs and r.count(STEP) > 0)


def no_driver_at_all(r):
    """All else is recorded, and it is told why there is no more."""
    r.equal("exit code", r.code, 0)
    r.equal("CUPTI", r.cupti, None)
    r.holds("steps", r.count(STEP) > 0)
    nothing(r)
    told("cupti_absent", "did not start CUDA")(r)
    told_by = subprocess.run([os.path.join(B, "tacho-analyze"), os.path.join(r.folder, "log"), "--report", "check"],
                             capture_output=True, text=True, errors="replace").stdout
    r.holds("the report says it", "no GPU was recorded" in told_by)


BUILDS = ("12", "13", "13.5", "14")
ROWS = []


def row(name, check=usual, words="", window="all", builds=("13",), code=0, preload=False, guard=True,
        driver=True, foreign_rows=None, program=None, during=None, **env):
    ROWS.append(dict(name=name, check=check, words=words, window=window, builds=builds, code=code,
                     preload=preload, guard=guard, env=env, driver=driver, program=program, during=during, **(
                         {"foreign_rows": foreign_rows} if foreign_rows else {})))


def fake(**options):
    return {"FAKE_CUPTI_" + key.upper(): str(value) for key, value in options.items()}


# names of devices that never come back with their buffer cannot be freed
LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}

# as it should be
row("plain", builds=BUILDS)
row("threads", words="--threads 8 --steps 50 --streams 3", builds=BUILDS)
row("threads-100", words="--threads 100 --steps 20 --step_us 20000")
row("one-buffer-for-all", words="--threads 8 --steps 50", builds=("12", "13"), **fake(per_thread=0))
row("peers", words="--peers 3 --devices 2", builds=BUILDS, FAKE_CUDA_DEVICES="2")
row("others", kinds_of_others, "--others 1", builds=BUILDS)
row("others-12.3", threads_of_overhead, "--others 1 --threads 3", builds=("12",), **fake(api_version=21))
row("nested-calls", one_call_each, "--threads 3 --steps 40", builds=BUILDS)
row("older-driver", refused("^the driver is of CUDA 13.0 and CUPTI of CUDA 13.5: update"), builds=("13.5",), preload=True,
    **fake(fail_enable=999))
HEALTH = "--steps 300 --step_us 10000"
row("memory-of-own-gpus", own_memory, HEALTH, preload=True, FAKE_CUDA_DEVICES="8", FAKE_NVML_DEVICES="8", FAKE_NVML_TURN="3",
    FAKE_NVML_EACH_MB="100")
row("health", health, HEALTH, preload=True, TACHO_KINDS="all,health", FAKE_CUDA_DEVICES="2", FAKE_NVML_DEVICES="2",
    FAKE_NVML_CLOCK="1900", FAKE_NVML_REASONS="4", FAKE_NVML_WIDTH="8", FAKE_NVML_XIDS="2")
LONGER = "--threads 2 --devices 2 --steps 620 --step_us 3000 --duration_ns 300000"
GPUS = dict(preload=True, TACHO_KINDS="all,health", FAKE_CUDA_DEVICES="2", FAKE_NVML_DEVICES="2")
row("health-good", health_found(), LONGER, **GPUS)
row("health-bad", health_found("clock_below_base", "throttled", "slow_gpu"), LONGER, FAKE_NVML_CLOCK="1500", FAKE_NVML_STEP="400",
    FAKE_NVML_REASONS="32", FAKE_NVML_WIDTH="16", **GPUS)
row("health-slow-slot", health_found("slow_slot"), LONGER + " --copies 60", FAKE_NVML_WIDTH="4", **GPUS)
row("health-no-driver", no_health, HEALTH, preload=True, TACHO_KINDS="all,health", FAKE_NVML_INIT="9")
row("health-driver-fails", no_health, HEALTH, preload=True, TACHO_KINDS="all,health", FAKE_NVML_ERROR="999",
    FAKE_NVML_ERROR_AFTER="1")
row("health-slow-driver", lambda r: (usual(r), quiet(r)), preload=True, TACHO_KINDS="all,health", FAKE_NVML_LATENCY_US="20000")
row("memory", memory_kinds, "--others 1", builds=BUILDS, TACHO_KINDS="all,memory")
row("only-kernels", only_kernels, TACHO_KINDS="kernel")
row("graphs-by-node", node_level, "--graphs 4", builds=BUILDS, TACHO_GRAPHS="node")
row("graphs-by-graph", graph_level, "--graphs 4", builds=BUILDS, TACHO_GRAPHS="graph")
row("graphs-auto", node_level, "--graphs 4")
row("graphs-auto-after-losses", lambda r: (r.holds("nodes, then graphs", r.count(KERNEL, "^graph_a$") and r.count(GRAPH)),
                                        told("cupti_graphs", "graph")(r)),
    "--steps 100 --graphs 2 --step_us 2000 --flush 4", "schedule:wait=10,active=10,repeat=2", preload=True, **fake(drop_every=10))
row("graphs-in-conflict", node_level, "--graphs 4", TACHO_GRAPHS="graph", **fake(graph_conflict=1))
row("long-names", words="--name_bytes 4000 --names 100 --steps 20")
row("mangled-names", demangled, "--nccl 1 --steps 20")
row("longer-names", words="--name_bytes 5500 --names 20")
row("wild-names", words="--wild 1", builds=BUILDS)
row("many-names", words="--names 1000 --kernels 300 --threads 3")
row("churn", words="--churn 1 --threads 8 --steps 40", builds=BUILDS)
row("polls", words="--polls 300")
row("noise-that-cannot-be-muted", words="--polls 300", builds=("12",))
row("storm", storm, "--threads 2 --polls 100 --steps 3000 --step_us 500", builds=("12",))
row("storm-with-launches", driven_in_a_storm, "--known 1 --drives 2 --polls 100 --steps 2000 --step_us 500", builds=("12",))
row("storm-with-later-launches", driven_in_a_storm,
    "--known 1 --drives 30 --drives_from 2500 --kernels 5 --polls 100 --steps 6000 --step_us 500", builds=("12",))
row("tables-under-pressure", pressed, "--steps 500 --kernels 200 --names 100 --shapes 500", builds=("12", "13"))
row("profiler", words="--profiler 1")

row("names-by-nvtx", named, "--named 1 --streams 2 --threads 2", builds=BUILDS)
row("names-by-nvtx-later", lambda r: (usual(r), told_by_chrome(r, ["stream 0 of thread 0", "stream 1 of thread 0"])),
    "--named 2 --streams 2 --steps 100 --step_us 3000")
row("steps-compared", steps_compared, program="samples/train_mlp --steps 300 --quiet", window="steps:100-200")

# order, pointers, padding
row("shuffled", words="--threads 4 --steps 100 --graphs 1 --others 1", builds=BUILDS, **fake(shuffle=1))
row("names-are-freed", words="--threads 4 --steps 100", **fake(poison_names=2))
row("empty-buffers", words="--threads 4 --steps 100 --kernels 200", TACHO_CUPTI_BUFFER="64K", **fake(empty_every=3))
row("small-buffers", words="--threads 4 --steps 200 --kernels 100", TACHO_CUPTI_BUFFER="64K", builds=BUILDS)
row("strange-records", lambda r: (clean(r), accounts(r)), builds=BUILDS, **fake(strange_every=7))
row("late-buffers", words="--threads 4 --steps 100 --kernels 200", TACHO_CUPTI_BUFFER="64K", **fake(late_every=4))
row("flush-and-worker", words="--threads 8 --steps 100 --kernels 100", TACHO_CUPTI_BUFFER="64K", **fake(share_flush=1))
row("flush-gives-nothing", builds=BUILDS, **fake(flush_nothing=1))
row("worker-never-runs", words="--threads 4 --steps 100 --kernels 100", TACHO_CUPTI_BUFFER="64K", **fake(worker_ms=0))
row("slow-enable", **fake(enable_us=300000))
row("slow-flush", words="--steps 20", **fake(flush_us=50000))

# times
row("times-0", lossy("time"), builds=BUILDS, **fake(zero_every=5))
row("times-reversed", lossy("time"), **fake(reverse_every=5))
row("work-never-ends", lossy("time"), **fake(hold=1))
row("clock-off", lambda r: (usual(r), told("cupti_doubts", "clock was 3[.]")(r)), **fake(clock_offset_ns=3000000000))
row("clock-of-wsl", lambda r: (in_time(r), quiet(r)), "--steps 150 --step_us 10000 --threads 2", **fake(clock_raw=1))
row("events-on-another-clock", builds=("13", "13.5"), **fake(event_ticks=1))
row("unsettled", **fake(unsettled_ms=5))
row("clock-set-back", in_time, "--steps 150 --step_us 10000 --threads 2", FAKE_GUARD_STEP_NS="-1000000000",
    FAKE_GUARD_STEP_MS="700")
row("clock-set-on", in_time, "--steps 150 --step_us 10000 --threads 2", FAKE_GUARD_STEP_NS="3600000000000",
    FAKE_GUARD_STEP_MS="700")

# losses
row("dropped", lossy("cupti"), builds=BUILDS, **fake(drop_every=10))
row("pool-dry", lossy("buffer", "time"), "--threads 8 --steps 400 --kernels 200", TACHO_MEMORY="16M", TACHO_CUPTI_BUFFER="2M",
    **fake(worker_ms=1))
row("pool-dry-12", lossy("buffer", "time"), "--threads 8 --steps 400 --kernels 200", builds=("12",), TACHO_MEMORY="16M",
    TACHO_CUPTI_BUFFER="2M", FAKE_CUPTI_PER_THREAD="1")

# errors
row("no-driver", refused("no usable driver|does not work"), builds=BUILDS, preload=True, **fake(driver=0))
row("cuda-does-not-start", lambda r: (r.equal("kernels", r.count(KERNEL), 0), r.holds("alive", r.code >= 0)), preload=True,
    FAKE_CUDA_INIT_FAILS="100")
row("no-cuda", lambda r: (r.equal("exit code", r.code, 0), r.equal("CUPTI", r.cupti, None)), "--no_cuda 1", preload=True)
row("taken", refused("^Nsight Systems traces this process"), preload=True, **fake(fail_subscribe=39))
row("taken-12", refused("^another tool traces this process"), builds=("12",), preload=True, **fake(fail_subscribe=39))
row("no-privilege", refused("NVreg_RestrictProfilingToAdminUsers=0"), builds=BUILDS, preload=True, **fake(fail_enable=35))
row("not-initialized", refused("no usable driver"), preload=True, **fake(fail_enable=15))
row("unknown", refused("no usable driver"), builds=("12", "13"), preload=True, **fake(fail_enable=999))
row("of-the-future", refused("CUPTI refuses: .*60"), builds=("14",), preload=True, **fake(fail_enable=60))
row("mixed-v1-v2", refused("^another tool traces this process"), builds=("13", "13.5"), preload=True, **fake(mixed=2))
row("mig", refused("MIG"), preload=True, **fake(fail_enable=43))
row("register-fails", refused("another tool"), preload=True, **fake(fail_register=39))
row("kernels-refused", lambda r: (clean(r), accounts(r), told("cupti_problem", "excludes ours")(r),
                                  r.equal("copies", r.count(MEMCPY), r.truth["copies"])),
    **fake(fail_enable=14, fail_kind=10))
row("sync-refused", lambda r: (clean(r), accounts(r), told("cupti_kinds", '"38":27')(r),
                               r.equal("kernels", r.count(KERNEL), r.truth["kernels"])),
    **fake(fail_enable=27, fail_kind=38))
row("no-attributes", builds=BUILDS, **fake(fail_attribute=1))
row("no-thread-ids", lambda r: (usual(r), told("cupti_doubts", "other numbers")(r)), **fake(fail_thread_id=1))
row("flush-fails", lambda r: (r.equal("exit code", r.code, 0), told("cupti_doubts", "did not come back")(r)),
    preload=True, **LEAKS, **fake(fail_flush=1))
row("flush-blocks-before-use", no_events_no_flush, "--no_cuda 1", preload=True, **fake(flush_blocks=1))
row("dropped-unknown", lambda r: (clean(r), exact(r)), **fake(fail_dropped=1))

# functions that are not there: their feature is off, and nothing else
WITHOUT = {
    "cuptiActivityEnableAndDump": usual, "cuptiActivityGetNumDroppedRecords": usual, "cuptiActivitySetAttribute": usual,
    "cuptiSetThreadIdType": lambda r: (usual(r), told("cupti_doubts", "other numbers")(r)),
    "cuptiGetCallbackName": lambda r: (clean(r), accounts(r), r.equal("kernels", r.count(KERNEL), r.truth["kernels"]),
                                       r.holds("calls by number", r.count(API, "^runtime call 211$"))),
    "cuptiGetResultString": usual, "cuptiSubscribe": usual, "cuptiSubscribe_v2": usual, "cuptiUnsubscribe": usual,
    "cuptiActivityEnableRuntimeApi": usual, "cuptiActivityEnableDriverApi": usual, "cuptiFinalize": usual,
    "cuptiGetTimestamp": lambda r: (clean(r), r.equal("kernels", r.count(KERNEL), r.truth["kernels"])),
    "cuptiActivityRegisterCallbacks": refused("has no cuptiActivityRegisterCallbacks"),
    "cuptiActivityGetNextRecord": refused("has no cuptiActivityGetNextRecord"),
}
for symbol, check in WITHOUT.items():
    row("without-" + symbol, check, builds=("13-without-" + symbol,), preload=True)
# before a call of CUPTI the driver is looked for: some versions crash without, others fail at all
row("doctor-no-driver", doctor("no driver: libcuda.so.1 is not found, so .*libcupti", 0), builds=BUILDS, driver=False,
    program="tacho-record --doctor", **fake(driver_crash=1))
row("doctor", doctor("GPU work  can be recorded"), builds=BUILDS, program="tacho-record --doctor")
row("doctor-of-a-command", doctor(r"^process   \d+, .*fake_train_12\n(.*\n)*CUPTI     12.4 .22., .*/12/libcupti.so.12"), builds=("12",),
    program="tacho-record --doctor -- fake/fake_train_12 --steps 2 --known 1", LD_LIBRARY_PATH="@/13:@/nvml:@/12:@/driver",
    TACHO_CUPTI_LIB="")
row("doctor-of-another-command", doctor("^command   has loaded nothing of CUDA(.*\n)*CUPTI     13[.]0"), program="tacho-record --doctor -- true",
    TACHO_CUPTI_LIB="")
row("doctor-driver-fails", doctor("GPU work  no usable driver|the driver is missing"), builds=BUILDS,
    program="tacho-record --doctor", **fake(driver=0))
row("no-driver-at-all", no_driver_at_all, builds=BUILDS, driver=False, program="samples/train_mlp --steps 3 --quiet", window="all",
    **fake(driver_crash=1))

row("no-library", refused("/none/libcupti.so cannot be loaded"), builds=("none",), preload=True,
    TACHO_CUPTI_LIB="/none/libcupti.so")

# what must not be taken for a fault
row("no-false-lateness", lambda r: (usual(r), quiet(r)), "--before_ms 300", preload=True, FAKE_NVML_LATENCY_US="20000")
row("no-false-takeover", lambda r: (clean(r), accounts(r), quiet(r), r.equal("kernels", r.count(KERNEL), r.truth["kernels"])),
    "--threads 1 --steps 140 --kernels 20 --duration_ns 2000000 --sync 0 --events 0 --copies 0 --step_us 30000 --after_ms 1000",
    preload=True)
row("no-slander-of-12.4", lambda r: (usual(r), r.equal("warnings", r.about("cupti_warnings"), "")), builds=("12",))
row("gpu-behind", behind, "--steps 60 --kernels 30 --duration_ns 2000000 --sync 0 --events 0 --copies 0 --step_us 2000 --after_ms 3500",
    "steps:10-40", preload=True)
row("queries", queries, "--steps 20 --queries 200 --duration_ns 4000000", builds=("12", "13", "13.5"))
row("queries-cannot-be-left-out", queries, "--steps 20 --queries 200 --duration_ns 4000000",
    builds=("13-without-cuptiActivityEnableAllSyncRecords",))
row("stays-as-it-was", lambda r: (clean(r), r.holds("the other tool: %d" % r.truth["tool"], r.truth["tool"] > 0)),
    "--steps 60 --step_us 3000 --tool_from 40 --tool_to 55", "steps:5-15", preload=True, guard=False)
row("after-a-tool", after_a_tool, "--steps 120 --step_us 3000 --duration_ns 50000 --tool_from 10 --tool_to 20",
    "schedule:wait=40,active=10", preload=True, guard=False, builds=("12", "13", "13.5"), **LEAKS)
row("taken-over", taken_over, "--steps 900 --step_us 10000 --tool_from 100 --tool_to 150", preload=True, guard=False,
    builds=("12", "13"), **LEAKS)
row("slow-start-of-kinds", usual, "--threads 4 --steps 50", preload=True, **fake(enable_us=100000))

# another tool in the process
row("takes-our-callbacks", noticed_takeover, "--steps 200", preload=True, **LEAKS,
    **fake(foreign=1, foreign_after=500))
# small buffers: a thread asks for the next one, then of the other tool, when it has filled the one that it has
row("its-buffers-come-here", foreign_copied, "--steps 200 --threads 3", guard=False, TACHO_CUPTI_BUFFER="64K",
    **fake(foreign=2, foreign_after=500))
row("switches-off", noticed_takeover, "--steps 100", builds=("12", "13", "13.5"), preload=True, **fake(foreign=3, foreign_after=500))

row("second-copy", lambda r: (usual(r), told("cupti_doubts", "another copy of CUPTI.*/13.5/libcupti.so.13")(r)),
    "--steps 60 --step_us 3000 --second 1", preload=True, FAKE_TRAIN_SECOND="@/13.5/libcupti.so.13")

# windows and life
row("windows-100", many_windows, "--steps 400 --step_us 8000 --flush 4", "schedule:wait=2,active=2", preload=True)
row("windows-100-12", many_windows, "--steps 400 --step_us 8000 --threads 4 --flush 4", "schedule:wait=2,active=2", preload=True, builds=("12",))
row("steps", some_steps, "--steps 100 --step_us 5000", "steps:40-60", preload=True)
row("rotated", rotated, "--threads 2 --steps 500 --step_us 6000 --duration_ns 100000", preload=True, builds=("12", "13"),
    TACHO_ROTATE="48K", TACHO_SAMPLE="none")
row("max-disk", newest_kept, "--threads 2 --steps 800 --step_us 6000 --duration_ns 100000", preload=True, builds=("12", "13"),
    TACHO_MAX_DISK="256K", TACHO_SAMPLE="none")
row("max-disk-health", constants_kept, "--threads 2 --steps 800 --step_us 6000 --duration_ns 100000", preload=True,
    TACHO_MAX_DISK="256K", TACHO_KINDS="all,health")
row("max-disk-all-killed", all_killed, "--threads 2 --steps 2000 --step_us 3000 --duration_ns 100000", preload=True, during=kill_all,
    TACHO_MAX_DISK="1M", TACHO_ROTATE="48K", TACHO_SAMPLE="none")
row("steps-from-0", lambda r: (clean(r), accounts(r), r.holds("kernels: %d" % r.count(KERNEL), 400 <= r.count(KERNEL) <= 440)),
    "--steps 40 --step_us 5000", "steps:0-20", preload=True)
row("warm-up", some_steps, "--steps 100 --step_us 5000", "schedule:wait=20,warmup=5,active=20,repeat=1", preload=True)
row("finalize", finalized, "--steps 100 --step_us 3000", "schedule:wait=10,active=10", preload=True, TACHO_FINALIZE="yes")
row("finalize-auto", finalized, "--steps 100 --step_us 3000", "schedule:wait=10,active=10", preload=True, TACHO_FINALIZE="auto")
row("finalize-auto-with-graphs", not_finalized, "--steps 100 --step_us 3000 --graphs 2", "schedule:wait=10,active=10", preload=True,
    TACHO_FINALIZE="auto")
row("finalize-auto-with-graphs-by-calls", not_finalized, "--steps 100 --step_us 3000 --graphs 2 --flush 4", "schedule:wait=10,active=10",
    preload=True, TACHO_FINALIZE="auto", TACHO_KINDS="api")
row("finalize-not-here", not_finalized, "--steps 60", "schedule:wait=10,active=10", preload=True, builds=("12",), TACHO_FINALIZE="auto")
row("no-finalize", not_finalized, "--steps 60", "schedule:wait=10,active=10", preload=True, **fake(finalize_crashes=1))
row("injected-again", words="--again 1 --threads 4 --steps 30", builds=("12", "13"))
row("injected-again-late", late_attach, "--again 1 --steps 200 --step_us 5000", "delay=200ms", preload=True)
row("fork", words="--fork 1 --threads 3 --steps 40", builds=("12", "13"))
row("fork-quick", words="--fork 2 --threads 3 --steps 40")
row("fork-exec", words="--fork 3 --threads 3 --steps 40")
row("unload", words="--unload 1")
row("kill", died(signal.SIGKILL), "--steps 400 --step_us 10000 --kill 9")
row("kill-before-a-flush", died(signal.SIGKILL, 0), "--steps 20 --kill 9", preload=True)
row("segv", died(signal.SIGSEGV), "--steps 1600 --step_us 1000 --kill 11", preload=True,
    ASAN_OPTIONS="handle_segv=0", TSAN_OPTIONS="handle_segv=0")
row("term", died(signal.SIGTERM), "--steps 1600 --step_us 1000 --kill 15", preload=True)
row("writer-killed", writer_was_killed, "--steps 800 --step_us 8000", preload=True, during=kill_writer, TACHO_SAMPLE="none")
# longer than an exit waits for the recorder; up to three of them follow on each other
row("exit-within-cupti", nothing_within, "--steps 20", preload=True, **fake(flush_us=2500000))
row("exit-within-a-flush", nothing_within, "--steps 20 --after_ms 1200", preload=True, **fake(flush_us=2500000))
row("stopped-later", stopped_later, "--early 1 --before_ms 200 --steps 400 --step_us 10000", "for=1s", preload=True,
    ASAN_OPTIONS="detect_leaks=0",  # a name of the stand-in lies in a buffer that nobody asks for any more
    **fake(enable_us=2500000))
row("quick-exit", quick, "--quick 1 --exit 5", code=5)
row("exit-from-a-thread", quick, "--quick 2 --exit 5 --threads 4 --steps 50", code=5,
    TSAN_OPTIONS="report_thread_leaks=0")
row("exit-code", code=7, words="--exit 7")
# the host is what it was
HOST = "--threads 2 --graphs 1 --others 1 --fork 3"
row("host-output", same_as_without, HOST, builds=BUILDS)
row("host-exit", same_as_without, HOST + " --exit 9", builds=BUILDS, code=9)
row("host-killed", same_as_without, "--steps 100 --kill 9")
row("host-term", same_as_without, "--steps 100 --kill 15")
row("host-quick", same_as_without, "--quick 1 --exit 5 --steps 300")
row("injects", prints("@/../libtacho.so"), program="tacho-record --quiet -- printenv CUDA_INJECTION64_PATH")
row("injected-by-another", prints("@/../libtacho.so", "/other/tool.so", err="another tool: it is loaded first"),
    program="tacho-record -- printenv CUDA_INJECTION64_PATH TACHO_NEXT_INJECTION", CUDA_INJECTION64_PATH="/other/tool.so")
row("injects-another", injects_another, program="tacho-record -q -- fake/fake_train --steps 30 --step_us 1000",
    CUDA_INJECTION64_PATH="@/libfake_mini.so")
# children: by themselves they see what they would have seen; a recorded command is followed into them, and what
# was preloaded before, or is by a child's own wish, stays
row("host-children", same_as_without, "--fork 4", guard=False)
row("children-are-followed", prints("@/../libtacho.so:libm.so.6"),
    program="tacho-record --quiet -- timeout 9 printenv LD_PRELOAD", LD_PRELOAD="libm.so.6")
row("children-as-they-wish", prints("libm.so.6"),
    program="tacho-record --quiet -- env LD_PRELOAD=libm.so.6 timeout 9 printenv LD_PRELOAD")
row("children-exit", prints(), program="tacho-record --quiet -- timeout 9 false", code=1)
row("recorded-exit", prints(), program="tacho-record --quiet -- false", code=1)
row("late", late_attach, "--steps 200 --step_us 5000", preload=True, CUDA_INJECTION64_PATH="")

# NCCL, in each version of its profiler interface
for version in range(1, 8):
    row("nccl-v%d" % version, nccl(version), program="tacho-record -q --nccl all -- fake/fake_nccl %d 30" % version, window="steps:0-10")
row("nccl-calls", nccl(7, channels=False), program="tacho-record -q -- fake/fake_nccl 7 30", window="steps:0-10")
row("nccl-calls-v1", nccl(1, channels=False), program="tacho-record -q -- fake/fake_nccl 1 30", window="steps:0-10")
row("nccl-in-a-window", nccl(5, 4, kernels=False), program="tacho-record -q --nccl all -- fake/fake_nccl 5 40", window="steps:20-24")
row("nccl-behind-a-warm-up", nccl(5, 4), program="tacho-record -q --nccl all -- fake/fake_nccl 5 240",
    window="schedule:wait=20,warmup=200,active=4,repeat=1")
row("nccl-windows", nccl_windows, program="tacho-record -q --nccl all -- fake/fake_nccl 5 30",
    window="schedule:wait=3,active=3,repeat=3", **fake(enable_us=20000))
row("nccl-hang", nccl_hang, program="tacho-record -q -- fake/fake_nccl 5 30 0 job")
row("nccl-crowd", nccl_crowd, program="tacho-record -q -- fake/fake_nccl 7 10 3000", window="steps:0-10")
row("nccl-not-asked-for", lambda r: r.equal("output", (r.code, "nothing has" in r.out), (3, True)),
    program="tacho-record -q --nccl no -- fake/fake_nccl 7")
row("nccl-of-another", prints("/other/plugin.so"), program="tacho-record -q -- printenv NCCL_PROFILER_PLUGIN",
    NCCL_PROFILER_PLUGIN="/other/plugin.so")

# load
row("flood", flood, "--threads 8 --steps 1200 --kernels 60 --copies 0 --sets 0 --allocs 0 --events 0 --polls 0 --sync 0",
    TACHO_MEMORY="128M", TACHO_SAMPLE="10ms")


# ---- running ----

def expand(text, build):
    return text.replace("@/..", B).replace("@", os.path.join(B, "fake")).replace("{build}", build)


def preload_of(row):
    if SANITIZED:
        runtime = subprocess.run(["cc", "-print-file-name=lib%s.so" % SANITIZED], capture_output=True, text=True)
        return runtime.stdout.strip() + ":" + os.path.join(B, "libtacho.so")
    parts = ["@/libfake_guard.so"] if row["guard"] else []
    if row["preload"]:
        parts.append(os.path.join(B, "libtacho.so"))
    return ":".join(parts)


def environment(row, build, folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TACHO_", "FAKE_", "CUDA_"))}
    path = "@/{build}:@/nvml:@" + (":@/driver" if row["driver"] else "")
    env.update({
        "LD_LIBRARY_PATH": expand(path, build), "TACHO_WINDOW": row["window"],
        "TACHO_OUT": os.path.join(folder, "log"), "FAKE_CUPTI_REPORT": os.path.join(folder, "cupti.json"),
        "FAKE_GUARD_REPORT": os.path.join(folder, "guard.json"),
        "FAKE_NVML_REPORT": os.path.join(folder, "nvml.json"),
        "FAKE_MINI_REPORT": os.path.join(folder, "mini.json"),
        "CUDA_INJECTION64_PATH": os.path.join(B, "libtacho.so")})
    if preload_of(row) and (not SANITIZED or row["preload"]):
        env["LD_PRELOAD"] = expand(preload_of(row), build)
    if build == "14":  # no driver of today would bring it
        env["TACHO_CUPTI_LIB"] = expand("@/14/libcupti.so.14", build)
    if row["program"]:
        del env["CUDA_INJECTION64_PATH"]
        env.pop("LD_PRELOAD", None)
        env["TACHO_CUPTI_LIB"] = expand("@/{build}/libcupti.so." + build.split(".")[0], build)
    if SANITIZED == "tsan":  # the writer is slower by far than the stand-in
        env["TACHO_MEMORY"] = "512M"
    env.update({k: expand(v, build) for k, v in row["env"].items()})
    return env


WITHOUT_LOCK = threading.Lock()


def make_without(build):
    """A stand-in that lacks a function."""
    profile, symbol = build.split("-without-")
    with WITHOUT_LOCK:
        if not os.path.isdir(os.path.join(B, "fake", build)):
            subprocess.run(["sh", "tests/fake/without.sh", B, profile, symbol], check=True, stdout=subprocess.DEVNULL)


def run(row, build, folder):
    if "-without-" in build:
        make_without(build)
    program = os.path.join(B, "fake", "fake_train_12" if build == "12" else "fake_train")
    command = [program] + words_of(row)
    if row["program"]:
        command = [os.path.join(B, word) if "/" in word or word.startswith("tacho-") else word
                   for word in row["program"].split()]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                               env=environment(row, build, folder))
    try:
        if row["during"]:
            row["during"](process, folder)
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    r = Run(row, subprocess.CompletedProcess(command, process.returncode, out, err), folder)
    r.command, r.build = command, build
    r.seconds = time.monotonic() - begin
    row["check"](r)
    return r


class Broken:
    def __init__(self, why, folder):
        self.bad, self.folder = [why], folder


def test(row, build):
    folder = tempfile.mkdtemp(dir=FOLDER)
    try:
        return run(row, build, folder)
    except subprocess.TimeoutExpired:
        return Broken("it hangs", folder)
    except (OSError, LookupError, TypeError, ValueError, subprocess.SubprocessError) as e:
        return Broken("%s: %s" % (type(e).__name__, e), folder)
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(folder, ignore_errors=True)


def once_more(rows, results):
    """Rows start programs that wait for each other: one that fails is run once more, alone, and that is said."""
    for (r, build), result in zip(rows, list(results)):
        if result.bad:
            first = result.bad
            result = test(r, build)
            result.note = "the second time; the first: " + first[0]
        yield result


def main():
    global B, SANITIZED, FOLDER
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="rows at once")
    parser.add_argument("--times", type=int, default=1, help="each row so often")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    B = os.path.abspath(args.bin)
    if args.list:
        print("\n".join(r["name"] for r in ROWS))
        return 0
    if not os.path.exists(os.path.join(B, "fake", "13", "libcupti.so.13")):
        print("1..0 # SKIP no stand-in for CUPTI: its headers are not here")
        print("cupti: 0 passed, 0 failed")
        return 0
    try:
        flags = open(os.path.join(B, "flags")).read()
    except OSError:
        flags = ""
    SANITIZED = "tsan" if "sanitize=thread" in flags else "asan" if "sanitize" in flags else ""
    # Unless FULL, a sanitizer runs a row with one build of CUPTI, and each of the two every second row.
    few = SANITIZED and not args.names and not os.environ.get("FULL")
    chosen = ROWS[SANITIZED == "tsan"::2] if few else ROWS
    rows = [(r, b) for r in chosen if not args.names or any(re.fullmatch(n, r["name"]) for n in args.names)
            for b in ({"13"} & set(r["builds"]) or r["builds"][:1] if few else r["builds"]) if not (SANITIZED and " -- " in (r["program"] or ""))
            and not (SANITIZED == "tsan" and r["name"] in NOT_SLOWLY)] * args.times
    print("1..%d" % len(rows))
    failed = 0
    with tempfile.TemporaryDirectory() as FOLDER, concurrent.futures.ThreadPoolExecutor(args.jobs) as workers:
        results = workers.map(lambda rb: test(*rb), rows)
        for number, ((r, build), result) in enumerate(zip(rows, once_more(rows, results)), 1):
            note = getattr(result, "note", "")
            print("%s %d - cupti %s %s%s" % ("not ok" if result.bad else "ok", number, r["name"], build,
                                             " # " + note if note else ""))
            for text in result.bad:
                print("#   " + text, flush=True)
            if result.bad and os.environ.get("KEEP"):
                print("#   %s\n%s" % (result.folder, getattr(result, "err", "")))
            failed += bool(result.bad)
    print("cupti: %d passed, %d failed" % (len(rows) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
