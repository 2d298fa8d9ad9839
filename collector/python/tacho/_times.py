# SPDX-License-Identifier: Apache-2.0
"""Accumulated average times of named operations."""
from __future__ import annotations

import functools
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, TypeVar

from ._library import available, id_of, is_forbidden, lib, print_once
from ._marks import figures_of, phase

_F = TypeVar("_F", bound=Callable[..., Any])


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
        lib.range_push_id(id_of(name))

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
            lib.range_pop()
        for again in above:  # it ended before those inside it, which continue as new ranges
            lib.range_push_id(id_of(again[0]))
            self.open.append(again)
        return since

    def count(self, name: str, seconds: float) -> None:
        total = self.totals.setdefault(name, [0.0, 0])
        total[0] += seconds
        total[1] += 1


class TrainingProfiler:
    """Adds up times of named operations, inside and outside windows; prints them, and logs them to
    Weights & Biases if a run is initialized. Inside a window each operation is also a range.

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
        return {name: figures_of(seconds, int(count)) for name, (seconds, count) in sums.items()}

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
        print_once("wandb.log: %s" % why)


_profiler = TrainingProfiler()


def get_profiler() -> TrainingProfiler:
    """Returns the profiler of the process, which the functions below use."""
    return _profiler


def log_profiling_metrics(step: Optional[int] = None) -> None:
    """get_profiler().log_metrics()."""
    _profiler.log_metrics(step)


def _timed(function: _F, name: str, finish: Callable[[Any], Any]) -> _F:
    if is_forbidden():
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
    """Like profile_jax_loss_fn(), for a complete step."""
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
    """Wrap a loader: waiting for a batch becomes a timed phase. The loader can be reused."""
    return loader if is_forbidden() else _Loader(loader, name)
