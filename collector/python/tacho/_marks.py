# SPDX-License-Identifier: Apache-2.0
"""Steps, phases, ranges and the other functions of tacho.h."""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Dict, Optional, TypeVar

from ._library import id_of, ids, is_forbidden, lib
from ._python import tracer

_F = TypeVar("_F", bound=Callable[..., Any])

_automatic: Any = None  # the automatic marks of this process, which the program's own take over


def set_automatic(marks: Any) -> None:
    global _automatic
    _automatic = marks


def state() -> int:
    """OFF, ARMED or RECORDING."""
    return int(lib.state())


def start() -> None:
    """Begin a window by hand, unless one is open. Waits two seconds at most."""
    lib.start()
    tracer.follow()


def stop() -> None:
    """End the window; the log is complete when this returns, after two seconds at most."""
    lib.stop()
    tracer.follow()


def save() -> None:
    """Save the content of the flight recorder, if there is one."""
    lib.save()


def step(number: Optional[int] = None) -> None:
    """Begin the next step and end the one before; steps count from 0 unless a number is given."""
    if _automatic is not None:
        _automatic.leave_steps()
    if number is None:
        lib.step()
    else:
        lib.step_number(number)
    if tracer.wanted:
        tracer.follow()


def epoch_end() -> None:
    """End the last step of an epoch, and a window that was counted in steps or time."""
    lib.epoch_end()
    tracer.follow()


def validation_begin() -> None:
    """End the step and the window, as epoch_end() does, because validation begins."""
    lib.validation_begin()
    tracer.follow()


class Named:
    """A context manager and decorator. It has no state, so one object serves all uses of a name."""

    __slots__ = ("_name", "_number")

    def __init__(self, name: str) -> None:
        self._name = name
        self._number: Optional[int] = None

    @staticmethod
    def _push(number: int) -> None:
        raise NotImplementedError

    def __enter__(self) -> Named:
        if self._number is None:
            self._number = id_of(self._name)
        self._push(self._number)
        return self

    def __exit__(self, *exception: Any) -> None:
        lib.range_pop()

    def __call__(self, function: _F) -> _F:
        if is_forbidden():
            return function

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return wrapper  # type: ignore[return-value]


class _Phase(Named):
    __slots__ = ()

    def __enter__(self) -> _Phase:
        if _automatic is not None:
            _automatic.enter_phase(self._name)
        super().__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        lib.range_pop()
        if _automatic is not None:
            _automatic.exit_phase()

    @staticmethod
    def _push(number: int) -> None:
        lib.phase_push_id(number)


class _Range(Named):
    __slots__ = ()

    @staticmethod
    def _push(number: int) -> None:
        lib.range_push_id(number)


_phases: Dict[str, _Phase] = {}
_ranges: Dict[str, _Range] = {}


def phase(name: str) -> _Phase:
    """`with phase("forward"):` or `@phase("forward")`; reports divide the step among phases."""
    found = _phases.get(name)
    if found is None:
        found = _phases[name] = _Phase(name)
    return found


def range(name: str) -> _Range:  # noqa: A001  the word of tacho.h and of NVTX
    """`with range("attention"):` or `@range("attention")`; an interval that is not a phase."""
    found = _ranges.get(name)
    if found is None:
        found = _ranges[name] = _Range(name)
    return found


def counter(name: str, value: float) -> None:
    """Record a value at this instant, such as the loss. Inside a window only."""
    lib.counter_id(id_of(name), value)


def mark(name: str) -> None:
    """Record an instant with a name."""
    lib.mark(str(name).encode("utf-8", "replace"))


def memory_sample() -> None:
    """Request one sample of host and device memory, which is taken a moment later."""
    lib.memory_sample()


def flush() -> None:
    """Return when everything recorded so far is in the file, or after two seconds."""
    lib.flush()


def figures_of(seconds: float, count: int) -> Dict[str, Any]:
    return {"avg_time": seconds / count, "total_time": seconds, "count": count}


def summary() -> Dict[str, Dict[str, Any]]:
    """{name: {"avg_time": s, "total_time": s, "count": n}} of the ranges that ended while the
    library was armed or recording, for names that Python code has used."""
    result = {}
    seconds, count = ctypes.c_double(0), ctypes.c_uint64(0)
    for name, number in list(ids.items()):
        lib.total(number, ctypes.byref(seconds), ctypes.byref(count))
        if count.value:
            result[name] = figures_of(seconds.value, count.value)
    return result


def reset() -> None:
    """Set all totals to zero."""
    lib.summary_reset()
