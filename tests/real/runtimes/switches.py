# SPDX-License-Identifier: LGPL-2.1-or-later
# greenlet: threads switch out of deep calls, throw into greenlets, and drop greenlets half-way.
import sys
import threading

import greenlet

rounds = int(sys.argv[1])


def step(n, depth):
    s = 0
    if depth:
        s += step(n, depth - 1)
    s += greenlet.getcurrent().parent.switch(n) or 0
    return s + sum(sorted([n, depth, 3])) + len(str(n))


def counter(n):
    return step(n, n % 9 + 1)


def round_robin(count):
    alive = [greenlet.greenlet(counter) for _ in range(count)]
    total, first = 0, True
    while alive:
        for i, g in enumerate(list(alive)):
            r = g.switch(i) if first else g.switch(1)
            if g.dead:
                total += r
        alive, first = [g for g in alive if not g.dead], False
    return total


def throws(count):
    caught = 0

    def body(n):
        try:
            step(n, 3)
        except ValueError as e:
            return int(str(e))

    for i in range(count):
        g = greenlet.greenlet(body)
        g.switch(i)
        caught += g.throw(ValueError, ValueError(str(i)))
    return caught


def dropped(count):
    ended = []

    def body(n):
        try:
            step(n, 2)
        finally:
            ended.append(n)

    for i in range(count):
        g = greenlet.greenlet(body)
        g.switch(i)
        del g
    return len(ended)


def all_of_it(out, i):
    out[i] = round_robin(20 + i), throws(rounds), dropped(rounds), [round_robin(10) for _ in range(rounds // 10)][-1]


out = {}
threads = [threading.Thread(target=all_of_it, args=(out, i)) for i in range(3)]
for t in threads:
    t.start()
all_of_it(out, 9)
for t in threads:
    t.join()
for i in sorted(out):
    print(i, *out[i])
