# SPDX-License-Identifier: Apache-2.0
"""A Perfetto trace as its SDK writes it: nested slices of several threads, each a sequence with its own names and track.

usage: perfetto_slices.py OUT SLICES THREADS ARGUMENTS [FORM]        ARGUMENTS 1: each slice has a number and a text
FORM service: as the tracing service passes it on, with user and process in each packet, and times that count from the
packet before; texts: as programs without interning write it, with the track and the names in each event
"""
import random
import sys

NAMES, DEPTH = 200, 12


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, *parts):
    data = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(data)) + data


def head(thread, at, has_arguments, form):
    track = 1000 + 7919 * thread
    names = [message(2, number(1, i + 1), message(2, b"function_%d" % i)) for i in range(NAMES)]
    keys = [message(3, number(1, i), message(2, key)) for i, key in ((1, b"items"), (2, b"what"))] if has_arguments else []
    clocks = [message(1, number(1, 6), number(2, at)), message(1, number(1, 64), number(2, 0), number(3, 1))]
    return message(1, number(8, at), number(58, 6), number(10, thread + 1), number(13, 1),
                   *([message(6, *clocks)] if form == "service" else []),
                   message(60, number(1, track), message(4, number(1, 77), number(2, 100 + thread), message(5, b"thread %d" % thread))),
                   message(59, message(11, number(11, track)), *([number(58, 64)] if form == "service" else [])),
                   message(12, *names, message(1, number(1, 1), message(2, b"cat")), *keys))


def main(path, slices, threads, has_arguments, form=""):
    slices, threads, has_arguments = int(slices), int(threads), int(has_arguments)
    rng, at, begun, opens = random.Random(1), 10**12, 0, [0] * threads
    last = [at] * threads
    with open(path, "wb") as out:
        for thread in range(threads):
            out.write(head(thread, at, has_arguments, form))
        while begun < slices or any(opens):
            thread, at = rng.randrange(threads), at + rng.randrange(50, 2000)
            if begun < slices and (not opens[thread] or (opens[thread] < DEPTH and rng.random() < .5)):
                event = b"" if form == "texts" else number(3, 1)
                if has_arguments:
                    event += message(4, number(1, 1), number(4, rng.randrange(1 << 20)))
                    event += message(4, number(1, 2), message(6, rng.choice([b"alpha", b"beta", b"gamma"])))
                name = rng.randrange(NAMES)
                if form == "texts":
                    event += number(9, 1) + number(11, 1000 + 7919 * thread) + message(22, b"cat")
                    event += message(23, b"function_%d" % name)
                else:
                    event += number(9, 1) + number(10, 1 + name)
                opens[thread] += 1
                begun += 1
            elif opens[thread]:
                event = number(9, 2) + (number(11, 1000 + 7919 * thread) if form == "texts" else b"")
                opens[thread] -= 1
            else:
                continue
            service = number(3, 1000), number(8, at - last[thread]), message(11, event), number(10, thread + 1), \
                number(13, 2), number(79, 77)
            plain = number(8, at), message(11, event), number(10, thread + 1), number(13, 2)
            out.write(message(1, *(service if form == "service" else plain)))
            last[thread] = at


if __name__ == "__main__":
    main(*sys.argv[1:])
