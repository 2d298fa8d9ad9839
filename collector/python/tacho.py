# SPDX-License-Identifier: Apache-2.0
"""Marks steps, phases and ranges of a training loop for libtacho: one file over ctypes.

    import tacho

    for batch in loader:
        tacho.step()
        with tacho.phase("forward"):
            loss = model(batch)
        tacho.counter("loss", float(loss))

tacho-record puts this file on Python's path; otherwise copy it, set PYTHONPATH to its folder, or
install the wheel. What is recorded, and when, is configured outside (tacho-record, TACHO_
variables) or by configure(). Without the library every function does nothing, and one line on
stderr says so; with TACHO_ENABLED=0 the library is not looked for. No function raises an exception
of its own, and exceptions of the user's code pass through. All functions may be called on any
thread. Python 3.8 and later.
"""
from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import json
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar

__all__ = [
    "OFF", "ARMED", "RECORDING", "available", "version", "configure", "state", "start", "stop",
    "save", "step", "epoch_end", "validation_begin", "phase", "range", "counter", "mark",
    "memory_sample", "summary", "reset", "flush", "watch_gc", "trace_python",
    "LightningCallback", "TorchCallback", "JaxCallback",
    "TrainingProfiler", "get_profiler", "log_profiling_metrics", "profile_operation",
    "profile_data_loader", "profile_jax_loss_fn", "profile_make_step",
]

_F = TypeVar("_F", bound=Callable[..., Any])

OFF, ARMED, RECORDING = 0, 1, 2
_CLASS_PYTHON, _CLASS_GC = 3, 8

# Function, result, arguments, and whether it may wait; then the GIL is released during the call.
_FUNCTIONS = (
    ("tacho_state", ctypes.c_int, (), False),
    ("tacho_version", ctypes.c_char_p, (), False),
    ("tacho_start", None, (), True),
    ("tacho_stop", None, (), True),
    ("tacho_save", None, (), True),
    ("tacho_step", None, (), False),
    ("tacho_step_number", None, (ctypes.c_uint64,), False),
    ("tacho_step_cancel", None, (), False),
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


# ---- the library ----

def _nothing(*args: Any) -> int:
    return 0


class _Nothing:
    """Stands in for the library where it is missing or disabled."""

    def __init__(self) -> None:
        for row in _FUNCTIONS:
            setattr(self, row[0][len("tacho_"):], _nothing)


class _Library:
    """Has the functions of tacho.h as attributes, without their prefix."""

    def __init__(self, path: Optional[str]) -> None:
        quick = ctypes.PyDLL(path)
        waits = ctypes.CDLL(path)
        quick.tacho_step  # AttributeError: this is not libtacho
        for name, result, arguments, may_wait in _FUNCTIONS:
            function = getattr(waits if may_wait else quick, name, None)
            if function is None:  # the library is older than this file
                function = _nothing
            else:
                function.restype = result
                function.argtypes = arguments
            setattr(self, name[len("tacho_"):], function)


class _Lazy:
    """Loads the library at the first use, so that configure() can come before."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_load(), name)


_lib: Any = _Lazy()
_ids: Dict[str, int] = {}
_printed: List[str] = []


def _print_once(text: str) -> None:
    """Prints a line on stderr, each text once in a process."""
    if text not in _printed and len(_printed) < 16:
        _printed.append(text)
        try:
            sys.stderr.write("tacho: %s\n" % text)
        except (OSError, ValueError, AttributeError):
            pass  # stderr is closed or missing


def _is_true(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _is_forbidden() -> bool:
    return os.environ.get("TACHO_ENABLED", "").strip().lower() in ("0", "false", "no", "off")


def _is_in_process() -> bool:
    return hasattr(ctypes.CDLL(None), "tacho_step")


def _places() -> Iterator[Optional[str]]:
    """Places of the library: loaded already, TACHO_LIBRARY, beside this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    library = os.environ.get("TACHO_LIBRARY")
    if _is_in_process():
        yield None
    if library:
        yield library
        return
    for name in ("libtacho.so", "tacho.libs/libtacho.so", "../../build/libtacho.so",
                 "../../lib/libtacho.so.1"):
        path = os.path.join(here, name)
        if os.path.exists(path):
            yield path
    yield "libtacho.so.1"


def _find_library() -> Any:
    why = "libtacho runs on Linux only"
    if sys.platform.startswith("linux"):
        for path in _places():
            try:
                return _Library(path)
            except (OSError, AttributeError) as error:
                why = str(error)
    _print_once("%s; nothing is recorded" % why)
    return _Nothing()


def _load() -> Any:
    global _lib
    if not isinstance(_lib, _Lazy):
        return _lib
    if os.environ.get("TACHO_CONFIG") and not _is_forbidden():
        _set_variables(_read_config(os.environ["TACHO_CONFIG"]), {})
    _lib = _Nothing() if _is_forbidden() else _find_library()
    if isinstance(_lib, _Library) and (_is_true("TACHO_TRACE_PYTHON") or
                                       _is_true("TACHO_WITH_STACK")):
        trace_python()
    return _lib


def available() -> bool:
    """Whether there is a library to record with, and TACHO_ENABLED does not forbid it."""
    return isinstance(_load(), _Library)


def version() -> str:
    """The version of the library, such as "0.1.0"; empty without a library."""
    text = _lib.version()
    return text.decode() if text else ""


# ---- settings ----

def _read_config(config: Any) -> Dict[str, Any]:
    """Reads a JSON file by its path, a mapping, or an object with fields such as a dataclass."""
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    if not isinstance(config, (str, bytes, os.PathLike)):
        fields = getattr(config, "__dataclass_fields__", None) or getattr(config, "__dict__", {})
        return {name: getattr(config, name) for name in fields}
    try:
        with open(config, encoding="utf-8") as file:
            settings = json.load(file)
        if isinstance(settings, dict):
            return settings
        _print_once("%s: not a JSON object" % os.fsdecode(config))
    except (OSError, ValueError) as why:
        _print_once("%s: %s" % (os.fsdecode(config), why))
    return {}


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[Tuple[str, str]]:
    """Yields the variable and the text of each key. Keys of a nested object get its name as a
    prefix, except for the section that guides call "profiling"."""
    for key, value in settings.items():
        name = before + str(key).upper().replace("-", "_").replace(".", "_")
        if name.startswith("PROFILING_"):
            name = name[len("PROFILING_"):]
        if isinstance(value, Mapping):
            yield from _flat(value, "" if name == "PROFILING" else name + "_")
        elif value is not None and not name.startswith("//"):  # a comment
            yield "TACHO_" + name, _value_text(value)


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(_value_text(part) for part in value)
    return str(value)


def _set_variables(settings: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    for name, value in _flat(settings):
        # the environment takes precedence over a file
        os.environ.setdefault(name, value)
    for name, value in _flat(options):
        os.environ[name] = value


def configure(config: Any = None, **options: Any) -> bool:
    """Options as of tacho-record: from a JSON file, a mapping or a dataclass, and by keyword:
    configure(window="steps:10-20", out="logs").

    Call it before any other function. Returns False, and changes nothing, when the library is
    loaded already, as it is under tacho-record.
    """
    if not isinstance(_lib, _Lazy) or _is_in_process():
        return False
    settings = _read_config(config)
    _set_variables(settings, options)
    os.environ.setdefault("TACHO_ENABLED", "yes")
    return True


# ---- what tacho.h has ----

def _id(name: str) -> int:
    number = _ids.get(name)
    if number is None:
        number = _ids[name] = _lib.name(str(name).encode("utf-8", "replace"))
    return number


def state() -> int:
    """OFF, ARMED or RECORDING."""
    return int(_lib.state())


def start() -> None:
    """Begin a window by hand, unless one is open. Waits two seconds at most."""
    _lib.start()
    _tracer.follow()


def stop() -> None:
    """End the window; the log is complete when this returns, after two seconds at most."""
    _lib.stop()
    _tracer.follow()


def save() -> None:
    """Save the content of the flight recorder, if there is one."""
    _lib.save()


def step(number: Optional[int] = None) -> None:
    """Begin the next step and end the one before; steps count from 0 unless a number is given."""
    if number is None:
        _lib.step()
    else:
        _lib.step_number(number)
    if _tracer.wanted:
        _tracer.follow()


def epoch_end() -> None:
    """End the last step of an epoch, and a window that was counted in steps or time."""
    _lib.epoch_end()
    _tracer.follow()


def validation_begin() -> None:
    """End the step and the window, as epoch_end() does, because validation begins."""
    _lib.validation_begin()
    _tracer.follow()


class _Named:
    """A context manager and decorator. It has no state, so one object serves all uses of a name."""

    __slots__ = ("_name", "_number")

    def __init__(self, name: str) -> None:
        self._name = name
        self._number: Optional[int] = None

    @staticmethod
    def _push(number: int) -> None:
        raise NotImplementedError

    def __enter__(self) -> _Named:
        if self._number is None:
            self._number = _id(self._name)
        self._push(self._number)
        return self

    def __exit__(self, *exception: Any) -> None:
        _lib.range_pop()

    def __call__(self, function: _F) -> _F:
        if _is_forbidden():
            return function

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return wrapper  # type: ignore[return-value]


class _Phase(_Named):
    __slots__ = ()

    @staticmethod
    def _push(number: int) -> None:
        _lib.phase_push_id(number)


class _Range(_Named):
    __slots__ = ()

    @staticmethod
    def _push(number: int) -> None:
        _lib.range_push_id(number)


_phases: Dict[str, _Phase] = {}
_ranges: Dict[str, _Range] = {}


def phase(name: str) -> _Phase:
    """`with phase("forward"):` or `@phase("forward")`; reports divide the step among phases."""
    found = _phases.get(name)
    if found is None:
        found = _phases[name] = _Phase(name)
    return found


def range(name: str) -> _Range:  # noqa: A001  the word of tacho.h and of NVTX
    """`with range("attention"):` or `@range("attention")`; an interval that is no phase."""
    found = _ranges.get(name)
    if found is None:
        found = _ranges[name] = _Range(name)
    return found


def counter(name: str, value: float) -> None:
    """Record a value at this instant, such as the loss. Inside a window only."""
    _lib.counter_id(_id(name), value)


def mark(name: str) -> None:
    """Record an instant with a name."""
    _lib.mark(str(name).encode("utf-8", "replace"))


def memory_sample() -> None:
    """Request one sample of host and device memory, which is taken a moment later."""
    _lib.memory_sample()


def flush() -> None:
    """Return when everything recorded so far is in the file, or after two seconds."""
    _lib.flush()


def _figures(seconds: float, count: int) -> Dict[str, Any]:
    return {"avg_time": seconds / count, "total_time": seconds, "count": count}


def summary() -> Dict[str, Dict[str, Any]]:
    """{name: {"avg_time": s, "total_time": s, "count": n}} of the ranges that ended while the
    library was armed or recording, for names that Python code has used."""
    result = {}
    seconds, count = ctypes.c_double(0), ctypes.c_uint64(0)
    for name, number in list(_ids.items()):
        _lib.total(number, ctypes.byref(seconds), ctypes.byref(count))
        if count.value:
            result[name] = _figures(seconds.value, count.value)
    return result


def reset() -> None:
    """Set all totals to zero."""
    _lib.summary_reset()


# ---- garbage collections and function calls as ranges ----

class _Gc:
    open = False
    process = 0

    def __call__(self, what: str, info: Mapping[str, int]) -> None:
        if os.getpid() != self.process:
            return  # a forked child, before the callback of _look_after_children() has run
        if what == "start":
            self.open = True
            _lib.range_push_class(_id("gc generation %d" % info.get("generation", -1)), _CLASS_GC)
        elif self.open:
            self.open = False
            _lib.range_pop()


_on_gc = _Gc()


def watch_gc(on: bool = True) -> None:
    """Record runs of Python's garbage collector as ranges."""
    if on and _on_gc not in gc.callbacks and available():
        _on_gc.process = os.getpid()
        gc.callbacks.append(_on_gc)
        _look_after_children()
    elif not on and _on_gc in gc.callbacks:
        gc.callbacks.remove(_on_gc)


_looked_after: List[bool] = []


def _look_after_children() -> None:
    """Switches recording of Python off in forked children, such as data-loader workers."""
    if _looked_after:
        return
    _looked_after.append(True)
    os.register_at_fork(after_in_child=functools.partial(watch_gc, False))
    os.register_at_fork(after_in_child=functools.partial(trace_python, False))
    atexit.register(trace_python, False)


class _Tracer:
    """Records calls of Python functions as ranges while a window is open.

    It follows the window at each step. Python 3.12 and later: sys.monitoring, on all threads.
    Before: sys.setprofile, on the thread that makes the steps and on threads that start later. A
    profiler that is active already is not replaced.
    """

    NAMES_MAX = 1 << 16

    def __init__(self) -> None:
        self.wanted = self.running = False
        self._names: Dict[Any, int] = {}
        self._depths: Dict[int, int] = {}  # ranges that were pushed here, by thread
        self._tool: Optional[int] = None

    def want(self, on: bool) -> None:
        self.wanted = on
        if on:
            _look_after_children()
        self.follow()

    def follow(self) -> None:
        on = self.wanted and _lib.state() == RECORDING
        if on == self.running:
            return
        if not on:
            self._end()
        elif not self._begin():
            self.wanted = False
            _print_once("another profiler of Python is at work: functions are not recorded")

    def _begin(self) -> bool:
        self._depths = {}
        monitoring = getattr(sys, "monitoring", None)
        self.running = True  # before the first event
        self.running = self._monitor(monitoring) if monitoring else self._profile()
        return self.running

    def _end(self) -> None:
        self.running = False
        if self._tool is not None:
            monitoring = sys.monitoring  # type: ignore[attr-defined]
            monitoring.set_events(self._tool, 0)
            monitoring.free_tool_id(self._tool)
            self._tool = None
        else:
            threading.setprofile(None)
            if sys.getprofile() == self._on_event:
                sys.setprofile(None)
        depth, self._depths = self._depths.pop(threading.get_ident(), 0), {}
        while depth:
            _lib.range_pop()
            depth -= 1

    def _push(self, code: Any) -> None:
        number = self._names.get(code)
        if number is None:
            path = code.co_filename.replace("\\", "/").split("/")
            number = _lib.name(("%s(%d): %s" % (
                "/".join(path[-2:]), code.co_firstlineno,
                getattr(code, "co_qualname", code.co_name))).encode("utf-8", "replace"))
            if len(self._names) < self.NAMES_MAX:
                self._names[code] = number
        thread = threading.get_ident()
        self._depths[thread] = self._depths.get(thread, 0) + 1
        _lib.range_push_class(number, _CLASS_PYTHON)

    def _pop(self) -> None:
        thread = threading.get_ident()
        depth = self._depths.get(thread, 0)
        if depth:  # otherwise the call began before the recording
            self._depths[thread] = depth - 1
            _lib.range_pop()

    # before 3.12

    def _profile(self) -> bool:
        if sys.getprofile() is not None:
            return False
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)
        return True

    def _on_event(self, frame: Any, event: str, arg: Any) -> None:
        if not self.running:
            sys.setprofile(None)
        elif frame.f_code.co_filename == __file__:
            pass
        elif event == "call":
            self._push(frame.f_code)
        elif event == "return":
            self._pop()

    # from 3.12 on

    def _monitor(self, monitoring: Any) -> bool:
        for tool in (monitoring.PROFILER_ID, 3, 4):
            try:
                monitoring.use_tool_id(tool, "tacho")
                self._tool = tool
                break
            except ValueError:
                continue
        if self._tool is None:
            return False
        events, mask = monitoring.events, 0
        for function, names in ((self._on_enter, ("PY_START", "PY_RESUME")),
                                (self._on_throw, ("PY_THROW",)),
                                (self._on_leave, ("PY_RETURN", "PY_YIELD")),
                                (self._on_unwind, ("PY_UNWIND",))):
            for name in names:
                monitoring.register_callback(self._tool, getattr(events, name), function)
                mask |= getattr(events, name)
        monitoring.set_events(self._tool, mask)
        monitoring.restart_events()
        return True

    def _on_enter(self, code: Any, offset: int) -> Any:
        if code.co_filename == __file__:
            return sys.monitoring.DISABLE  # type: ignore[attr-defined]
        return self._push(code)

    def _on_leave(self, code: Any, offset: int, value: Any) -> Any:
        if code.co_filename == __file__:
            return sys.monitoring.DISABLE  # type: ignore[attr-defined]
        return self._pop()

    # These two events cannot be disabled.

    def _on_throw(self, code: Any, offset: int, exception: Any) -> None:
        if code.co_filename != __file__:
            self._push(code)

    def _on_unwind(self, code: Any, offset: int, exception: Any) -> None:
        if code.co_filename != __file__:
            self._pop()


_tracer = _Tracer()


def trace_python(on: bool = True) -> None:
    """Record each call of a Python function as a range while a window is open. It is off by
    default, because it slows Python down several times. Names are "folder/file.py(line): function".

    Recording follows the window whenever step(), start(), stop() or epoch_end() is called.
    """
    if on and available():
        _tracer.want(True)
    elif not on:
        _tracer.want(False)


# ---- callbacks of training loops ----

class _Callback:
    """`config` and `options` are those of configure(), including keys of other profilers."""

    def __init__(self, config: Any = None, watch_collections: bool = True,
                 **options: Any) -> None:
        if config is not None or options:
            configure(config, **options)
        if watch_collections:
            watch_gc()


class TorchCallback(_Callback):
    """For a training loop, used like torch.profiler: call step() after each step (or epoch).

        with tacho.TorchCallback(wait=1, warmup=1, active=3, repeat=1) as profiler:
            for batch in loader:
                train(batch)
                profiler.step()
    """

    def start(self) -> None:
        """Begin the first step."""
        step()

    def step(self) -> None:
        """End a step, and begin the next one."""
        step()

    def stop(self) -> None:
        """End training; the log is complete on return, after two seconds at most."""
        _lib.step_cancel()  # the last step() has begun a step that does not exist
        stop()

    def __enter__(self) -> TorchCallback:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()


class JaxCallback(_Callback):
    """For trainers that call on_training_start(), on_training_step() after each step,
    on_training_epoch_end() and on_validation_epoch_start(). A trainer that does not call
    on_training_epoch_start() loses the first step of each further epoch.
    """

    def on_training_start(self, *args: Any, **kwargs: Any) -> None:
        """Begin the first step."""
        step()

    def on_training_epoch_start(self, *args: Any, **kwargs: Any) -> None:
        """Begin the first step of the epoch."""
        _lib.step_cancel()
        step()

    def on_training_step(self, step_metrics: Any = None, epoch_idx: Optional[int] = None,
                         step_idx: Optional[int] = None, *args: Any, **kwargs: Any) -> None:
        """End step `step_idx`, and begin the next one."""
        step(None if step_idx is None else int(step_idx) + 1)

    def on_training_epoch_end(self, *args: Any, **kwargs: Any) -> None:
        """Discard the step that began after the last one, and end a running window."""
        _lib.step_cancel()
        epoch_end()

    def on_validation_epoch_start(self, *args: Any, **kwargs: Any) -> None:
        """The same; steps of the validation are not recorded as steps of the training."""
        _lib.step_cancel()
        validation_begin()

    def on_training_end(self, *args: Any, **kwargs: Any) -> None:
        """End the last window, and write everything to the log."""
        _lib.step_cancel()
        epoch_end()
        flush()

    def start_trace(self, step_idx: Optional[int] = None) -> None:
        """Begin a window by hand; prints a warning when one is open."""
        if state() == RECORDING:
            _print_once("a window is open already")
        start()

    def stop_trace(self) -> None:
        """End the window, if one is open."""
        stop()


class _LightningHooks(_Callback):
    """Records steps of Lightning's trainer, and each action that its profiler times as a range.

    Actions come from the trainer's own profiler: its start() and stop() are wrapped. Actions that
    are listed in PHASES also become phases.
    """

    # The end of an action's name, and its phase. Reports recognise other actions by their names
    # ("train_dataloader_next", "optimizer_step").
    PHASES = ((".training_step", "forward"), (".backward", "backward"),
              (".validation_step", "validation"), (".train_dataloader_next", "data"),
              (".optimizer_step", "optimizer"), (".optimizer_zero_grad", "optimizer"))
    DEPTH = 60

    def __init__(self, config: Any = None, watch_collections: bool = True,
                 **options: Any) -> None:
        super().__init__(config, watch_collections, **options)
        self._profiler: Any = None
        self._open = threading.local()  # .actions: (name, ranges pushed), innermost last
        self._pushed: Dict[str, Tuple[_Named, ...]] = {}

    def __getstate__(self) -> Dict[str, Any]:  # a trainer with several processes pickles callbacks
        return {"_profiler": None, "_pushed": {}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._open = threading.local()

    def _ranges_of(self, action: str) -> Tuple[_Named, ...]:
        found = self._pushed.get(action)
        if found is None:
            words = [word for end, word in self.PHASES if action.endswith(end)]
            found = self._pushed[action] = (range(action),) + tuple(map(phase, words[:1]))
        return found

    def _actions(self) -> List[Tuple[str, int]]:
        actions: Optional[List[Tuple[str, int]]] = getattr(self._open, "actions", None)
        if actions is None:
            actions = self._open.actions = []
        return actions

    def _begin(self, action: str) -> None:
        actions = self._actions()
        if len(actions) < self.DEPTH:
            ranges = self._ranges_of(action)
            actions.append((action, len(ranges)))
            for each in ranges:
                each.__enter__()

    def _end(self, action: str) -> None:
        actions = self._actions()
        if not any(name == action for name, _ in actions):
            return  # it began before the callback was set up
        while actions:
            name, count = actions.pop()
            while count:
                _lib.range_pop()
                count -= 1
            if name == action:
                return

    def _watch(self, profiler: Any) -> None:
        begin, end = profiler.start, profiler.stop

        def start_action(action_name: str, *args: Any, **kwargs: Any) -> Any:
            self._begin(action_name)
            return begin(action_name, *args, **kwargs)

        def stop_action(action_name: str, *args: Any, **kwargs: Any) -> Any:
            try:
                return end(action_name, *args, **kwargs)
            finally:
                self._end(action_name)

        profiler.start, profiler.stop = start_action, stop_action
        self._profiler = profiler

    def _leave(self) -> None:
        if self._profiler is not None:
            self._profiler.__dict__.pop("start", None)
            self._profiler.__dict__.pop("stop", None)
            self._profiler = None
        for name, _ in reversed(list(self._actions())):
            self._end(name)

    def setup(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        profiler = getattr(trainer, "profiler", None)
        if self._profiler is None and hasattr(profiler, "__dict__") and available():
            self._watch(profiler)

    def teardown(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        self._leave()
        flush()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        epoch_end()
        self._leave()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int,
                             *args: Any) -> None:
        step()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        epoch_end()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if not getattr(trainer, "sanity_checking", False):
            validation_begin()


def LightningCallback(config: Any = None, watch_collections: bool = True,  # noqa: N802
                      **options: Any) -> Any:
    """A callback for the Trainer of `lightning` or `pytorch_lightning`, whichever is imported:
    Trainer(callbacks=[tacho.LightningCallback(wait_steps=1, warmup_steps=1, active_steps=3)]).
    """
    bases = tuple(getattr(sys.modules[name], "Callback")
                  for name in ("lightning.pytorch", "pytorch_lightning")
                  if hasattr(sys.modules.get(name), "Callback"))
    made = type("LightningCallback", (_LightningHooks,) + bases, {"__module__": __name__})
    return made(config, watch_collections, **options)


# ---- accumulated average times of named operations ----

class _Times(threading.local):
    """The times that one thread has measured for one profiler."""

    OPEN_MAX = 64

    def __init__(self, everybody: List[Dict[str, List[float]]]) -> None:
        self.totals: Dict[str, List[float]] = {}  # name: seconds, count
        self.open: List[Tuple[str, float]] = []   # name, begin; innermost last
        everybody.append(self.totals)

    def begin(self, name: str, now: float) -> None:
        if len(self.open) == self.OPEN_MAX:
            del self.open[0]  # they are never ended
        self.open.append((name, now))
        _lib.range_push_id(_id(name))

    def end(self, name: str, began: Optional[float]) -> Optional[float]:
        """Removes the operation from the stack, wherever it is, and returns when it began."""
        for back, (other, since) in enumerate(reversed(self.open)):
            if other == name and (began is None or since == began):
                break
        else:
            return began  # it began on another thread
        place = len(self.open) - 1 - back
        above = self.open[place + 1:]
        del self.open[place:]
        for _ in (name, *above):
            _lib.range_pop()
        for again in above:  # it ended before those inside it, which continue as new ranges
            _lib.range_push_id(_id(again[0]))
            self.open.append(again)
        return since

    def count(self, name: str, seconds: float) -> None:
        total = self.totals.setdefault(name, [0.0, 0])
        total[0] += seconds
        total[1] += 1


class TrainingProfiler:
    """Adds up times of named operations, in a window or not; prints them, and logs them to Weights
    & Biases where a run is initialised. In a window each operation is also a range of the log.

    It does nothing without the library, with TACHO_ENABLED=0, or when `enabled` is false.
    """

    def __init__(self, log_to_wandb: bool = True, log_every: int = 100,
                 enabled: bool = True) -> None:
        self.log_to_wandb = log_to_wandb
        self.log_every = log_every
        self.enabled = enabled
        self.reset()

    def start_timer(self, name: str) -> float:
        """Begin an operation; pass the return value, in seconds, to end_timer()."""
        if not self.enabled or not available():
            return 0.0
        now = time.perf_counter()
        self._times.begin(name, now)
        return now

    def end_timer(self, name: str, start_time: Optional[float] = None) -> None:
        """End an operation; without `start_time` the latest of this name on this thread."""
        if not self.enabled or not available():
            return
        now = time.perf_counter()
        times = self._times
        began = times.end(name, start_time)
        if began is not None:
            times.count(name, now - began)

    def reset(self) -> None:
        """Set all times to zero."""
        self._everybody: List[Dict[str, List[float]]] = []
        self._times = _Times(self._everybody)

    def get_summary(self) -> Dict[str, Dict[str, Any]]:
        """{name: {"avg_time": s, "total_time": s, "count": n}}, over all threads."""
        sums: Dict[str, List[float]] = {}
        for totals in list(self._everybody):
            for name, (seconds, count) in list(totals.items()):
                total = sums.setdefault(name, [0.0, 0])
                total[0] += seconds
                total[1] += count
        return {name: _figures(seconds, int(count)) for name, (seconds, count) in sums.items()}

    def log_metrics(self, step: Optional[int] = None) -> None:
        """Print a line for each operation; with a step number only every `log_every` steps."""
        if step is not None and self.log_every > 0 and step % self.log_every:
            return
        figures = self.get_summary()
        if not figures:
            return
        print("--- Profiling Metrics%s ---" % ("" if step is None else " (Step %d)" % step))
        for name, row in figures.items():
            print("%s: avg=%.4fs, total=%.2fs, count=%d" %
                  (name, row["avg_time"], row["total_time"], row["count"]))
        if self.log_to_wandb:
            _log_to_wandb({"profiling/%s_%s" % (name, key): value
                           for name, row in figures.items() for key, value in row.items()})


def _log_to_wandb(metrics: Dict[str, Any]) -> None:
    wandb = sys.modules.get("wandb")  # a program that uses it has imported it
    if getattr(wandb, "run", None) is None:
        return
    try:
        wandb.log(metrics)  # type: ignore[union-attr]
    except Exception as why:  # it may raise anything; training must go on
        _print_once("wandb.log: %s" % why)


_profiler = TrainingProfiler()


def get_profiler() -> TrainingProfiler:
    """The profiler of the process, which the functions below use."""
    return _profiler


def log_profiling_metrics(step: Optional[int] = None) -> None:
    """get_profiler().log_metrics()."""
    _profiler.log_metrics(step)


def _timed(function: _F, name: str, finish: Callable[[Any], Any]) -> _F:
    if _is_forbidden():
        return function

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not available():
            return function(*args, **kwargs)
        began = _profiler.start_timer(name)
        try:
            return finish(function(*args, **kwargs))
        finally:
            _profiler.end_timer(name, began)
    return wrapper  # type: ignore[return-value]


def _as_it_is(result: Any) -> Any:
    return result


def _when_ready(result: Any) -> Any:
    """Waits for the device, because JAX returns before it is done. While a function is being
    compiled there is nothing to wait for."""
    jax = sys.modules.get("jax")
    if not hasattr(jax, "block_until_ready"):
        return result
    tracer = jax.core.Tracer  # type: ignore[union-attr]
    if any(isinstance(leaf, tracer)
           for leaf in jax.tree_util.tree_leaves(result)):  # type: ignore[union-attr]
        return result
    return jax.block_until_ready(result)  # type: ignore[union-attr]


def profile_operation(name: str) -> Callable[[_F], _F]:
    """Decorator that times each call under this name."""
    return lambda function: _timed(function, name, _as_it_is)


def profile_jax_loss_fn(function: _F, name: str = "loss_fn_computation", wait: bool = True) -> _F:
    """Wrap the function to time each call until the device is done, or with wait=False until it
    returns."""
    return _timed(function, name, _when_ready if wait else _as_it_is)


def profile_make_step(function: _F, name: str = "make_step_total", wait: bool = True) -> _F:
    """The same for a complete step."""
    return _timed(function, name, _when_ready if wait else _as_it_is)


class _Loader:
    """Wraps a loader and measures the time until it returns a batch."""

    def __init__(self, loader: Iterable[Any], name: str) -> None:
        self._loader, self._name = loader, name
        self._iterator: Optional[Iterator[Any]] = None

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._loader)
        ended = object()
        while True:
            with phase(self._name):
                began = time.perf_counter()
                batch = next(batches, ended)
                seconds = time.perf_counter() - began
            if batch is ended:
                return
            if _profiler.enabled and available():
                _profiler._times.count(self._name, seconds)
            yield batch

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self)
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while being copied it has no loader
            raise AttributeError(name)
        return getattr(self._loader, name)


def profile_data_loader(loader: Iterable[Any], name: str = "data_batch_production") -> Any:
    """Wrap a loader: waiting for a batch is a phase, and is timed. It can be iterated again."""
    return loader if _is_forbidden() else _Loader(loader, name)
