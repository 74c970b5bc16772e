/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The built-in records of a trace, each declared once.
 *
 * A chunk's data is a sequence of little-endian 64-bit words. The lowest two
 * bits of a record's first word are its tag:
 *
 *   LEAF   63       42 41      22 21    2 1 0   a call that made no traced call,
 *          [ end:22  ][ dur:20   ][ site ][01]  written at its end
 *   ENTRY  63                  22 21    2 1 0   a call begins (usually written
 *          [ time:42             ][ site ][10]  when it makes a traced call)
 *   EXIT   63                  22 21    2 1 0   a call whose ENTRY was written
 *          [ time:42             ][ site ][11]  returns
 *   EXT    63       36 35      16 15  8 7  2 1 0
 *          [ time:28 ][ site:20  ][ len ][type][00]   everything else
 *
 * If a word is zero where a record would begin, it is a hole: space that a writer reserved and
 * never filled. Readers skip holes one word at a time.
 *
 * A record's time is the low bits of the clock. The decoder keeps `last`, the full time of the
 * previous record. At the chunk's first record, `last` is chunk->start. The decoder takes the full
 * time nearest to `last` that has the record's low bits. This time may be before `last`: if a
 * signal handler interrupts code that writes a record, the handler's records may come before or
 * after that record. If a time is too far from `last`, the writer first writes PB_EXT_TIME, which
 * sets `last`. If a duration doesn't fit into a LEAF, the writer writes PB_EXT_LONG instead. The
 * time of an ENTRY is the start of the call. The time of an EXIT or a LEAF is the end of the call.
 * After each record that has a time, `last` is this time.
 *
 * EXT records: len is the count of all 64-bit words of the record. Readers skip types that they
 * don't know. If a type doesn't use `site` or `time`, the field is zero.
 *
 * X(name, number, words, has_site, has_time, event, count, text, payload fields...)
 *   event  EVENT: the record is an event of the trace. AFTER_GAP: it is an event only after a gap.
 *          NOTHING: it is never an event
 *   count  LEAF: the record counts as a whole call. END: it counts as the end of a call whose ENTRY
 *          was counted. But if it has a payload other than PB_END_ENTRY, the call has no ENTRY, and
 *          the record counts as the whole call. NOTHING: the record isn't counted
 * Each payload field is F(name, "printf format") and takes one u64 word.
 */
#ifndef PB_ABI_ENTRIES_H
#define PB_ABI_ENTRIES_H

#define PB_EXT_RECORDS(X, F) \
	/* times of later records are relative to `time` */ \
	X(TIME,  1, 2, 0, 0, NOTHING, NOTHING, "time", F(time, "%llu")) \
	/* a call whose return can't be recorded: an exit isn't hooked, or there is no room for
	 * another open call */ \
	X(CALL,  2, 1, 1, 1, EVENT, LEAF, "call") \
	/* function tracer: a function's entry, with the caller's address */ \
	X(FUNC,  3, 2, 1, 1, EVENT, LEAF, "function", F(parent_ip_word, "%#llx")) \
	/* A call that ended without a return: exception, longjmp, thread end. Closes the
	 * innermost open call of this site on this stack. If the call has no ENTRY (it was a
	 * leaf so far), `start` is the start of the call. Otherwise `start` is PB_END_ENTRY.
	 * `start` is never zero, because a chunk's data ends with its last nonzero word: a
	 * zero at the end of the data would be cut off. Only OPEN may have a payload word of
	 * zero. */ \
	X(END,   4, 2, 1, 1, EVENT, END, "end", F(start, "%llu")) \
	/* in place of a LEAF: the call's duration doesn't fit into a LEAF */ \
	X(LONG,  5, 3, 1, 0, EVENT, LEAF, "leaf", F(start, "%llu") F(end, "%llu")) \
	/* Only at a chunk's start: a call that is open there. Its ENTRY is in an earlier chunk,
	 * or comes later if a signal handler interrupted the code that writes the ENTRY. Outer
	 * calls come first. If more than PB_CHUNK_OPEN_MAX calls are open, only the innermost
	 * are listed. If no record is missing before the chunk, readers ignore the list. */ \
	X(OPEN,  6, 2, 1, 0, AFTER_GAP, NOTHING, "open", F(start, "%llu")) \
	/* the records that follow belong to this stack, for example a coroutine's */ \
	X(STACK, 7, 2, 0, 0, NOTHING, NOTHING, "stack", F(stack, "%llu")) \
	/* `count` calls of the thread were lost just before this record */ \
	X(LOST,  8, 2, 0, 0, EVENT, NOTHING, "lost", F(count, "%llu")) \
	/* unused words, which readers skip; len may be 1..255 */ \
	X(PAD,   9, 1, 0, 0, NOTHING, NOTHING, "pad") \
	/* Unused words, which readers skip. Their writer has not finished the record, or a jump
	 * out of a signal handler ended the writer. */ \
	X(UNDONE, 10, 1, 0, 0, NOTHING, NOTHING, "undone") \
	/* Not a record: the second word of FUNC and of TAIL_LEAF has this type \
	 * (pb_ext_address()). If the first word is a hole, readers skip the second word too. */ \
	X(ADDRESS, 11, 1, 0, 0, NOTHING, NOTHING, "address") \
	/* EXIT of a call that ended by a jump to another function (a tail call). It is \
	 * written at the jump. */ \
	X(TAIL, 12, 1, 1, 1, EVENT, END, "tail") \
	/* LEAF of a call that ended by a tail call. It has the call's end and duration. The \
	 * duration is in the second word, made by pb_ext_address(). */ \
	X(TAIL_LEAF, 13, 2, 1, 1, EVENT, LEAF, "tail leaf", F(duration_word, "%#llx"))

#endif
