# SPDX-License-Identifier: Apache-2.0
"""What a program in Python sees; for any Python from 2.7 on."""
from __future__ import print_function
import os
import signal
import sys
import time

seen = {}


def on_signal(number, frame):
    seen[number] = seen.get(number, 0) + 1


def events():
    try:
        import tacho
    except Exception:  # there is none where nothing records, and a Python may be too old for it
        return
    for _ in range(10):
        tacho.step()


def ready():
    events()
    os.write(1, b"ready\n")


def count():
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        signal.signal(number, on_signal)
    ready()
    for _ in range(1000):
        if seen:
            break
        time.sleep(0.01)
    until = time.time() + 0.25
    while time.time() < until:
        time.sleep(0.01)
    print(sorted(seen.items()))


def work():
    ready()
    time.sleep(4)
    sys.exit(77)


def dispositions():
    events()
    for name in ("SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE"):
        kept = signal.getsignal(getattr(signal, name))
        print(name, kept if isinstance(kept, int) else type(kept).__name__)
        if kept is None:
            print("not ours")
        else:
            signal.signal(getattr(signal, name), kept)


def fork():
    events()
    pid = os.fork()
    if pid == 0:
        events()
        os._exit(4)
    print(os.waitpid(pid, 0)[1] >> 8)
    events()


def processes():
    import multiprocessing
    events()
    process = multiprocessing.Process(target=events)
    process.start()
    process.join()
    print(process.exitcode)


def finish():
    events()
    sys.exit(7)


def raise_error():
    events()
    raise ValueError("on purpose")


def warnings_too():
    import warnings
    warnings.simplefilter("error")
    fork()


if __name__ == "__main__":
    {"count": count, "work": work, "dispositions": dispositions, "fork": fork, "processes": processes,
     "exit": finish, "raise": raise_error, "warnings": warnings_too}[sys.argv[1]]()
    sys.stdout.flush()
