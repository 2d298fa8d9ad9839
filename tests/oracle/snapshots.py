# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots as torch.cuda.memory._snapshot() gives them, made by an allocator of our own.

The dictionaries follow PyTorch's writers: torch/csrc/cuda/Module.cpp and memory_snapshot.cpp (keys, states, actions,
which sizes an entry has), CUDACachingAllocator.cpp (when an entry is written: an allocation after the segment it may
have needed, free_requested before free_completed, of another stream's use the latter later).  The allocator itself is a
plain one: blocks of 512 bytes, first fit, segments of 2 MiB for what is small and of 20 MiB or more for the rest.
"""
import pickle
import random
import struct

MIB = 1 << 20


class Block:
    def __init__(self, segment, address, size):
        self.segment, self.address, self.size = segment, address, size
        self.requested, self.state, self.frames, self.freed = 0, "inactive", [], None


class Segment:
    def __init__(self, address, size, stream, pool, frames, expandable):
        self.address, self.size, self.stream, self.pool, self.frames = address, size, stream, pool, frames
        self.expandable = expandable
        self.blocks = [Block(self, address, size)]


class Allocator:
    """Of one GPU; trace: all entries, of which a ring keeps the last."""

    def __init__(self, device=0, limit=8 << 30, expandable=False, began_us=1_700_000_000_000_000):
        self.device, self.limit, self.expandable = device, limit, expandable
        self.segments, self.trace, self.us = [], [], began_us
        self.next_address = (device + 1) << 40
        self.active = {}
        self.failures = []  # what it was like when memory ran out

    def note(self, action, address, size, stream, pool, frames, **more):
        self.us += random_step.randrange(1, 40)
        entry = {"action": action, "device_free" if action == "oom" else "addr": address, "size": size,
                 "stream": stream}
        if frames is not None:
            entry["frames"] = frames
        entry.update(time_us=self.us, compile_context="N/A", user_metadata="", pool_id=pool, **more)
        self.trace.append(entry)

    def reserved(self):
        return sum(s.size for s in self.segments)

    def alloc(self, requested, frames, stream=0, pool=(0, 0), **more):
        """The block's address; None: out of memory."""
        size = -(-requested // 512) * 512
        block = self.fit(size, stream, pool)
        if not block:
            whole = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            if self.reserved() + whole > self.limit:
                self.release_cached()
            if self.reserved() + whole > self.limit:
                free = [b.size for s in self.segments for b in s.blocks if b.state == "inactive"]
                self.failures.append({
                    "requested_bytes": whole, "device_free_bytes": self.limit - self.reserved(),
                    "reserved_bytes": self.reserved(), "allocated_bytes": self.reserved() - sum(free),
                    "largest_inactive_bytes": max(free, default=0),
                    "pending_bytes": sum(b.size for b in self.active.values() if b.state == "active_pending_free")})
                self.note("oom", self.limit - self.reserved(), whole, stream, pool, frames)
                return None
            block = self.grow(whole, stream, pool, frames)
        self.split(block, size)
        block.requested, block.state, block.frames = requested, "active_allocated", frames or []
        self.active[block.address] = block
        self.note("alloc", block.address, requested, stream, pool, frames, **more)
        return block.address

    def fit(self, size, stream, pool):
        small = size <= MIB
        fits = [b for s in self.segments if s.stream == stream and s.pool == pool and (s.size == 2 * MIB) == small
                for b in s.blocks if b.state == "inactive" and b.size >= size]
        return min(fits, key=lambda b: (b.size, b.address)) if fits else None

    def grow(self, size, stream, pool, frames):
        last = self.segments[-1] if self.segments else None
        if self.expandable and last and last.expandable and last.stream == stream and last.pool == pool and \
                last.address + last.size == self.next_address and size > 2 * MIB:
            block = Block(last, self.next_address, size)
            last.size += size
            if last.blocks[-1].state == "inactive":
                block = last.blocks[-1]
                block.size += size
            else:
                last.blocks.append(block)
        else:
            segment = Segment(self.next_address, size, stream, pool, frames or [], self.expandable and size > 2 * MIB)
            self.segments.append(segment)
            block = segment.blocks[0]
        self.note("segment_map" if block.segment.expandable else "segment_alloc", self.next_address, size, stream, pool,
                  frames)
        self.next_address += size
        return block

    def split(self, block, size):
        if block.size > size:
            rest = Block(block.segment, block.address + size, block.size - size)
            block.segment.blocks.insert(block.segment.blocks.index(block) + 1, rest)
            block.size = size

    def free(self, address, frames=None, other_stream=False):
        block = self.active[address]
        self.note("free_requested", address, block.requested, block.segment.stream, block.segment.pool,
                  frames if frames is not None else block.frames)
        block.state, block.freed = "active_pending_free", frames
        if not other_stream:
            self.complete(address)

    def complete(self, address):
        block = self.active.pop(address)
        segment = block.segment
        self.note("free_completed", address, block.requested, segment.stream, segment.pool,
                  block.freed if block.freed is not None else block.frames)
        block.state, block.requested, block.frames = "inactive", 0, []
        at = segment.blocks.index(block)
        for other in (at + 1, at - 1):
            if 0 <= other < len(segment.blocks) and segment.blocks[other].state == "inactive" and \
                    segment.blocks[other] is not block:
                a, b = sorted((segment.blocks.index(block), other))
                segment.blocks[a].size += segment.blocks[b].size
                block = segment.blocks[a]
                del segment.blocks[b]

    def release_cached(self):
        for s in [s for s in self.segments if len(s.blocks) == 1 and s.blocks[0].state == "inactive"]:
            self.note("segment_unmap" if s.expandable else "segment_free", s.address, s.size, s.stream, s.pool, None)
            self.segments.remove(s)

    def state(self):
        out = []
        for s in self.segments:
            blocks = [{"address": b.address, "size": b.size, "requested_size": b.requested, "state": b.state,
                       "frames": b.frames} for b in s.blocks]
            active = [b for b in s.blocks if b.state != "inactive"]
            out.append({"device": self.device, "address": s.address, "total_size": s.size, "stream": s.stream,
                        "segment_type": "small" if s.size == 2 * MIB else "large", "segment_pool_id": s.pool,
                        "allocated_size": sum(b.size for b in active if b.state == "active_allocated"),
                        "active_size": sum(b.size for b in active),
                        "requested_size": sum(b.requested for b in active), "is_expandable": s.expandable,
                        "frames": s.frames, "blocks": blocks})
        return out


random_step = random.Random(0)
LAYERS = ["embed", "attention", "mlp", "norm", "head"]


def stack(line, layer, depth=12):
    """Innermost first: one that allocates, the layer, PyTorch's calls, the program."""
    torch = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py"
    return ([{"filename": torch.replace("module.py", "linear.py"), "line": 114, "name": "forward"},
             {"filename": "/home/u/model.py", "line": line, "name": layer}]
            + [{"filename": torch, "line": 1500 + i, "name": "_call_impl"} for i in range(depth - 4)]
            + [{"filename": "/home/u/train.py", "line": 88, "name": "step"},
               {"filename": "/home/u/train.py", "line": 12, "name": "<module>"}])


def native(*names):
    """With stacks of C++, as PyTorch's default is, the recorder's own functions come first."""
    own = ["torch::unwind::unwind()", "torch::CapturedTraceback::gather(bool, bool, bool)"]
    return [{"filename": "??", "line": 0, "name": name} for name in own + list(names)]


def of_cpp(rng, frames):
    """A stack of the default, with C++ around Python's functions, or of a thread of autograd, which has none of Python."""
    if rng.random() < 0.4:
        op, node = rng.choice([("mul_Tensor", "MulBackward0"), ("bmm", "BmmBackward0"), ("sum_dim_IntList", "ExpandBackward0"),
                               ("sigmoid_backward", "SigmoidBackward0")])
        return native(f"at::_ops::{op}::redispatch(c10::DispatchKeySet, at::Tensor const&)", f"at::_ops::{op}::call(at::Tensor const&)",
                      f"torch::autograd::generated::{node}::apply(std::vector<at::Tensor>&&)",
                      "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", "__clone")
    helper = {"filename": "/usr/lib/python3/site-packages/einops/einops.py", "line": 7, "name": "rearrange"}
    return native("at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)") + [helper] + frames + native("_start")[2:]


def train_with(seed=0, steps=6, ring=None, devices=1, expandable=False, leak=0, limit=8 << 30, oom=False, pending=True,
          scale=1, native_stacks=False):
    """A training loop: weights, activations that a backward frees, a leak, a tensor that another stream uses.  The ring keeps
    the last entries only.  `native_stacks`: stacks are those of PyTorch's default, also of what frees."""
    global random_step
    random_step = random.Random(seed)
    rng = random.Random(seed + 1)
    stacks = {(n, k): stack(30 + k, n) for n in LAYERS for k in range(4)}
    if native_stacks:
        stacks = {key: of_cpp(rng, frames) for key, frames in stacks.items()}
    freed = [of_cpp(rng, stack(60 + k, "backward")) if native_stacks else None for k in range(4)]
    allocators = [Allocator(d, limit, expandable) for d in range(devices)]
    annotations = []
    for a in allocators:
        for k in range(4 * scale):
            a.alloc(rng.randrange(1, 24 * MIB), stacks["embed", k % 4])
        for step in range(steps):
            annotations.append({"name": f"ProfilerStep#{step}", "stage": "START", "device": a.device, "time_us": a.us})
            live, late = [], []
            for layer in range(20 * scale):
                frames = stacks[rng.choice(LAYERS), rng.randrange(4)]
                at = a.alloc(rng.choice([100, 5000, 70_001, 300_000, 3 * MIB, 11 * MIB + 1]), frames,
                             stream=7 if layer % 9 == 8 else 0)
                if at is None:
                    break
                live.append(at)
                if layer % 3 == 2:
                    a.free(live.pop(rng.randrange(len(live))), freed[layer % 4])
            if leak:
                a.alloc(leak, stack(99, "keep_loss"))
            if pending and live:
                late.append(live.pop())
                a.free(late[0], freed[3], other_stream=True)
            for at in reversed(live):
                a.free(at, freed[at // 512 % 4])
            if step % 2 or step + 1 < steps:
                for at in late:
                    a.complete(at)
            annotations.append({"name": f"ProfilerStep#{step}", "stage": "END", "device": a.device, "time_us": a.us})
        if oom:
            a.alloc(limit, stack(77, "softmax"))
            for at in [at for at, b in a.active.items() if b.state == "active_allocated"][::2]:
                a.free(at)  # the program goes on: the end is not what it was then
            a.release_cached()
            a.alloc(5 * MIB, stack(78, "softmax"))
        a.note("snapshot", 0, 0, 0, (0, 0), [])
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                "expandable_segments": expandable, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
                "pinned_use_cuda_host_register": False, "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}}
    return {"segments": [s for a in allocators for s in a.state()],
            "device_traces": [a.trace[-ring:] if ring else a.trace for a in allocators],
            "allocator_settings": settings, "external_annotations": annotations}, allocators


def train(*args, **kwargs):
    return train_with(*args, **kwargs)[0]


def older(snapshot):
    """As versions before 2.0 had it: what a block was used for in `history`, no addresses, no times."""
    out = {"segments": [], "device_traces": snapshot["device_traces"]}
    for s in snapshot["segments"]:
        blocks = []
        for b in s["blocks"]:
            old = {"size": b["size"], "state": b["state"]}
            if b["state"] != "inactive":
                old["history"] = [{"addr": b["address"], "real_size": b["requested_size"], "frames": b["frames"]}]
            blocks.append(old)
        out["segments"].append(dict({k: v for k, v in s.items() if k not in ("requested_size", "is_expandable")},
                                    blocks=blocks))
    for trace in out["device_traces"]:
        for e in trace:
            e.pop("time_us", None)
    return out


def odd_documents(document, per_field=4):
    """The document with each of its fields, of the first item of each list, missing or of another type or size in turn."""
    def fields(value, at=()):
        items = value.items() if isinstance(value, dict) else [(0, value[0])] if isinstance(value, list) and value else []
        for key, inner in items:
            yield at + (key,)
            yield from fields(inner, at + (key,))

    odd = [None, -1, 1 << 70, -(1 << 70), 1 << 63, "x", [], {}, True, 1.5, (1, 2)]
    rng = random.Random(5)
    for at in list(fields(document)):
        for value in [KeyError, *rng.sample(odd, per_field)]:
            changed = pickle.loads(pickle.dumps(document))
            place = changed
            for key in at[:-1]:
                place = place[key]
            if value is KeyError:
                del place[at[-1]]
            else:
                place[at[-1]] = value
            yield at, value, changed


# ---- PyTorch's C++ writer (torch/csrc/jit/serialization/pickler.cpp): protocol 2, objects remembered after they are whole

def pickle_of_cpp(value):
    out, memo = bytearray(b"\x80\x02"), {}

    def remember(key):
        memo[key] = len(memo)
        number = memo[key]
        out.extend(b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number))

    def put(v):
        key = ("text", v) if isinstance(v, str) else id(v)
        if key in memo:
            number = memo[key]
            out.extend(b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number))
        elif v is None:
            out.extend(b"N")
        elif isinstance(v, bool):
            out.extend(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            if 0 <= v < 256:
                out.extend(b"K" + bytes([v]))
            elif 0 <= v < 65536:
                out.extend(b"M" + struct.pack("<H", v))
            elif -1 << 31 <= v < 1 << 31:
                out.extend(b"J" + struct.pack("<i", v))
            else:
                out.extend(b"\x8a\x08" + struct.pack("<q", v))
        elif isinstance(v, float):
            out.extend(b"G" + struct.pack(">d", v))
        elif isinstance(v, str):
            raw = v.encode()
            out.extend(b"X" + struct.pack("<I", len(raw)) + raw)
            remember(key)
        elif isinstance(v, tuple):
            if len(v) > 3:
                out.extend(b"(")
            for one in v:
                put(one)
            out.extend({0: b")", 1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(v), b"t"))
        elif isinstance(v, list):
            out.extend(b"](")
            for one in v:
                put(one)
            out.extend(b"e")
            remember(key)
        else:
            out.extend(b"}(")
            for k, one in v.items():
                put(k)
                put(one)
            out.extend(b"u")

    put(value)
    return bytes(out + b".")


# ---- a file of any length, as Python's pickler writes it (protocol 4): each new object is remembered

class Stream:
    def __init__(self, file):
        self.file, self.memo, self.next, self.out = file, {}, 0, bytearray(b"\x80\x04")

    def remember(self, key=None):
        self.out.extend(b"\x94")
        if key is not None:
            self.memo[key] = self.next
        self.next += 1

    def put(self, v, key=None):
        """A value; one with a key, or a text, is a reference the second time."""
        key = ("text", v) if isinstance(v, str) else key
        if key in self.memo:
            number = self.memo[key]
            self.out.extend(b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number))
        elif isinstance(v, int):
            self.out.extend(b"K" + bytes([v]) if 0 <= v < 256 else b"M" + struct.pack("<H", v) if 0 <= v < 65536 else
                            b"J" + struct.pack("<i", v) if -1 << 31 <= v < 1 << 31 else
                            b"\x8a" + bytes([v.bit_length() // 8 + 1]) + v.to_bytes(v.bit_length() // 8 + 1, "little",
                                                                                    signed=True))
        elif isinstance(v, str):
            self.out.extend(b"\x8c" + bytes([len(v.encode())]) + v.encode())
            self.remember(key)
        elif isinstance(v, tuple):
            for one in v:
                self.put(one)
            self.out.extend(bytes([0x84 + len(v)]))
            self.remember()
        elif isinstance(v, list):
            self.out.extend(b"]")
            self.remember(key)
            self.out.extend(b"(")
            for i, one in enumerate(v):
                self.put(one, ("frame", id(one)))
            self.out.extend(b"e")
        else:
            self.out.extend(b"}")
            self.remember(key)
            self.out.extend(b"(")
            for k, one in v.items():
                self.put(k)
                self.put(one, ("frames", id(one)) if k == "frames" and not v.get("own_frames") else None)
            self.out.extend(b"u")
        if len(self.out) > 1 << 20:
            self.file.write(self.out)
            self.out = bytearray()


def write_large(path, size):
    """A snapshot of `size` bytes or a little more; each allocation has a list of frames of its own, as PyTorch makes one for
    each traceback.  Returns how many entries it has."""
    rng = random.Random(7)
    stacks = [stack(k, LAYERS[k % 5], 30) for k in range(500)]
    with open(path, "wb") as file:
        s = Stream(file)
        s.out.extend(b"}")
        s.remember()
        s.out.extend(b"(")
        s.put("segments")
        s.put([])
        s.put("device_traces")
        s.out.extend(b"]")
        s.remember()
        s.out.extend(b"(]")
        s.remember()
        us, live, entries = 1_700_000_000_000_000, [], 0
        while file.tell() < size:
            s.out.extend(b"(")
            for _ in range(333):
                if len(live) > 1000:
                    address, n, frames = live.pop(rng.randrange(len(live)))
                    kinds = ("free_requested", "free_completed")
                else:
                    address, n, frames = 1 << 40 | entries << 9, rng.randrange(1, 1 << 20), list(rng.choice(stacks))
                    live.append((address, n, frames))
                    kinds = ("alloc",)
                for kind in kinds:
                    us += 3
                    entries += 1
                    s.put({"action": kind, "addr": address, "size": n, "stream": 0, "frames": frames, "time_us": us,
                           "compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0)})
                    if kind == "free_completed":
                        s.memo.pop(("frames", id(frames)), None)
            s.out.extend(b"e")
        s.out.extend(b"eu.")
        file.write(s.out)
    return entries
