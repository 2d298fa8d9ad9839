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
LOG_HEADER = 16  # bytes of a log without anything


def wait_until(holds, seconds=30):
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.001)
    return holds()


class Recorded:
    """tacho-record and the program below it."""

    def __init__(self, bin_folder, pause, unknown=False, options=()):
        """unknown: the recorder is stopped before it learns of the program."""
        self.bin, self.work = bin_folder, tempfile.mkdtemp(prefix="kills.")
        self.counter = os.path.join(self.work, "counted")
        with open(self.counter, "wb") as f:
            f.write(bytes(8))
        command = [os.path.join(bin_folder, "tacho-record"), "--out", os.path.join(self.work, "log"), *options, "--",
                   "sh", "-c", "read go; exec \"$@\"", "sh",
                   os.path.join(bin_folder, "tests/traced_program"), "counted", str(pause)]
        self.process = subprocess.Popen(command, env=dict(os.environ, COUNTED=self.counter), stdin=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.recorder = wait_until(self.find_recorder)
        if unknown:
            os.kill(self.recorder, signal.SIGSTOP)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.program = wait_until(lambda: self.find(self.process.pid, "traced_program"))
        wait_until(self.made)
        wait_until(lambda: unknown or self.children(self.recorder))  # the program does not wait for it

    @staticmethod
    def children(pid):
        try:
            with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
                return [int(word) for word in f.read().split()]
        except OSError:
            return []

    @staticmethod
    def is_named(pid, name):
        try:
            with open("/proc/%d/comm" % pid, encoding="utf-8") as f:
                return f.read().strip() == name
        except OSError:
            return False

    def find(self, parent, name):
        return next((pid for pid in self.children(parent) if self.is_named(pid, name)), None)

    def find_recorder(self):
        """The process that holds the socket of this tacho-record's name; None: there is none yet."""
        with open("/proc/net/unix", encoding="utf-8") as f:
            inodes = {line.split()[6] for line in f if "@tacho-recorder/%d/" % self.process.pid in line}
        for link in glob.glob("/proc/[0-9]*/fd/*"):
            try:
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
            except OSError:
                continue
            pid = int(link.split("/")[2])
            if found and found.group(1) in inodes and self.is_named(pid, "tacho-recorder"):
                return pid
        return None

    def made(self):
        with open(self.counter, "r+b") as f, mmap.mmap(f.fileno(), 8) as m:
            return struct.unpack("<Q", m[:8])[0]

    def in_logs(self):
        got = lost = 0
        for path in glob.glob(os.path.join(self.work, "log", "*.tacho")):
            told = subprocess.run([os.path.join(self.bin, "tests/dump"), path], capture_output=True, text=True).stdout
            got += sum(int(n) for n in re.findall(r"^sum .* name=counted count=(\d+) ", told, re.M))
            lost += sum(int(n) for n in re.findall(r"^lost (\d+) ", told, re.M))
        return got, lost

    def stored(self):
        return sum(os.path.getsize(path) for path in glob.glob(os.path.join(self.work, "log", "*.tacho")))

    def end(self):
        err = self.process.communicate(timeout=60)[1].decode("utf-8", "replace")
        got, lost = self.in_logs()
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
    pids = {"program": [r.program], "recorder": [r.recorder], "writer": r.children(r.recorder)}
    time.sleep(after)
    stored_by = r.made()
    if len(victims) == 3:  # rows wait for their block for a second, or longer on a slow machine
        wait_until(lambda: sum(r.in_logs()) >= stored_by)
    order = [pid for who in victims for pid in pids[who]]
    dice.shuffle(order)
    for pid in order:
        os.kill(pid, signal.SIGKILL)
    if "program" not in victims:
        at = r.made()
        time.sleep(0.2 + pause / 1e5)  # and fills its ring
        if not wait_until(lambda: r.made() > at):
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
    # a writer that is killed last may have closed the log of a program that was killed first
    if "recorder" in victims and "writer" in victims and "nothing was lost" in err and got < made:
        return seen + ", though it is said: " + err
    if "recorder" in victims and "writer" in victims:  # nobody is left to read the rings: what was stored is there
        return None if got + lost <= made + UNDER_WAY and (len(victims) < 3 or got + lost >= stored_by) else seen
    full = not pause or "writer" in victims and "program" not in victims  # nobody empties the rings in time
    # the one under way may be counted as lost, none that was made
    return None if made <= got + lost <= made + UNDER_WAY and (full or made <= got) else seen


def kill_before_it_knows(bin_folder):
    """Nobody has read the rings of a program that the recorder has not learned of: that is said."""
    r = Recorded(bin_folder, 200, unknown=True)
    os.kill(r.recorder, signal.SIGKILL)
    at = r.made()
    goes_on = wait_until(lambda: r.made() > at)
    os.kill(r.program, signal.SIGTERM)
    status, err, _, got, _ = r.end()
    return judge("recorder killed before it knows of the program", [
        ("the program goes on", goes_on), ("status %d" % status, status == -signal.SIGTERM),
        ("%d in the log" % got, got == 0), ("said: " + err, "no log was written: the recorder was killed" in err)])


def kill_all_of_a_young_log(bin_folder):
    """Where rows are many they do not wait a second for their block. One quick try of ten shows it: a busy machine
    lets the writer wait, but no machine stores rows early that wait for a second."""
    waited = []
    while len(waited) < 10 and min(waited, default=1) > 0.7:
        r = Recorded(bin_folder, 20)
        victims = [r.program, r.recorder] + r.children(r.recorder)
        began = time.monotonic()  # the program has just made its first
        wait_until(lambda: sum(r.in_logs()))
        waited.append(time.monotonic() - began)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        _, _, made, got, lost = r.end()
    return judge("all killed without a ring file", [
        ("the first row is stored after %s s" % ["%.2f" % s for s in waited], min(waited) < 0.7),
        ("made %d, in the log %d" % (made, got), 0 < got <= made + UNDER_WAY)])


def kill_while_the_writer_rests(bin_folder):
    """tacho-record waits for a writer that a slow machine does not let run for seconds."""
    r = Recorded(bin_folder, 200)
    for number, pids in ((signal.SIGSTOP, r.children(r.recorder)), (signal.SIGKILL, [r.program])):
        for pid in pids:
            os.kill(pid, number)
    writers = r.children(r.recorder)
    time.sleep(6)
    for pid in writers:
        os.kill(pid, signal.SIGCONT)
    _, err, made, got, lost = r.end()
    return judge("killed while the writer rests", [
        ("made %d, in the log %d, lost %d: %s" % (made, got, lost, err), made <= got <= made + UNDER_WAY and not lost)])


def kill_in_the_last_round(bin_folder, times):
    """A writer is killed while it stores what its program has left, or just after: once more or not at all it is not."""
    wrong = []
    for _ in range(times):
        r = Recorded(bin_folder, 0)
        writers = r.children(r.recorder)
        wait_until(lambda: r.stored() > LOG_HEADER)
        os.kill(r.program, signal.SIGKILL)
        before = r.stored()
        wait_until(lambda: r.stored() > before, 1)
        for pid in writers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended
        _, err, made, got, lost = r.end()
        if not made <= got + lost <= made + UNDER_WAY:
            wrong.append("made %d, in the log %d, lost %d: %s" % (made, got, lost, err))
    return judge("writer killed in its last round, %d times" % times, [(text, False) for text in wrong])


def kill_all(bin_folder, dice, times, shared="/dev/shm"):
    """All that read the rings are killed with the program, and mostly tacho-record too: the next one finds the file."""
    wrong = []
    for _ in range(times):
        rings = tempfile.mkdtemp(prefix="kills.", dir=shared)
        r = Recorded(bin_folder, dice.choice(PAUSES), options=["--ring-dir", rings])
        victims = [r.program, r.recorder] + [r.process.pid] * (dice.random() < 0.7)
        time.sleep(dice.uniform(0.001, 1.3))
        victims += r.children(r.recorder)
        dice.shuffle(victims)
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        r.process.wait()
        again = [os.path.join(bin_folder, "tacho-record"), "-q", "--ring-dir", rings, "--out", r.work, "--", "true"]
        # they are dying still, or a child of the recorder reads what is left
        wait_until(lambda: subprocess.run(again, check=True) and not os.listdir(rings))
        _, err, made, got, lost = r.end()
        if not made <= got + lost <= made + UNDER_WAY or os.listdir(rings):
            wrong.append("made %d, in the log %d, lost %d, left %s: %s" % (made, got, lost, os.listdir(rings), err))
        shutil.rmtree(rings)
    return judge("all killed with rings in /dev/shm, %d times" % times, [(text, False) for text in wrong])


VICTIMS = [("program",), ("writer",), ("recorder",), ("program", "writer"), ("program", "recorder"), ("recorder", "writer"),
           ("program", "recorder", "writer")]


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
    dice = random.Random(args.seed)
    good = [kill_before_it_knows(args.bin), kill_all_of_a_young_log(args.bin), kill_in_the_last_round(args.bin, args.count // 4),
            kill_all(args.bin, dice, args.count // 2), kills(args.bin, args.count, dice),
            args.count < 100 or kill_while_the_writer_rests(args.bin)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
