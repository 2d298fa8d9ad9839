# SPDX-License-Identifier: Apache-2.0
"""What the guides of other profilers promise, asked of Tacho as their users would ask it: with the
guide's own keys, in a file, in variables or on the command line.  One function, one row; the
training loop is samples/train_mlp.  --bin: the folder of the build."""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROWS = []


def row(function):
    ROWS.append(function)
    return function


class Run:
    """One run of a training loop under tacho-record, and what it left behind."""

    def __init__(self, config=None, options=(), variables=None, command=None, steps=40):
        self.folder = tempfile.mkdtemp(dir=WORK)
        environ = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
        environ.update(variables or {})
        words = [BIN + "/tacho-record"]
        if config is not None:
            path = os.path.join(self.folder, "config.json")
            with open(path, "w") as file:
                json.dump(config, file)
            words += ["--config", path]
        loop = [BIN + "/samples/train_mlp", "--quiet", "--steps", str(steps)]
        done = subprocess.run(words + list(options) + ["--"] + (command or loop),
                              cwd=self.folder, env=environ, capture_output=True, text=True,
                              timeout=120)
        self.status, self.said, self.out = done.returncode, done.stderr, done.stdout

    def logs(self, folder):
        return sorted(glob.glob(os.path.join(self.folder, folder, "*.tacho")))

    def dump(self, log):
        return subprocess.run([BIN + "/tests/dump", log], capture_output=True, text=True,
                              check=True).stdout

    def one(self, folder):
        logs = self.logs(folder)
        assert self.status == 0 and len(logs) == 1, (self.status, logs, self.said)
        return self.dump(logs[0])


def steps_of(text):
    return [int(n) for n in re.findall(r"^step number=(\d+) ", text, re.M)]


def cuts_of(text):
    return [int(n) for n in re.findall(r"^window .* cut=(\d) closed=1", text, re.M)]


def count_of(text, name):
    found = re.search(r"^sum kind=\d+ name=%s count=(\d+)" % name, text, re.M)
    return int(found.group(1)) if found else 0


# ---- S1: a window of steps; memory every N steps ----

S1 = {"log_dir": "logs/profiles", "start_step": 10, "end_step": 20, "trace_memory": True,
      "trace_python": False}


@row
def s1_window_start_step_to_end_step():
    text = Run(S1).one("logs/profiles")
    assert steps_of(text) == list(range(10, 20)), steps_of(text)
    assert cuts_of(text) == [0]


@row
def s1_defaults_of_the_guide():
    assert steps_of(Run(options=["--preset", "steps"]).one("logs/profiles")) == \
        list(range(10, 20))


@row
def s1_keys_as_variables():
    text = Run(variables={"TACHO_START_STEP": "3", "TACHO_END_STEP": "5"}).one("logs/profiles")
    assert steps_of(text) == [3, 4]


@row
def s1_trace_memory():
    assert count_of(Run(dict(S1, end_step=30)).one("logs/profiles"), "bytes_in_use") >= 1
    assert count_of(Run(dict(S1, trace_memory=False)).one("logs/profiles"), "bytes_in_use") == 0


@row
def s1_trace_python():
    command = ["sh", "-c", "echo $TACHO_TRACE_PYTHON"]
    assert Run(S1, command=command).out == "0\n"
    assert Run(dict(S1, trace_python=True), command=command).out == "1\n"


@row
def s1_cleanup_at_training_end():
    text = Run(dict(S1, end_step=10000)).one("logs/profiles")
    assert "log whole=1" in text and cuts_of(text) == [1]
    assert steps_of(text) == list(range(10, 40))


@row
def s1_memory_every_n_steps():
    config = {"log_dir": "logs/memory", "profile_every_n_steps": 100, "log_device_memory": True}
    run = Run(config, steps=350)
    text = run.one("logs/memory")
    assert count_of(text, "bytes_in_use") == 4, text  # steps 0, 100, 200, 300
    told = subprocess.run([BIN + "/tacho-convert", "-q", run.logs("logs/memory")[0], "-t", "memory"],
                          capture_output=True, text=True, check=True).stdout
    assert isinstance(json.loads(told), list)
    config["log_device_memory"] = False
    assert count_of(Run(config, steps=350).one("logs/memory"), "bytes_in_use") == 0


@row
def s1_window_and_memory_together():
    text = Run(dict(S1, profile_every_n_steps=5, end_step=31)).one("logs/profiles")
    assert steps_of(text) == list(range(10, 31))
    assert count_of(text, "bytes_in_use") == 5  # 10, 15, 20, 25, 30


# ---- S2: some steps every so many minutes ----

S2 = {"every_n_epochs": -1, "every_n_steps": -1, "main_process_only": True,
      "profile_every_n_minutes": 60, "profile_first_step": 10, "profile_n_steps": 5,
      "profile_log_dir": "tensorboard"}


@row
def s2_first_step_and_n_steps():
    text = Run(S2).one("tensorboard")
    assert steps_of(text) == [10, 11, 12, 13, 14] and cuts_of(text) == [0]


@row
def s2_every_n_minutes():
    text = Run(dict(S2, profile_every_n_minutes=0.001), steps=2000).one("tensorboard")
    steps = steps_of(text)
    assert steps[:5] == [10, 11, 12, 13, 14] and len(steps) > 10, steps
    assert len(steps) % 5 == 0 or cuts_of(text)[-1] == 1


@row
def s2_below_zero_is_once():
    text = Run(dict(S2, profile_every_n_minutes=-1), steps=200).one("tensorboard")
    assert steps_of(text) == [10, 11, 12, 13, 14]


@row
def s2_main_process_only():
    rank1 = {"RANK": "1", "WORLD_SIZE": "2"}
    assert not Run(S2, variables=rank1).logs("tensorboard")
    assert len(Run(S2, variables={"RANK": "0"}).logs("tensorboard")) == 1
    logs = Run(dict(S2, main_process_only=False), variables=rank1).logs("tensorboard")
    assert len(logs) == 1 and re.search(r"\.r1\.p\d+\.0\.tacho$", logs[0]), logs


@row
def s2_profile_log_dir():
    assert Run(dict(S2, profile_log_dir="runs/x")).one("runs/x")


@row
def s2_epoch_end_and_validation_stop_it():
    traced_program = [BIN + "/tests/traced_program", "epochs", "13"]
    text = Run(S2, command=traced_program).one("tensorboard")
    assert steps_of(text) == [10, 11, 12] and cuts_of(text) == [1], text


@row
def s2_start_when_active_is_counted():
    text = Run(S2, options=["--window", "all"], command=[BIN + "/tests/traced_program", "hand", "1"]).one(
        "tensorboard")
    assert "about ignored_calls=1" in text, text


@row
def s2_stop_when_not_active_does_nothing():
    run = Run(S2, command=[BIN + "/tests/traced_program", "stops", "20"])
    assert steps_of(run.one("tensorboard")) == [10, 11, 12, 13, 14]


# ---- S4: wait, warm up, record, and again ----

S4 = {"profiling": {"wait": 1, "warmup": 1, "active": 3, "repeat": 1, "record_shapes": True,
                    "profile_memory": True, "with_stack": False}}


@row
def s4_schedule():
    text = Run(S4).one("profiler_traces")
    assert steps_of(text) == [2, 3, 4] and cuts_of(text) == [0], text


@row
def s4_schedule_repeats():
    config = {"profiling": dict(S4["profiling"], repeat=2)}
    assert steps_of(Run(config).one("profiler_traces")) == [2, 3, 4, 7, 8, 9]


@row
def s4_options_with_dots():
    options = ["--profiling.wait", "2", "--profiling.warmup", "0", "--profiling.active", "2",
               "--profiling.repeat", "1", "--profiling.record_shapes", "True",
               "--profiling.profile_memory", "True", "--profiling.with_stack", "False"]
    assert steps_of(Run(options=options).one("profiler_traces")) == [2, 3]
    assert steps_of(Run(S4, options=["--profiling.active", "2"]).one("profiler_traces")) == [2, 3]
    assert steps_of(Run(variables={"TACHO_PROFILING_ACTIVE": "1"}).one("profiler_traces")) == [2]


@row
def s4_with_stack():
    command = ["sh", "-c", "echo $TACHO_TRACE_PYTHON"]
    options = ["--profiling.with_stack", "True"]
    assert Run(S4, options=options, command=command).out == "1\n"


@row
def s4_profile_memory():
    command = ["sh", "-c", "echo $TACHO_KINDS"]
    assert Run(S4, command=command).out == "all,memory\n"


@row
def s4_chrome_trace():
    run = Run(S4)
    run.one("profiler_traces")
    told = subprocess.run([BIN + "/tacho-convert", "-q", run.logs("profiler_traces")[0], "-t",
                           "chrome"], capture_output=True, text=True, check=True).stdout
    names = [event.get("name") for event in json.loads(told)["traceEvents"]]
    assert sum("ProfilerStep" in str(name) for name in names) == 3, names


# ---- S5: the same in cycles of so many steps ----

S5 = {"profiling": {"enabled": True, "output_dir": "outputs/profiler_logs",
                    "schedule_every_n_steps": 50, "wait_steps": 1, "warmup_steps": 1,
                    "active_steps": 3, "repeat_cycles": 2}}


@row
def s5_cyclic():
    text = Run(S5, steps=200).one("outputs/profiler_logs")
    assert steps_of(text) == [2, 3, 4, 52, 53, 54] and cuts_of(text) == [0, 0], text


@row
def s5_cycles_by_options():
    options = ["--profiling.repeat_cycles=3", "--profiling.active_steps=5",
               "--profiling.schedule_every_n_steps=25"]
    text = Run(S5, options=options, steps=200).one("outputs/profiler_logs")
    assert steps_of(text) == [n + k for n in (2, 27, 52) for k in range(5)], steps_of(text)


@row
def s5_enabled():
    run = Run({"profiling": dict(S5["profiling"], enabled=False)})
    assert run.status == 0 and not run.logs("outputs/profiler_logs")
    options = ["--profiling.enabled=true"]
    run = Run({"profiling": dict(S5["profiling"], enabled=False)}, options=options)
    assert len(run.logs("outputs/profiler_logs")) == 1


@row
def s5_output_dir():
    assert Run({"profiling": dict(S5["profiling"], output_dir="o/p")}).one("o/p")


def main():
    failed = 0
    with open(BIN + "/flags") as flags:
        if "fsanitize" in flags.read():
            print("1..0 # SKIP a preloaded library and sanitizers do not go together")
            return 0
    print("1..%d" % len(ROWS))
    for number, function in enumerate(ROWS, 1):
        try:
            function()
            print("ok %d - seeds %s" % (number, function.__name__))
        except AssertionError as error:
            failed += 1
            place = error.__traceback__.tb_next
            print("not ok %d - seeds %s" % (number, function.__name__))
            print("#   line %d: %s" % (place.tb_lineno if place else 0, str(error)[:2000]))
    print("seeds: %d passed, %d failed" % (len(ROWS) - failed, failed))
    return failed != 0


parser = argparse.ArgumentParser()
parser.add_argument("--bin", required=True)
BIN = os.path.abspath(parser.parse_args().bin)
WORK = tempfile.mkdtemp()
try:
    sys.exit(main())
finally:
    shutil.rmtree(WORK, ignore_errors=True)
