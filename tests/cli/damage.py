# SPDX-License-Identifier: Apache-2.0
"""A log with one wrong block whose checksums are right all the same: damage.py IN OUT WHAT."""
import struct
import sys
import zlib

HEADER = 64
MAGIC = 0x4B4C4254
FIELDS, EVENTS = 7, 9
DEFLATED = 2


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def blocks(log):
    at = 16
    while at < len(log):
        size = struct.unpack_from("<I", log, at + 16)[0]
        yield at, size, struct.unpack_from("<HH", log, at + 8)
        at += HEADER + size


def seal(header, payload):
    struct.pack_into("<I", header, 28, crc32c(payload))
    struct.pack_into("<I", header, 4, crc32c(header[8:]))
    return bytes(header) + payload


def huge(header, payload):
    """The most that the header can say."""
    struct.pack_into("<II", header, 16, 0xFFFFFFFF, 0xFFFFFFFF)
    return seal(header, payload)


def unknown_block(header, payload):
    struct.pack_into("<H", header, 8, 999)
    return seal(header, payload)


def unknown_record(header, payload):
    """A kind of record that only a newer writer knows: same length, another word."""
    flags = struct.unpack_from("<H", header, 10)[0]
    if flags & DEFLATED:
        payload = zlib.decompress(payload)
    payload = payload.replace(b"kernel", b"qernel")
    struct.pack_into("<H", header, 10, flags & ~DEFLATED)
    struct.pack_into("<II", header, 16, len(payload), len(payload))
    return seal(header, payload)


WAYS = {
    "huge": (huge, EVENTS),
    "block": (unknown_block, EVENTS),
    "record": (unknown_record, FIELDS),
}


def main():
    with open(sys.argv[1], "rb") as f:
        log = f.read()
    way, kind = WAYS[sys.argv[3]]
    out = log[:16]
    for at, size, (block_kind, _) in blocks(log):
        assert struct.unpack_from("<I", log, at)[0] == MAGIC
        header = bytearray(log[at:at + HEADER])
        payload = log[at + HEADER:at + HEADER + size]
        if block_kind == kind:
            out += way(header, payload)
            if kind == EVENTS:
                kind = None  # the first only
        else:
            out += bytes(header) + payload
    with open(sys.argv[2], "wb") as f:
        f.write(out)


main()
