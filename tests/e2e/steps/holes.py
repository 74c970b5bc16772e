# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the reserved words of a recording that were never written. Reads the file of chunks itself,
without Patchbay's reader, so that a fault of the reader isn't repeated here."""
import collections
import os
import struct

import pbtest

CHUNK, HEADER, LIMIT = 16384, 128, 16384 - 512
END, LONG, UNDONE, ADDRESS = 4, 5, 10, 11
ADDRESSED = 3, 13       # FUNC, TAIL_LEAF: the second word is an ADDRESS


def chunks(data):
    """Yields (tid, words, last) for each chunk (doc/design/record-format.md). A thread's chunks are
    in the order in which they were written. last: the chunk is the thread's last one."""
    with open(os.path.join(data, "chunks"), "rb") as f:
        text = f.read()
    at, threads = 16, collections.defaultdict(list)
    while at < len(text):
        serial, used, seq, tid = (struct.unpack_from(form, text, at + offset)[0] for form, offset in
                                  (("<I", 4), ("<I", 24), ("<Q", 32), ("<I", 20)))
        threads[serial, tid].append((seq, struct.unpack_from("<%dQ" % (used // 8), text, at + HEADER)))
        at += HEADER + used
    for (_, tid), of in threads.items():
        for seq, words in sorted(of):
            yield tid, words, seq == max(of)[0]


def holes(data, mark_site):
    """Returns the number of reserved words that were never written, by thread and by mark."""
    found, marks = collections.Counter(), collections.Counter()
    for tid, words, last in chunks(data):
        end = min(len(words), (LIMIT - HEADER) // 8)        # no record begins at `end` or later
        while end and not words[end - 1]:
            end -= 1
        at = 0
        while at < end:
            word, length, site = words[at], 1, None
            kind = word & 3
            if kind:
                site = word >> 2 & 0xfffff
            elif word:
                length, site = word >> 8 & 0xff, word >> 16 & 0xfffff
            if not word or (not kind and word >> 2 & 0x3f == UNDONE):
                found[tid, marks[tid]] += 1
            elif not kind and word >> 2 & 0x3f in ADDRESSED and words[at + 1] & 0xff != ADDRESS << 2:
                raise pbtest.Failure("a record of type %d whose second word is %x" % (word >> 2 & 0x3f, words[at + 1]))
            elif site == mark_site and (kind == 1 or (not kind and word >> 2 & 0x3f in (END, LONG))):
                marks[tid] += 1
            at += length or 1
        # A chunk that isn't the thread's last one is full. So each zero word at its end was reserved.
        # If an UNDONE record reaches past `end`, its words aren't counted again.
        if not last:
            found[tid, marks[tid]] += max(0, (LIMIT - HEADER) // 8 - max(end, at))
    return found
