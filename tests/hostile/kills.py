# SPDX-License-Identifier: Apache-2.0
"""Kills a recorded program, or what records it, at random times, and counts what is in the log.

	python3 tests/hostile/kills.py --bin build [--count 200] [--seed 1]

The program counts what it makes in a file of its own, after each range: at most the one under way is not
counted.  All must be in the log, or counted there as lost where it makes them faster than they are taken.  Where both
processes that read the rings are killed, what was stored before is in the log, and tacho-record says what is missing.
"""
import argparse
import glob
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

PAUSES = [0, 20, 50, 200, 700, 3000]  # us between two ranges
UNDER_WAY = 1


class Recorded:
    """tacho-record and the program below it."""

    def __init__(self, bin_folder, pause, options=()):
        self.bin, self.work = bin_folder, tempfile.mkdtemp(prefix="kills.")
        self.counter = os.path.join(self.work, "counted")
        with open(self.counter, "wb") as f:
            f.write(bytes(8))
        command = [os.path.join(bin_folder, "tacho-record"), "--out", os.path.join(self.work, "log"), *options,
                   "--", os.path.join(bin_folder, "tests/traced_program"), "counted", str(pause)]
        self.process = subprocess.Popen(command, env=dict(os.environ, COUNTED=self.counter), stderr=subprocess.PIPE)
        self.program = self.find(self.process.pid, "traced_program")
        until = time.monotonic() + 10
        while not self.made() and time.monotonic() < until:
            time.sleep(0.001)

    @staticmethod
    def children(pid):
        try:
            with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
                return [int(word) for word in f.read().split()]
        except OSError:
            return []

    def find(self, parent, name):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            for pid in self.children(parent):
                try:
                    with open("/proc/%d/comm" % pid, encoding="utf-8") as f:
                        if f.read().strip() == name:
                            return pid
                except OSError:
                    pass
            time.sleep(0.001)
        return None

    def recorder(self):
        """The process that holds the socket of this tacho-record's name."""
        with open("/proc/net/unix", encoding="utf-8") as f:
            inodes = {line.split()[6] for line in f if "@tacho-recorder/%d/" % self.process.pid in line}
        for link in glob.glob("/proc/[0-9]*/fd/*"):
            try:
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
            except OSError:
                continue
            if found and found.group(1) in inodes:
                return int(link.split("/")[2])
        return None

    def made(self):
        with open(self.counter, "r+b") as f, mmap.mmap(f.fileno(), 8) as m:
            return struct.unpack("<Q", m[:8])[0]

    def end(self):
        err = self.process.communicate(timeout=30)[1].decode("utf-8", "replace")
        got = lost = 0
        for path in glob.glob(os.path.join(self.work, "log", "*.tacho")):
            told = subprocess.run([os.path.join(self.bin, "tests/dump"), path], capture_output=True, text=True).stdout
            got += sum(int(n) for n in re.findall(r"^sum .* name=counted count=(\d+) ", told, re.M))
            lost += sum(int(n) for n in re.findall(r"^lost (\d+) ", told, re.M))
        made = self.made()
        shutil.rmtree(self.work, ignore_errors=True)
        return self.process.returncode, err, made, got, lost


def judge(name, conditions):
    wrong = [text for text, holds in conditions if not holds]
    print("%s hostile %s%s" % ("not ok" if wrong else "ok", name, " # " + "; ".join(wrong) if wrong else ""), flush=True)
    return not wrong


def kill_at_random(bin_folder, dice, victims, after):
    """One run; what is wrong with it, or None."""
    pause = dice.choice(PAUSES)
    r = Recorded(bin_folder, pause)
    recorder = r.recorder()
    pids = {"program": [r.program], "recorder": [recorder], "writer": r.children(recorder)}
    time.sleep(after)
    stored_by = r.made()
    time.sleep(FLUSH if len(victims) == 3 else 0)
    order = [pid for who in victims for pid in pids[who]]
    dice.shuffle(order)
    for pid in order:
        os.kill(pid, signal.SIGKILL)
    if "program" not in victims:
        at = r.made()
        time.sleep(0.2 + pause / 1e5)
        if r.made() <= at:
            return "the program stopped when %s was killed" % " and ".join(victims)
        os.kill(r.program, signal.SIGTERM)
    status, err, made, got, lost = r.end()
    seen = "%s killed after %.3f s with %d us between: made %d, in the log %d, counted as lost %d, status %d" % (
        " and ".join(victims), after, pause, made, got, lost, status)
    if status != -(signal.SIGKILL if "program" in victims else signal.SIGTERM):
        return seen
    if ("recorder" in victims and "the recorder was killed" not in err or
            victims == ("writer",) and "1 of the recorder's processes were killed" not in err):
        return seen + ", not told: " + err
    if "recorder" in victims and "writer" in victims and "nothing was lost" in err:
        return seen + ", though it is said: " + err
    if "recorder" in victims and "writer" in victims:  # nobody is left to read the rings: what was stored is there
        return None if got + lost <= made + UNDER_WAY and (len(victims) < 3 or got + lost >= stored_by) else seen
    full = not pause or "writer" in victims and "program" not in victims  # nobody empties the rings in time
    return None if made <= got + lost <= made + UNDER_WAY and (full or not lost) else seen


VICTIMS = [("program",), ("writer",), ("recorder",), ("program", "writer"), ("program", "recorder"), ("recorder", "writer"),
           ("program", "recorder", "writer")]
FLUSH = 1.5  # seconds until what was made is in the log's file


def kills(bin_folder, count, dice):
    wrong = []
    for i in range(count):
        victims = VICTIMS[0] if i % 2 else VICTIMS[i // 2 % len(VICTIMS)]
        after = dice.uniform(0.9, 1.4) if i % 8 == 1 else dice.uniform(0.001, 0.6)
        wrong.append(kill_at_random(bin_folder, dice, victims, after))
    wrong = [text for text in wrong if text]
    for text in wrong:
        print("#   " + text)
    return judge("%d kills" % count, [("%d of them lost something uncounted" % len(wrong), not wrong)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    print("# seed %d" % args.seed)
    return 0 if kills(args.bin, args.count, random.Random(args.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
