/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The built-in records of a trace, each declared once.
 *
 * A chunk's data is a sequence of little-endian 64-bit words. The lowest two
 * bits of a record's first word are its tag:
 *
 *   LEAF   63       42 41      22 21    2 1 0   a call that made no traced call,
 *          [ end:22  ][ dur:20   ][ site ][01]  written at its end
 *   ENTRY  63                  22 21    2 1 0   a call begins (written when its
 *          [ time:42             ][ site ][10]  first traced callee needs it)
 *   EXIT   63                  22 21    2 1 0   a call whose ENTRY was written
 *          [ time:42             ][ site ][11]  returns
 *   EXT    63       36 35      16 15  8 7  2 1 0
 *          [ time:28 ][ site:20  ][ len ][type][00]   everything else
 *
 * A word of zero where a record would begin is a hole: space that a writer
 * reserved and never filled. It is skipped, one word at a time.
 *
 * Times are the low bits of the clock. The decoder keeps `last`, the full time of the record before
 * it (chunk->start at the chunk's first record), and takes the value nearest to `last` that has
 * these low bits. The distance is signed, because a record that a signal handler writes inside
 * another record's reservation may be out of order. If the distance doesn't fit, the writer writes
 * PB_EXT_TIME (which sets `last`) before the record, or PB_EXT_LONG in place of a LEAF. The time of
 * an ENTRY is the start of the call, that of an EXIT or a LEAF is its end. After each record `last`
 * is the record's time.
 *
 * EXT records: len counts 64-bit words, the first included; a reader skips
 * types that it does not know. `site` and `time` are zero where unused.
 *
 * X(name, number, words, has_site, has_time, event, count, text, payload fields...)
 *   event  whether it is an event of the trace: NOTHING, EVENT, AFTER_GAP (only after a gap)
 *   count  how it counts as a call: LEAF, a whole call; END, the end of a call whose ENTRY is
 *          counted (a record with a payload counts only if the payload is PB_END_ENTRY); NOTHING
 * Each payload field is F(name, "printf format") and takes one u64 word.
 */
#ifndef PB_ABI_ENTRIES_H
#define PB_ABI_ENTRIES_H

#define PB_EXT_RECORDS(X, F) \
	/* all times after this one are relative to `time` */ \
	X(TIME,  1, 2, 0, 0, NOTHING, NOTHING, "time", F(time, "%llu")) \
	/* a call whose return is not observed (an exit that isn't hooked, no room) */ \
	X(CALL,  2, 1, 1, 1, EVENT, LEAF, "call") \
	/* function tracer: entry only, with the caller's address */ \
	X(FUNC,  3, 2, 1, 1, EVENT, LEAF, "function", F(parent_ip_word, "%#llx")) \
	/* a call that was left without a return: exception, longjmp, thread end;
	 * closes the innermost open call of that site on this stack. If that call has no
	 * ENTRY (it was a leaf so far), `start` is its start, otherwise PB_END_ENTRY.
	 * (No payload word of any record is zero: a chunk's data ends with its last
	 * nonzero word.) */ \
	X(END,   4, 2, 1, 1, EVENT, END, "end", F(start, "%llu")) \
	/* a LEAF whose numbers do not fit */ \
	X(LONG,  5, 3, 1, 0, EVENT, LEAF, "leaf", F(start, "%llu") F(end, "%llu")) \
	/* at a chunk's start only: the open calls whose ENTRY is in an earlier chunk,
	 * outermost first. If there are more than PB_CHUNK_OPEN_MAX, only the innermost
	 * are listed. A reader that has the earlier chunk ignores them. */ \
	X(OPEN,  6, 2, 1, 0, AFTER_GAP, NOTHING, "open", F(start, "%llu")) \
	/* the following records belong to this stack (coroutine, alternate) */ \
	X(STACK, 7, 2, 0, 0, NOTHING, NOTHING, "stack", F(stack, "%llu")) \
	/* this many records of the thread were lost just before this point */ \
	X(LOST,  8, 2, 0, 0, EVENT, NOTHING, "lost", F(count, "%llu")) \
	/* words to be skipped; len may be 1..255 */ \
	X(PAD,   9, 1, 0, 0, NOTHING, NOTHING, "pad") \
	/* words to be skipped: a record is being written there, or a jump out of a signal
	 * handler ended its writer */ \
	X(UNDONE, 10, 1, 0, 0, NOTHING, NOTHING, "undone") \
	/* not a record: the second word of FUNC and of TAIL_LEAF has this type \
	 * (pb_ext_address()). If their first word is a hole, this one is skipped, too */ \
	X(ADDRESS, 11, 1, 0, 0, NOTHING, NOTHING, "address") \
	/* EXIT of a call that ended by a jump to another function (a tail call); written \
	 * at the jump */ \
	X(TAIL, 12, 1, 1, 1, EVENT, END, "tail") \
	/* LEAF of a call that ended by a tail call: its end, and its duration, which is \
	 * shifted like an address */ \
	X(TAIL_LEAF, 13, 2, 1, 1, EVENT, LEAF, "tail leaf", F(duration_word, "%#llx"))

#endif
