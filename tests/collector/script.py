# SPDX-License-Identifier: Apache-2.0
"""A training loop in Python that uses all of tacho; argument: the folder that it lies in."""
import sys

sys.path.insert(0, sys.argv[1])
import tacho  # noqa: E402


@tacho.phase("decorated")
def decorated(value):
    return value + 1


for step in range(10):
    tacho.step()
    with tacho.phase("data"):
        pass
    with tacho.phase("forward"):
        with tacho.range("layer"):
            pass
    tacho.counter("loss", 1.0 / (step + 1))
assert [decorated(i) for i in (1, 2, 3)] == [2, 3, 4]
assert decorated.__name__ == "decorated"
try:
    with tacho.range("raises"):
        raise KeyError("through")
except KeyError:
    pass
tacho.mark("half time")
tacho.memory_sample()
tacho.epoch_end()
tacho.validation_begin()
tacho.flush()

profiler = tacho.get_profiler()
begun = profiler.start_timer("timed")
profiler.end_timer("timed", begun)
assert not tacho.available() or profiler.get_summary()["timed"]["count"] == 1
assert list(tacho.profile_data_loader([1, 2])) == [1, 2]
assert tacho.profile_operation("op")(lambda a, b=1: a + b)(1, b=2) == 3
assert isinstance(tacho.summary(), dict)
tacho.stop()
print("enabled" if tacho.available() else "without the library")
