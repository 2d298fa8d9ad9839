# SPDX-License-Identifier: Apache-2.0
"""Replaces the package under Python 2.7 to 3.7: every name exists and does nothing."""
import sys

OFF, ARMED, RECORDING = 0, 1, 2


def _nothing(*args, **options):
    return None


def _zero(*args, **options):
    return 0


def _false(*args, **options):
    return False


def _empty(*args, **options):
    return {}


def _itself(thing, *args, **options):
    return thing


class _Idle(object):
    """A phase, a range, a callback or a profiler: each method does nothing."""

    def __init__(self, *args, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def __call__(self, function):
        return function

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing

    def start_timer(self, name):
        return 0.0

    def get_summary(self):
        return {}


def version():
    return ""


start = stop = save = step = epoch_end = validation_begin = counter = mark = _nothing
memory_sample = reset = flush = watch_gc = automatic = trace_python = _nothing
log_profiling_metrics = _nothing
available = configure = _false
state = _zero
summary = _empty
watch = profile_data_loader = profile_jax_loss_fn = profile_make_step = _itself
phase = range = profile_operation = get_profiler = _Idle
LightningCallback = HuggingFaceCallback = TorchCallback = JaxCallback = TrainingProfiler = _Idle

try:
    sys.stderr.write("tacho: Python %d.%d is older than 3.8; nothing is marked\n"
                     % sys.version_info[:2])
except (IOError, ValueError, AttributeError):
    pass  # stderr is closed or missing
