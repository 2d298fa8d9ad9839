# SPDX-License-Identifier: Apache-2.0
"""Prints the Python stacks of another process: python -I -S _stacks.py PID.

The recorder runs this where a step hangs and py-spy is not installed, by the interpreter of the program
itself. It reads the other process's memory alone (process_vm_readv) and stops nothing. Where the fields of
CPython's structures lie differs between versions, so it finds them in its own memory, in which it knows
what they hold.
"""
import ctypes
import os
import struct
import sys
import threading
import time
import types

MOST = 100  # frames of a thread, and threads
FAR, PIECE = 64 << 10, 256  # bytes in which a field is looked for, and that are read at once
NEAR = 4096


class Other:
    """Memory of the other process."""

    class _Part(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("len", ctypes.c_size_t)]

    def __init__(self, pid):
        self.pid = pid
        if "readv" in os.environ.get("TACHO_WITHOUT", ""):
            raise OSError("this kernel lacks process_vm_readv()")
        self.call = ctypes.CDLL(None, use_errno=True).process_vm_readv
        self.call.restype = ctypes.c_ssize_t

    def read(self, at, size):
        data = ctypes.create_string_buffer(size)
        to, part = self._Part(ctypes.addressof(data), size), self._Part(at, size)
        if self.call(self.pid, ctypes.byref(to), ctypes.c_ulong(1), ctypes.byref(part), ctypes.c_ulong(1),
                     ctypes.c_ulong(0)) != size:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return data.raw

    def word(self, at):
        return struct.unpack("<Q", self.read(at, 8))[0]

    def half(self, at):
        return struct.unpack("<i", self.read(at, 4))[0]

    def bytes(self, at):
        return self.read(at + bytes.__basicsize__ - 1, min(self.word(at + 16), 1 << 20))

    def text(self, at):
        return self.read(at + sys.getsizeof("") - 1, min(self.word(at + 16), 1000)).decode("ascii", "replace")


def offsets_of(other, base, value, size):
    """Where from `base` on this value is."""
    code = "<Q" if size == 8 else "<i"
    for at in range(0, FAR, PIECE):
        try:
            piece = other.read(base + at, PIECE)
        except OSError:
            return
        for within, (found,) in zip(range(at, at + PIECE, size), struct.iter_unpack(code, piece)):
            if found == value:
                yield within


def common_offset(other, pairs, size=8):
    """The first place at which each of the bases has its value."""
    kind = other.word if size == 8 else other.half
    for at in offsets_of(other, pairs[0][0], pairs[0][1], size):
        if all(kind(base + at) == value for base, value in pairs):
            return at
    raise LookupError("the structures of this Python are not known")


def mapped(pid):
    """First addresses of mapped files."""
    found = {}
    with open("/proc/%d/maps" % pid) as maps:
        for line in maps:
            words = line.split(None, 5)
            if len(words) == 6:
                found.setdefault((words[3], words[4]), int(words[0].split("-")[0], 16))
    return found


def place(pid, address):
    """The file that has this address of our own, and its first address."""
    with open("/proc/%d/maps" % pid) as maps:
        for line in maps:
            words = line.split(None, 5)
            begin, end = (int(word, 16) for word in words[0].split("-"))
            if begin <= address < end:
                if words[4] == "0":  # the part of its data that is zero at first
                    return before
                return words[3], words[4]
            if words[4] != "0":
                before = words[3], words[4]
    raise LookupError("no file")


class Layout:
    """Where the fields are, by what this process itself has."""

    def __init__(self):
        own = Other(os.getpid())
        api = ctypes.pythonapi
        for name in ("PyInterpreterState_Head", "PyInterpreterState_ThreadHead", "PyThreadState_Next"):
            getattr(api, name).restype = ctypes.c_void_p
        self.runtime = ctypes.addressof(ctypes.c_char.in_dll(api, "_PyRuntime"))
        interpreter = api.PyInterpreterState_Head()
        self.interpreter = common_offset(own, [(self.runtime, interpreter)])
        entered, leave = threading.Event(), threading.Event()

        def inner():
            entered.set()
            leave.wait()

        def outer():
            inner()

        thread = threading.Thread(target=outer, daemon=True)
        thread.start()
        entered.wait()
        time.sleep(0.02)  # until it waits
        try:
            self._find(own, api, interpreter, thread)
        finally:
            leave.set()

    def _find(self, own, api, interpreter, thread):
        head = api.PyInterpreterState_ThreadHead(ctypes.c_void_p(interpreter))
        main = api.PyThreadState_Next(ctypes.c_void_p(head))
        self.threads = common_offset(own, [(interpreter, head)])
        self.next = common_offset(own, [(head, main)])
        self.ident = common_offset(own, [(head, thread.ident)])
        frame = sys._current_frames()[thread.ident]
        while frame.f_back and frame.f_code.co_name != "inner":  # it waits by now, in a call of threading.py
            frame = frame.f_back
        frames = [frame, frame.f_back, frame.f_back.f_back]
        codes = [each.f_code for each in frames]
        self._find_code(own, codes)
        if sys.version_info >= (3, 11):
            self._find_inner(own, head, frames, sys._current_frames()[thread.ident])
            return
        self.top = (common_offset(own, [(head, id(sys._current_frames()[thread.ident]))]), None)
        pairs = [(id(each), each.f_lasti // 2 if sys.version_info >= (3, 10) else each.f_lasti) for each in frames]
        self.back = common_offset(own, [(id(each), id(each.f_back)) for each in frames])
        self.code = common_offset(own, [(id(each), id(each.f_code)) for each in frames])
        self.last = common_offset(own, pairs, 4)

    def _find_code(self, own, codes):
        names = ("co_filename", "co_name", "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab")
        self.file, self.name, self.table = (
            common_offset(own, [(id(code), id(getattr(code, name))) for code in codes]) for name in names)
        self.first = common_offset(own, [(id(code), code.co_firstlineno) for code in codes], 4)

    def _find_inner(self, own, head, frames, top):
        """From 3.11 on frames are no objects: a frame's object has the address of what is one."""
        for at in range(16, 64, 8):
            self.inner = at
            inner = [own.word(id(each) + at) for each in frames]
            try:
                self.code = common_offset(own, [(i, id(f.f_code)) for i, f in zip(inner, frames)])
                self.back = common_offset(own, [(i, own.word(id(f.f_back) + at)) for i, f in zip(inner[:2], frames)])
                break
            except (LookupError, OSError):
                continue
        else:
            raise LookupError("the frames of this Python are not known")
        first = own.word(id(top) + self.inner)
        for at in range(0, NEAR, 8):
            word = own.word(head + at)
            if word == first:
                self.top = at, None
                break
            try:
                deep = [deep for deep in (0, 8) if word > 4096 and own.word(word + deep) == first]
            except OSError:
                continue
            if deep:
                self.top = at, deep[0]
                break
        else:
            raise LookupError("the frames of this Python are not known")
        for at in range(0, 128, 8):  # the instruction, which lies in the code object
            away = {own.word(i + at) - id(f.f_code) - f.f_lasti for i, f in zip(inner, frames)}
            if len(away) == 1 and 0 < min(away) < 4096:
                self.last, self.begin = at, away.pop()
                return
        raise LookupError("the instructions of this Python are not known")


def line_of(first, table, last):
    blank = (lambda: 0).__code__
    if sys.version_info >= (3, 10):
        code = blank.replace(co_linetable=table, co_firstlineno=first)
        lines = [line for begin, end, line in code.co_lines() if begin <= last < end]
        return lines[-1] if lines and lines[-1] else first
    line, at = first, 0
    for step, more in zip(table[::2], table[1::2]):
        at += step
        if at > last:
            break
        line += more - 256 if more > 127 else more
    return line


def stack(other, layout, state, code_type):
    top, deep = layout.top
    frame = other.word(state + top)
    if deep is not None and frame:
        frame = other.word(frame + deep)
    for _ in range(MOST):
        if not frame:
            return
        code = other.word(frame + layout.code)
        if code and other.word(code + 8) == code_type:
            if hasattr(layout, "begin"):
                last = other.word(frame + layout.last) - code - layout.begin
            else:
                last = other.half(frame + layout.last) * (2 if sys.version_info >= (3, 10) else 1)
            line = line_of(other.half(code + layout.first), other.bytes(other.word(code + layout.table)), last)
            name, path = (other.text(other.word(code + at)) for at in (layout.name, layout.file))
            if path != "<shim>":
                yield name, path, line
        frame = other.word(frame + layout.back)


def main(pid):
    layout, other = Layout(), Other(pid)
    file = place(os.getpid(), layout.runtime)
    moved = mapped(pid)[file] - mapped(os.getpid())[file]
    states = [other.word(other.word(layout.runtime + moved + layout.interpreter) + layout.threads)]
    while states[-1] and len(states) < MOST:
        states.append(other.word(states[-1] + layout.next))
    for state in filter(None, reversed(states)):  # the main thread is the oldest
        print("Thread 0x%x" % other.word(state + layout.ident))
        try:
            for name, path, line in stack(other, layout, state, id(types.CodeType) + moved):
                print("    %s (%s:%d)" % (name, path, line))
        except OSError:
            print("    (it runs on)")


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except (OSError, LookupError, KeyError) as why:
        print(why)
        sys.exit(1)
