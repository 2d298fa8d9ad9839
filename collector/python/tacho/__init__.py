# SPDX-License-Identifier: Apache-2.0
"""Marks steps, phases and ranges of a training loop for libtacho, over ctypes.

    import tacho

    for batch in loader:
        tacho.step()
        with tacho.phase("forward"):
            loss = model(batch)
        tacho.counter("loss", float(loss))

tacho-record makes this package importable. Otherwise copy the folder and set PYTHONPATH to its
parent, or install the wheel. What is recorded, and when, is configured outside the program
(tacho-record, TACHO_ variables) or with configure(). Under tacho-record, programs of PyTorch,
Lightning and JAX get steps and phases without any of these calls, unless --no-auto is given; marks
in the program take precedence.

Without the library every function does nothing, and one line on stderr says so. With
TACHO_ENABLED=0 the library is not searched for. Functions raise no exceptions of their own;
exceptions of the user's code pass through. All functions may be called on any thread. The package
needs Python 3.8; on older versions it does nothing, and one line says so.
"""
import sys

from ._version import __version__  # noqa: F401

__all__ = [
    "OFF", "ARMED", "RECORDING", "available", "version", "configure", "state", "start", "stop",
    "save", "step", "epoch_end", "validation_begin", "phase", "range", "counter", "mark",
    "memory_sample", "summary", "reset", "flush", "watch", "watch_gc", "trace_python",
    "automatic", "LightningCallback", "HuggingFaceCallback", "TorchCallback", "JaxCallback",
    "TrainingProfiler", "get_profiler", "log_profiling_metrics", "profile_operation",
    "profile_data_loader", "profile_jax_loss_fn", "profile_make_step",
]

if sys.version_info >= (3, 8):
    from ._library import ARMED, OFF, RECORDING, available, version
    from ._settings import configure
    from ._marks import (counter, epoch_end, flush, mark, memory_sample, phase, range, reset,
                         save, start, state, step, stop, summary, validation_begin)
    from ._python import trace_python, watch_gc
    from ._times import (TrainingProfiler, get_profiler, log_profiling_metrics,
                         profile_data_loader, profile_jax_loss_fn, profile_make_step,
                         profile_operation)
    from ._auto import automatic
    from ._callbacks import HuggingFaceCallback, JaxCallback, TorchCallback
    from ._lightning import LightningCallback
    from ._watch import watch
else:  # the syntax of this branch, and of what it imports, is that of Python 2.7
    from . import _old
    globals().update((name, getattr(_old, name)) for name in __all__)
