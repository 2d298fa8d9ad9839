# SPDX-License-Identifier: Apache-2.0
"""An XSpace read field by field, by nothing of ours and nothing of XProf's: plane, line, name -> how
many events and how many picoseconds."""
import collections


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = {1: 8, 5: 4}[wire]
            value, at = data[at:at + size], at + size
        yield number, value


def entry(data):
    whole = dict(fields(data))
    value = dict(fields(whole.get(2, b"")))
    return whole.get(1, 0), value.get(2, b"").decode("utf-8", "strict")


def sums(path):
    """(plane, line id, name) -> [events, picoseconds]"""
    with open(path, "rb") as file:
        space = file.read()
    out = collections.defaultdict(lambda: [0, 0])
    for number, plane in fields(space):
        if number != 1:
            continue
        name, names, lines = "", {}, []
        for number, value in fields(plane):
            if number == 2:
                name = value.decode()
            elif number == 3:
                lines.append(value)
            elif number == 4:
                key, text = entry(value)
                names[key] = text
        for line in lines:
            line_id, events = 0, []
            for number, value in fields(line):
                if number == 1:
                    line_id = value
                elif number == 4:
                    events.append(dict(fields(value)))
            for event in events:
                row = out[name, line_id, names[event.get(1, 0)]]
                row[0] += 1
                row[1] += event.get(3, 0)
    return dict(out)
