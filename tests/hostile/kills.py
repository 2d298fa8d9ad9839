# SPDX-License-Identifier: Apache-2.0
"""Kills a recorded program, or what records it, at random times, and counts what is in the log.

	python3 tests/hostile/kills.py --bin build [--count 200] [--seed 1]

The program counts what it makes in a file of its own, after each range: at most the one under way is not
counted.  All must be in the log, or counted there as lost where it makes them faster than they are taken.
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
        command = [os.path.join(bin_folder, "tacho-record"), "-q", "--out", os.path.join(self.work, "log"), *options,
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


def kills_of_program(bin_folder, count, dice):
    bad = 0
    for i in range(count):
        pause, after = dice.choice(PAUSES), dice.uniform(0.001, 0.6) if i % 8 else dice.uniform(0.9, 1.4)
        r = Recorded(bin_folder, pause)
        time.sleep(after)
        os.kill(r.program, signal.SIGKILL)
        status, _, made, got, lost = r.end()
        if status == -signal.SIGKILL and made <= got + lost <= made + UNDER_WAY and (not pause or not lost):
            continue
        bad += 1
        print("#   killed after %.3f s with %d us between: made %d, in the log %d, counted as lost %d, status %d"
              % (after, pause, made, got, lost, status))
    return judge("%d kills of the program" % count, [("%d of them lost something" % bad, not bad)])


def kill_of_writer(bin_folder):
    r = Recorded(bin_folder, 1000)
    time.sleep(0.3)
    for pid in r.children(r.recorder()):
        os.kill(pid, signal.SIGKILL)
    at = r.made()
    time.sleep(0.3)
    after = r.made()
    os.kill(r.program, signal.SIGTERM)
    status, err, made, got, lost = r.end()
    return judge("the writer is killed", [
        ("the program stopped", after > at + 50), ("status %d" % status, status == -signal.SIGTERM),
        ("it is not told: %s" % err, "1 of the recorder's processes were killed" in err),
        ("made %d, in logs %d, counted as lost %d" % (made, got, lost), made <= got + lost <= made + UNDER_WAY)])


def kill_of_all(bin_folder):
    r = Recorded(bin_folder, 1000)
    time.sleep(0.3)
    recorder = r.recorder()
    for pid in [recorder] + r.children(recorder):
        os.kill(pid, signal.SIGKILL)
    at = r.made()
    time.sleep(0.3)
    after = r.made()
    os.kill(r.program, signal.SIGTERM)
    begin = time.monotonic()
    status, err, _, _, _ = r.end()
    return judge("the recorder is killed", [
        ("the program stopped", after > at + 50), ("status %d" % status, status == -signal.SIGTERM),
        ("it is not told: %s" % err, "the recorder was killed" in err),
        ("the end took %.1f s" % (time.monotonic() - begin), time.monotonic() - begin < 5)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    print("# seed %d" % args.seed)
    good = kills_of_program(args.bin, args.count, random.Random(args.seed))
    good &= kill_of_writer(args.bin)
    good &= kill_of_all(args.bin)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
