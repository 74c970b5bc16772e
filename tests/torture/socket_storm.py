# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bombards the sockets of a session with hostile peers, for run_socket: whole messages of all types,
messages with a false length, random bytes, unexpected descriptors, and connections that stall. The
same seed gives the same sequence. No message is a valid request that would change the recording,
such as a detach."""
import array
import os
import random
import re
import socket
import struct
import sys
import time

(HELLO, WELCOME, MODULE, ANALYSIS, REFUSED, READY, ERROR, GONE, WRITE, READ, REPLY, PROGS, RING, STUBS, DETACH,
 STATUS) = range(1, 17)
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "src", "abi", "messages.h")) as f:
    PROTOCOL = int(re.search(r"#define PB_PROTOCOL\s+(\d+)", f.read()).group(1))
MAX = 65536
IDLE = 300                  # connections that stay open and silent


def message(kind, body=b"", length=None):
    return struct.pack("<II", kind, len(body) if length is None else length & 0xffffffff) + body


def hello(pid=0, image=0, protocol=PROTOCOL):
    return message(HELLO, struct.pack("<6IQ", protocol, pid, pid, 1, image, 0, 1))


def file_request(kind, path, value=b"", size=None, offset=0, result=0, append=0):
    head = struct.pack("<iIQII", result, len(value) if size is None else size, offset, append, 0)
    return message(kind, head + path + value)


class Storm:
    def __init__(self, directory, pid, seed):
        self.paths = [os.path.join(directory, "sock"), os.path.join(directory, "control")]
        self.pid, self.rng = pid, random.Random(seed)
        self.idle, self.sent, self.connections = [], 0, 0
        self.descriptors = [os.open("/dev/null", os.O_RDWR), os.open("/", os.O_RDONLY), os.memfd_create("storm"),
                            *os.pipe()]

    def connect(self, path):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(5)
        try:
            s.connect(path)
        except OSError:
            s.close()
            return None
        s.setblocking(False)
        self.connections += 1
        return s

    def number(self):
        r = self.rng
        return r.choice([0, 1, 2, self.pid, os.getpid(), 0x7fffffff, 0x80000000, 0xffffffff, r.getrandbits(32)])

    def valid(self, client):
        """Returns a complete message of the right size."""
        r = self.rng
        path = r.choice([b"current_tracer\0", b"available_filter_functions\0", b"nothing\0", b"../../etc/passwd\0",
                         b"buffer_size_kb\0", b"\0", b"x" * 5000 + b"\0"])
        offset = r.choice([0, 1, 1 << 31, (1 << 63) - 1, (1 << 64) - 1])
        made = [hello(self.number(), r.choice([0, 1, self.number()]), r.choice([PROTOCOL, 0, 99])),
                hello(self.pid), hello(self.pid, 1),
                message(STATUS),
                file_request(READ, path, size=r.choice([0, 1, MAX, 0xffffffff]), offset=offset),
                file_request(WRITE, b"nothing\0", os.urandom(r.randrange(200)), append=r.randrange(2)),
                message(READY, struct.pack("<6IQQ", *[self.number() for _ in range(6)], 1, 1)),
                message(MODULE, struct.pack("<IIQQII", 1, self.pid, 0, 0, r.randrange(4), 0) +
                        r.choice([b"/etc/passwd\0", b"/dev/zero\0", b"\0", b"/proc/self/mem\0", b"relative\0"])),
                message(REFUSED, struct.pack("<4I", 1, 1, self.number(), 0) + bytes(64)),
                message(GONE, struct.pack("<IIIIQ", 1, self.pid, self.number(), 0, 1)),
                message(STUBS, struct.pack("<IIQ", 1, self.number(), self.number())),
                message(PROGS), message(REPLY, bytes(24)), message(ERROR, struct.pack("<iI", -22, 1) + b"harm\0")]
        return r.choice(made)

    def mutate(self, data):
        """Changes bytes of the body, the lengths or the size. Doesn't change the type or a path,
        because that could make a valid request."""
        r = self.rng
        kind, length = struct.unpack_from("<II", data)
        body = bytearray(data[8:])
        how = r.randrange(5)
        if how == 0:
            body = body[:r.randrange(len(body) + 1)]
            length = r.choice([length, len(body)])
        elif how == 1:
            length = self.number()
        elif how == 2:
            body += os.urandom(r.choice([1, 7, 4096, MAX]))
            length = r.choice([length, len(body)])
        elif kind not in (READ, WRITE):
            for _ in range(r.randrange(1, 8)):
                if body:
                    body[r.randrange(len(body))] = r.getrandbits(8)
        else:
            body[:24] = os.urandom(24)[:len(body)]
        return message(kind, bytes(body), length)

    def one(self, client):
        r = self.rng
        how = r.randrange(10)
        if how == 0:
            data = os.urandom(r.choice([0, 1, 7, 8, 9, 100, 5000]))
            # must not be a request for a detach by chance
            return data if data[:4] != struct.pack("<I", DETACH) else b""
        if how == 1:
            return message(r.choice([0, 17, 1000, 0xffffffff]), os.urandom(r.randrange(64)))
        if how == 2 and not client:
            return message(r.choice([DETACH, WELCOME, RING, ANALYSIS]), bytes(r.randrange(64)))
        data = self.valid(client)
        return data if how < 6 else self.mutate(data)

    def send(self, s, data):
        r = self.rng
        rights = []
        if r.randrange(4) == 0:
            fds = [r.choice(self.descriptors) for _ in range(r.choice([1, 2, 17, 253]))]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        try:
            s.sendmsg([data], rights)
            self.sent += 1
        except OSError:
            return False
        return True

    def peer(self):
        """One peer. It connects, and may begin with a correct first message. Then it sends
        messages, and disconnects or stays."""
        r = self.rng
        client = r.randrange(3) > 0
        s = self.connect(self.paths[client])
        if not s:
            return
        if r.randrange(2):
            self.send(s, hello(self.pid))
        for _ in range(r.choice([0, 1, 3, 30])):
            if not self.send(s, self.one(client)):
                break
            if r.randrange(3) == 0:     # some answers are never read
                try:
                    s.recv(MAX)
                except OSError:
                    pass
        if r.randrange(8) == 0:
            self.idle.append(s)
            if len(self.idle) > IDLE:
                self.idle.pop(r.randrange(len(self.idle))).close()
        else:
            s.close()


def main():
    directory, pid, seed, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    storm = Storm(directory, pid, seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        storm.peer()
    print("%d messages over %d connections, %d idle at the end" % (storm.sent, storm.connections, len(storm.idle)))


if __name__ == "__main__":
    main()
