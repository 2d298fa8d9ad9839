# SPDX-License-Identifier: Apache-2.0
"""Means harm to the control socket of the process whose number is the argument."""
import os
import socket
import sys
import time

PID = int(sys.argv[1])


def address():
    space = os.readlink("/proc/%d/ns/pid" % PID)
    with open("/proc/%d/status" % PID) as status:
        inner = [line.split()[-1] for line in status if line.startswith("NSpid:")][0]
    return "\0tacho/%d/%s/%s" % (os.stat("/proc/%d" % PID).st_uid, space, inner)


def connect(name):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.connect(name)  # waits where the row is full
    peer.settimeout(5)
    return peer


def ask(name, what):
    with connect(name) as peer:
        peer.send(what)
        try:
            return peer.recv(8192)
        except ConnectionResetError:
            return b""


def state(name):
    return ask(name, b"status").split(b"\n")[1]


def as_stranger(name):
    """Another user is told nothing and is obeyed in nothing; 77: there is no other user here."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.setgroups([])
        os.setuid(65534)
    except OSError:
        os._exit(77)
    try:
        os._exit(1 if ask(name, b"start") else 0)
    except OSError:
        os._exit(0)


def main():
    name = address()
    assert state(name) == b"state waiting", ask(name, b"status")
    for what in (b"", b"\0", b"start\n", b"START", b"x" * 64, b"status\0start" * 3, b"%n%s%n%s",
                 b"\xff" * 63, b"y" * 60000, b"../../x"):
        answer = ask(name, what)
        assert not answer.startswith(b"ok\nrec"), (what, answer)
    assert state(name) == b"state waiting"
    # who says nothing holds up nobody, however many they are
    silent = [connect(name) for _ in range(300)]
    begin = time.monotonic()
    for _ in range(10):
        assert state(name) == b"state waiting"
    assert time.monotonic() - begin < 1, time.monotonic() - begin
    for peer in silent:
        peer.close()
    # who asks and does not wait for the answer
    for _ in range(50):
        with connect(name) as peer:
            peer.send(b"status")
    assert as_stranger(name) in (0, 77)
    assert state(name) == b"state waiting"
    with open("/proc/net/unix") as names:
        assert any(line.rstrip().endswith(name.replace("\0", "@")) for line in names)


main()
