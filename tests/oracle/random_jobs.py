# SPDX-License-Identifier: Apache-2.0
"""Random ranks of a job, as Kineto files and as logs: what random_idle.py makes, and besides

many or few steps of different lengths, whose numbers may come again, work without launches,
allocations in several pools, of which not all is seen; in logs several windows, steps of
tacho_step(), phases that were pushed, collections of Python's garbage collector, JIT records,
graphs recorded as a whole, and blocks that are damaged. `make(seed, rank, world)` gives
(name, bytes, trace): for a log the trace as the oracle has to see it, for a Kineto file None. The
same seed gives the same bytes.
"""
import kineto
import log_file
import random_idle
from log_file import KIND_OF, ON_STREAM, STARTERS, SYNC_TYPES
from random_traces import AUTOGRAD, HOST, STEP_THREAD, WORKER, Number

BASE = 1_700_000_000_000_000_000
THREAD_NAMES = {STEP_THREAD: "python", WORKER: "worker", AUTOGRAD: "pt_autograd_0"}
PUSHED = ["forward", "backward", "data", "optimizer", "communication", "validation", "my stage",
          "load_batch"]


class Maker(random_idle.Maker):
    def __init__(self, seed, rank, world):
        super().__init__(seed)
        self.rank, self.world, self.seed = rank, world, seed
        self.is_log = self.random.random() < 0.45
        self.old = self.old and not self.is_log
        self.next_step = 7
        self.offset = 0             # of the window, in ticks
        self.placed = 0             # events of a log
        self.plain = []             # rows of a log: (category, name, tid, begin, length, args)
        self.pushes = self.is_log and self.random.random() < 0.6
        self.tacho_steps = self.random.random() < 0.6

    def add(self, category, name, pid, tid, begin, length, args=None):
        if category == "overhead" and not self.is_log:
            pid, tid = -1, 0        # as Kineto writes it: on a row of its own
        if not self.is_log:
            super().add(category, name, pid, tid, begin, length, args)
        elif length is not None and category != "Trace":
            args = dict(args or {})
            if category in ON_STREAM:
                args.setdefault("device", pid)
                args.setdefault("stream", tid)
            self.plain.append((category, name, tid, begin + self.offset, length, args))

    def steps(self):
        """Their lengths differ, so that some are slow; one job in a hundred has over 200."""
        count = self.random.choice([0, 1, 2, 4, 4, 7, 24])
        if self.random.random() < 0.01 and self.extent > 1000:
            count = 210
        wide = self.extent // max(1, count)
        begin = self.random.randint(0, wide // 4)
        uneven = self.random.random() < 0.6
        exact = self.random.random() < 0.2 and wide // 101  # gaps of about 1 %
        name = "step" if self.is_log and self.tacho_steps else "ProfilerStep#%d"
        again = self.random.choice([0, 0, 0, 0.3])      # the count begins anew, in here or before
        for _ in range(count):
            if self.random.random() < again:
                self.next_step = 7
            length = self.random.randint(max(1, wide // 3), wide) if uneven else wide
            gap = self.random.choice([0, 0, length // 200, length // 5])
            if exact:
                length, gap = 101 * exact, exact + self.random.choice([0, 0, 0, 0, 1, -1])
            if name == "step":
                self.add("step", name, HOST, STEP_THREAD, begin, max(1, length - gap),
                         {"number": self.next_step})
            else:
                self.add("user_annotation", name % self.next_step, HOST, STEP_THREAD, begin,
                         max(1, length - gap))
            self.next_step += 1
            begin += max(1, length)

    def host(self):
        super().host()
        self.memory()
        self.samples()
        if self.is_log:
            self.from_cuda()
        if not self.is_log:
            return
        for _ in range(self.random.choice([0, 1, 4]) if self.pushes else 0):
            self.add("phase", self.random.choice(PUSHED), HOST, STEP_THREAD,
                     self.random.randrange(self.extent), self.length(self.extent // 3))
        for _ in range(self.random.choice([0, 0, 1, 3])):
            self.add("gc", f"gc generation {self.random.randint(0, 2)}", HOST,
                     self.random.choice(random_idle.THREADS), self.random.randrange(self.extent),
                     self.length(self.extent // 6))
        for _ in range(self.random.choice([0, 0, 2])):
            self.add("jit", "compile gemm", HOST, self.random.choice(random_idle.THREADS),
                     self.random.randrange(self.extent), self.length(self.extent // 8))

    def graphs(self, number):
        super().graphs(number)
        for _ in range(self.random.randint(0, 2) if self.is_log else 0):
            begin = self.random.randrange(self.extent)
            asked = max(0, begin - self.length(self.extent // 5))
            args = {"device": number, "stream": 9,
                    "correlation": self.call("cudaGraphLaunch", asked,
                                             self.length(self.extent // 40))}
            self.add("graph", "graph 3", number, 9, begin, self.length(self.extent // 10), args)

    def memory(self):
        """What an allocator gives out on one device and on the host."""
        totals = self.random.random() < 0.7
        for device in self.random.choice([[], [], [0], [0, -1], [1, 0]]):
            live, total, held = [], self.random.randrange(1 << 20), 0
            begins = sorted({self.random.randrange(self.extent)
                             for _ in range(self.random.randint(1, 30))})
            for begin in begins:
                self.correlation += 1
                chance = self.random.random()
                if live and chance < 0.45:
                    address, size = live.pop(self.random.randrange(len(live)))
                    size = -size
                elif chance > 0.95:     # that was given out before anybody looked
                    address, size = self.correlation, -512 * self.random.randint(1, 99)
                else:
                    address, size = 4096 * self.correlation, 512 * self.random.randint(1, 99)
                    if chance < 0.48:       # nobody says where
                        address = 0
                    if live and chance > 0.92:      # that nobody was seen to give back
                        address = self.random.choice(live)[0]
                    live.append((address, size))
                total = max(0, total + size)
                held = max(total, held - self.random.choice([0, 0, 1 << 16]))
                row = {"Device Type": 1 if device >= 0 else 0, "Device Id": device,
                       "Addr": address, "Bytes": size}
                if totals:
                    row["Total Allocated"], row["Total Reserved"] = total, held + 4096
                self.allocation(begin, row)

    def from_cuda(self):
        """What CUDA gives out, on devices and pinned on the host, of what is not seen whole."""
        for device, kind in self.random.choice([[], [], [(0, 3)], [(0, 3), (0, 2), (1, 5)],
                                                [(0, 1), (1, 2)]]):
            live = []
            for begin in sorted(self.random.randrange(self.extent)
                                for _ in range(self.random.randint(1, 12))):
                self.correlation += 1
                if live and self.random.random() < 0.4:
                    address, size = live.pop(self.random.randrange(len(live)))
                    size = -size
                elif self.random.random() > 0.9:
                    address, size = 9 + self.correlation, -4096
                else:
                    address, size = 4096 * self.correlation, 4096 * self.random.randint(1, 9)
                    live.append((address, size))
                row = {"Device Type": 1, "Device Id": device, "Addr": address, "Bytes": size,
                       "memory_kind": kind}
                thread = self.random.choice([STEP_THREAD, WORKER, 0])   # 0: nobody knows
                self.plain.append(("[memory]", "cudaMalloc", thread, begin + self.offset, 0, row))

    def samples(self):
        """Counters of what is in use, and of the most that ever was."""
        devices = [[], [], [None], [0, None], [1]] if self.is_log else [[], [], [None]]
        for device in self.random.choice(devices):
            level = most = self.random.randrange(1 << 20)
            for begin in sorted({self.random.randrange(self.extent)
                                 for _ in range(self.random.randint(1, 30))}):
                level = max(-1, level + self.random.randint(-(1 << 16), 1 << 16))
                most = max(most, level)
                name, value = "bytes_in_use", level + self.random.choice([0, 0.75])
                if self.random.random() < 0.25:
                    most += self.random.choice([0, 0, 1 << 14])
                    name, value = "peak_bytes_in_use", most
                self.sample(begin, name, device, value)

    def sample(self, begin, name, device, value):
        if self.is_log:
            self.plain.append(("[memory]", name, 0, begin + self.offset, 0,
                               {"device": device, "value": value}))
            return
        self.events.append({"ph": "C", "name": name, "pid": HOST, "args": {"value": value},
                            "ts": Number(self.decimal(begin + self.origin))})

    def allocation(self, begin, args):
        thread = self.random.choice([STEP_THREAD, STEP_THREAD, WORKER])
        if self.is_log:
            self.plain.append(("[memory]", "alloc", thread, begin + self.offset, 0, args))
            return
        self.events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]",
                            "pid": HOST, "tid": thread, "args": args,
                            "ts": Number(self.decimal(begin + self.origin))})

    def nanoseconds(self, ticks):
        return BASE + ticks * 1000 // 10 ** self.digits

    def long(self, parts):
        """A log of one window, of so many parts: it comes in many batches."""
        log = log_file.Log(self.rank, self.world, HOST)
        for place in range(parts):
            self.offset = 10 + place * self.extent
            self.steps()
            self.device(0)
            self.device(1)
            self.host()
        ends = [row[3] + row[4] for row in self.plain]
        return self.write(log, [(self.nanoseconds(0), self.nanoseconds(max(ends)))])

    def log(self):
        log = log_file.Log(self.rank, self.world, HOST)
        windows = []
        count = self.random.choice([1, 1, 2, 3])
        for place in range(count):
            self.offset = 10 + place * 4 * self.extent
            first = len(self.plain)
            self.steps()
            for number in range(self.random.choice([0, 1, 1, 2, 3])):
                self.device(number)
            self.host()
            opened = self.offset - self.random.randint(0, 3)
            closed = self.offset + self.extent + self.random.randint(-self.extent // 8, 3)
            if self.random.random() < 0.15:     # it says that it closed in the next one
                closed += 4 * self.extent
            self.clip(first, closed)
            last = place == count - 1
            closed = 0 if last and self.random.random() < 0.2 else self.nanoseconds(closed)
            windows.append((self.nanoseconds(opened), closed))
        return self.write(log, windows)

    def write(self, log, windows):
        for begin, end in windows:
            log.window(begin, end)
        trace = kineto.Trace(path="", header={}, events=[], is_log=True)
        trace.windows = [(begin, end or None) for begin, end in windows]
        trace.thread_names = {(HOST, tid): name for tid, name in THREAD_NAMES.items()}
        for row in self.plain:
            self.put(log, trace, row)
        return self.damage(log, trace)

    def clip(self, first, closed):
        """What a thread does when a window closes is cut off there."""
        kept = []
        for category, name, tid, begin, length, args in self.plain[first:]:
            if category not in ON_STREAM and begin >= closed:
                continue
            if category not in ON_STREAM and begin + length > closed and self.random.random() < 0.9:
                length = closed - begin
                args = {**args, "cut": True}
            kept.append((category, name, tid, begin, length, args))
        self.plain[first:] = kept

    def put(self, log, trace, row):
        category, name, tid, begin, length, args = row
        if category == "[memory]":
            self.put_amount(log, trace, row)
            return
        kind, subkind = KIND_OF[category]
        begin, end = self.nanoseconds(begin), self.nanoseconds(begin + length)
        cut = bool(args.pop("cut", False))
        event = kineto.Event(self.placed, category, name, HOST, tid, begin, end, args, cut=cut)
        self.placed += 1
        trace.events.append(event)
        if category in ON_STREAM:
            track = log.track(log_file.STREAM, max(0, int(args["stream"])), device=args["device"])
            event.pid, event.tid = args["device"], args["stream"]
            subkind = SYNC_TYPES.get(name, 0) if kind == "sync" else subkind
        else:
            track = log.track(log_file.THREAD, tid, THREAD_NAMES.get(tid, "overhead"))
        if kind == "api" and any(word in name.lower() for word in STARTERS):
            log.launch(track)
        is_mark = category == "step" or name.startswith("ProfilerStep")
        log.put(kind, track, name, begin, end, subkind,
                args.get("number", args.get("correlation", 0)), args.get("bytes", 0),
                log_file.NEVER_ENDED if cut else 0, order=event.index, group=int(is_mark))

    def put_amount(self, log, trace, row):
        _, name, tid, begin, _, args = row
        kind = args.get("memory_kind")
        if "value" in args:
            one = kineto.sample(self.placed, self.nanoseconds(begin), HOST, args["device"], name,
                                args["value"])
        else:
            one = kineto.amount(self.placed, self.nanoseconds(begin), HOST, tid, args)
            one.what = "allocator" if not kind else "pinned" if kind < 3 else "cuda"
        self.placed += 1
        trace.memory.append(one)
        trace.instants.append(one.begin)
        if "value" in args:
            track = log.track(log_file.COUNTER, name, name, device=one.device)
            log.put("counter", track, name, one.begin, one.begin, amount=args["value"],
                    order=one.index)
            return
        track = log.track(log_file.POOL, tid, device=one.device)
        log.put("alloc" if one.size >= 0 else "free", track, name, one.begin, one.begin,
                join=one.address, amount=abs(one.size), order=one.index,
                totals=None if one.total is None else (one.total, one.reserved),
                shape=log.shape({"memory_kind": kind} if kind else {}))

    def damage(self, log, trace):
        """Now and then blocks of events are broken; marks stay."""
        blocks = log.blocks()
        broken = set()
        if self.random.random() < 0.35:
            broken = {place for place, one in enumerate(blocks)
                      if not one[1] and one[0] != "step" and self.random.random() < 0.12}
        missing = set()
        for place in broken:
            rows = blocks[place][3]
            missing |= {row[3][2] for row in rows}
            span = (rows[0][3][0], max(row[5] for row in rows))
            if span[0] < span[1]:
                trace.losses.append(span)
        data = log.bytes(broken)
        trace.lost = [event for event in trace.events if event.index in missing]
        trace.events = [event for event in trace.events if event.index not in missing]
        trace.memory = [row for row in trace.memory if row.index not in missing]
        trace.instants = [row.begin for row in trace.memory]
        return data, trace


def make(seed, rank=0, world=1):
    maker = Maker(seed, rank, world)
    if maker.is_log:
        data, trace = maker.log()
        return f"random_{seed}.tacho", data, trace
    return f"random_{seed}.json", maker.text().encode(), None


def make_long(seed, parts):
    """One long log, with steps of tacho_step()."""
    maker = Maker(seed, 0, 1)
    maker.is_log, maker.old, maker.tacho_steps = True, False, True
    data, trace = maker.long(parts)
    return f"long_{seed}.tacho", data, trace
