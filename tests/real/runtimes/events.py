# SPDX-License-Identifier: LGPL-2.1-or-later
# gevent: greenlets with timeouts, queues, sockets, a pool, and a patched standard library.
import sys

from gevent import monkey
monkey.patch_all()
import gevent
import gevent.event
import gevent.pool
import gevent.queue
import gevent.server
import gevent.socket
import threading
import time

rounds = int(sys.argv[1])


def producer(q, n):
    for i in range(n):
        q.put(i)
        if i % 7 == 0:
            gevent.sleep(0)
    q.put(None)


def consumer(q):
    total = 0
    while (x := q.get()) is not None:
        total += x
    return total


q = gevent.queue.Queue(5)
gevent.spawn(producer, q, rounds)
print(gevent.spawn(consumer, q).get())


def echo(sock, _):
    for line in sock.makefile("rb"):
        sock.sendall(line.upper())


server = gevent.server.StreamServer(("127.0.0.1", 0), echo)
server.start()


def client(i):
    with gevent.socket.create_connection(("127.0.0.1", server.server_port)) as s:
        f = s.makefile("rb")
        got = []
        for k in range(5):
            s.sendall(b"hello %d %d\n" % (i, k))
            got.append(f.readline())
        return b"".join(got)


print(hash(b"") == 0, sum(len(x) for x in gevent.pool.Pool(8).imap(client, range(rounds // 20))))
server.stop()


def late():
    with gevent.Timeout(0.01, False):
        gevent.sleep(60)
    return 1


print(sum(g.get() for g in [gevent.spawn(late) for _ in range(10)]))
g = gevent.spawn(gevent.sleep, 60)
gevent.sleep(0)
g.kill()
print(g.dead, type(g.value).__name__)
ts = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(10)]
for t in ts:
    t.start()
for t in ts:
    t.join()


def fails():
    raise KeyError("gone")


g = gevent.spawn(fails)
try:
    g.get()
except KeyError as e:
    print("caught", e)
