# SPDX-License-Identifier: Apache-2.0
"""The package tacho function by function: in a window, outside of one, without the library, switched off."""
import glob
import os
import shutil
import subprocess
import sys

import common
from common import Case

PACKAGE = os.path.join(common.ROOT, "collector", "python", "tacho")

# Everything that the package offers, in an order that makes no sense here and there.
EVERYTHING = '''
import tacho, threading
tacho.epoch_end(); tacho.validation_begin(); tacho.flush(); tacho.save()
p = tacho.get_profiler()
p.end_timer("never begun")
tacho.trace_python(); tacho.watch_gc()
for i in [0, 1, 2]:
    tacho.step() if i != 1 else tacho.step(7)
    with tacho.phase("forward"), tacho.range("layer"):
        tacho.counter("loss", 1)
    tacho.mark("m"); tacho.memory_sample()
    p.end_timer("op", p.start_timer("op"))
assert list(tacho.profile_data_loader([1, 2])) == [1, 2]
assert tacho.profile_operation("a")(lambda x, y=1: x + y)(1, y=2) == 3
assert tacho.profile_jax_loss_fn(lambda x: [x])(5) == [5]
assert tacho.profile_make_step(max)(5, 6) == 6
tacho.phase("p")(print)("through"), tacho.range("r")(lambda: None)()
with tacho.TorchCallback() as callback:
    callback.step()
jax = tacho.JaxCallback()
jax.on_training_start(); jax.on_training_epoch_start(); jax.on_training_step({}, 0, 0)
jax.on_training_epoch_end({}, 0); jax.on_validation_epoch_start(0, 1); jax.on_training_end()
jax.stop_trace(); jax.start_trace(3); jax.stop_trace(); jax.stop_trace()
hooks = tacho.LightningCallback()
hooks.setup(None, None, "fit"); hooks.on_train_batch_start(None, None, None, 0)
hooks.on_train_epoch_end(None, None); hooks.on_exception(None, None, KeyError())
hooks.teardown(None, None, "fit")
tacho.log_profiling_metrics(); tacho.log_profiling_metrics(100)
tacho.trace_python(False); tacho.watch_gc(False)
tacho.start(); tacho.stop()
print(tacho.available(), tacho.state(), tacho.version(), sorted(tacho.summary()),
      sorted(p.get_summary()))
p.reset(); tacho.reset()
assert p.get_summary() == {}
assert tacho.configure(window="all") is False
'''


def pythons():
    """This one, and others from 3.8 on that are here."""
    found = [sys.executable]
    for minor in (8, 9, 10, 11, 12, 13, 14):
        path = shutil.which("python3.%d" % minor)
        for folder in (os.path.expanduser("~/.pyenv/versions"),):
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
            inside = [os.path.join(folder, name, "bin", "python3") for name in names
                      if name.startswith("3.%d." % minor)]
            path = inside[-1] if inside else path
        if path and subprocess.run([path, "-c", "import ctypes"], check=False,
                                   stderr=subprocess.DEVNULL).returncode == 0:
            found.append(path)
    return found


class WithoutLibrary(Case):
    def test_does_nothing_and_says_so_once(self):
        done = self.run_python(EVERYTHING, TACHO_LIBRARY="/none", TACHO_WINDOW="all")
        self.assertEqual(done.out, "through\nFalse 0  [] []\n")
        lines = done.err.splitlines()
        self.assertEqual(len(lines), 1, done.err)
        self.assertRegex(lines[0], r"^tacho: .*/none.*; nothing is recorded$")
        self.assertEqual(os.listdir(self.folder), ["program.py"])

    def test_another_library_of_that_name(self):
        done = self.run_python("import tacho; tacho.step(); print(tacho.available())",
                               TACHO_LIBRARY="libc.so.6")
        self.assertEqual(done.out, "False\n")
        self.assertEqual(len(done.err.splitlines()), 1, done.err)

    def test_an_older_library(self):
        """Functions that it does not have do nothing."""
        source = self.write("old.c", "int calls; void tacho_step(void) { calls++; }"
                                     "int tacho_state(void) { return calls; }")
        self.run_command("gcc", "-shared", "-fPIC", "-o", self.path("old.so"), source)
        done = self.run_python("import tacho; tacho.step(); tacho.save(); tacho.step(7)\n"
                               "print(tacho.available(), tacho.state(), tacho.summary())",
                               TACHO_LIBRARY=self.path("old.so"))
        self.assertEqual(done, (0, "True 1 {}\n", ""))

    def test_stderr_closed(self):
        done = self.run_python("import sys\nsys.stderr = None\nimport tacho\ntacho.step()",
                               TACHO_LIBRARY="/none")
        self.assertEqual(done, (0, "", ""))


class SwitchedOff(Case):
    def test_enabled_0_says_and_loads_nothing(self):
        done = self.run_python(
            EVERYTHING + 'assert "libtacho" not in open("/proc/self/maps").read()\n',
            TACHO_ENABLED="0", TACHO_WINDOW="all")
        self.assertEqual(done, (0, "through\nFalse 0  [] []\n", ""))
        self.assertEqual(os.listdir(self.folder), ["program.py"])

    def test_enabled_0_leaves_functions_as_they_are(self):
        self.run_python('''
import tacho
def f(): pass
loader = [1]
for wrap in (tacho.profile_operation("f"), tacho.profile_jax_loss_fn, tacho.profile_make_step,
             tacho.phase("f"), tacho.range("f")):
    assert wrap(f) is f
assert tacho.profile_data_loader(loader) is loader
''', TACHO_ENABLED="no")

    def test_enabled_0_under_tacho_record(self):
        self.record(EVERYTHING, TACHO_ENABLED="0")
        self.assertEqual(self.log_paths(), [])

    def test_off_without_a_window(self):
        """The library is there and nobody asked it for anything: no log, but times add up."""
        done = self.run_python('''
import tacho
with tacho.phase("forward"): pass
p = tacho.get_profiler()
p.end_timer("op", p.start_timer("op"))
print(tacho.state(), tacho.summary(), p.get_summary()["op"]["count"])
''')
        self.assertEqual(done, (0, "0 {} 1\n", ""))
        self.assertEqual(os.listdir(self.folder), ["program.py"])

    def test_profiler_that_is_not_enabled(self):
        done = self.run_python('''
import tacho
p = tacho.TrainingProfiler(enabled=False)
p.end_timer("op", p.start_timer("op"))
p.log_metrics(100)
print(p.get_summary())
''')
        self.assertEqual(done, (0, "{}\n", ""))


class Recorded(Case):
    def test_everything_in_any_order(self):
        for python in pythons():
            with self.subTest(python=python):
                shutil.rmtree(self.path("logs"), ignore_errors=True)
                done = self.record(EVERYTHING, "-q", python=python)
                self.assertEqual(done.err, "tacho: configure: no effect of window: tacho-record "
                                           "has options of its own, and they decide\n")
                self.assertIn("--- Profiling Metrics (Step 100) ---\n", done.out)
                log = common.Log(self.log_paths()[0])
                self.assertEqual(log.steps[:3], [0, 7, 8])
                self.assertEqual(log.named("forward", "layer"), [3, 3])

    def test_steps_phases_ranges_counters(self):
        self.record('''
import tacho
@tacho.phase("decorated")
def decorated(value): return value + 1
for i in [0] * 12:
    tacho.step()
    with tacho.phase("forward"):
        with tacho.range("layer"): decorated(1)
    tacho.counter("loss", 0.5)
tacho.epoch_end()
assert decorated.__name__ == "decorated"
''', "--window", "steps:2-7")
        log = self.log()
        self.assertEqual(log.steps, [2, 3, 4, 5, 6])
        self.assertEqual(log.named("forward", "layer", "decorated"), [5, 5, 5])
        self.assertEqual(log.counters["loss"], [0.5] * 5)
        self.assertEqual([row["name"] for row in log.report()["phases"]
                          if row["name"] != "other"], ["forward"])

    def test_names_in_any_alphabet(self):
        self.record('import tacho\nfor n in ("Vorwärts", "前向", "\\udc80", 7):\n'
                    '    with tacho.range(n): pass\n')
        self.assertEqual(self.log().named("Vorwärts", "前向", "?", "7"), [1, 1, 1, 1])

    def test_exceptions_pass_and_close_ranges(self):
        done = self.record('''
import tacho
def bad(*words): raise KeyError("mine")
class Loader:
    def __iter__(self): return self
    def __next__(self): raise KeyError("mine")
def in_phase():
    with tacho.phase("phase"): bad()
def in_loader():
    for batch in tacho.profile_data_loader(Loader()): pass
seen = 0
for call in (in_phase, tacho.range("range")(bad), tacho.profile_operation("operation")(bad),
             tacho.profile_jax_loss_fn(bad, "loss"), tacho.profile_make_step(bad, "make"),
             in_loader):
    try:
        call()
    except KeyError as error:
        assert error.args == ("mine",)
        seen += 1
with tacho.range("after"): pass
print(seen, sorted(tacho.get_profiler().get_summary()))
''', "-q")
        self.assertEqual(done, (0, "6 ['loss', 'make', 'operation']\n", ""))
        log = self.log()
        end = 0
        for name in ("phase", "range", "operation", "loss", "make", "data_batch_production",
                     "after"):
            begin, last = log.span(name)
            self.assertGreaterEqual(begin, end, name)  # one behind the other: each was closed
            end = last

    def test_uncaught_exception_keeps_its_exit_status(self):
        done = self.record('import tacho\ntacho.step()\nwith tacho.phase("forward"):\n'
                           '    raise SystemExit(3)\n', "-q", check=False)
        self.assertEqual(done, (3, "", ""))
        self.assertEqual(self.log().counts["forward"], 1)

    def test_timers_that_cross(self):
        self.record('''
import tacho, time
p = tacho.get_profiler()
a = p.start_timer("a"); time.sleep(.02)
b = p.start_timer("b"); time.sleep(.02)
p.end_timer("a", a); time.sleep(.02)
p.end_timer("b", b)
with tacho.range("after"): pass
s = p.get_summary()
assert s["a"]["count"] == s["b"]["count"] == 1
assert .04 <= s["a"]["total_time"] < 1 and .04 <= s["b"]["total_time"] < 1
for i in [0] * 200: p.start_timer("forgotten")
p.end_timer("forgotten")
assert p.get_summary()["forgotten"]["count"] == 1
''')
        log = self.log()
        begin, end = log.span("a")
        self.assertGreaterEqual(end - begin, 40e3)
        self.assertEqual(log.counts["b"], 2)  # it goes on behind the end of a
        self.assertLess(end, log.span("after")[0])

    def test_timer_from_another_thread(self):
        self.run_python('''
import tacho, threading
p = tacho.get_profiler()
begun = p.start_timer("op")
thread = threading.Thread(target=p.end_timer, args=("op", begun))
thread.start(); thread.join()
assert p.get_summary()["op"]["count"] == 1
''')

    def test_threads(self):
        self.record('''
import tacho, threading
p = tacho.get_profiler()
op = tacho.profile_operation("op")(lambda: None)
def work():
    for i in [0] * 500:
        with tacho.phase("work"): op()
threads = [threading.Thread(target=work) for i in [0] * 8]
[t.start() for t in threads]; [t.join() for t in threads]
assert p.get_summary()["op"]["count"] == 4000
assert tacho.summary()["work"]["count"] == 4000
''')
        log = self.log()
        self.assertEqual(log.named("work", "op"), [4000, 4000])
        self.assertEqual(len(log.threads), 8)

    def test_totals_agree_with_those_of_the_library(self):
        self.record('''
import tacho, time
op = tacho.profile_operation("op")(lambda: time.sleep(.005))
[op() for i in [0] * 20]
ours, theirs = tacho.get_profiler().get_summary()["op"], tacho.summary()["op"]
assert ours["count"] == theirs["count"] == 20
assert abs(ours["total_time"] - theirs["total_time"]) < 0.2 * theirs["total_time"]
assert ours["avg_time"] == ours["total_time"] / 20
tacho.reset()
assert "op" not in tacho.summary()
''')

    def test_workers_leave_no_files(self):
        """Data loaders' processes, each way to start them."""
        self.record('''
import multiprocessing, sys, tacho
def work(n):
    with tacho.range("worker"): return n * n
if __name__ == "__main__":
    tacho.step()
    for way in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            with tacho.range(way): assert pool.map(work, [1, 2, 3]) == [1, 4, 9]
''')
        mine = [path for path in self.log_paths() if common.Log(path).steps]
        self.assertEqual(len(mine), 1)
        self.assertEqual(common.Log(mine[0]).named("fork", "spawn", "forkserver", "worker"),
                         [1, 1, 1, 0])

    def test_collections_of_garbage(self):
        self.record('''
import gc, tacho
gc.disable()
tacho.watch_gc(); tacho.watch_gc()
for i in [0, 1, 2]: gc.collect(); gc.collect(0)
tacho.watch_gc(False)
gc.collect()
''')
        log = self.log()
        self.assertEqual(log.named("gc generation 2", "gc generation 0"), [3, 3])
        self.assertRegex(common.tool("tacho-convert", log.path, "-t", "text"),
                         r"(?m) gc +thread [0-9]+ +gc generation 2$")

    def test_switching_gc_inside_a_collection(self):
        self.record('''
import gc, tacho
def late(what, info):
    if what == "stop": tacho.watch_gc()  # ours hears of an end without a begin
gc.disable(); gc.callbacks.append(late)
with tacho.range("around"):
    gc.collect()
    with tacho.range("inside"): pass
gc.callbacks.remove(late)
''')
        log = self.log()
        self.assertLessEqual(log.span("inside")[1], log.span("around")[1])


class Ranks(Case):
    """Ranks that are set after the start."""

    PROGRAM = '''
import multiprocessing, os, sys, time, tacho
def work(rank):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), "2"
    for i in range(5): tacho.step()
    tacho.epoch_end()
if __name__ == "__main__":
    if "alone" in sys.argv:
        time.sleep(0.2)
        work(1)
    else:
        every = [multiprocessing.get_context("spawn").Process(target=work, args=(rank,))
                 for rank in (0, 1)]
        [each.start() for each in every]
        [each.join() for each in every]
'''

    def ranks(self):
        return sorted((row["rank"], row["world_size"]) for path in self.log_paths()
                      for row in [common.Log(path).report()])

    def test_of_spawned_processes(self):
        self.record(self.PROGRAM, "-q")
        self.assertEqual(self.ranks(), [(0, 2), (1, 2)])
        self.assertEqual([os.path.basename(path).split(".")[1] for path in self.log_paths()],
                         ["r0", "r1"])

    def test_of_the_process_itself(self):
        """Its log is open already, and named without the rank."""
        self.record(self.PROGRAM, "-q", words=["alone"])
        self.assertEqual(self.ranks(), [(1, 2)])

    def test_only_the_wanted_one(self):
        self.record(self.PROGRAM, "-q", "--ranks", "main")
        self.assertEqual(self.ranks(), [(0, 2)])


class PythonFunctions(Case):
    PROGRAM = '''
import sys, tacho, threading
def leaf(): pass
def raises(): raise KeyError
def generator():
    for i in (1, 2): yield i
def call():
    leaf(); leaf()
    try: raises()
    except KeyError: pass
    for i in generator(): leaf()
def thread():
    call()
tacho.trace_python()
for i in (0, 1, 2, 3):
    tacho.step()
    call()
    if i == 2:
        t = threading.Thread(target=thread); t.start(); t.join()
tacho.epoch_end()
call()
hooked = sys.getprofile() is not None
if hasattr(sys, "monitoring"):
    hooked = hooked or sys.monitoring.get_tool(sys.monitoring.PROFILER_ID) is not None
print(hooked)
'''

    def names(self, log):
        return {name.split(": ")[1]: count for name, count in log.counts.items()
                if "program.py(" in name}

    def test_functions_in_the_window_only(self):
        for python in pythons():
            with self.subTest(python=python):
                shutil.rmtree(self.path("logs"), ignore_errors=True)
                done = self.record(self.PROGRAM, "-q", "--window", "steps:1-3", python=python)
                self.assertEqual(done, (0, "False\n", ""))
                log = self.log()
                counts = self.names(log)
                # two steps and the thread; a generator of two is entered three times
                self.assertEqual([counts[name] for name in
                                  ("call", "leaf", "raises", "generator", "thread")],
                                 [3, 12, 3, 9, 1])
                self.assertEqual({event["cat"] for event in log.spans
                                  if "program.py(" in event["name"]}, {"python_function"})
                self.assertFalse([name for name in log.counts if name.startswith("tacho/")])

    def test_they_nest(self):
        self.record(self.PROGRAM, "-q", "--window", "steps:1-2")
        log = self.log()
        at = {event["name"].split(": ")[-1]: event for event in log.spans}
        outer = at["call"]
        inner = [event for event in log.spans if event["name"].endswith((": leaf", ": raises"))]
        self.assertEqual(len(inner), 5)
        for event in inner:
            self.assertGreaterEqual(event["ts"], outer["ts"])
            self.assertLessEqual(event["ts"] + event["dur"], outer["ts"] + outer["dur"])

    def test_a_window_that_begins_in_the_middle(self):
        """Functions that were open before end nothing of ours."""
        self.record('''
import tacho
tacho.trace_python()
def leaf(): pass
def inner():
    tacho.step(); leaf()
tacho.step()
def outer():
    with tacho.range("around"):
        inner()
        with tacho.range("inside"): leaf()
outer()
tacho.step()
''', "--window", "steps:1-2")
        log = self.log()
        self.assertLessEqual(log.span("inside")[1], log.span("around")[1])

    def test_off_by_default_and_by_variable(self):
        program = self.PROGRAM.replace("tacho.trace_python()", "")
        self.record(program, "--window", "steps:1-3")
        self.assertEqual(self.names(self.log()), {})
        shutil.rmtree(self.path("logs"))
        self.record(program, "--window", "steps:1-3", TACHO_TRACE_PYTHON="yes")
        self.assertEqual(self.names(self.log())["leaf"], 12)

    def test_another_profiler_is_left_alone(self):
        done = self.record('''
import sys, tacho
def theirs(*words): pass
if hasattr(sys, "monitoring"):
    for tool in (2, 3, 4): sys.monitoring.use_tool_id(tool, "theirs")
sys.setprofile(theirs)
tacho.trace_python(); tacho.step(); tacho.step()
assert sys.getprofile() is theirs
''', "-q")
        self.assertEqual(done.err, "tacho: another profiler of Python is at work: functions are "
                                   "not recorded\n")


class Settings(Case):
    SHOW = '''
print(tacho.state())
for i in [0] * 9: tacho.step()
tacho.epoch_end()
'''

    def test_by_keyword(self):
        self.run_python('import tacho\nassert tacho.configure(window="steps:3-5", out="mine",'
                        ' nvtx=False)\n' + self.SHOW)
        self.assertEqual(self.log("mine").steps, [3, 4])

    def test_a_wrong_value_is_said(self):
        for option, value in (("window", "garbage"), ("sample", "0x"), ("ranks", "1-")):
            done = self.run_python("import tacho\ntacho.configure(%s=%r)\n" % (option, value) + self.SHOW)
            self.assertRegex(done.err, "^tacho: error: --%s: .*; nothing is recorded\n$" % option)
            self.assertEqual(done.out, "0\n")

    def test_from_a_file(self):
        self.write("c.json", '{"//window": "why", "window": "steps:2-5", "out": "mine", '
                             '"preset": "", "ranks": "all", '
                             '"max-disk": "1G", "epochs": 7, "model": {"width": 3}}')
        done = self.run_python('import tacho\nassert tacho.configure("c.json")\n' + self.SHOW)
        self.assertEqual(done.err, "tacho: configure: there is no option epochs; "
                                   "did you mean every_n_epochs?\n")
        self.assertEqual(self.log("mine").steps, [2, 3, 4])

    def test_from_a_file_that_a_variable_names(self):
        path = self.write("c.json", '{"window": "steps:2-5", "out": "mine"}')
        self.run_python("import tacho\n" + self.SHOW, TACHO_CONFIG=path)
        self.assertEqual(self.log("mine").steps, [2, 3, 4])

    def test_variables_are_stronger_than_a_file(self):
        self.write("c.json", '{"window": "steps:2-5", "out": "mine"}')
        self.run_python('import tacho\nassert tacho.configure("c.json")\n' + self.SHOW,
                        TACHO_WINDOW="steps:6-7")
        self.assertEqual(self.log("mine").steps, [6])

    def test_from_a_dataclass_and_a_mapping(self):
        self.run_python('''
import dataclasses, tacho
@dataclasses.dataclass
class Config:
    window: str = "steps:1-3"
    out: str = "other"
    ranks: tuple = (0, 1)
    unset: object = None
assert tacho.configure(Config(), out="mine", **{"sample": "none"})
''' + self.SHOW, RANK="1")
        self.assertEqual(self.log("mine").steps, [1, 2])

    def test_a_file_that_cannot_be_read_records_nothing(self):
        self.write("list.json", "[1, 2]")
        self.write("cut.json", '{"window": ')
        self.write("bad.yaml", "window: [")
        for name, why in (("list.json", "not an object with keys"),
                          ("cut.json", "Expecting value"), ("none.json", "No such file"),
                          ("bad.yaml", "PyYAML is needed|parsing|expected")):
            for program, variables in (("tacho.configure(%r)", {}),
                                       ("tacho.TorchCallback(%r)", {}),
                                       ("print(%r)", {"TACHO_CONFIG": name})):
                with self.subTest(file=name, program=program):
                    done = self.run_python("import tacho\n" + program % name +
                                           "\nfor i in range(9): tacho.step()\n", **variables)
                    self.assertRegex(done.err, r"^tacho: error: %s: .*(%s).*; nothing is recorded"
                                               r"\n$" % (name, why))
                    self.assertFalse(os.path.exists(self.path("tacho-logs")))

    def test_what_is_no_configuration_records_nothing(self):
        done = self.run_python("import tacho\ntacho.TorchCallback(5)\ntacho.step()\n")
        self.assertRegex(done.err, "^tacho: error: 5 is neither a file, .*; nothing is recorded\n$")
        self.assertFalse(os.path.exists(self.path("tacho-logs")))

    def test_a_file_can_be_read_after_one_that_cannot(self):
        self.write("c.json", '{"window": "steps:2-5", "out": "mine"}')
        self.run_python('import tacho\nassert not tacho.configure("none.json")\n'
                        'assert tacho.configure("c.json")\n' + self.SHOW)
        self.assertEqual(self.log("mine").steps, [2, 3, 4])

    def test_unknown_options_are_named(self):
        done = self.run_python("import tacho\ntacho.TorchCallback(wramup=1, active=2, out='mine')\n"
                               + self.SHOW)
        self.assertEqual(done.err, "tacho: TorchCallback: there is no option wramup; "
                                   "did you mean warmup?\n")
        self.assertEqual(self.log("mine").steps, [2, 3])

    def test_unknown_options_alone_record_nothing(self):
        done = self.run_python("import tacho\ntacho.TorchCallback(qqq=1)\n" + self.SHOW)
        self.assertEqual(done, (0, "0\n", "tacho: TorchCallback: there is no option qqq\n"))

    def test_other_sections_are_left_alone(self):
        """The guide's own file, with its other sections beside `profiling`; JSON and YAML."""
        self.write("c.json", '{"latent_dims": 256, "window_size": 3, "training": {"epochs": 10, '
                             '"window": "all"}, "profiling": {"wait": 1, "warmup": 1, '
                             '"active": 3, "repeat": 1, "record_shapes": true, "qqq": 1}}')
        done = self.run_python('import os, tacho\nassert tacho.configure("c.json")\n'
                               'assert not [n for n in os.environ if "LATENT" in n or "EPOCHS" in n '
                               'or "WINDOW_S" in n]\n' + self.SHOW)
        self.assertEqual(done.err, "tacho: configure: there is no option qqq\n")
        self.assertEqual(self.log("profiler_traces").steps, [2, 3, 4])

    YAML = "latent_dims: 256\nprofiling:\n  wait: 1\n  active: 2  # epochs\n"

    def test_yaml(self):
        self.write("c.yaml", self.YAML)
        fake = self.path("fake")
        os.mkdir(fake)
        # a stand-in: PyYAML itself is in tests/clients/frameworks
        self.write("fake/yaml.py", "class YAMLError(Exception): pass\n"
                                   "def safe_load(file):\n"
                                   "    assert 'latent_dims' in file.read()\n"
                                   "    return {'profiling': {'wait': 1, 'active': 2}}\n")
        self.run_python('import tacho\nassert tacho.configure("c.yaml")\n' + self.SHOW,
                        PYTHONPATH="%s:%s" % (fake, os.path.dirname(PACKAGE)))
        self.assertEqual(self.log("profiler_traces").steps, [2, 3])

    def test_options_under_tacho_record_have_no_effect_and_are_named(self):
        done = self.record("import tacho\ntacho.LightningCallback(active_steps=3, "
                           "output_dir='mine', enabled=True)\n" + self.SHOW, "-q")
        self.assertEqual(done.err, "tacho: LightningCallback: no effect of active_steps, output_dir:"
                                   " tacho-record has options of its own, and they decide\n")
        self.assertEqual(self.log().steps, list(range(9)))

    def test_enabled_false_in_a_file(self):
        self.write("c.json", '{"enabled": false, "window": "all"}')
        done = self.run_python('import tacho\ntacho.configure("c.json")\n'
                               'print(tacho.available())\n' + self.SHOW)
        self.assertEqual(done.out, "False\n0\n")

    def test_too_late(self):
        done = self.run_python('import tacho\ntacho.step()\n'
                               'print(tacho.configure(window="all"), tacho.state())')
        self.assertEqual(done, (0, "False 0\n", "tacho: configure: no effect of window: "
                                                "the library is loaded already\n"))

    def test_window_by_hand(self):
        self.run_python('''
import tacho
for i in [0] * 3:
    tacho.start(); tacho.start()
    assert tacho.state() == tacho.RECORDING
    tacho.step()
    tacho.stop(); tacho.stop()
    assert tacho.state() != tacho.RECORDING
''', TACHO_OUT=self.path("logs"))
        self.assertEqual(len(self.log_paths()), 3)


class Source(Case):
    def test_every_name_is_documented_and_typed(self):
        self.run_python('''
import inspect, tacho
for name in tacho.__all__:
    thing = getattr(tacho, name)
    if isinstance(thing, int): continue
    assert inspect.getdoc(thing), name
    parts = [thing] if not inspect.isclass(thing) else [
        f for n, f in vars(thing).items() if inspect.isfunction(f) and not n.startswith("_")]
    for part in parts:
        assert part.__doc__, (name, part)
        assert "return" in part.__annotations__, (name, part)
        for word in inspect.signature(part).parameters:
            assert word == "self" or word in part.__annotations__, (name, part, word)
public = [n for n, v in vars(tacho).items() if not n.startswith("_")
          and str(getattr(v, "__module__", None)).startswith("tacho")]
assert set(public) <= set(tacho.__all__), set(public) - set(tacho.__all__)
''')

    def test_compiles_from_3_8_on(self):
        for python in pythons():
            for path in sorted(glob.glob(os.path.join(PACKAGE, "**", "*.py"), recursive=True)):
                self.run_command(python, "-W", "error", "-c",
                                 "compile(open(%r).read(), %r, 'exec')" % (path, path))

    def test_version_is_that_of_the_tools(self):
        with open(os.path.join(common.ROOT, "VERSION"), encoding="utf-8") as file:
            version = file.read().strip()
        done = self.run_python("import tacho\nprint(tacho.__version__, tacho.version())\n")
        self.assertEqual(done.out, "%s %s\n" % (version, version))

    def test_names_of_options_are_those_of_tacho_record(self):
        """make regenerate makes the one list of the other."""
        printed = self.write("c.json", common.tool("tacho-record", "--print-config"))
        made = self.run_command(sys.executable,
                                os.path.join(os.path.dirname(PACKAGE), "keys.py"), printed).out
        with open(os.path.join(PACKAGE, "_keys.py"), encoding="utf-8") as file:
            self.assertEqual(file.read(), made)
