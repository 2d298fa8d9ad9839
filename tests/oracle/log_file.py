# SPDX-License-Identifier: Apache-2.0
"""Writes a small log from plain rows, as schemas/LOG.md says and from nothing else.

    log = Log(rank=0, world=2); log.window(begin, end); log.put(...); open(...).write(log.bytes())

`of_rows` makes one of the rows of a Chrome trace. `KIND_OF` says what a category of such rows is.
One layout for each kind, plain columns, blocks of a few rows each so that one of them can be
damaged: `bytes(damage=[...])` breaks a byte in the payloads of those blocks.
"""
import struct

BLOCK_ROWS = 12
(NAMES, KEYS, SHAPES, PROCESSES, DEVICES, TRACKS, FIELDS, SITES, EVENTS, WINDOWS, ANCHORS, LOSSES,
 END) = range(1, 14)
STREAM, THREAD, POOL, COUNTER = 0, 1, 2, 3
# kind: number, name of the join, name of the amount
KINDS = {
    "kernel": (1, "correlation", "amount"), "memcpy": (2, "correlation", "bytes"),
    "memset": (3, "correlation", "bytes"), "graph": (4, "correlation", "amount"),
    "sync": (5, "correlation", "amount"), "api": (6, "correlation", "result"),
    "range": (7, "sequence", "amount"), "jit": (8, "correlation", "amount"),
    "overhead": (9, "correlation", "amount"), "step": (10, "number", "amount"),
    "alloc": (12, "address", "bytes"), "free": (13, "address", "bytes"),
    "counter": (14, None, "value"),
}
KIND_OF = {     # category: kind, subkind
    "kernel": ("kernel", 0), "gpu_memcpy": ("memcpy", 0), "gpu_memset": ("memset", 0),
    "graph": ("graph", 0), "cuda_runtime": ("api", 0), "cuda_driver": ("api", 1),
    "cpu_op": ("range", 1), "user_annotation": ("range", 2), "python_function": ("range", 3),
    "gpu_user_annotation": ("range", 4), "phase": ("range", 5), "nvtx": ("range", 6),
    "gc": ("range", 8), "overhead": ("overhead", 0), "jit": ("jit", 0), "step": ("step", 0),
    "cuda_sync": ("sync", 0),
}
ON_STREAM = ("kernel", "gpu_memcpy", "gpu_memset", "graph", "cuda_sync", "gpu_user_annotation")
SYNC_TYPES = {"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}
STARTERS = ("launch", "memcpy", "memset")   # parts of calls that start work
TOTALS = ("total_allocated", "total_reserved")      # vary; allocations only
BEGAN_EARLIER, NEVER_ENDED = 1, 2


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC = crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def little(value, size):
    return value.to_bytes(size, "little")


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def text(words):
    data = words.encode()
    return varint(len(data)) + data


def with_length(row):
    return varint(len(row)) + row


def of_rows(rows, window, base_ns=1_700_000_000_000_000_000, damage=()):
    """The log of rows with `cat name tid ts dur args`, us after `base_ns`; one window, in us."""
    log = Log()
    log.window(*(base_ns + 1000 * at for at in window))
    for row in rows:
        put_row(log, row, base_ns)
    return log.bytes(damage)


def put_row(log, row, base_ns):
    args = row.get("args", {})
    kind, subkind = KIND_OF[row["cat"]]
    if row["cat"] in ON_STREAM:
        track = log.track(STREAM, args["stream"], device=args["device"])
    else:
        track = log.track(THREAD, row["tid"], f"thread {row['tid']}")
    if kind == "api" and any(word in row["name"].lower() for word in STARTERS):
        log.launch(track)
    begin = base_ns + 1000 * row["ts"]
    log.put(kind, track, row["name"], begin, begin + 1000 * row["dur"],
            SYNC_TYPES.get(row["name"], subkind),
            args.get("number", args.get("correlation", 0)),
            args.get("bytes", 0), group=args.get("group", 0))


def block(kind, rows, payload, layout=0, times=(0, 0, 0), flags=0, damaged=False):
    rest = (little(kind, 2) + little(flags, 2) + little(layout, 2) + little(0, 2)
            + little(len(payload), 4) * 2 + little(rows, 4) + little(crc32c(payload), 4)
            + b"".join(little(time, 8) for time in times) + little(0, 8))
    if damaged:
        payload = payload[:-1] + bytes([payload[-1] ^ 0x55])
    return b"TBLK" + little(crc32c(rest), 4) + rest + payload


class Log:
    def __init__(self, rank=0, world=1, pid=4000, host="node0"):
        self.names, self.tracks, self.sites, self.shapes = {}, {}, {}, {}
        self.launches, self.windows, self.rows = {}, [], []
        self.process = (host, pid, rank, world)
        self.name(host)

    def name(self, words):
        return self.names.setdefault(words, len(self.names) + 1)

    def window(self, begin, end, cut_short=False):
        """`end` 0: it was never closed."""
        self.windows.append((begin, end, cut_short))

    def track(self, home, number, name="", device=None):
        """A stream, a thread, a pool, or a counter, whose number is its name."""
        return self.tracks.setdefault((home, number, device),
                                      (len(self.tracks) + 1, self.name(name) if name else 0))[0]

    def shape(self, attributes):
        """Of numbers that repeat: {key: value}."""
        for key in attributes:
            self.name(key)
        rows = tuple(attributes.items())
        return self.shapes.setdefault(rows, len(self.shapes) + 1) if rows else 0

    def launch(self, track):
        """A call on that thread launches by its name."""
        self.launches[track] = self.launches.get(track, 0) + 1

    def put(self, kind, track, name, begin, end, subkind=0, join=0, amount=0, flags=0, totals=None,
            order=None, group=0, shape=0):
        """`group`: rows of different groups are in different blocks; of a counter the amount is a
        real number."""
        key = (kind, subkind, track, self.name(name), totals is not None, shape)
        if kind == "counter":
            amount, = struct.unpack("<Q", struct.pack("<d", amount))
        site = self.sites.setdefault(key, len(self.sites) + 1)
        order = len(self.rows) if order is None else order
        self.rows.append((kind, group, totals is not None,
                          (begin, -end, order), (site, end - begin, begin, join, amount, flags,
                                                 order) + tuple(totals or ()), end))

    def layouts(self):
        """(kind, has totals) -> id."""
        found = {}
        for kind, _, totals, _, _, _ in self.rows:
            found.setdefault((kind, totals), len(found) + 1)
        return found

    def blocks(self):
        """[(kind, group, has totals, rows)] of EVENTS, in no order of time."""
        parts = {}
        for row in self.rows:
            parts.setdefault(row[:3], []).append(row)
        made = []
        for (kind, group, totals), rows in parts.items():
            rows.sort(key=lambda row: row[3])
            made += [(kind, group, totals, rows[at:at + BLOCK_ROWS])
                     for at in range(0, len(rows), BLOCK_ROWS)]
        return made

    def table(self, kind, rows):
        return block(kind, len(rows), varint(1) + b"".join(rows)) if rows else b""

    def fields(self, kind, totals):
        number, join, amount = KINDS[kind]
        columns = [("site", 2, 0, 4), ("end", 1, 0, 1), ("begin", 0, 0, 1), (join, 3, 0, 4),
                   (amount, 4, 2 if kind == "counter" else 0, 0), ("flags", 5, 0, 6),
                   ("order", 6, 0, 3)]
        columns = [column for column in columns if column[0]]
        columns += [(name, 7, 0, 2) for name in TOTALS] if totals else []
        return with_length(varint(number) + text(kind) + varint(len(columns)) + b"".join(
            text(name) + bytes([role, type_, unit]) for name, role, type_, unit in columns))

    def site_rows(self, layouts):
        rows, before = [], (0, 0, 0)
        for kind, subkind, track, name, totals, shape in self.sites:
            now = (track, name, shape)
            rows.append(varint(layouts[(kind, totals)]) + varint(subkind) + b"".join(
                zigzag(a - b) for a, b in zip(now, before)))
            before = now
        return rows

    def track_rows(self):
        rows = []
        for (home, number, device), (place, name) in self.tracks.items():
            context = 2 if home == STREAM else 0
            rows.append(with_length(b"".join(varint(value) for value in (
                home, 1, name, 0 if device is None else device + 1, context,
                0 if home == COUNTER else number, 0,
                self.launches.get(place, 0)))))
        return rows

    def events(self, layouts, one, damaged):
        kind, _, totals, rows = one
        words = [row[4] if KINDS[kind][1] else row[4][:3] + row[4][4:] for row in rows]
        payload = b""
        for column in zip(*words):
            stream = b"".join(varint(value) for value in column)
            payload += bytes([0x10]) + varint(0) + varint(1) + varint(len(stream)) + stream
        times = (rows[0][3][0], rows[-1][3][0], max(row[5] for row in rows))
        return block(EVENTS, len(rows), payload, layouts[(kind, totals)], times, 1, damaged)

    def bytes(self, damage=()):
        """The file; of the blocks of events those whose places are in `damage` are broken."""
        host, pid, rank, world = self.process
        layouts, parts, counts = self.layouts(), self.blocks(), {}
        head = b"TACHO\x01\r\n" + little(1, 4)
        out = [head + little(crc32c(head), 4)]
        windows = [with_length(b"".join(varint(value) for value in (1, 0, begin, end, 0, short)))
                   for begin, end, short in self.windows]
        process = with_length(b"".join(varint(value) for value in (
            self.name(host), 0, pid, rank + 1, world, 0)))
        tracks, sites = self.track_rows(), self.site_rows(layouts)
        lists = [varint(len(shape)) + b"".join(varint(self.names[key]) + bytes([0, 0])
                                               for key, _ in shape) for shape in self.shapes]
        shapes = [varint(place + 1) + b"".join(varint(value) for _, value in shape)
                  for place, shape in enumerate(self.shapes)]
        fields = [self.fields(kind, totals) for kind, totals in layouts]
        out += [self.table(NAMES, [text(name) for name in self.names]),
                self.table(KEYS, lists), self.table(SHAPES, shapes),
                self.table(PROCESSES, [process]), self.table(TRACKS, tracks),
                self.table(FIELDS, fields), self.table(SITES, sites),
                self.table(WINDOWS, windows)]
        for place, one in enumerate(parts):
            counts[one[0]] = counts.get(one[0], 0) + len(one[3])
            out.append(self.events(layouts, one, place in damage))
        pairs = b"".join(varint(KINDS[kind][0]) + varint(count) for kind, count in counts.items())
        out.append(block(END, len(counts), varint(len(counts)) + pairs + varint(0)))
        return b"".join(out)
