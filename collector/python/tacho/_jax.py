# SPDX-License-Identifier: Apache-2.0
"""Compiled training steps of JAX, by their names, for automatic steps and phases."""
from __future__ import annotations

import functools
import re
import sys
from typing import Any, Callable

from ._auto import Marks

# train_step, training_step_fn, make_step, update, update_step, step, sgd_step ...
_TRAINS = re.compile(r"(?:^|_)(?:step|update|train)(?:$|_)", re.IGNORECASE)
_OTHER = re.compile(r"eval|valid|test|predict|infer|sample|init|decode", re.IGNORECASE)


def trains(name: str) -> bool:
    """Whether a function of this name is a training step."""
    return bool(_TRAINS.search(name)) and not _OTHER.search(name)


class _Step:
    """A compiled function whose calls are steps; in all else it is the function."""

    def __init__(self, function: Any, name: str, is_outermost: Callable[[], bool],
                 marks: Marks) -> None:
        self.__dict__["_self"] = (function, name, is_outermost, marks)
        functools.update_wrapper(self, function)
        self.__dict__["__wrapped__"] = getattr(function, "__wrapped__", function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, name, is_outermost, marks = self.__dict__["_self"]
        if not is_outermost():
            return function(*args, **kwargs)  # inside of another that is being compiled
        marks.begin_optimizer(id(function), name)
        try:
            return function(*args, **kwargs)
        finally:
            marks.end_optimizer(id(function), name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_self"][0], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_self"][0], name, value)

    def __repr__(self) -> str:
        return repr(self.__dict__["_self"][0])

    def __reduce__(self) -> Any:
        return _itself, (self.__dict__["_self"][0],)


def _itself(thing: Any) -> Any:
    return thing


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", ""))


def _compiling(compile_it: Callable[..., Any], is_outermost: Callable[[], bool],
               marks: Marks) -> Callable[..., Any]:
    def wrapped(compiled: Any, name: str) -> Any:
        return _Step(compiled, name, is_outermost, marks) if trains(name) else compiled

    @functools.wraps(compile_it)
    def jit(*args: Any, **kwargs: Any) -> Any:
        made = compile_it(*args, **kwargs)
        function = args[0] if args else kwargs.get("fun")
        if function is None:  # jit(static_argnums=0)(function)
            return lambda inner: wrapped(made(inner), _name_of(inner))
        return wrapped(made, _name_of(function))
    return jit


def install(jax: Any, marks: Marks) -> None:
    is_outermost = getattr(sys.modules.get("jax._src.core"), "trace_state_clean", None)
    is_outermost = is_outermost or jax.core.trace_state_clean  # no function is being compiled
    for name in ("jit", "pmap"):
        if hasattr(jax, name):
            setattr(jax, name, _compiling(getattr(jax, name), is_outermost, marks))
