# SPDX-License-Identifier: Apache-2.0
"""Garbage collections, and calls of Python functions, as ranges."""
from __future__ import annotations

import atexit
import functools
import gc
import os
import sys
import threading
from typing import Any, Dict, List, Mapping, Optional

from ._library import RECORDING, available, id_of, lib, print_once

CLASS_PYTHON, CLASS_GC = 3, 8
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class _Gc:
    open = False
    process = 0

    def __call__(self, what: str, info: Mapping[str, int]) -> None:
        if os.getpid() != self.process:
            return  # a forked child, before the callback of _look_after_children() has run
        if what == "start":
            self.open = True
            lib.range_push_class(id_of("gc generation %d" % info.get("generation", -1)), CLASS_GC)
        elif self.open:
            self.open = False
            lib.range_pop()


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
    Earlier versions: sys.setprofile, on the step thread and on threads that start later. It does not
    replace an active profiler.
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
        on = self.wanted and lib.state() == RECORDING
        if on == self.running:
            return
        if not on:
            self._end()
        elif not self._begin():
            self.wanted = False
            print_once("another profiler of Python is at work: functions are not recorded")

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
            lib.range_pop()
            depth -= 1

    def _push(self, code: Any) -> None:
        number = self._names.get(code)
        if number is None:
            path = code.co_filename.replace("\\", "/").split("/")
            number = lib.name(("%s(%d): %s" % (
                "/".join(path[-2:]), code.co_firstlineno,
                getattr(code, "co_qualname", code.co_name))).encode("utf-8", "replace"))
            if len(self._names) < self.NAMES_MAX:
                self._names[code] = number
        thread = threading.get_ident()
        self._depths[thread] = self._depths.get(thread, 0) + 1
        lib.range_push_class(number, CLASS_PYTHON)

    def _pop(self) -> None:
        thread = threading.get_ident()
        depth = self._depths.get(thread, 0)
        if depth:  # otherwise the call began before the recording
            self._depths[thread] = depth - 1
            lib.range_pop()

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
        elif frame.f_code.co_filename.startswith(HERE):
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
        if code.co_filename.startswith(HERE):
            return sys.monitoring.DISABLE  # type: ignore[attr-defined]
        return self._push(code)

    def _on_leave(self, code: Any, offset: int, value: Any) -> Any:
        if code.co_filename.startswith(HERE):
            return sys.monitoring.DISABLE  # type: ignore[attr-defined]
        return self._pop()

    # These two events cannot be disabled.

    def _on_throw(self, code: Any, offset: int, exception: Any) -> None:
        if not code.co_filename.startswith(HERE):
            self._push(code)

    def _on_unwind(self, code: Any, offset: int, exception: Any) -> None:
        if not code.co_filename.startswith(HERE):
            self._pop()


tracer = _Tracer()


def trace_python(on: bool = True) -> None:
    """Record each call of a Python function as a range while a window is open. It is off by
    default, because it slows Python down several times. Names are "folder/file.py(line): function".

    Recording follows the window whenever step(), start(), stop() or epoch_end() is called.
    """
    if on and available():
        tracer.want(True)
    elif not on:
        tracer.want(False)
