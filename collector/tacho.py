# SPDX-License-Identifier: Apache-2.0
"""Marks steps, phases and ranges of a training loop for libtacho: one file over ctypes.

    import tacho

    for batch in loader:
        tacho.step()
        with tacho.phase("forward"):
            loss = model(batch)
        tacho.counter("loss", float(loss))

Under tacho-record this file is on the path; else copy it anywhere, or set PYTHONPATH to its folder.
What is recorded, and when, is decided outside (tacho-record, TACHO_ variables) or by configure().
Without the library, or with TACHO_ENABLED=0, every function does nothing.  No function raises for a
reason of ours.
"""
import ctypes
import functools
import gc
import json
import os
import sys

__all__ = [
    "available", "configure", "state", "start", "stop", "step", "epoch_end", "validation_begin",
    "phase", "range", "counter", "mark", "memory_sample", "summary", "reset", "flush",
    "watch_gc", "TrainingProfiler", "get_profiler", "log_profiling_metrics",
    "profile_operation", "profile_data_loader", "profile_jax_loss_fn", "profile_make_step",
]

OFF, ARMED, RECORDING = 0, 1, 2
_CLASS_GC = 8

# Function, result, arguments, and whether it may wait (then the interpreter's lock is let go).
_FUNCTIONS = (
    ("tacho_state", ctypes.c_int, (), False),
    ("tacho_start", None, (), False),
    ("tacho_stop", None, (), True),
    ("tacho_step", None, (), False),
    ("tacho_step_number", None, (ctypes.c_uint64,), False),
    ("tacho_epoch_end", None, (), False),
    ("tacho_validation_begin", None, (), False),
    ("tacho_name", ctypes.c_uint32, (ctypes.c_char_p,), False),
    ("tacho_phase_push_id", None, (ctypes.c_uint32,), False),
    ("tacho_phase_pop", None, (), False),
    ("tacho_range_push_id", None, (ctypes.c_uint32,), False),
    ("tacho_range_push_class", None, (ctypes.c_uint32, ctypes.c_uint), False),
    ("tacho_range_pop", None, (), False),
    ("tacho_counter_id", None, (ctypes.c_uint32, ctypes.c_double), False),
    ("tacho_mark", None, (ctypes.c_char_p,), False),
    ("tacho_memory_sample", None, (), False),
    ("tacho_total", None, (ctypes.c_uint32, ctypes.POINTER(ctypes.c_double),
                           ctypes.POINTER(ctypes.c_uint64)), False),
    ("tacho_summary_reset", None, (), False),
    ("tacho_flush", None, (), True),
)


class _Nothing:
    """The library where there is none."""

    def __getattr__(self, name):
        return lambda *args: 0


class _Library:
    """The functions of tacho.h as attributes without their prefix."""

    def __init__(self, path):
        quick = ctypes.PyDLL(path)
        waits = ctypes.CDLL(path)
        for name, result, arguments, may_wait in _FUNCTIONS:
            function = getattr(waits if may_wait else quick, name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name[len("tacho_"):], function)


def _places():
    """Where the library may be: in the process already, where one says, beside this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    said = os.environ.get("TACHO_LIBRARY")
    if hasattr(ctypes.CDLL(None), "tacho_step"):
        yield None
    if said:
        yield said
        return
    for name in ("libtacho.so", "../build/libtacho.so", "../../lib/libtacho.so.1"):
        path = os.path.join(here, name)
        if os.path.exists(path):
            yield path
    yield "libtacho.so.1"


class _Lazy:
    """Loads the library at the first use, so that configure() can come before."""

    def __getattr__(self, name):
        return getattr(_load(), name)


_lib = _Lazy()
_ids = {}


def _load():
    global _lib
    if not isinstance(_lib, _Lazy):
        return _lib
    if sys.platform.startswith("linux"):
        if os.environ.get("TACHO_CONFIG"):
            _set_variables(os.environ["TACHO_CONFIG"], {})
        for path in _places():
            try:
                _lib = _Library(path)
                return _lib
            except (OSError, AttributeError):
                continue
    _lib = _Nothing()
    return _lib


def available():
    """Whether the library was found."""
    return not isinstance(_load(), _Nothing)


def _value_text(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(_value_text(v) for v in value)
    return str(value)


def _set_variables(path, options):
    settings = {}
    if path:
        try:
            with open(path, encoding="utf-8") as f:
                settings = json.load(f)
        except (OSError, ValueError) as why:
            sys.stderr.write("tacho: %s: %s\n" % (path, why))
    for key, value in settings.items():
        # what the environment says already is nearer to the user than a file
        os.environ.setdefault("TACHO_" + key.upper().replace("-", "_"), _value_text(value))
    for key, value in options.items():
        os.environ["TACHO_" + key.upper()] = _value_text(value)


def configure(config=None, **options):
    """Options as of tacho-record, from a JSON file and by keyword: configure(window="steps:10-20",
    out="logs").  To be called before any other function; False: the library was there already,
    so nothing has changed.
    """
    if not isinstance(_lib, _Lazy) or hasattr(ctypes.CDLL(None), "tacho_step"):
        return False
    options.setdefault("enabled", True)
    if os.environ.get("TACHO_ENABLED"):
        del options["enabled"]
    _set_variables(config, options)
    return True


def _id(name):
    number = _ids.get(name)
    if number is None:
        number = _ids[name] = _lib.name(str(name).encode("utf-8", "replace"))
    return number


def state():
    """OFF, ARMED or RECORDING."""
    return _lib.state()


def start():
    """Begin a window by hand."""
    _lib.start()


def stop():
    """End the window; the log is complete when this returns."""
    _lib.stop()


def step(number=None):
    """The next step begins and the one before ends; counted from 0 unless the number is given."""
    if number is None:
        _lib.step()
    else:
        _lib.step_number(number)


def epoch_end():
    """The last step ends, and so does a window that was counted in steps or time."""
    _lib.epoch_end()


def validation_begin():
    """The same before a validation."""
    _lib.validation_begin()


class _Named:
    """A context manager and decorator; has no state, so one serves all uses of a name."""

    __slots__ = ("_name", "_number")

    def __init__(self, name):
        self._name = name
        self._number = None

    def __enter__(self):
        if self._number is None:
            self._number = _id(self._name)
        self._push(self._number)
        return self

    def __exit__(self, *exception):
        _lib.range_pop()
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return wrapper


class _Phase(_Named):
    __slots__ = ()

    @staticmethod
    def _push(number):
        _lib.phase_push_id(number)


class _Range(_Named):
    __slots__ = ()

    @staticmethod
    def _push(number):
        _lib.range_push_id(number)


_phases, _ranges = {}, {}


def phase(name):
    """`with phase("forward"):` or `@phase("forward")`; reports share out the step among phases."""
    found = _phases.get(name)
    if found is None:
        found = _phases[name] = _Phase(name)
    return found


def range(name):  # noqa: A001  the word of tacho.h and of NVTX
    """`with range("attention"):` or `@range("attention")`; any other interval."""
    found = _ranges.get(name)
    if found is None:
        found = _ranges[name] = _Range(name)
    return found


def counter(name, value):
    """A sample of a quantity at this instant."""
    _lib.counter_id(_id(name), value)


def mark(name):
    """An instant with a name."""
    _lib.mark(str(name).encode("utf-8", "replace"))


def memory_sample():
    """Ask for one sample of host and device memory."""
    _lib.memory_sample()


def flush():
    """What was recorded so far is in the file when this returns."""
    _lib.flush()


def _total(number):
    seconds, count = ctypes.c_double(0), ctypes.c_uint64(0)
    _lib.total(number, ctypes.byref(seconds), ctypes.byref(count))
    return seconds.value, count.value


def summary():
    """{name: {"avg_time": s, "total_time": s, "count": n}} of ranges that ended while the library
    was armed or recording, of names that were used from Python."""
    result = {}
    for name, number in list(_ids.items()):
        seconds, count = _total(number)
        if count:
            result[name] = {"avg_time": seconds / count, "total_time": seconds, "count": count}
    return result


def reset():
    """All totals back to zero."""
    _lib.summary_reset()


def _on_gc(what, info):
    if what == "start":
        _lib.range_push_class(_id("gc generation %d" % info.get("generation", -1)), _CLASS_GC)
    else:
        _lib.range_pop()


def watch_gc(on=True):
    """Collections of Python's garbage collector as ranges."""
    if on and _on_gc not in gc.callbacks:
        gc.callbacks.append(_on_gc)
    elif not on and _on_gc in gc.callbacks:
        gc.callbacks.remove(_on_gc)


# ---- accumulated average times of named operations ----

class TrainingProfiler:
    """Times of operations, kept by the library; printed, and logged to wandb where it runs."""

    def __init__(self, log_to_wandb=True, log_every=100):
        self.log_to_wandb = log_to_wandb
        self.log_every = log_every

    def start_timer(self, name):
        _lib.range_push_id(_id(name))
        return name

    def end_timer(self, name, start_time=None):
        _lib.range_pop()

    def reset(self):
        reset()

    def get_summary(self):
        return summary()

    def log_metrics(self, step_number=None):
        """One line for each operation, every `log_every` steps."""
        if step_number is not None and step_number % self.log_every:
            return
        figures = self.get_summary()
        print("--- Profiling Metrics%s ---" %
              ("" if step_number is None else " (Step %d)" % step_number))
        for name, f in figures.items():
            print("%s: avg=%.4fs, total=%.2fs, count=%d" %
                  (name, f["avg_time"], f["total_time"], f["count"]))
        wandb = sys.modules.get("wandb") if self.log_to_wandb else None
        if getattr(wandb, "run", None) is not None:
            wandb.log({"profiling/%s_%s" % (name, key): value
                       for name, f in figures.items() for key, value in f.items()})


_profiler = TrainingProfiler()


def get_profiler():
    """The one of the process."""
    return _profiler


def log_profiling_metrics(step_number=None):
    _profiler.log_metrics(step_number)


def profile_operation(name):
    """Decorator: each call is a range of this name."""
    return range(name)


def profile_data_loader(loader, name="data_batch_production"):
    """Iterates over `loader`; waiting for each batch is a phase."""
    batches = iter(loader)
    ended = object()
    while True:
        with phase(name):
            batch = next(batches, ended)
        if batch is ended:
            return
        yield batch


def profile_jax_loss_fn(function, name="loss_fn_computation"):
    """The function, each call a range; it is timed until it returns, not until a device is done."""
    return range(name)(function)


def profile_make_step(function, name="make_step_total"):
    return range(name)(function)
