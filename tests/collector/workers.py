# SPDX-License-Identifier: Apache-2.0
"""A training loop whose data come from worker processes; argument: how these are started."""
import multiprocessing
import sys

import tacho


def load(number):
    with tacho.range("load"):
        result = sum(range(number * 100))
    tacho.flush()  # workers are ended without a word
    return result


def main():
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(3) as pool:
        for batch in pool.imap(load, range(20)):
            tacho.step()
            with tacho.phase("train"):
                sum(range(1000))
            assert batch >= 0
    tacho.epoch_end()


if __name__ == "__main__":
    main()
